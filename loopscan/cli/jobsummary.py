"""``--job-summary``: the markdown report at the end of a job's page on GitHub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from loopscan.cli.terminal import say
from loopscan.errors import UsageError

if TYPE_CHECKING:
    from loopscan.reports.base import Options, Subject

#: The variable by which GitHub names the file.
VARIABLE = "GITHUB_STEP_SUMMARY"


def summary_file() -> Path:
    """Return the file that the summary goes to. Raises :class:`UsageError` where there is none."""
    name = os.environ.get(VARIABLE)
    if not name:
        raise UsageError(f"--job-summary: {VARIABLE} names no file; it is set in GitHub Actions alone")
    return Path(name)


def append_summary(subject: Subject, file: Path, options: Options) -> None:
    """Append the summary of ``subject`` to ``file``, within what GitHub takes of a step in all.

    Raises :class:`UsageError` if the file cannot be written.
    """
    from loopscan.reports.cases import findings_of
    from loopscan.reports.markdown import LIMIT, document

    try:
        with file.open("ab") as stream:
            room = LIMIT - stream.seek(0, os.SEEK_END)
            summary = document(findings_of(subject, options), room).encode()
            if len(summary) <= room:
                stream.write(summary)
            else:  # GitHub would show nothing at all
                say(f"the job summary is full: {VARIABLE} names a file that leaves no room")
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise UsageError(f"cannot write the file that {VARIABLE} names: {reason}") from error
