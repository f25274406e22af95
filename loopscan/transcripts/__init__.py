"""Readers: one module a format, each turns a source into events."""
