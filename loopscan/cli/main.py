"""The command ``loopscan``: assembles the commands, and turns errors into one line and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from loopscan._version import __version__
from loopscan.cli import check, compare, config, explain, formats, inspect, replay, schema, tune, verify
from loopscan.cli.terminal import INTERRUPTED, quiet_stdout, say
from loopscan.errors import LoopscanError, UsageError

#: What an error means that nobody foresaw: the fault is ours.
INTERNAL_ERROR = 70

app = typer.Typer(
    name="loopscan",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: nothing cut, no colours, and a third of the time
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("replay")(replay.replay)
app.command("check")(check.check)
app.command("tune")(tune.tune)
app.command("explain")(explain.explain)
app.command("compare")(compare.compare)
app.command("verify")(verify.verify)
app.command("inspect")(inspect.inspect)
app.command("formats")(formats.formats)
app.command("schema")(schema.schema)
app.add_typer(config.app, name="config")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"loopscan {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Replay recorded agent sessions through OpenClaw's loop detection, and see where it would have stepped in."""


def run() -> None:
    """Run the command line: the entry point of the package."""
    debug = "--debug" in sys.argv[1:]
    if sys.stdout is None:
        fail("standard output is closed: there is nowhere to write a report", UsageError.exit_code)
    try:
        app()
    except LoopscanError as error:
        if debug:
            raise
        fail(str(error), error.exit_code)
    except BrokenPipeError:
        quiet_stdout()
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except OSError as error:  # what is read and what goes to files is caught where it happens
        if debug:
            raise
        quiet_stdout()
        fail(f"cannot write to standard output: {error.strerror or 'input/output error'}", UsageError.exit_code)
    except Exception as error:
        if debug:
            raise
        fail(f"internal error, {type(error).__name__}: run it again with --debug and report it", INTERNAL_ERROR)


def fail(message: str, code: int) -> None:
    """Say what is wrong and exit."""
    say(f"error: {message}")
    sys.exit(code)
