"""Comparisons for people: a module for each format, with the words and tables that they share."""
