"""``loopscan config``: what a configuration comes to, and where each value is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.options import ConfigFile, Format, PrintFormat, RulesetName, Settings
from loopscan.cli.terminal import print_json, wide_console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from loopscan.policy import Origin, Policy

app = typer.Typer(
    name="config", help="Look at a configuration of OpenClaw.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _group() -> None:
    """Look at a configuration of OpenClaw."""


@app.command()
def show(
    config: ConfigFile = None,
    agent: Annotated[
        str | None, typer.Option(help="Agent whose block goes over the global one.", metavar="ID")
    ] = None,
    settings: Settings = None,
    ruleset: RulesetName = "latest",
    format_: PrintFormat = Format.TEXT,
) -> None:
    """Print every resolved value with where it came from, and what is odd about the configuration."""
    from loopscan.configfile import load_policy, parse_settings

    overrides = parse_settings(settings or ())
    policy = load_policy(ruleset, config=config, agent=agent, overrides=overrides)
    if format_ is Format.JSON:
        _print_json(policy, agent)
    else:
        _print_text(policy, agent)


def _print_json(policy: Policy, agent: str | None) -> None:
    from loopscan.report import config_dict

    print_json({"ruleset": policy.ruleset.name, "agent": agent, **config_dict(policy)})


def _print_text(policy: Policy, agent: str | None) -> None:
    out = wide_console()
    for part in _render(policy, agent):
        out.print(part)


def _render(policy: Policy, agent: str | None) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from loopscan.report import config_dict
    from loopscan.sanitize import clean

    title = f"ruleset {policy.ruleset.name} ({policy.ruleset.covers})"
    if agent is not None:
        title += f", agent {clean(agent)}"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("field", no_wrap=True)
    table.add_column("value", no_wrap=True, justify="right")
    table.add_column("from", overflow="fold")
    for name, resolved in config_dict(policy)["values"].items():
        value = resolved["value"]
        shown = "unset" if value is None else str(value).lower()
        table.add_row(Text(name), Text(shown), Text(_from(policy.origins[name])))
    parts: list[RenderableType] = [Text(title, style="bold"), table]
    parts += [Text.assemble((f"{note.kind}: ", "yellow"), note.message) for note in policy.notes]
    return parts


def _from(origin: Origin) -> str:
    """Return an origin in one line: its kind, the file and the path in it, and what was repaired."""
    place = ": ".join(part for part in (origin.source, origin.path) if part)
    words = f"{origin.kind}, {place}" if place else origin.kind
    return f"{words} ({origin.detail})" if origin.detail else words
