"""What can be acted on: fields to set, for all agents and for single ones, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from loopscan.tuning.intervals import lower_bounds, sessions_needed, upper_bounds
from loopscan.tuning.report import Decision, Part
from loopscan.tuning.wording import percent

Changes = dict[str, bool | int | None]


def decide_thresholds(whole: Part, parts: Sequence[Part]) -> list[Decision]:
    """Return what to set where thresholds can be set: for all, and for each agent whose own choice is another."""
    chosen = whole.chosen
    changes = chosen.candidate.changes if chosen.candidate else {}
    reason = chosen.reason if changes or chosen.candidate is None else "as it is"
    return [Decision(None, changes, reason), *(_own_decision(part, whole, changes) for part in parts)]


def _own_decision(part: Part, whole: Part, general: Changes) -> Decision:
    """Return what to set for an agent, beyond what it gets of what is set for all."""
    chosen, now = part.chosen, part.in_force.setting
    if chosen.candidate is None:
        kept = "nothing apart from what is for all agents: " if general else ""
        return Decision(part.name, {}, kept + chosen.reason)
    own = now.changes(whole.in_force.setting)  # what a block of its own sets goes before what is set for all
    inherited = now.with_fields({name: value for name, value in general.items() if name not in own})
    changes = chosen.candidate.setting.changes(inherited)
    if not changes:
        return Decision(part.name, {}, "as it is" if inherited == now else "as for all agents")
    return Decision(part.name, changes, chosen.reason)


def decide_enabled(part: Part, *, max_false_block: float, confidence: float) -> Decision:
    """Return whether ``enabled`` should be true for an agent, where a ruleset fixes all thresholds.

    ``part.in_force`` is judged with the detectors on. One setting is tested: at ``confidence``, exactly.
    """
    on = part.in_force.figures
    rate, sure = percent(max_false_block), percent(confidence)
    seen = f"{on.caught} stuck caught, false blocks in {on.false_sessions} of {on.at_risk} sessions"
    if not on.at_risk:
        return Decision(part.name, {}, "no loop that it would step into can be judged")
    high = upper_bounds([on.false_sessions], on.at_risk, 1 - confidence)
    low = lower_bounds([on.false_sessions], on.at_risk, 1 - confidence)
    if float(high[0]) <= max_false_block:
        if not on.caught:
            return Decision(part.name, {}, f"it would step into nothing that is stuck ({seen})")
        return Decision(
            part.name, {"enabled": True}, f"no more than {rate} false blocks at {sure} confidence ({seen})"
        )
    if float(low[0]) > max_false_block:
        return Decision(part.name, {"enabled": False}, f"more than {rate} false blocks at {sure} confidence ({seen})")
    needed = sessions_needed(on.false_sessions, max_false_block, 1 - confidence)
    return Decision(
        part.name,
        {},
        f"{on.at_risk} at risk do not tell, {needed} with no further one would ({seen})",
    )
