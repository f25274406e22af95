"""The timeline of a run: what people see around its marks, in bounded memory.

Repeated calls are folded as they come; of what lies between two marks only the newest steps are
kept, the rest is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopscan.events import Json, Recorded
from loopscan.marks import Mark
from loopscan.report import Step
from loopscan.sanitize import preview

#: How many steps before a mark (and after the last one) are kept: enough to see a loop of several tools.
AROUND = 40


@dataclass(slots=True)
class _Calls:
    """A folded row of calls; the preview is made only if the row is shown."""

    batch: int
    tool: str
    signature: bytes
    arguments: Json
    became: str
    times: int = 1

    def step(self, *, previews: bool) -> Step:
        shown = preview(self.arguments) if previews and self.arguments not in (None, {}) else None
        digest = self.signature.hex()[:12]
        return Step("calls", self.batch, self.tool, shown, digest, self.times, self.became)


class Timeline:
    """Collects the steps of one run."""

    def __init__(self, *, previews: bool) -> None:
        self._previews = previews
        self._recent: list[_Calls | Step] = []  # short, and small while empty: there can be very many runs
        self._elided = 0  # calls that were left out since the last step kept
        self._steps: list[Step] = []
        self._worth = False

    def call(self, batch: int, tool: str, signature: bytes, arguments: Json, became: str) -> None:
        """Add one call."""
        last = self._recent[-1] if self._recent else None
        if isinstance(last, _Calls) and (last.signature, last.became) == (signature, became):
            last.times += 1
            return
        self._push(_Calls(batch, tool, signature, arguments, became))

    def note(self, batch: int, text: str) -> None:
        """Add a note in our own words."""
        self._push(Step("note", batch, text=text))

    def mark(self, mark: Mark) -> None:
        """Add a mark, and keep what came just before it."""
        self._keep(Step("mark", mark.batch, mark.tool, mark=mark))

    def expected(self, batch: int, words: str) -> None:
        """Add a mark that was expected here and is missing."""
        self._keep(Step("expected", batch, text=words))

    def recorded(self, batch: int, verdict: Recorded) -> None:
        """Add a verdict that the record itself shows."""
        self._keep(Step("recorded", batch, verdict.tool, recorded=verdict))

    def close(self) -> None:
        """Let go of the calls of a run that is over: shown ones are kept short, others not at all.

        A run may still go on after it.
        """
        if self._worth:
            self._flush()
        else:
            self._elided += sum(step.times for step in self._recent if isinstance(step, _Calls))
            self._recent.clear()

    def steps(self) -> list[Step]:
        """Return the steps of a run that has a mark or a recorded verdict, else nothing."""
        self.close()
        return self._steps if self._worth else []

    def _push(self, step: _Calls | Step) -> None:
        self._recent.append(step)
        if len(self._recent) > AROUND:
            dropped = self._recent.pop(0)
            if isinstance(dropped, _Calls):
                self._elided += dropped.times

    def _keep(self, step: Step) -> None:
        self._worth = True
        self._flush()
        self._steps.append(step)

    def _flush(self) -> None:
        if self._elided:
            self._steps.append(Step("elided", times=self._elided))
            self._elided = 0
        for step in self._recent:
            self._steps.append(step.step(previews=self._previews) if isinstance(step, _Calls) else step)
        self._recent.clear()
