"""Everything loopscan raises on purpose: one family, each with the exit code it means.

The messages are for people: what is wrong, where, and what to do about it. They never hold text
taken from a transcript unless it went through :mod:`loopscan.sanitize`.
"""


class LoopscanError(Exception):
    """Base of all errors that a user can do something about."""

    exit_code = 2


class UsageError(LoopscanError):
    """The command line or the arguments of a library call do not make sense (exit code 2)."""


class ConfigError(LoopscanError):
    """A configuration cannot be read, or holds a field that nobody knows (exit code 2)."""


class InputError(LoopscanError):
    """Input that was named cannot be read, or is no transcript (exit code 3)."""

    exit_code = 3

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path
        """What was named, as it was named."""
