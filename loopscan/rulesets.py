"""The table of releases: what each family of OpenClaw releases decides, as data.

Adding a release means adding an entry to :data:`RULESETS`, and a normaliser at most. Facts come
from the published releases; where a number is configurable it is the default.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from loopscan.errors import UsageError


@dataclass(frozen=True, slots=True)
class Ruleset:
    """What one family of releases does."""

    name: str
    covers: str
    configurable: bool
    """Thresholds, window, detectors and history may be configured, also per agent; else only ``enabled`` is read."""
    agents_key: tuple[str, ...]
    """Where per-agent blocks live natively: ``("agents", "list")`` or ``("agents", "entries")``."""

    # Defaults, which are the fixed values where ``configurable`` is false.
    history_size: int = 30
    warning: int = 10
    critical: int = 20
    breaker: int = 30
    unknown_tool: int = 10
    guard_window: int = 3

    # Consequences.
    batch_admission: bool = True
    """A critical verdict vetoes the whole batch and the second one ends the run; else it vetoes one call."""

    # Names, arguments and outcomes.
    tool_aliases: tuple[tuple[str, str], ...] = (("bash", "exec"), ("apply-patch", "apply_patch"))
    send_tools: tuple[str, ...] = ("sessions_send",)
    ignore_nonces: bool = True
    failures_across_arguments: bool = True
    unchanged_write_is_no_progress: bool = True
    argument_churn: bool = True
    ignored_arguments: tuple[tuple[str, str], ...] = ()
    """(tool, argument) pairs that are no part of a call's identity."""
    polls: tuple[str, ...] = ("command_status",)
    """Tools that are known polls whatever their arguments; ``process`` poll and log always are."""
    poll_critical: tuple[tuple[str, int], ...] = ()
    """(tool, threshold) for known polls whose block does not follow ``criticalThreshold``."""
    live_identities: bool = False
    """Outcome identities of Code Mode, ``computer``, ``progress_card`` and ``memory_search``."""
    record_rejections: bool = False
    identical_errors: int | None = None
    """Identical failures in a row that end a run; ``None``: no such guard."""

    # Guards.
    arms_on_hook_only: bool = False
    """The post-compaction guard is armed only by the runner's own recovery (recorded as ``fromHook: true``)."""


_R2026_6 = Ruleset(
    name="2026.6",
    covers="2026.6.11 to 2026.7.x",
    configurable=True,
    agents_key=("agents", "list"),
    batch_admission=False,
    ignore_nonces=False,
    failures_across_arguments=False,
    unchanged_write_is_no_progress=False,
    argument_churn=False,
    arms_on_hook_only=True,
)

_R2026_9 = Ruleset(
    name="2026.9",
    covers="2026.8.1 to 2026.9.6",
    configurable=False,
    agents_key=("agents", "entries"),
    tool_aliases=(("bash", "exec"), ("apply-patch", "apply_patch"), ("cron", "automations")),
    send_tools=("sessions_send", "conversations_send", "conversations_turn"),
)

_LATEST = replace(
    _R2026_9,
    name="latest",
    covers="the documentation after 2026.9.6",
    ignored_arguments=(("exec", "title"),),
    polls=("command_status", "wait"),
    poll_critical=(("wait", 10),),
    live_identities=True,
    record_rejections=True,
    identical_errors=3,
)

#: Every ruleset by name, oldest first.
RULESETS: dict[str, Ruleset] = {r.name: r for r in (_R2026_6, _R2026_9, _LATEST)}


def ruleset(name: str) -> Ruleset:
    """Return the ruleset called ``name``.

    Raises :class:`UsageError` for a name that is not in :data:`RULESETS`.
    """
    try:
        return RULESETS[name]
    except KeyError:
        known = ", ".join(f"{known} ({each.covers})" for known, each in RULESETS.items())
        raise UsageError(f"there is no ruleset {name!r}; known: {known}") from None


_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_COMPARISON: Final = rf" *({'|'.join(_COMPARE)}) *({'|'.join(map(re.escape, RULESETS))}) *"
#: Comparisons of rulesets by age, as a regular expression: ``>=2026.6, <latest``.
COMPARISONS: Final = f"{_COMPARISON}(,{_COMPARISON})*"


def ruleset_meets(name: str, comparisons: str) -> bool:
    """Tell whether the ruleset ``name`` is in a range such as ``>=2026.6, <latest``; they are ordered by age.

    Raises :class:`ValueError` for what is no comparison with one of them.
    """
    age = {known: at for at, known in enumerate(RULESETS)}
    met = name in age
    for part in comparisons.split(","):
        found = re.fullmatch(_COMPARISON, part)
        if found is None:
            raise ValueError(f"must be comparisons with {', '.join(RULESETS)}, such as >=2026.9")
        met = met and _COMPARE[found[1]](age[name], age[found[2]])
    return met
