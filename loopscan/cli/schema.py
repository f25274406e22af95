"""``loopscan schema``: the JSON schemas of what loopscan reads and writes."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopscan.cli.terminal import print_json
from loopscan.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: By name: the file that holds a schema, or the model that it is made from.
SCHEMAS: Final[Mapping[str, str]] = {
    "expect": "ExpectFile",
    "checks": "ChecksFile",
    "check": "check-1.schema.json",
    "baseline": "baseline-1.schema.json",
    "replay": "replay-1.schema.json",
    "inspect": "inspect-1.schema.json",
    "tune": "tune-1.schema.json",
    "explain": "explain-1.schema.json",
    "compare": "compare-1.schema.json",
    "verify": "verify-1.schema.json",
}


def schema(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(SCHEMAS)}.", metavar="NAME")],
) -> None:
    """Print the JSON schema of x.expect.yaml (expect), loopscan.checks.yaml (checks), or of a report."""
    print_json(load(name))


def load(name: str) -> dict[str, Any]:
    """Return a published schema. Raises :class:`UsageError` for a name that is none."""
    from loopscan.sanitize import clean

    if name not in SCHEMAS:
        close = difflib.get_close_matches(name[:80], SCHEMAS, 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(SCHEMAS)}"
        raise UsageError(f'there is no schema "{clean(name, 80)}"; {hint}')
    source = SCHEMAS[name]
    if source.endswith(".json"):
        from importlib.resources import files

        import orjson

        found: dict[str, Any] = orjson.loads((files("loopscan") / "schemas" / source).read_bytes())
        return found
    from loopscan.checks.schema import CHECKS, EXPECT, ChecksFile, ExpectFile, json_schema

    return json_schema(ExpectFile, EXPECT) if source == "ExpectFile" else json_schema(ChecksFile, CHECKS)
