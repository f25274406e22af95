"""Replays recorded agent sessions through OpenClaw's loop detection.

>>> import loopscan
>>> report = loopscan.replay(["sessions/"], ruleset="2026.9")
>>> report.to_dict()["totals"]["marks"]["block"]
"""

from loopscan._version import __version__

__all__ = ["__version__"]
