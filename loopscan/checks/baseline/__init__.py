"""Baselines: the marks that logs are known to have, so that only new ones fail."""
