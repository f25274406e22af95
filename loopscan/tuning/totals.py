"""Sums over sessions: what every setting of a grid comes to on some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loopscan.tuning.arrays import Bools, Floats, Ints
from loopscan.tuning.courses import METRIC, METRICS
from loopscan.tuning.profiles import SessionProfile
from loopscan.tuning.sweep import SessionAnswers


class Totals:
    """What every setting comes to on some sessions. Arrays have one entry a setting unless they say otherwise."""

    def __init__(self, answers: Sequence[SessionAnswers], profiles: Sequence[SessionProfile], settings: int) -> None:
        """Sum up. ``profiles`` are all the sessions, ``answers`` those of them in which something repeats."""
        self.answers = [each for each in answers if each.units]
        self.profiles = profiles
        self.risky = [each for each in self.answers if each.at_risk]
        self.at_risk = len(self.risky)
        self.calls = sum(profile.spent.calls for profile in profiles)
        self.figures: Floats = np.zeros((len(METRICS), settings))
        self.false_sessions: Ints = np.zeros(settings, dtype=np.int64)
        self.missed_sessions: Ints = np.zeros(settings, dtype=np.int64)
        self.groups: NDArray[np.uint64] = np.zeros(settings, dtype=np.uint64)
        """Settings that come to the same on every session have the same number."""
        random = np.random.default_rng(1)
        for each in self.answers:
            figures = each.figures()
            self.figures += figures
            if each.at_risk:
                self.false_sessions += figures[METRIC["false_blocks"]] > 0
                self.missed_sessions += figures[METRIC["missed"]] > 0
            for unit in each.units:
                codes = random.integers(1, 1 << 63, size=len(unit.courses) + 1, dtype=np.uint64)
                self.groups += codes[unit.course] + codes[-1] * unit.warnings

    def metric(self, name: str) -> Floats:
        """Return one of the :data:`METRICS`."""
        found: Floats = self.figures[METRIC[name]]
        return found

    def by_session(self, name: str, columns: Ints) -> Floats:
        """Return one of the :data:`METRICS` for each session at risk, and some settings."""
        rows = np.zeros((len(self.risky), len(columns)))
        for place, each in enumerate(self.risky):
            rows[place] = each.figures()[METRIC[name]][columns]
        return rows

    def stuck_sessions(self, columns: Ints) -> Bools:
        """Return for each session at risk whether some of the settings catches or misses a stuck incident in it."""
        caught, missed = self.by_session("caught", columns), self.by_session("missed", columns)
        return np.asarray(((caught + missed) > 0).any(axis=1), dtype=np.bool_)
