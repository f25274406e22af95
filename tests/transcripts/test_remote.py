"""Remote paths: objects, folders and archives of a store, and what the web gives; and what is told when they fail."""

from __future__ import annotations

import http.server
import multiprocessing
import os
import pickle
import re
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from loopscan.errors import InputError, UsageError
from loopscan.transcripts import remote
from loopscan.transcripts.discover import Found
from loopscan.transcripts.places import close_shared
from loopscan.transcripts.remote import Remote, failure, is_remote
from tests.transcripts.packs import content, find, gz, names, reasons, session, tar, zipped, zst

S3Store = pytest.importorskip("obstore.store").S3Store

BIG = session("big", 30_000)
OBJECTS = {
    "logs/b.jsonl": session("b"),
    "logs/a.jsonl": session("a"),
    "logs/deep/c d.jsonl.gz": gz(session("c")),
    "logs/notes.md": b"# notes",
    "logs/none": b"",
    "logs-other/x.jsonl": session("x"),
    "packs/a.tar": tar({"s.jsonl": session("s"), "big.jsonl": BIG, "t.jsonl": session("t")}),
    "packs/b.tar.zst": zst(tar({"s.jsonl": session("s"), "big.jsonl": BIG})),
    "packs/c.zip": zipped({"s.jsonl": session("s"), "big.jsonl": BIG}),
    "big.jsonl": BIG,
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A store that is like S3, with a bucket in it."""
    moto = pytest.importorskip("moto.server")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    address = f"http://127.0.0.1:{running.get_host_and_port()[1]}"
    urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT"), timeout=30).close()
    keys = {"access_key_id": "k", "secret_access_key": "s", "region": "us-east-1"}
    filling = S3Store("bucket", endpoint=address, client_options={"allow_http": True}, **keys)
    for name, data in OBJECTS.items():
        filling.put(name, data, use_multipart=False)
    yield address
    running.stop()


@pytest.fixture(autouse=True)
def _stores_are_made_anew() -> Iterator[None]:
    """What the environment says may change from test to test."""
    remote._store.cache_clear()
    yield
    remote._store.cache_clear()


@pytest.fixture
def store(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store as the environment names it."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    settings = {"ENDPOINT_URL": server, "ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "SECRET", "REGION": "us-east-1"}
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return server


class Web(http.server.BaseHTTPRequestHandler):
    """A server of the web that knows nothing of parts."""

    files: dict[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        name = self.path.partition("?")[0].lstrip("/")
        status = int(name) if name.isdecimal() else 200 if name in self.files else 404
        data = self.files.get(name, b"SECRET body")
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jun 2026 12:00:00 GMT")
        if name != "endless":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    Web.files = {
        "a.jsonl": session("a"),
        "a%20b.jsonl": session("a b"),
        "big.jsonl": BIG,
        "a.tar.gz": gz(tar({"s.jsonl": session("s"), "t.jsonl": session("t")})),
        "a.tar": tar({"s.jsonl": session("s"), "t.jsonl": session("t")}),
        "a.zip": zipped({"s.jsonl": session("s"), "t.jsonl": session("t")}),
        "notes": b"# notes",
        "endless": session("e"),
        "container/logs/a.jsonl": session("az"),
    }
    Web.asked = []
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    thread = threading.Thread(target=running.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


@pytest.mark.parametrize("path", ["s3://bucket/logs/", "s3://bucket/logs"])
def test_a_folder_of_a_store_is_listed_in_order(store: str, path: str) -> None:
    found = find(path)
    expected = {f"s3://bucket/{name}": OBJECTS[name] for name in sorted(OBJECTS) if name.startswith("logs/")}
    assert names(found) == [name for name in expected if ".jsonl" in name]
    assert content(found.sources[0]) == session("a")
    assert content(found.sources[2]) == session("c")
    assert reasons(found) == {"s3://bucket/logs/none": "empty", "s3://bucket/logs/notes.md": "of no known format"}
    assert found.start_method == "spawn"


def test_a_whole_store_and_patterns_of_objects(store: str) -> None:
    assert len(find("s3://bucket").sources) == 12
    assert names(find("s3://bucket/logs/*.jsonl")) == ["s3://bucket/logs/a.jsonl", "s3://bucket/logs/b.jsonl"]
    assert names(find("s3://bucket/**/[xc]*.jsonl*")) == [
        "s3://bucket/logs-other/x.jsonl",
        "s3://bucket/logs/deep/c d.jsonl.gz",
    ]
    with pytest.raises(InputError, match=r"s3://bucket/logs/\*\.none: no object meets this pattern"):
        find("s3://bucket/logs/*.none")


def test_an_object_is_streamed_and_read_once(store: str) -> None:
    found = find("s3://bucket/big.jsonl", "s3://bucket/big.jsonl")
    assert names(found) == ["s3://bucket/big.jsonl"]
    assert reasons(found) == {"s3://bucket/big.jsonl": "read already, under another name"}
    assert content(found.sources[0]) == BIG
    assert content(pickle.loads(pickle.dumps(found.sources[0]))) == BIG


@pytest.mark.parametrize("name", ["packs/a.tar", "packs/b.tar.zst", "packs/c.zip"])
def test_archives_in_a_store_are_looked_into(store: str, name: str) -> None:
    found = find(f"s3://bucket/{name}")
    assert names(found)[:2] == [f"s3://bucket/{name}!s.jsonl", f"s3://bucket/{name}!big.jsonl"]
    assert [content(each) for each in found.sources[1::-1]] == [BIG, session("s")]
    close_shared()


def test_sources_of_a_store_can_be_read_in_another_process(store: str) -> None:
    found = find("s3://bucket/logs/")
    context = multiprocessing.get_context(found.start_method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert list(pool.map(content, found.sources)) == [session("a"), session("b"), session("c")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_is_told_that_it_cannot_read_and_does_not_hang(store: str) -> None:
    (found,) = find("s3://bucket/big.jsonl").sources
    child = os.fork()
    if not child:
        try:
            content(found)
        except InputError as error:
            os._exit("fork" not in str(error))
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bucket/gone.jsonl", "no such object, and nothing below it"),
        ("s3://bucket/gone/", "no such object, and nothing below it"),
        ("s3://nowhere/a.jsonl", "no such bucket"),
        ("s3://nowhere/", "no such bucket"),
        ("s3://bucket/logs/notes.md", r"of no known format \(known: openclaw-jsonl"),
        ("s3://bucket/logs/none", "empty"),
        ("s3://bucket/a//b", "no such address can be"),
    ],
)
def test_what_is_not_there_is_one_clear_line(store: str, path: str, message: str) -> None:
    errors: list[InputError] = []
    find(path, on_error=errors.append)
    (error,) = errors
    assert re.match(f"{path}: {message}", str(error))
    assert "\n" not in str(error)
    assert "SECRET" not in str(error)


def test_a_store_that_nothing_opens_is_one_clear_line(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(InputError, match="s3://bucket/x: the server cannot be reached"):
        find("s3://bucket/x")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InputError, match="az://container/x: no account in the environment"):
        find("az://container/x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Error performing PUT http://169.254.169.254/latest/api/token in 1ms", "no credentials in the environment"),
        ("Error performing token request: Error performing GET http://x", "no credentials in the environment"),
        ("Server returned non-2xx status code: 403 Forbidden: SECRET", "access denied"),
        ("Server returned non-2xx status code: 503 Slow down", "the server answers 503"),
        ("HTTP error: request or response body error: TimedOut", "the server does not answer in time"),
        ("something SECRET", "the object cannot be fetched"),
    ],
)
def test_what_obstore_says_is_told_without_its_words(text: str, message: str) -> None:
    exceptions = pytest.importorskip("obstore.exceptions")
    assert failure(exceptions.GenericError(text)).strerror == message


def test_what_the_web_gives_is_read_and_its_query_is_masked(web: str) -> None:
    found = find(
        f"{web}/a.jsonl?X-Amz-Signature=SECRET%2F1", f"{web}/a%20b.jsonl", f"{web}/a.jsonl?X-Amz-Signature=SECRET2"
    )
    assert names(found) == [f"{web}/a.jsonl?***", f"{web}/a%20b.jsonl", f"{web}/a.jsonl?*** (2)"]
    assert [content(each) for each in found.sources] == [session("a"), session("a b"), session("a")]
    assert "/a.jsonl?X-Amz-Signature=SECRET%2F1" in Web.asked
    assert "SECRET" not in repr(found)
    assert content(find(f"{web}/big.jsonl").sources[0]) == BIG


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip"])
def test_archives_of_the_web_need_no_server_that_knows_parts(web: str, name: str) -> None:
    found = find(f"{web}/{name}?sig=SECRET")
    assert names(found) == [f"{web}/{name}?***!s.jsonl", f"{web}/{name}?***!t.jsonl"]
    for _ in range(2):
        assert [content(each) for each in found.sources] == [session("s"), session("t")]
    close_shared()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "no such object"),
        ("403", "access denied"),
        ("401", "access denied"),
        ("410", "the server answers 410"),
        ("endless", "the server does not say how long it is: download it first"),
        ("notes", "of no known format"),
    ],
)
def test_what_the_web_does_not_give_is_one_clear_line(web: str, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        find(f"{web.replace('//', '//user:SECRET@')}/{name}?sig=SECRET")
    assert str(raised.value).startswith(f"{web}/{name}?***: ")
    assert "SECRET" not in str(raised.value) + raised.value.path
    assert "\n" not in str(raised.value)


def test_containers_of_azure_are_named_by_their_account_in_the_environment(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"ACCOUNT_NAME": "account", "ENDPOINT": web}
    for name, value in settings.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    found = find("az://container/logs/a.jsonl")
    assert names(found) == ["az://container/logs/a.jsonl"]
    assert content(found.sources[0]) == session("az")


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError, match=r'pip install "loopscan\[remote\]"'):
        find("gs://bucket/a.jsonl")


def test_addresses_are_told_from_paths() -> None:
    for address in ("s3://b/k", "gs://b", "az://c/k", "https://h/p", "HTTP://h"):
        assert is_remote(address)
    for path in ("s3:/b", "c:\\x", "./s3://b", "ftp://h/p", "file:///x", "a/b"):
        assert not is_remote(path)


def test_a_source_that_is_gone_when_it_is_read_is_an_input_error(store: str) -> None:
    (found,) = find("s3://bucket/big.jsonl").sources
    assert isinstance(found, Found)
    gone = Remote("s3://bucket/gone")
    with pytest.raises(FileNotFoundError, match="no such object"):
        gone.open()
