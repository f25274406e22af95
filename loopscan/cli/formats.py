"""``loopscan formats``: what can be read, how it is recognised, and how it is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopscan.cli.options import Format, PrintFormat
from loopscan.cli.terminal import print_json, wide_console

if TYPE_CHECKING:
    from rich.console import RenderableType


def formats(format_: PrintFormat = Format.TEXT) -> None:
    """List the formats that can be read: how each is recognised, and how its tools and outcomes are judged."""
    from loopscan.transcripts.reader import readers, traits_of

    found = {name: traits_of(reader) for name, reader in readers().items()}
    if format_ is Format.JSON:
        document = {
            name: {
                "summary": traits.summary,
                "recognised_by": traits.recognised_by,
                "tools": dict(traits.tools),
                "normalisers": dict(traits.normalisers),
            }
            for name, traits in found.items()
        }
        print_json(document)
        return
    out = wide_console()
    for number, (name, traits) in enumerate(found.items()):
        if number:
            out.print()
        tools = [f"{own} → {other}" for own, other in traits.tools.items()]
        for part in _about(name, traits.summary, traits.recognised_by, tools, dict(traits.normalisers)):
            out.print(part)


def _about(
    name: str, summary: str, recognised_by: str, tools: list[str], normalisers: dict[str, str]
) -> list[RenderableType]:
    from loopscan.reports.console import fields, heading, safe

    table = fields()
    if summary:
        table.add_row("reads", safe(summary))
    table.add_row("known by", safe(recognised_by or "not said"))
    if tools:
        table.add_row("judged as", safe(", ".join(tools)))
    for each, sentence in normalisers.items():
        table.add_row("normaliser", safe(f"{each}: {sentence}"))
    return [heading(name), table]
