"""Objects that lie elsewhere: ``s3://``, ``gs://``, ``az://``, ``https://`` and ``http://``, by the package obstore.

Where the stores are and what opens them is for obstore to find in the environment (``AWS_ENDPOINT_URL``,
``AWS_ACCESS_KEY_ID`` and so on). No message holds what a server said or the query of an address: there may be
secrets in both.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from loopscan.errors import UsageError
from loopscan.transcripts.streams import Raw, Stream, broken

if TYPE_CHECKING:
    from obstore import BytesStream, GetOptions
    from obstore.store import ClientConfig, HTTPStore, ObjectStore, RetryConfig

_REMOTE = re.compile(r"(?P<scheme>s3|gs|az|https?)://(?P<store>[^/?#]*)/?(?P<key>.*)", re.DOTALL | re.IGNORECASE)

#: What is fetched at a time, in bytes, of an object as it comes and of one that is read here and there.
_CHUNK_BYTES: Final = 1 << 20
_PART_BYTES: Final = 1 << 18

_FORKED = "remote paths cannot be read in a fork of the process that has read others"
#: What obstore's messages hold, and what it means. The first one counts.
_MEANINGS: Final = (
    (r"NoSuchBucket", "no such bucket"),
    (r"//(?:169\.254\.|metadata\.google\.|\[fd00:ec2::254\])|token request", "no credentials in the environment"),
    (r"Account must be specified", "no account in the environment (AZURE_STORAGE_ACCOUNT_NAME)"),
    (r"status code: 40[13]", "access denied"),
    (r"status code: 404", "no such object"),
    (r"status code: 416|Range request not supported", "the server does not send parts of it: download it first"),
    (r"Content-Length Header missing", "the server does not say how long it is: download it first"),
    (r"TimedOut|timed out", "the server does not answer in time"),
    (r"error sending request|builder error", "the server cannot be reached"),
)
_STATUS = re.compile(r"status code: (\d{3})")

_used_by: int | None = None
"""The process that used obstore, whose threads do not survive a fork."""


def is_remote(path: str) -> bool:
    """Whether ``path`` is an address of one of the kinds that are read here."""
    return _REMOTE.match(path) is not None


def used() -> bool:
    """Whether this process has read remote objects: those that read more of them must not be forks of it."""
    return _used_by is not None


@dataclass(frozen=True, slots=True)
class Remote:
    """An object in a store, or what an address of the web gives."""

    url: str = field(repr=False)

    @property
    def anywhere(self) -> bool:
        """Whether parts of it can be asked for; servers of the web need not know how to."""
        return not self.is_web

    @property
    def is_web(self) -> bool:
        """Whether it is an address of the web."""
        return self.url.lower().startswith("http")

    @property
    def name(self) -> str:
        """The address for people: without user, password, and the query, which may hold a signature."""
        if not self.is_web:
            return self.url
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}" + ("?***" if parts.query else "")

    @property
    def key(self) -> str:
        """The name of the object in its store, or of a folder there."""
        found = _REMOTE.match(self.url)
        return found["key"] if found and not self.is_web else ""

    @property
    def store_url(self) -> str:
        """The address of the store."""
        found = _REMOTE.match(self.url)
        if found is None or self.is_web:
            return self.url
        return f"{found['scheme'].lower()}://{found['store']}"

    def open(self, offset: int = 0, size: int | None = None) -> Raw:
        """Begin to fetch the object, a megabyte at a time. Raises :class:`OSError`."""
        import obstore

        if size == 0:
            return io.BytesIO()
        options: GetOptions = {}
        if not self.is_web and (offset or size is not None):
            options["range"] = {"offset": offset} if size is None else (offset, offset + size)
        try:
            found = obstore.get(_store(self.store_url, os.getpid()), self.key, options=options)
            return _Fetched(found.stream(_CHUNK_BYTES))
        except _failures() as error:
            raise failure(error) from None

    def whole(self) -> io.BufferedReader:
        """Return the object as a file that can be read anywhere, by asking for parts. Raises :class:`OSError`."""
        import obstore

        try:
            size = obstore.head(_store(self.store_url, os.getpid()), self.key)["size"]
        except _failures() as error:
            raise failure(error) from None
        return io.BufferedReader(_Parts(self, size), _PART_BYTES)


def below(folder: Remote) -> list[tuple[Remote, int]]:
    """Return the objects below a folder of a store with their sizes in bytes, sorted by name.

    Raises :class:`OSError`.
    """
    import obstore

    try:
        store = _store(folder.store_url, os.getpid())
        prefix = folder.key.rstrip("/")
        found = [
            (about["path"], about["size"])
            for chunk in obstore.list(store, prefix or None, chunk_size=1000)
            for about in chunk
        ]
    except _failures() as error:
        raise failure(error) from None
    return [(Remote(f"{folder.store_url}/{key}"), size) for key, size in sorted(found)]


def failure(error: Exception) -> OSError:
    """Return the error for people that an error of obstore comes to: nothing of its text is in it."""
    if isinstance(error, OSError) and error.strerror is not None:
        return error
    text = str(error)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(2, "no such bucket" if "NoSuchBucket" in text else "no such object")
    if isinstance(error, ValueError):
        return broken("no such address can be")
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            return broken(meaning)
    if isinstance(error, PermissionError) or "Permission" in type(error).__name__:
        return broken("access denied")
    status = _STATUS.search(text)
    return broken(f"the server answers {status[1]}" if status else "the object cannot be fetched")


class _Fetched(Stream):
    """An object on its way."""

    def __init__(self, chunks: BytesStream) -> None:
        super().__init__()
        self._chunks: Iterator[bytes] = iter(chunks)
        self._left = memoryview(b"")

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        if not self._left and wanted:
            try:
                # Not bytes, but a buffer of obstore's own.
                self._left = memoryview(bytes(next(self._chunks, b"")))
            except _failures() as error:
                raise failure(error) from None
        data, self._left = self._left[:wanted], self._left[wanted:]
        return bytes(data)


class _Parts(Stream):
    """An object that is read part by part."""

    def __init__(self, remote: Remote, size: int) -> None:
        super().__init__()
        self._remote = remote
        self._size = size
        self._at = 0

    def seekable(self) -> bool:
        """Say that it can be read anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("before the beginning")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def take(self, wanted: int) -> bytes:
        """Fetch up to ``wanted`` bytes."""
        wanted = min(wanted, self._size - self._at)
        if wanted <= 0:
            return b""
        data = self._remote.open(self._at, wanted).read(wanted) or b""
        self._at += len(data)
        return data


@functools.lru_cache(maxsize=32)
def _store(url: str, process: int) -> ObjectStore | HTTPStore:
    """Return the store at an address, for this process. Raises what obstore raises, and :class:`OSError`."""
    global _used_by
    from obstore.store import HTTPStore, from_url

    if _used_by not in (None, process):
        raise broken(_FORKED)
    _used_by = process
    client: ClientConfig = {"timeout": "1d", "connect_timeout": "10s", "read_timeout": "60s"}
    retry: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(minutes=1)}
    if url.lower().startswith("http"):
        client["allow_http"] = url.lower().startswith("http:")
        # The whole address is the store's: what is escaped in it stays so.
        return HTTPStore.from_url(url, client_options=client, retry_config=retry)
    client["allow_http"] = any(
        value.lower().startswith("http:") for name, value in os.environ.items() if "ENDPOINT" in name.upper()
    )
    return from_url(url, client_options=client, retry_config=retry)


def require() -> None:
    """Raise :class:`UsageError` if the package for remote paths is not installed."""
    try:
        import obstore  # noqa: F401
    except ImportError:
        raise UsageError('remote paths need a package more: pip install "loopscan[remote]"') from None


@functools.cache
def _failures() -> tuple[type[Exception], ...]:
    from obstore.exceptions import BaseError

    return (BaseError, OSError, ValueError)
