"""Lists of paths: files that are named with an ``@`` before their name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from loopscan.errors import InputError

#: How deep lists may name lists.
MOST_NESTED = 5

_BOM = b"\xef\xbb\xbf"


def read_list(name: str, stdin: BinaryIO | None = None) -> Iterator[tuple[str, str]]:
    """Yield the paths in the list ``name``, each after where it stands, such as ``line 3``.

    One stands in each line; if there is a NUL in the list, NULs part them and a path may hold line breaks. Blank ones
    are passed over. The list is read from ``stdin`` if that is given. Raises :class:`InputError` where it
    cannot be read.
    """
    try:
        if stdin is not None:
            data = stdin.read()
        else:
            with open(name, "rb") as stream:  # noqa: PTH123 - what is named, as it was named
                data = stream.read()
    except (FileNotFoundError, ValueError) as error:
        raise InputError(f"{name}: no such list of paths (a file named like that: ./@{name})", name) from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or 'I/O error'}", name) from error
    data = data.removeprefix(_BOM)
    what = "path" if b"\0" in data else "line"
    parted = data.split(b"\0") if b"\0" in data else (line.removesuffix(b"\r") for line in data.split(b"\n"))
    for number, path in enumerate(parted, 1):
        if path.strip():
            yield f"{what} {number}", os.fsdecode(path)
