"""The sides of a comparison: a ruleset, a configuration, single settings, or all of them together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from loopscan.errors import UsageError
from loopscan.policy import FIELDS
from loopscan.rulesets import RULESETS
from loopscan.sanitize import clean


@dataclass(frozen=True, slots=True)
class Side:
    """What one side is replayed with; ``None`` is what both sides have in common."""

    ruleset: str | None = None
    config: Path | None = None
    settings: tuple[str, ...] = field(default=())
    """Such as ``warningThreshold=8``."""

    def label(self, common: str) -> str:
        """Return what to call it; ``common`` is the ruleset of both."""
        parts = [self.ruleset or common]
        if self.config is not None:
            parts.append(clean(str(self.config), 60))
        return ", ".join([*parts, *(clean(each, 60) for each in self.settings)])


def side_of(option: str, words: Iterable[str]) -> Side:
    """Return the side that ``--a`` or ``--b`` asks for: each word is a ruleset, NAME=VALUE, or a configuration file.

    Raises :class:`UsageError` for two rulesets or files, and for a word that is none of these.
    """
    rulesets: list[str] = []
    files: list[Path] = []
    settings: list[str] = []
    for word in words:
        name = word.partition("=")[0]
        if word in RULESETS:
            rulesets.append(word)
        elif "=" in word and name in FIELDS:
            settings.append(word)
        elif Path(word).exists():
            files.append(Path(word))
        else:
            known = ", ".join(RULESETS)
            raise UsageError(
                f"{option} {clean(word, 80)}: is no ruleset ({known}), no setting such as warningThreshold=8, and no "
                "file that there is"
            )
    for what, found in (("rulesets", rulesets), ("configuration files", files)):
        if len(found) > 1:
            raise UsageError(f"{option} names {len(found)} {what}; one side has one")
    return Side(rulesets[0] if rulesets else None, files[0] if files else None, tuple(settings))
