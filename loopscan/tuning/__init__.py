"""Thresholds with evidence: one pass over the records, then every combination of settings from what was kept."""
