"""Regression tests for loop detection: expectations, benign folders, baselines."""
