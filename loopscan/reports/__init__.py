"""Formats of a report: one module each, all with the same signature."""
