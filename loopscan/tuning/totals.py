"""Sums over sessions: what every setting of a grid comes to on some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

from loopscan.tuning.arrays import Floats, Ints
from loopscan.tuning.courses import METRIC, METRICS
from loopscan.tuning.profiles import SessionProfile
from loopscan.tuning.sweep import SessionAnswers


class Totals:
    """What every setting comes to on some sessions. Arrays have one entry a setting unless they say otherwise."""

    def __init__(self, answers: Sequence[SessionAnswers], profiles: Sequence[SessionProfile], settings: int) -> None:
        """Sum up. ``profiles`` are all the sessions, ``answers`` those of them that tell something."""
        self.answers = list(answers)
        self.profiles = list(profiles)
        self.risky = [each for each in self.answers if each.at_risk]
        self.calls = sum(profile.spent.calls for profile in profiles)
        self.figures: Floats = np.zeros((settings, len(METRICS)))
        self.false_sessions: Ints = np.zeros(settings, dtype=np.int64)
        self.missed_sessions: Ints = np.zeros(settings, dtype=np.int64)
        self.untold_sessions: Ints = np.zeros(settings, dtype=np.int64)
        """Sessions at risk in which the setting makes no false block, but steps into what nobody can judge."""
        self.groups: NDArray[np.uint64] = np.zeros(settings, dtype=np.uint64)
        """Settings that come to the same on every session have the same number."""
        for each in self.answers:
            each.add_to(self.figures)
            if each.at_risk:
                false = each.metric("false_blocks") > 0
                self.false_sessions += false
                self.untold_sessions += ~false & (each.metric("unknown_blocked") > 0)
                self.missed_sessions += each.metric("missed") > 0
            random = np.random.default_rng(list(_seed(each.profile)))
            for unit in each.units:
                codes = random.integers(1, 1 << 63, size=len(unit.courses) + 1, dtype=np.uint64)
                if len(unit.courses) > 1:
                    self.groups += codes[unit.course]
                self.groups += codes[-1] * unit.warnings

    def __add__(self, other: Totals) -> Totals:
        """Return the sums over the sessions of both, which have to be different ones."""
        both = Totals((), (), len(self.groups))
        both.answers, both.profiles = self.answers + other.answers, self.profiles + other.profiles
        both.risky, both.calls = self.risky + other.risky, self.calls + other.calls
        both.figures = self.figures + other.figures
        both.false_sessions = self.false_sessions + other.false_sessions
        both.missed_sessions = self.missed_sessions + other.missed_sessions
        both.untold_sessions = self.untold_sessions + other.untold_sessions
        both.groups = self.groups + other.groups
        return both

    @property
    def at_risk(self) -> int:
        """How many sessions can be judged."""
        return len(self.risky)

    @property
    def told(self) -> Ints:
        """For each setting, how many of the sessions at risk tell whether it makes a false block."""
        return self.at_risk - self.untold_sessions

    def metric(self, name: str) -> Floats:
        """Return one of the :data:`METRICS`."""
        found: Floats = self.figures[:, METRIC[name]]
        return found

    def by_session(self, name: str, columns: Ints) -> Floats:
        """Return one of the :data:`METRICS` for each session at risk, and some settings."""
        rows = np.zeros((len(self.risky), len(columns)))
        for place, each in enumerate(self.risky):
            rows[place] = each.metric(name)[columns]
        return rows


def _seed(profile: SessionProfile) -> bytes:
    """Return what makes the codes of a session its own, and the same in every order."""
    name = repr((profile.source, profile.session, profile.started, profile.spent.calls))
    return xxhash.xxh3_128_digest(name.encode("utf-8", "surrogatepass"))
