"""Checks: what ``loopscan check`` holds a replay against, and what it says then."""
