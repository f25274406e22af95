"""Formats of a report: one module each, all with the same signature, found by name (:mod:`loopscan.reports.base`)."""

from loopscan.reports.base import Options, Target, load, names, parse_target, prepare, write_all

__all__ = ["Options", "Target", "load", "names", "parse_target", "prepare", "write_all"]
