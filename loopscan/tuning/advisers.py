"""Advice on a whole replay, in which single agents may have settings of their own."""

from __future__ import annotations

from loopscan.policy import Policy
from loopscan.sanitize import clean
from loopscan.tuning.advice import Adviser
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.settings import Setting


class Advisers:
    """Takes in sessions, each with the policy that it was judged by; those under the same settings count together."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._by_setting: dict[Setting, tuple[Adviser, set[str | None]]] = {}

    def add(self, profile: SessionProfile, policy: Policy) -> None:
        """Take in one session."""
        setting = Setting.of(policy)
        known = self._by_setting.get(setting)
        if known is None:
            known = self._by_setting[setting] = (Adviser(policy.ruleset, self._basis, setting), set())
        known[0].add(profile)
        known[1].add(profile.agent)

    def lines(self) -> list[str]:
        """Return one to three lines: those on the settings under which most loops were, and say whose they are."""
        ordered = sorted(self._by_setting.values(), key=lambda known: -known[0].loops)
        if not ordered or not ordered[0][0].loops:
            return []
        adviser, agents = ordered[0]
        lines = adviser.lines()
        others = sum(each.loops > 0 for each, _ in ordered[1:])
        if others:
            names = ", ".join(sorted(clean(agent or "no agent", 40) for agent in agents)[:3])
            lines[0] = f"{names}: {lines[0]} (loopscan tune --by agent tells of the other agents)"
        return lines
