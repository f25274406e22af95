"""The choices of a replay, apart from the rules: light, since the command line reads them for its help."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Whether verdicts have consequences in the replay."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class ScopeRule(StrEnum):
    """What the detectors look back over: the records of one run, or of the whole session."""

    RUN = "run"
    SESSION = "session"


class By(StrEnum):
    """What thresholds may be chosen for apart."""

    AGENT = "agent"
    MODEL = "model"


class Arm(StrEnum):
    """When an in-run compaction arms the post-compaction guard."""

    AUTO = "auto"
    """As the ruleset's releases do, as far as the record tells."""
    ALWAYS = "always"
    NEVER = "never"
