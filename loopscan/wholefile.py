"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from loopscan.errors import UsageError
from loopscan.sanitize import clean


@contextmanager
def whole_file(name: str) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of ``name`` once it is complete, and leaves no trace if it is not.

    What was there before stays until then. Raises :class:`UsageError` if it cannot be written.
    """
    path = Path(name)
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            with path.open("wb") as stream:  # a pipe or a device has no place to put another file into
                yield stream
            return
        path = Path(os.path.realpath(name))
        draft = path.with_name(f".loopscan-{secrets.token_hex(8)}.tmp")
        there = path.exists()
        try:
            # What only its owner may read is not open to others for a moment.
            with open(draft, "xb", opener=partial(os.open, mode=0o600 if there else 0o666)) as stream:
                if there:
                    shutil.copymode(path, draft)
                yield stream
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or errno.errorcode.get(error.errno or 0, "input/output error")
        raise UsageError(f"cannot write {clean(name, 120)}: {reason}") from error
