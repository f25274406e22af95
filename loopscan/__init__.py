"""Replays recorded agent sessions through OpenClaw's loop detection.

>>> import loopscan
>>> report = loopscan.replay(["sessions/"], ruleset="2026.9")
>>> report.to_dict()["totals"]["marks"]["block"]

What is listed in ``__all__`` is the public surface; it is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from loopscan._version import __version__
from loopscan.errors import ConfigError, InputError, LoopscanError, UsageError

if TYPE_CHECKING:
    from loopscan.replayer import replay
    from loopscan.report import Report

__all__ = ["ConfigError", "InputError", "LoopscanError", "Report", "UsageError", "__version__", "replay"]

_LAZY = {"replay": "loopscan.replayer", "Report": "loopscan.report"}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Load a public name at its first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return found


def __dir__() -> list[str]:
    """List the public names, those that are not loaded yet included."""
    return sorted({*globals(), *__all__})
