"""The mistakes that pydantic finds in a file, in words of ours and with their places."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from loopscan.checks.document import Document
from loopscan.checks.mistakes import Mistake
from loopscan.sanitize import clean

_MAPPING: Final = "must be keys with values"
_FIGURE: Final = "must be a number, or {value: NUMBER, within: 5%}"
_MARK: Final = "must be a mark such as {kind: block, tool: read}"
_EXPECTED: Final = {
    "string_type": "must be text; put it in quotes",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "too_short": "must not be empty: it would say nothing",
}
#: What may stand for keys with values, by the key whose value is something else.
_INSTEAD: Final = {
    "none": "must be true, a mark, or a list of marks",
    "exact": "must be a mark such as block generic_repeat 20, or {kind: block, tool: read}",
    "at_least": _MARK,
    "at_most": _MARK,
    "first": _MARK,
    "outcomes": "must be {outcome: OUTCOME}, or a list of such",
    "requires": 'must be {ruleset: ">=2026.9"} or the like',
    "calls": _FIGURE,
    "tokens": _FIGURE,
    "cost_usd": _FIGURE,
    "seconds": _FIGURE,
}


def explained(model: type[BaseModel], document: Document, error: ValidationError) -> Iterator[Mistake]:
    """Yield what ``error`` says of ``document``, which ``model`` was to read."""
    for each in error.errors(include_url=False):
        yield _mistake(model, document, each)


def _mistake(model: type[BaseModel], document: Document, error: Any) -> Mistake:  # noqa: ANN401
    path: tuple[object, ...] = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            return Mistake(document.path, document.spot(path, key=True), _unknown_key(model, path))
        case "missing":
            return Mistake(document.path, document.spot(path[:-1]), f'"{path[-1]}" is missing')
    name = document.key(path)
    shown = "this" if name is None else f'"{clean(name, 60)}"'
    return Mistake(document.path, document.spot(path, key=path[-1:] == ("[key]",)), f"{shown} {_said(error, name)}")


def _said(error: Any, name: str | None) -> str:  # noqa: ANN401
    context = error.get("ctx") or {}
    expected = _EXPECTED.get(error["type"])
    if expected is not None:
        return _INSTEAD.get(name or "", expected) if expected == _MAPPING else expected
    match error["type"]:
        case "enum" | "literal_error":
            known = re.findall(r"'([^']*)'", str(context["expected"]))
            close = difflib.get_close_matches(str(error["input"])[:80], known, 1, 0.6)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            return f"must be one of {', '.join(known)}{hint}"
        case "greater_than_equal":
            return f"must be at least {context['ge']:g}"
        case "value_error":
            return str(context["error"])
        case _:
            message: str = error["msg"]
            return clean(f"is not right: {message[:1].lower()}{message[1:]}", 160)


def _unknown_key(model: type[BaseModel], path: tuple[object, ...]) -> str:
    key = str(path[-1])
    known = [field.alias or name for name, field in _model_at(model, path[:-1]).model_fields.items()]
    close = difflib.get_close_matches(key[:80], known, 1, 0.6)
    hint = f'did you mean "{close[0]}"?' if close else f"known: {', '.join(known)}"
    return f'unknown key "{clean(key, 60)}"; {hint}'


def _model_at(model: type[BaseModel], path: tuple[object, ...]) -> type[BaseModel]:
    """Return the model that reads what is at ``path``."""
    for step in path:
        if isinstance(step, str) and step in model.model_fields:
            model = _model_in(model.model_fields[step].annotation, model)
    return model


def _model_in(annotation: object, default: type[BaseModel]) -> type[BaseModel]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part, default) for part in get_args(annotation))
    return next((each for each in found if each is not default), default)
