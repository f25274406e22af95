"""What changes from one ruleset or configuration to another."""
