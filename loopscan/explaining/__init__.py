"""Why the engine stepped in where it did, and why it did not where it did not."""
