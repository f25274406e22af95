"""Verifications for people."""
