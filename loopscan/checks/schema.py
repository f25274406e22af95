"""What files of expectations may say: the models that read them, and the JSON schemas that are published.

Names are those of the marks in JSON. Where a file says nothing, what stands above it counts; see
:func:`merged`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from loopscan.checks.document import Document, WrittenFloat, WrittenInt
from loopscan.checks.explain import explained
from loopscan.checks.mistakes import Mistakes
from loopscan.marks import Detector, Kind, Level
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.policy import FIELDS, nearest_field
from loopscan.rulesets import COMPARISONS, RULESETS, ruleset_meets
from loopscan.sanitize import clean

EXPECT: Final = "urn:loopscan:expect:1"
CHECKS: Final = "urn:loopscan:checks:1"

#: A mark in words: kind, detector, and the count if it matters.
_MARK: Final = (
    f"^({'|'.join(sorted({form for kind in Kind for form in (kind.value, kind.value.replace('_', ' '))}))})"
    f" +({'|'.join(Detector)})( +[0-9]{{1,9}})?$"
)


def _written(value: object) -> object:
    """Let a number stand for the text that it was written as."""
    return value.written if isinstance(value, WrittenInt | WrittenFloat) else value


def _listed(value: object) -> object:
    """Let a single value stand for a list of it."""
    return value if isinstance(value, list) else [value]


def _intervening(value: object) -> object:
    """Let ``true`` stand for every mark but the arming of a guard."""
    return [{"level": [Level.WARNING.value, Level.CRITICAL.value]}] if value is True else _listed(value)


def _in_words(value: object) -> object:
    """Let words such as ``block generic_repeat 20`` stand for a pattern."""
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"(?P<kind>[a-z_ ]+?) +(?P<detector>[a-z_]+)(?: +(?P<count>[0-9]{1,9}))?", value)
    if found is None:
        raise ValueError(f'must be a mark such as block generic_repeat 20, not "{clean(value, 60)}"')
    count = {} if found["count"] is None else {"count": int(found["count"])}
    return {"kind": found["kind"].replace(" ", "_"), "detector": found["detector"], **count}


def _known_ruleset(value: str) -> str:
    if value not in RULESETS:
        raise ValueError(f"must be one of {', '.join(RULESETS)}")
    return value


def _comparisons(value: str) -> str:
    ruleset_meets(next(iter(RULESETS)), value)
    return value


def _known_field(value: str) -> str:
    if value not in FIELDS:
        nearest = nearest_field(value)
        hint = f'did you mean "{nearest}"?' if nearest else f"known: {', '.join(FIELDS)}"
        raise ValueError(f"is no field of the configuration; {hint}")
    return value


def _a_reason(value: str) -> str:
    if value.strip().lower() in {"", "no", "n", "off", "yes", "y", "on"}:
        raise ValueError("must say why; leave it out to make the check")
    return value


def _a_path(value: str) -> str:
    if not value or "\0" in value:
        raise ValueError("must be a path")
    return value


def _figure(value: object) -> object:
    """Let a number stand for exactly that figure."""
    return {"value": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_written), WithJsonSchema({"type": ["string", "number"]})]
_RulesetName = Annotated[
    str,
    BeforeValidator(_written),
    AfterValidator(_known_ruleset),
    WithJsonSchema({"enum": [*RULESETS, *(float(name) for name in RULESETS if name.replace(".", "").isdigit())]}),
]
_Comparisons = Annotated[
    str, AfterValidator(_comparisons), WithJsonSchema({"type": "string", "pattern": f"^{COMPARISONS}$"})
]
_FieldName = Annotated[str, AfterValidator(_known_field), WithJsonSchema({"enum": list(FIELDS)})]
#: Of a list: without an item it would say nothing.
_SOME = Field(min_length=1)
Texts = Annotated[
    list[Text], _SOME, BeforeValidator(_listed, json_schema_input_type=Text | Annotated[list[Text], _SOME])
]
_PathText = Annotated[
    str,
    BeforeValidator(_written),
    AfterValidator(_a_path),
    WithJsonSchema({"type": ["string", "number"], "minLength": 1}),
]
_PathTexts = Annotated[
    list[_PathText],
    _SOME,
    BeforeValidator(_listed, json_schema_input_type=_PathText | Annotated[list[_PathText], _SOME]),
]
Whole = Annotated[int, Field(ge=0)]
_Kind = Annotated[Kind, Strict(False)]
_Kinds = Annotated[
    list[_Kind], _SOME, BeforeValidator(_listed, json_schema_input_type=_Kind | Annotated[list[_Kind], _SOME])
]
_Detector = Annotated[Detector, Strict(False)]
_Detectors = Annotated[
    list[_Detector],
    _SOME,
    BeforeValidator(_listed, json_schema_input_type=_Detector | Annotated[list[_Detector], _SOME]),
]
_Level = Annotated[Level, Strict(False)]
_Levels = Annotated[
    list[_Level], _SOME, BeforeValidator(_listed, json_schema_input_type=_Level | Annotated[list[_Level], _SOME])
]
_Outcome = Literal["completed", "interrupted", "run_end", "error_streak_end", "unknown_tool_stop", "compaction_abort"]
_Outcomes = Annotated[
    list[_Outcome],
    _SOME,
    BeforeValidator(_listed, json_schema_input_type=_Outcome | Annotated[list[_Outcome], _SOME]),
]


class _Model(BaseModel):
    """What all have in common: unknown keys are mistakes, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Some(_Model):
    """What would say nothing without any key."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("says nothing")
        return self


class Pattern(_Model):
    """Fields of a mark; a mark meets the pattern if all fields that are given are equal, or one of a list."""

    session: Texts | None = None
    run: Whole | None = Field(None, description="Counts from 0 within the session.")
    kind: _Kinds | None = Field(None, description="What would have happened.")
    detector: _Detectors | None = Field(None, description="The rule that it comes from.")
    level: _Levels | None = None
    count: Whole | None = Field(None, description="The streak at which it was made.")
    threshold: Whole | None = None
    batch: Whole | None = Field(None, description="Counts from 0 within the run.")
    call: Whole | None = Field(None, description="Counts from 0 within the run.")
    tool: Texts | None = None
    paired_tool: Texts | None = None
    tool_call_id: Text | None = None
    entry: Text | None = None
    signature: Text | None = None
    outcome: Text | None = None
    lossy: bool | None = None
    blocked_calls: Whole | None = None

    def wanted(self) -> dict[str, Any]:
        """Return the fields that are given, by name."""
        found = {}
        for name in Pattern.model_fields:
            value = getattr(self, name)
            if value is not None:
                found[name] = [str(each) for each in value] if isinstance(value, list) else value
        return found


class AtLeast(Pattern):
    """There must be at least ``times`` such marks."""

    times: Annotated[int, Field(ge=1)] = 1


class AtMost(Pattern):
    """There must be at most ``times`` such marks."""

    times: Whole


class First(Pattern):
    """The first mark, or the first that meets ``of``, must be this one."""

    of: Pattern | None = Field(None, description="Which marks count; every warning and graver one by default.")


class RunIs(_Model):
    """What must have become of a run, or of every run that ``session`` and ``run`` name."""

    outcome: _Outcomes
    session: Texts | None = None
    run: Whole | None = None


_SHARE: Final = r"^[0-9]{1,3}(\.[0-9]{1,6})?%$"


def _tolerance(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch(_SHARE, value):
        raise ValueError('must be a share such as "5%", or a number')
    return value


class Figure(_Model):
    """A figure, and how far off it may be."""

    value: Annotated[float, Strict(False), Field(ge=0, allow_inf_nan=False)]
    within: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | Annotated[str, Field(pattern=_SHARE)] | None,
        BeforeValidator(_tolerance),
    ] = Field(None, description='A share of the figure such as "5%", or a number; none by default.')

    def slack(self) -> float:
        """Return by how much it may be missed."""
        if isinstance(self.within, str):
            return self.value * float(self.within.removesuffix("%")) / 100
        return self.within or 0.0


_Figure = Annotated[Figure, BeforeValidator(_figure, json_schema_input_type=float | Figure)]


class NotReached(_Some):
    """What would not have been reached, in all runs together; an upper bound of what is saved."""

    calls: _Figure | None = None
    tokens: _Figure | None = None
    cost_usd: _Figure | None = Field(None, description="US dollars.")
    seconds: _Figure | None = None


class Counts(_Some):
    """What the transcript must hold, so that a reader that loses some is noticed."""

    sessions: Whole | None = None
    runs: Whole | None = None
    calls: Whole | None = None
    problems: Whole | None = Field(None, description="Lines that could not be used.")


_Words = Annotated[str, Field(pattern=_MARK)]
_Pattern = Annotated[Pattern, BeforeValidator(_in_words, json_schema_input_type=_Words | Pattern)]
_Patterns = Annotated[list[_Pattern], _SOME]
_Nones = Annotated[
    _Patterns, BeforeValidator(_intervening, json_schema_input_type=Literal[True] | _Words | Pattern | _Patterns)
]
_Runs = Annotated[
    list[RunIs], _SOME, BeforeValidator(_listed, json_schema_input_type=RunIs | Annotated[list[RunIs], _SOME])
]


class Expect(_Some):
    """Assertions; all must hold."""

    exact: list[_Pattern] | None = Field(
        None, description="The marks, each in its place, and no others: in words, or as patterns."
    )
    none: _Nones | None = Field(None, description="No such mark; true: none at all, but for the arming of a guard.")
    at_least: Annotated[list[AtLeast], _SOME] | None = Field(None, description="How many such marks there must be.")
    at_most: Annotated[list[AtMost], _SOME] | None = Field(None, description="How many such marks there may be.")
    first: First | None = Field(None, description="What the first mark must be.")
    outcomes: _Runs | None = Field(None, description="What became of runs.")
    not_reached: NotReached | None = Field(None, description="What would have been saved, at most.")
    counts: Counts | None = Field(None, description="What the transcript must hold.")

    def asserts(self) -> bool:
        """Tell whether there is something that could fail: what is null says nothing."""
        parts = (self.exact, self.none, self.at_least, self.at_most, self.first, self.outcomes)
        figures = [value for each in (self.not_reached, self.counts) if each is not None for _, value in each]
        return any(each is not None for each in (*parts, *figures))


class SnapshotMark(_Model):
    """One mark in full; fields that are left out are null (``blocked_calls`` 0, ``lossy`` false)."""

    kind: _Kind
    detector: _Detector
    count: Whole | None = None
    threshold: Whole | None = None
    tool: Text | None = None
    paired_tool: Text | None = None
    run: Whole
    batch: Whole
    call: Whole | None = None
    blocked_calls: Whole | None = None
    lossy: bool | None = None
    session: Text | None = Field(None, description="That of the snapshot, if it has one.")
    tool_call_id: Text | None = None
    entry: Text | None = None
    time: Text | None = None
    signature: Text | None = None
    outcome: Text | None = None


class Snapshot(_Model):
    """The marks in full, and how much was read; loopscan check --update writes it."""

    sessions: Whole
    runs: Whole
    calls: Whole
    problems: Whole = Field(0, description="Lines that could not be used.")
    session: Text | None = Field(None, description="Of all marks, where they are of one session.")
    marks: list[SnapshotMark]

    @model_validator(mode="after")
    def _is_of_sessions(self) -> Self:
        if self.session is None and any(mark.session is None for mark in self.marks):
            raise ValueError('has marks without "session", and none of its own')
        return self


class Requires(_Model):
    """What must be so for a check to be made; else it is skipped."""

    ruleset: _Comparisons = Field(description='Comparisons such as ">=2026.9" or ">=2026.6, <latest", oldest first.')


class Settings(_Model):
    """What a transcript is replayed with. ``null`` takes back what stands above."""

    ruleset: _RulesetName | None = Field(None, description="2026.6, 2026.9 or latest (the default).")
    config: _PathText | None = Field(None, description="OpenClaw's configuration, relative to this file.")
    agent: Text | None = Field(None, description="Judge with this agent's block.")
    set: dict[_FieldName, bool | int] | None = Field(None, description="Fields of the configuration that go over it.")
    mode: Annotated[Mode, Strict(False)] | None = Field(
        None, description="enforce (the default): vetoes and run ends take effect; observe: every verdict is marked."
    )
    scope: Annotated[ScopeRule, Strict(False)] | None = Field(
        None, description="Look back over the run (the default), or over the whole session."
    )
    arm: Annotated[Arm, Strict(False)] | None = Field(
        None, description="When a compaction within a run arms the post-compaction guard."
    )
    tool_map: dict[str, Text] | None = Field(None, description="Judge a tool as the one that the rules call so.")
    input_format: Text | None = Field(None, description="Read it as this format; loopscan formats lists them.")
    requires: Requires | None = Field(None, description="Skip the check where this is not so.")
    skip: Annotated[Text, AfterValidator(_a_reason)] | None = Field(None, description="Why this is not checked now.")


_SETTINGS = tuple(Settings.model_fields)


class Check(Settings):
    """One check of a transcript: under these settings it must meet the snapshot and the assertions."""

    name: Text | None = Field(None, description="What reports call it; its settings by default.")
    snapshot: Snapshot | None = Field(None, description="What --update writes down, and every later run must equal.")
    expect: Expect | None = Field(None, description="Assertions written by hand.")


class ExpectFile(Check):
    """``x.expect.yaml``: what the transcript beside it must meet."""

    schema_: Text | None = Field(None, alias="$schema", description="For editors; nothing is made of it.")
    transcript: _PathTexts | None = Field(
        None, description="Files or folders, relative to this file; the one beside it of the same name by default."
    )
    checks: Annotated[list[Check], _SOME] | None = Field(
        None, description="Several checks of it; what stands above them counts for each."
    )


class GlobCheck(Settings):
    """Assertions for every transcript that a pattern meets."""

    transcripts: _PathTexts = Field(description="Patterns such as clean/**/*.jsonl, relative to this file.")
    exclude: Texts | None = None
    name: Text | None = None
    expect: Expect


class Benign(Settings):
    """A folder of sessions in which nothing was wrong: a block, run end or abort there is a false alarm."""

    folder: _PathText
    max_warnings: Whole = 0


class ChecksFile(_Model):
    """``loopscan.checks.yaml``: what counts for the folder that it lies in, and for those in it."""

    schema_: Text | None = Field(None, alias="$schema", description="For editors; nothing is made of it.")
    root: bool = Field(False, description="Do not look for such files in the folders above.")
    defaults: Settings | None = None
    checks: list[GlobCheck] | None = None
    benign: list[Benign] | None = None
    ignore: Texts | None = Field(None, description="Transcripts that need no expectation, as patterns.")


_File = TypeVar("_File", bound=_Model)


def load(model: type[_File], document: Document) -> _File:
    """Return what a document says.

    Raises :class:`Mistakes` for everything that is wrong, each with its place.
    """
    value = {} if document.value is None else document.value
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Mistakes(explained(model, document, error)) from error


def json_schema(model: type[_Model], name: str) -> dict[str, Any]:
    """Return the JSON schema of a file, under the name that is published."""
    schema = model.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, **schema}


def merged(*layers: Settings | None) -> dict[str, Any]:
    """Return the settings that count: each layer goes over those before it, key by key.

    ``set`` and ``tool_map`` are joined; ``null`` takes back what stands in an earlier layer.
    """
    found: dict[str, Any] = {}
    for layer in layers:
        if layer is None:
            continue
        for name in layer.model_fields_set & set(_SETTINGS):
            value = getattr(layer, name)
            if isinstance(value, dict) and isinstance(found.get(name), dict):
                value = {**found[name], **value}
            found[name] = value
    return {name: value for name, value in found.items() if value is not None}
