"""Explanations as text: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

from loopscan.explaining.document import SHOWN, left_out
from loopscan.explaining.explain import Explanation
from loopscan.explaining.looks import Look
from loopscan.explaining.repetitions import labelled
from loopscan.explaining.shadows import Reason
from loopscan.explaining.watcher import Explained
from loopscan.explaining.words import LEGEND, SYMBOLS, allowance, answer_of, guard_lines, rule_state, strip
from loopscan.marks import Level
from loopscan.policy import Policy
from loopscan.reports.base import Options
from loopscan.reports.console import console, fields, grid, safe
from loopscan.reports.phrases import counted, moment
from loopscan.sanitize import preview

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

#: So many runs are told of unless all are asked for.
MOST: Final = 10
_NAME: Final = 60
_SOURCE: Final = 200


def write(found: Explanation, out: TextIO, options: Options) -> None:
    """Write the answers; those of runs in which nothing repeats only with ``verbose``."""
    to = console(out, width=options.width, color=options.color)
    told = [answer for answer in found.answers if options.verbose or not _says_nothing(answer)]
    for number, answer in enumerate(told if options.verbose else told[:MOST]):
        if number:
            to.print()
        for part in _answer(answer, found.options.policy_of(answer.agent), options):
            to.print(part)
    for line in _rest(found, told, options):
        to.print(safe(line, "dim"))


def _rest(found: Explanation, told: list[Explained], options: Options) -> Iterator[str]:
    """Yield what is to be said of the runs that are not told of."""
    if not options.verbose and len(told) > MOST:
        yield f"and {counted(len(told) - MOST, 'more run')}: --verbose tells of all, --session and --run of one"
    quiet = len(found.answers) - len(told)
    if quiet:
        yield f"in {counted(quiet, 'run')} nothing repeats: no call was made three times"


def _says_nothing(answer: Explained) -> bool:
    return answer.mark is None and answer.silence is not None and answer.silence.reason is Reason.NOTHING_REPEATS


def _answer(answer: Explained, policy: Policy, options: Options) -> Iterator[RenderableType]:
    critical = answer.mark is not None and answer.mark.level is Level.CRITICAL
    yield safe(answer_of(answer, policy), "bold red" if critical else "bold")
    table = fields()
    run_id = f" ({answer.run_id})" if answer.run_id else ""
    line = answer.look.line if answer.look is not None else _line(answer)
    table.add_row("at", safe(f"{answer.source}:{line}" if line else answer.source, limit=_SOURCE))
    table.add_row("run", safe(f"{answer.run}{run_id} of session {answer.session}", limit=2 * _NAME))
    if answer.agent is not None:
        table.add_row("agent", safe(answer.agent, limit=_NAME))
    if answer.silence is not None:
        for label, text in answer.silence.details:
            table.add_row(safe(label), safe(text))
    if answer.look is not None:
        _add_call(table, answer.look)
    yield table
    if answer.look is not None and not options.quiet:
        yield from _state(answer.look, policy)


def _line(answer: Explained) -> int:
    if answer.mark is not None:
        return answer.mark.where.line
    return answer.silence.line if answer.silence is not None else 0


def _add_call(table: Table, look: Look) -> None:
    at = f", {moment(look.time)}" if look.time is not None else ""
    table.add_row("call", safe(f"{look.call} (message {look.batch}) {look.tool}{at}", limit=2 * _NAME))
    table.add_row("arguments", safe(f"{look.signature.hex()[:12]}  {preview(look.compared_arguments, SHOWN)}"))
    gone = left_out(look)
    if gone:
        table.add_row("", safe(f"not compared: {', '.join(gone)}"))
    outcome = look.outcome
    if any(mark.blocked_calls for mark in look.marks):
        table.add_row("vetoed", safe("it does not run, whatever the record says of it"))
    elif outcome is None:
        table.add_row("outcome", safe("none on record"))
    else:
        identity = look.outcome_identity.hex()[:12] if look.outcome_identity is not None else "none"
        table.add_row("outcome", safe(f"{identity}  {preview(labelled(outcome.value), SHOWN)}"))
        if outcome.failure is not None:
            table.add_row("", safe(f"as a failure: {preview(labelled(outcome.failure), SHOWN)}"))
        if look.lossy:
            table.add_row("", safe("the record holds only a part of it: the live engine may have seen more"))


def _state(look: Look, policy: Policy) -> Iterator[RenderableType]:
    """Yield the state of the engine at the call."""
    table = fields()
    table.add_row("history", safe(f"[{strip(look.cells, look.room)}] {len(look.cells)} of {look.room}, newest last"))
    seen = [cell for cell in LEGEND if cell in look.cells]
    if seen:
        table.add_row("", safe("   ".join(f"{SYMBOLS[cell]} {LEGEND[cell]}" for cell in seen), "dim"))
    yield table
    if look.rules:
        rules = grid({}, {}, {"justify": "right"}, {})
        for rule in look.rules:
            style = "bold" if rule.first else ("" if rule.met else "dim")
            cells = (rule.detector.value, rule.level.value, f"{rule.count} of {rule.threshold}", rule_state(rule))
            rules.add_row(*(safe(cell, style) for cell in cells))
        yield rules
    more = fields()
    if look.bucket is not None:
        kept = "kept back" if look.suppressed else "let out"
        more.add_row(
            "rate limit", safe(f"{kept}: bucket {look.bucket}, {look.highest_bucket} before; one per ten counts")
        )
    more.add_row("allowance", safe(allowance(look, policy)))
    for line in guard_lines(look):
        more.add_row("guard", safe(line))
    yield more
