"""One part of the sessions, all of them or those of an agent: what every setting comes to, and what is chosen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from loopscan.tuning.arrays import Ints
from loopscan.tuning.chains import chains, leniency
from loopscan.tuning.choice import Choice, Preferences, Reason, choose, choose_by_cost, pareto_front
from loopscan.tuning.courses import METRIC, Judge
from loopscan.tuning.intervals import clopper_pearson_each, lower_bounds, sessions_needed
from loopscan.tuning.labels import Label
from loopscan.tuning.prices import Prices
from loopscan.tuning.profiles import LOWEST_THRESHOLD, SessionProfile
from loopscan.tuning.promise import Chain, Demand, Promise, promised
from loopscan.tuning.report import Candidate, Chosen, Figures, HeldOut, Part, Savings, Stability, Verdict
from loopscan.tuning.rows import earliest
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.stability import stability, stability_by_cost
from loopscan.tuning.sweep import SessionAnswers
from loopscan.tuning.totals import Totals
from loopscan.tuning.wording import counted, percent

#: What is saved is compared in the first of these that anything is known of.
_WORTH: Final = ("saved_usd", "saved_tokens", "saved_calls")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is to be chosen by."""

    max_false_block: float = 0.05
    confidence: float = 0.95
    cost_ratio: float | None = None
    holdout: float = 0.3
    by_agent: bool = False
    """Hold out each agent in turn as well."""
    rounds: int = 200
    """How often sessions are redrawn to see how stable the choice is; 0: not at all."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Some sessions, with the answers of those in which something repeats."""

    profiles: Sequence[SessionProfile]
    answers: Sequence[SessionAnswers]

    def only(self, profiles: Sequence[SessionProfile]) -> Sessions:
        """Return those of some profiles."""
        wanted = {id(profile) for profile in profiles}
        return Sessions(profiles, [each for each in self.answers if id(each.profile) in wanted])


class Parts:
    """Makes :class:`Part` of sessions: the grid, what is in force and what is wished for are the same for all."""

    def __init__(
        self, grid: Grid, in_force: Setting, judge: Judge, wishes: Wishes, written: Setting | None = None
    ) -> None:
        """Prepare; ``grid`` has what is in force, and the same with the detectors off.

        ``written`` is what is really in force, where ``in_force`` only stands for it: changes are told against that.
        """
        self.written = written or in_force
        self.grid, self.in_force, self.judge, self.wishes = grid, in_force, judge, wishes
        self._now, self._off = grid.number(in_force), grid.number(replace(in_force, enabled=False))
        self.chains = chains(grid, in_force)
        self.eligible: Ints = np.array(
            sorted({each for chain in self.chains for each in chain.candidates}), dtype=np.int64
        )
        order = sorted(range(len(grid.settings)), key=lambda number: leniency(grid.settings[number]))
        strictness = np.empty(len(order), dtype=np.int64)
        strictness[order] = np.arange(len(order))
        self._strictness = strictness
        self._changes = np.array([len(setting.changes(self.written)) for setting in grid.settings], dtype=np.int64)

    def part(self, name: str | None, sessions: Sessions, *, share: float = 1.0) -> Part:
        """Return what there is to say of some sessions; ``share`` is the part of the error their choice may use."""
        older, newer = self._split(sessions)
        totals, rest = self._totals(older), self._totals(newer)
        everything = totals + rest
        chosen = self._chosen(totals, share)
        candidates = self._candidates(everything, totals, share)
        held_out: list[HeldOut] = []
        if newer.profiles:
            words = f"the newest {percent(self.wishes.holdout)} of the sessions"
            held_out.append(self._held_out(words, chosen, totals, rest))
            chosen = self._contradicted(chosen, held_out[0])
        if self.wishes.by_agent and name is None:
            held_out += self._by_agent(sessions, share)
        started = [profile.started for profile in sessions.profiles if profile.started is not None]
        ended = [profile.ended for profile in sessions.profiles if profile.ended is not None]
        return Part(
            name,
            len(sessions.profiles),
            sum(profile.runs for profile in sessions.profiles),
            everything.calls,
            min(started, default=None),
            max(ended, default=None),
            everything.at_risk,
            self._labels(everything),
            self.candidate(everything, self._now),
            self.candidate(everything, self._off),
            tuple(candidates),
            chosen,
            tuple(held_out),
            self._stability(totals, chosen, share),
            (),
        )

    def _contradicted(self, chosen: Chosen, held: HeldOut) -> Chosen:
        """Return the choice, or that there is none if the held-out sessions are surely against it."""
        after = held.after
        if chosen.candidate is None or chosen.by_cost or after is None or not after.at_risk:
            return chosen
        least = lower_bounds([after.false_sessions], after.at_risk, 1 - self.wishes.confidence)
        if float(least[0]) <= self.wishes.max_false_block:
            return chosen
        reason = (
            f"what the older sessions speak for makes a false block in {after.false_sessions} of {after.at_risk} "
            f"sessions of {held.name}: they are not alike, and nothing can be promised"
        )
        return replace(chosen, verdict=Verdict.CONTRADICTED, candidate=None, reason=reason)

    def _totals(self, sessions: Sessions) -> Totals:
        return Totals(sessions.answers, sessions.profiles, len(self.grid.settings))

    def _split(self, sessions: Sessions) -> tuple[Sessions, Sessions]:
        """Return the older and the newer sessions; those without a time count as the oldest."""
        ordered = sorted(sessions.profiles, key=lambda each: -math.inf if each.started is None else each.started)
        newest = round(len(ordered) * self.wishes.holdout)
        older = ordered[: len(ordered) - newest]
        return sessions.only(older), sessions.only(ordered[len(ordered) - newest :])

    def _demand(self, share: float, within: Sequence[Chain] | None = None) -> Demand:
        confidence = 1 - (1 - self.wishes.confidence) * share
        return Demand(tuple(self.chains if within is None else within), self.wishes.max_false_block, confidence)

    def _promise(self, totals: Totals, share: float) -> Promise:
        return promised(totals.false_sessions, totals.told, self._demand(share))

    def _preferences(self, totals: Totals) -> Preferences:
        warnings = totals.metric("warnings").astype(np.int64)
        return Preferences(self._changes, warnings, self._strictness)

    def _worth(self, totals: Totals) -> str:
        """Return what savings are compared in: dollars only if they are known of all sessions with tokens."""
        pricing = self.judge.pricing
        if isinstance(pricing, Prices):
            unpriced = bool(pricing.unpriced)
        else:
            unpriced = any(each.profile.spent.tokens and not each.profile.spent.cost_usd for each in totals.risky)
        worth = _WORTH[1:] if unpriced else _WORTH
        return next((name for name in worth if totals.metric(name).any()), worth[-1])

    def _choice(self, totals: Totals, share: float) -> Choice:
        saved = totals.metric(self._worth(totals))
        preferences = self._preferences(totals)
        if self.wishes.cost_ratio is None:
            return choose(self._promise(totals, share), saved, preferences)
        only = self.eligible
        chosen = choose_by_cost(
            totals.false_sessions[only],
            totals.missed_sessions[only],
            int(totals.missed_sessions[self._off]),
            saved[only],
            totals.at_risk,
            self.wishes.cost_ratio,
            Preferences(preferences.changes[only], preferences.warnings[only], preferences.strictness[only]),
        )
        return chosen if chosen.index is None else replace(chosen, index=int(only[chosen.index]))

    def _chosen(self, totals: Totals, share: float) -> Chosen:
        choice = self._choice(totals, share)
        demand = self._demand(share)
        candidate = self.candidate(totals, choice.index, share=share) if choice.index is not None else None
        needed, more = choice.needed, None
        if needed is None and self.wishes.cost_ratio is None and self.chains:
            needed = sessions_needed(0, demand.max_rate, demand.level(self.chains[0]))
        if choice.more and totals.at_risk:
            more = math.ceil(choice.more * len(totals.profiles) / (totals.at_risk * (1 - self.wishes.holdout)))
        return Chosen(
            _VERDICTS[choice.reason],
            candidate,
            self.wishes.cost_ratio is not None,
            needed,
            more,
            self._reason(choice, totals, needed, more),
        )

    def _reason(self, choice: Choice, totals: Totals, needed: int | None, more: int | None) -> str:
        rate, confidence = percent(self.wishes.max_false_block), percent(self.wishes.confidence)
        sessions = counted(totals.at_risk, "session")
        match choice.reason:
            case Reason.RECOMMENDED if self.wishes.cost_ratio is not None:
                return (
                    f"the least cost, if a false block is as bad as {self.wishes.cost_ratio:g} missed sessions; "
                    "nothing is promised"
                )
            case Reason.RECOMMENDED:
                return (
                    f"saves most of what keeps false blocks to {rate} of such sessions, at {confidence} confidence "
                    f"that allows for having chosen among many ({sessions} can be judged)"
                )
            case Reason.TOO_FEW_SESSIONS:
                takes = (
                    f": some {counted(more, 'more session')} like these, without a further false block"
                    if more
                    else ""
                )
                return (
                    f"too few sessions: {sessions} can be judged, and to promise no more than {rate} false blocks at "
                    f"{confidence} confidence {needed} have to tell{takes}"
                )
            case Reason.FALSE_BLOCKS_TOO_FREQUENT if self.wishes.cost_ratio is not None:
                return "every setting that would save something costs more in false blocks than stuck loops cost"
            case Reason.FALSE_BLOCKS_TOO_FREQUENT:
                saving = totals.metric(self._worth(totals))[self.eligible] > 0
                fewest = int(totals.false_sessions[self.eligible][saving].min())
                return (
                    f"every setting that would save something makes a false block in {fewest} of {sessions} or more: "
                    f"too many to promise {rate}, and more sessions like these would hardly help"
                )
            case Reason.NOTHING_TO_SAVE:
                return "nothing to save: no setting would have stepped into a loop that was stuck"
            case Reason.NO_INCIDENTS:
                return (
                    "nothing to go by: no session has a loop that some setting would step into and that can be judged"
                )

    def candidate(
        self, totals: Totals, number: int, *, same: int = 1, front: bool = False, share: float | None = None
    ) -> Candidate:
        """Return one setting with its figures; with a ``share`` also what is promised of it."""
        setting = self.grid.settings[number]
        passes, p_value, bound = False, None, None
        if share is not None and totals.at_risk:
            promise = self._promise(totals, share)
            passes, p_value = bool(promise.passed[number]), float(promise.p_values[number])
            bound = float(promise.bounds[number])
        return Candidate(
            number,
            setting,
            same,
            setting.changes(self.written),
            self.figures(totals, number),
            front,
            passes,
            p_value,
            bound,
        )

    def figures(self, totals: Totals, number: int) -> Figures:
        """Return what one setting comes to."""
        values = {name: float(totals.figures[number, place]) for name, place in METRIC.items()}
        false, at_risk, caught = int(totals.false_sessions[number]), int(totals.told[number]), int(values["caught"])
        low, high = clopper_pearson_each([false], at_risk, self.wishes.confidence)
        return Figures(
            caught,
            int(values["missed"]),
            int(values["false_blocks"]),
            int(values["spared"]),
            int(values["unknown_blocked"]),
            int(values["not_reached"]),
            int(values["interventions"]),
            int(values["warnings"]),
            1000 * values["warnings"] / totals.calls if totals.calls else 0.0,
            values["lead"] / caught if caught else None,
            at_risk,
            false,
            false / at_risk if at_risk else None,
            (float(low[0]), float(high[0])),
            Savings(
                int(values["saved_calls"]),
                int(values["saved_responses"]),
                int(values["saved_input"]),
                int(values["saved_output"]),
                int(values["saved_cache_read"]),
                int(values["saved_cache_write"]),
                int(values["saved_tokens"]),
                values["saved_usd"],
                values["saved_seconds"],
            ),
        )

    def _candidates(self, everything: Totals, totals: Totals, share: float) -> list[Candidate]:
        """Return one setting for each group that comes to the same, most lenient first.

        Figures are of all sessions; what is promised is of those that the choice is made on.
        """
        promise = self._promise(totals, share)
        eligible = np.zeros(len(self.grid.settings), dtype=bool)
        eligible[self.eligible] = True
        saved = everything.metric(self._worth(everything))
        on = np.array([setting.enabled is True for setting in self.grid.settings]) & (saved > 0)
        front = set(np.flatnonzero(on)[pareto_front(everything.false_sessions[on], saved[on])].tolist())
        _, group, same = np.unique(everything.groups, return_inverse=True, return_counts=True)
        best: dict[int, int] = {}
        keys = list(zip((~eligible).tolist(), self._changes.tolist(), self._strictness.tolist(), strict=True))
        for number, belongs in enumerate(group.tolist()):
            if belongs not in best or keys[number] < keys[best[belongs]]:
                best[belongs] = number
        fronts = {int(group[number]) for number in front}
        found = []
        for belongs, number in best.items():
            candidate = self.candidate(everything, number, same=int(same[belongs]), front=belongs in fronts)
            found.append(
                replace(
                    candidate,
                    passes=bool(promise.passed[number]) and totals.at_risk > 0,
                    p_value=float(promise.p_values[number]) if totals.at_risk and eligible[number] else None,
                    upper_bound=float(promise.bounds[number]) if totals.at_risk and eligible[number] else None,
                )
            )
        return sorted(found, key=lambda each: (each.setting.enabled is True, leniency(each.setting), each.number))

    def _labels(self, totals: Totals) -> dict[str, int]:
        """Return how many incidents have each label, seen from where the first setting could step in."""
        counted: Counter[Label] = Counter()
        for each in totals.answers:
            for number, unit in enumerate(each.units):
                for incident in unit.incidents.incidents:
                    if incident.evidence.length >= LOWEST_THRESHOLD:
                        found = self.judge.label_at(each.profile, number, incident, earliest(incident))
                        counted[found.label] += 1
        return {label.value: counted[label] for label in Label}

    def _held_out(self, name: str, chosen: Chosen, before: Totals, after: Totals) -> HeldOut:
        number = chosen.candidate.number if chosen.candidate else None
        return HeldOut(
            name,
            chosen,
            self.figures(before, number) if number is not None else None,
            self.figures(after, number) if number is not None else None,
            (len(before.profiles), len(after.profiles)),
        )

    def _by_agent(self, sessions: Sessions, share: float) -> list[HeldOut]:
        """Return for each agent what is chosen by the sessions of all others, and how it fares with this one's."""
        agents = sorted({profile.agent for profile in sessions.profiles if profile.agent is not None})
        found = []
        for agent in agents if len(agents) > 1 else []:
            others = self._totals(sessions.only([each for each in sessions.profiles if each.agent != agent]))
            mine = self._totals(sessions.only([each for each in sessions.profiles if each.agent == agent]))
            found.append(self._held_out(f"agent {agent}", self._chosen(others, share), others, mine))
        return found

    def _stability(self, totals: Totals, chosen: Chosen, share: float) -> Stability | None:
        if not totals.risky or not self.wishes.rounds or not len(self.eligible):
            return None
        only, rounds = self.eligible, self.wishes.rounds
        index = {int(number): place for place, number in enumerate(only)}
        everything = self._preferences(totals)
        preferences = Preferences(everything.changes[only], everything.warnings[only], everything.strictness[only])
        false = totals.by_session("false_blocks", only) > 0
        saved = totals.by_session(self._worth(totals), only)
        if self.wishes.cost_ratio is None:
            within = [Chain(tuple(index[each] for each in chain.candidates), chain.share) for chain in self.chains]
            untold = ~false & (totals.by_session("unknown_blocked", only) > 0)
            redrawn = stability(false, saved, self._demand(share, within), preferences, rounds, untold=untold)
        else:
            missed = totals.by_session("missed", only) > 0
            stuck = totals.by_session("missed", np.array([self._off]))[:, 0] > 0
            redrawn = stability_by_cost(false, missed, stuck, saved, self.wishes.cost_ratio, preferences, rounds)
        mine = index[chosen.candidate.number] if chosen.candidate else None
        others = [
            place
            for place in np.argsort(-redrawn.chosen, kind="stable").tolist()
            if redrawn.chosen[place] and place != mine
        ]
        return Stability(
            redrawn.rounds,
            redrawn.share(mine) or 0.0,
            redrawn.share(None) or 0.0,
            tuple((self.grid.settings[int(only[place])], redrawn.share(place) or 0.0) for place in others),
        )


_VERDICTS: Final = {
    Reason.RECOMMENDED: Verdict.RECOMMENDED,
    Reason.TOO_FEW_SESSIONS: Verdict.TOO_FEW_SESSIONS,
    Reason.FALSE_BLOCKS_TOO_FREQUENT: Verdict.TOO_MANY_FALSE_BLOCKS,
    Reason.NOTHING_TO_SAVE: Verdict.NOTHING_TO_SAVE,
    Reason.NO_INCIDENTS: Verdict.NO_INCIDENTS,
}
