"""Text from transcripts cannot act on a terminal, and secrets do not get out."""

from __future__ import annotations

import json
import random
import string
import sys
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopscan.events import Json
from loopscan.masking import MASK, is_secret_name
from loopscan.sanitize import clean, escape_json, mask, preview

UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
# Every character, lone surrogates included, and the dangerous ones often.
anything = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Mn", "Me", "So"]),
        st.sampled_from("\x1b\x9b\u202e\u2066\ufe0f\u0301…\\❤"),
    )
)


class TestClean:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain text", "plain text"),
            ("naïve Ünïcödé 読む שלום", "naïve Ünïcödé 読む שלום"),
            ("[bold]as it is[/bold] :smile:", "[bold]as it is[/bold] :smile:"),
            ("\x1b[31mred", r"\x1b[31mred"),
            ("a\nb\tc\rd", r"a\nb\tc\rd"),
            ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
            ("\u202eevil\u2066", r"\u202eevil\u2066"),
            ("a\u200bb\ufeffc\u00add", r"a\u200bb\ufeffc\xadd"),
            ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
            ("\U000e0041tag", r"\U000e0041tag"),
            ("\ud800", r"\ud800"),
            ("\ue000", r"\ue000"),
            ("❤\ufe0f", "❤\ufe0f"),
            ("a\ufe0f", r"a\ufe0f"),
            ("❤\ufe0f\ufe0f", "❤\ufe0f\\ufe0f"),
            ("e\u0301", "e\u0301"),
            ("\u0301e", r"\u0301e"),
            ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + r"\u0301\u0301"),
            ("\x1b\u0301", r"\x1b\u0301"),
        ],
    )
    def test_examples(self, text: str, shown: str) -> None:
        assert clean(text) == shown

    def test_no_character_of_unicode_gets_through_that_is_not_printable(self) -> None:
        for code in range(sys.maxunicode + 1):
            for char in clean("a" + chr(code)):
                assert unicodedata.category(char) not in UNPRINTABLE, hex(code)

    @given(anything)
    def test_the_result_is_one_printable_line(self, text: str) -> None:
        shown = clean(text)
        assert not {unicodedata.category(char) for char in shown} & UNPRINTABLE
        assert len(shown.splitlines()) <= 1
        shown.encode()

    @given(anything, st.none() | st.integers(-2, 40), st.sampled_from(["ends", "start"]))
    @example("e\u0301\u0301\u0301", 3, "ends")
    @example("abcdef❤\ufe0f", 6, "ends")
    def test_clean_text_stays_and_the_limit_holds(self, text: str, limit: int | None, keep: str) -> None:
        shown = clean(text, limit, keep=keep)  # type: ignore[arg-type]
        assert clean(shown, limit, keep=keep) == shown  # type: ignore[arg-type]
        assert clean(shown) == shown
        if limit is not None:
            assert len(shown) <= max(limit, 0)

    def test_it_is_shortened_in_the_middle_or_at_the_end(self) -> None:
        assert clean("abcdefghijkl", 10) == "abcdef…jkl"
        assert clean("abcdefghijkl", 10, keep="start") == "abcdefghi…"
        assert clean("abcdefghij", 10) == "abcdefghij"

    @pytest.mark.parametrize("limit", range(30))
    def test_an_escape_is_whole_or_not_there(self, limit: int) -> None:
        shown = clean("\u202e" * 20, limit)
        assert shown.replace(r"\u202e", "").replace("…", "") == ""

    def test_a_limit_bounds_the_work(self) -> None:
        text = "\u202e" * 20_000_000
        assert _seconds(lambda: clean(text, 60)) < 0.5


class TestEscapeJson:
    @given(anything)
    def test_it_stays_the_same_json_and_is_harmless(self, text: str) -> None:
        document = escape_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
        assert json.loads(document) == {text: [text]}
        assert not {unicodedata.category(char) for char in document.replace("\n", "")} & UNPRINTABLE
        document.encode()

    def test_characters_beyond_16_bits_become_pairs(self) -> None:
        assert escape_json('"\U000e0041"') == r'"\udb40\udc41"'


SECRETS = [
    "sk-abcdefghijklmnopqrstuvwx",
    "sk-ant-api03-AbCdEfGhIjKl-MnOpQr_StUvWx",
    "sk-proj-AbCdEfGhIjKlMnOpQrSt",
    "sk_live_AbCdEfGhIjKlMnOp",
    "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "gho_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "github_pat_11ABCDEFG0_AbCdEfGhIjKlMnOpQr",
    "xoxb-123456789012-abcdefghijkl",
    "xoxp-123456789012-abcdefghijkl",
    "xoxa-2-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "glpat-AbCdEfGhIjKlMnOpQrSt",
    "npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWJ5dGVz",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "dGhpcyBpcyBhIHZlcnkgc2VjcmV0IGJhc2U2NCB2YWx1ZQ==",
]
# The secret's place is written {}; whatever stands around it, it must go.
PLACES = [
    "password={}",
    "PASSWORD = '{}'",
    'DB_PASSWORD="{}"',
    "token: {}",
    "client_secret={}&x=1",
    '{{"apiKey": "{}"}}',
    '{{"api_key":"{}","user":"bob"}}',
    '{{\\"access_token\\": \\"{}\\"}}',
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "curl -H 'Authorization: {}' https://example.org",
    'curl -H "X-Api-Key: {}" https://example.org',
    "Cookie: sid={}; theme=dark",
    "Bearer {}",
    "https://user:{}@example.org/path",
    "postgres://admin:{}@db:5432/app",
    "https://example.org/?token={}&page=2",
    "https://example.org/?page=2&access_token={}",
    "https://example.org/?key={}",
    "login --password {}",
    "login --password={} --verbose",
    "login --token {} now",
    "curl -u bob:{} https://example.org",
    "mysql -u root -p{} app",
    "sshpass -p {} ssh host",
    "docker login -u bob -p {}",
    "redis-cli -h x -a {} ping",
    "API key: {}",
    "machine example.org login bob password {}",
    "<password>{}</password>",
    "export GITHUB_TOKEN={}; make",
    "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\n{}",
]
plain_secret = st.text(string.ascii_letters + string.digits, min_size=8, max_size=24).filter(
    lambda text: not text.isdigit() and len(set(text)) > 5
)
# No quotes or separators that would make the planted text something else.
surroundings = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


class TestMask:
    @pytest.mark.parametrize("secret", SECRETS)
    def test_known_shapes_go_wherever_they_stand(self, secret: str) -> None:
        for before, after in [("", ""), ("see ", " here"), ("(", ")"), ('"', '"'), ("x=", "&y"), ("\\n", "\\n")]:
            assert secret not in mask(f"{before}{secret}{after}")
            assert secret[8:] not in mask(f"{before}{secret}{after}")

    @pytest.mark.parametrize("place", PLACES)
    def test_places_where_secrets_stand(self, place: str) -> None:
        masked = mask(place.format("Hunter2Hunter"))
        assert "Hunter2" not in masked
        assert MASK in masked

    @given(st.sampled_from(PLACES), plain_secret, surroundings, surroundings)
    def test_a_planted_secret_never_shows(self, place: str, secret: str, before: str, after: str) -> None:
        text = f"{before} {place.format(secret)} {after}"
        if secret not in before and secret not in after and secret not in place:
            assert secret not in mask(text)

    @given(st.sampled_from(SECRETS), surroundings, surroundings)
    def test_a_known_key_never_shows(self, secret: str, before: str, after: str) -> None:
        assert secret not in mask(f"{before} {secret} {after}")

    @pytest.mark.parametrize("alphabet", [string.ascii_letters + string.digits + "+/", "0123456789abcdef"])
    def test_long_random_runs_go(self, alphabet: str) -> None:
        made = random.Random(7)
        for _ in range(500):
            secret = "".join(made.choices(alphabet, k=made.randint(40, 90)))
            assert secret not in mask(f"value {secret} end")

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "ls -la src/components/foo/bar/baz/index/AbstractSingletonProxyFactoryBean.java",
            "src/main/java/com/example/project/service/impl/UserServiceImplTest",
            "AbstractSingletonProxyFactoryBeanImplementation",
            "test_that_the_parser_handles_2_empty_lines_and_3_tabs",
            "task-management-system-for-desk-work",
            "550e8400-e29b-41d4-a716-446655440000",
            "2026-09-01T10-00-00_report_2026-09-02_final_v2",
            "mkdir -p build/output && docker run -p 8080:80 -u 1000:1000 image",
            "git clone git@github.com:owner/repository.git",
            "http://localhost:3000/@vite/client",
            "https://example.org/a/b?page=2&sort=name",
            '{"max_tokens": 4096, "totalTokens": 12}',
            "the author of the keyboard driver is a monkey",
            "=" * 80,
            "-" * 80,
            "a" * 80,
            "Bearer of news",
            "This is basic functionality",
        ],
    )
    def test_what_is_no_secret_stays(self, text: str) -> None:
        assert mask(text) == text

    def test_what_stands_around_a_secret_stays(self) -> None:
        assert mask('{"password":"a\\"b c","user":"bob"}') == '{"password":"***","user":"bob"}'
        assert mask("https://bob:pw@host/x?token=abc&y=1") == "https://bob:***@host/x?token=***&y=1"
        assert mask("login --password x --verbose") == "login --password *** --verbose"
        assert mask("token: Bearer abc def") == "token: *** def"
        assert mask('Authorization: Digest username="x", response="y"\nHost: z') == "Authorization: ***\nHost: z"
        assert mask('{"token": {"a": "b c"}, "x": 1}') == '{"token": ***, "x": 1}'

    @pytest.mark.parametrize(
        "shape",
        [
            "a",
            "-a",
            "password",
            "password=",
            'password="',
            "\\",
            'token=\\"',
            "eyJ",
            "://",
            "://u:p",
            "-----BEGIN PRIVATE KEY",
            "-----BEGIN PRIVATE KEY-----",
            "sk-",
            " ",
            "token ",
            "mysql -",
            "docker login ",
            "<a ",
            "aA1",
            "aaaaaaaA/",
            "components/",
            "--token ",
            "token:{",
            "-u a:",
            "login a password ",
            "A" * 60 + "\n",
            "A" * 129 + "\n",
            "api ",
            "Basic abcdefghi ",
            "550e8400-e29b-41d4-a716-44665544000/",
            "'authorization:",
            "xoxb-",
            "\u202e",
            "e\u0301",
            '`cookie=a"',
            "'\"",
        ],
    )
    def test_time_is_linear(self, shape: str) -> None:
        text = shape * (300_000 // len(shape))
        assert _seconds(lambda: mask(text)) < 10  # under a second; a quadratic pattern takes minutes
        assert _seconds(lambda: preview({"x": text})) < 0.5


class TestSecretNames:
    @pytest.mark.parametrize(
        "name",
        [
            "password",
            "Password",
            "DB_PASSWORD",
            "token",
            "accessToken",
            "x-api-key",
            "apiKey",
            "API_KEY",
            "secret",
            "client_secret",
            "Authorization",
            "cookie",
            "Set-Cookie",
            "passphrase",
            "privateKey",
            "credentials",
            "db_pass",
            "userPwd",
            "basicAuth",
            "auth",
            "pin",
            "jwt",
            "refresh.token",
            "senha",
            "AWS_SECRET_ACCESS_KEY",
            "AccountKey",
        ],
    )
    def test_secret(self, name: str) -> None:
        assert is_secret_name(name)

    @pytest.mark.parametrize(
        "name",
        [
            "path",
            "command",
            "author",
            "key",
            "keyboard",
            "primary_key",
            "max_tokens",
            "totalTokens",
            "tokenizer",
            "compass",
            "authMode",
            "sessionKey",
            "public_key",
            "tokenCount",
            "inputTokens",
        ],
    )
    def test_not_secret(self, name: str) -> None:
        assert not is_secret_name(name)

    def test_a_huge_name_costs_nothing(self) -> None:
        assert is_secret_name("x" * 10_000_000 + "Password")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything, inner, max_size=4),
    max_leaves=12,
)


class TestPreview:
    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            ({"path": "notes.txt"}, '{"path":"notes.txt"}'),
            ({}, "{}"),
            (None, "null"),
            ([], "[]"),
            ("text", '"text"'),
            ({"a": 1, "b": [True, 1.5, None]}, '{"a":1,"b":[true,1.5,null]}'),
            ({"password": "hunter2"}, '{"password":"***"}'),
            ({"x-API-key": ["a", "b"]}, '{"x-API-key":"***"}'),
            ({"Cookie": {"a": 1}}, '{"Cookie":"***"}'),
            ({"pin": 1234}, '{"pin":"***"}'),
            ({"args": ["--password", "hunter2", "x"]}, '{"args":["--password","***","x"]}'),
            ({"name": "API_KEY", "value": "hunter2"}, '{"name":"API_KEY","value":"***"}'),
            ({"content": "x y " * 99, "path": "/a/b"}, '{"content":"x y x y x y x y x y x y x …","path":"/a/b"}'),
            ({"text": "a\nb\u202e"}, r'{"text":"a\nb\u202e"}'),
            ({"n": 10**5000}, '{"n":…}'),
        ],
    )
    def test_examples(self, arguments: Json, shown: str) -> None:
        assert preview(arguments) == shown

    @given(json_values, st.integers(0, 80))
    def test_it_is_short_clean_and_one_line(self, arguments: Json, limit: int) -> None:
        shown = preview(arguments, limit)
        assert len(shown) <= limit
        assert clean(shown) == shown

    @given(st.sampled_from(PLACES), plain_secret, surroundings, surroundings, st.integers(10, 200))
    def test_a_planted_secret_never_shows(self, place: str, secret: str, before: str, after: str, limit: int) -> None:
        text = f"{before} {place.format(secret)} {after}"
        if secret not in before and secret not in after and secret not in place:
            assert secret[:8] not in preview({"command": text, "x": [text]}, limit)

    @given(json_values, st.sampled_from(["password", "Api-Key", "AUTHORIZATION"]))
    def test_a_secret_field_is_masked_at_any_depth(self, around: Json, name: str) -> None:
        shown = preview({"a": [{name: "hunter2 and more", "z": around}]}, 400)
        assert "hunter2" not in shown

    @pytest.mark.parametrize("secret", SECRETS)
    def test_a_cut_through_a_secret_does_not_leave_its_head(self, secret: str) -> None:
        # Masked text before it makes room, so that the place where the string is cut comes into view.
        for length in range(1300, 1560, 7):
            for before in ["ghp_" + "A1b2" * (length // 4), "password='" + "p" * length + "' "]:
                shown = preview({"command": before + " " + secret}, 60)
                assert secret[:8] not in shown

    @pytest.mark.parametrize("limit", range(20, 60))
    def test_the_limit_never_cuts_a_secret_free(self, limit: int) -> None:
        assert "AKIA" not in preview({"command": "echo AKIAIOSFODNN7EXAMPLE"}, limit)

    def test_depth_and_size_are_no_trouble(self) -> None:
        deep_list: Json = None
        deep_dict: Json = None
        for _ in range(10_000):
            deep_list = [deep_list]
            deep_dict = {"a": deep_dict}
        for arguments in (deep_list, deep_dict, {"x": "a" * 5_000_000}, ["y"] * 1_000_000, {"k" * 5_000_000: 1}):
            assert _seconds(lambda arguments=arguments: preview(arguments, 5000)) < 1


def _seconds(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start
