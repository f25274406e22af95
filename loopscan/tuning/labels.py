"""Labels: whether a loop was stuck, productive, or nobody can tell, seen from the point where one would step in.

Every rule is a function with one sentence, of the evidence and the point (the order of the call that would be stepped
in at). What speaks for both sides is unknown, and so is what speaks for neither: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopscan.tuning.evidence import End, Evidence

#: How many calls are a few: a loop that ends within them would have ended by itself.
FEW: Final = 5


class Label(StrEnum):
    """What a loop was."""

    STUCK = "stuck"
    PRODUCTIVE = "productive"
    UNKNOWN = "unknown"


Rule = Callable[[Evidence, int], bool]


def outcome_changed(seen: Evidence, point: int) -> bool:
    """The repeated call itself came back with another outcome."""
    return seen.changed >= point


def another_call_succeeded(seen: Evidence, point: int) -> bool:
    """Another call succeeded with something new, after the loop if that was of failing calls."""
    return seen.succeeded >= point and (seen.went_on or not seen.failing)


def file_written(seen: Evidence, point: int) -> bool:
    """Another call wrote a file."""
    return seen.wrote >= point


def message_delivered(seen: Evidence, point: int) -> bool:
    """Another call delivered a message."""
    return seen.delivered >= point


def ended_by_itself(seen: Evidence, point: int) -> bool:
    """The loop, which was not of failing calls, ended within five calls, and the model finished its work."""
    return seen.end is End.COMPLETED and seen.remaining(point) <= FEW and not seen.failing


def run_aborted(seen: Evidence, point: int) -> bool:
    """Nothing changed to the end of the loop, nothing new came after it, and the run was aborted."""
    return _stayed(seen, point) and seen.end is End.ABORTED


def run_timed_out(seen: Evidence, point: int) -> bool:
    """Nothing changed to the end of the loop, nothing new came after it, and the run timed out."""
    return _stayed(seen, point) and seen.end is End.TIMED_OUT


def run_failed(seen: Evidence, point: int) -> bool:
    """Nothing changed to the end of the loop, nothing new came after it, and the model's call failed."""
    return _stayed(seen, point) and seen.end is End.FAILED


def run_ran_out(seen: Evidence, point: int) -> bool:
    """Nothing changed to the end of the loop, nothing new came after it, and the context or the answer was full."""
    return _stayed(seen, point) and seen.end is End.LENGTH


def user_stepped_in(seen: Evidence, point: int) -> bool:
    """Nothing changed to the end of the loop, nothing new came after it, and the user stepped in."""
    return _stayed(seen, point) and seen.end is End.USER


def live_engine_stepped_in(seen: Evidence, point: int) -> bool:
    """The live loop detection stepped in itself: what would have followed is not on record."""
    return seen.live >= seen.first


def contradiction(seen: Evidence, point: int) -> bool:
    """Some rules say stuck, others productive."""
    return any(rule(seen, point) for rule in STUCK) and any(rule(seen, point) for rule in PRODUCTIVE)


def record_ends(seen: Evidence, point: int) -> bool:
    """The record ends there, or does not tell how the run ended."""
    return seen.end is End.OPEN


def gave_up(seen: Evidence, point: int) -> bool:
    """The model ended the loop after more than five further calls and brought nothing new: neither is certain."""
    return True


def _stayed(seen: Evidence, point: int) -> bool:
    return seen.changed < point and not seen.went_on


PRODUCTIVE: Final[tuple[Rule, ...]] = (
    outcome_changed,
    file_written,
    message_delivered,
    another_call_succeeded,
    ended_by_itself,
)
STUCK: Final[tuple[Rule, ...]] = (run_aborted, run_timed_out, run_failed, run_ran_out, user_stepped_in)

#: All rules in their order: the first that holds names the label. What is unknown for a reason goes first.
RULES: Final[tuple[tuple[Label, Rule], ...]] = (
    (Label.UNKNOWN, live_engine_stepped_in),
    (Label.UNKNOWN, contradiction),
    *((Label.PRODUCTIVE, rule) for rule in PRODUCTIVE),
    *((Label.STUCK, rule) for rule in STUCK),
    (Label.UNKNOWN, record_ends),
    (Label.UNKNOWN, gave_up),
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label, and the name of the rule that gave it; ``given`` if a person did."""

    label: Label
    rule: str


def label(seen: Evidence, point: int) -> Labelled:
    """Return what a loop was, seen from ``point``."""
    return next(Labelled(found, rule.__name__) for found, rule in RULES if rule(seen, point))


def explained() -> Iterator[tuple[Label, str, str]]:
    """Yield every rule in its order: its label, its name and its sentence."""
    for found, rule in RULES:
        yield found, rule.__name__, " ".join((rule.__doc__ or "").split())
