"""Repetitions that the rules cannot see: blind spots of the engine, found by looser identities. No verdicts."""
