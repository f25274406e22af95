"""Explanations for people."""
