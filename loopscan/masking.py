"""Hiding secrets: what looks like a key, a token or a password becomes ``***``.

Masking errs on the side of hiding. Every pattern here runs in linear time, whatever the input: a
repetition without bound either starts only where its run starts (a look-behind), never gives back
what it took (possessive), or has nothing after it that could fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: What stands in place of a secret.
MASK = "***"

_Edit = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

# A literal backslash-n before a key (JSON inside a string) is a boundary too.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)", re.DOTALL
)
# Base64 wrapped at 60 characters or more, the short last line included.
_WRAPPED = re.compile(r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{60,128}\r?\n)+[A-Za-z0-9+/]*={0,2}")

_KNOWN_KEYS = re.compile(
    rf"""
      {_START} sk- [\w-]{{8,}}
    | sk-(?:ant|proj|or|svcacct|admin|None)- [\w-]{{8,}}
    | sk- (?=[A-Za-z]{{0,40}}[0-9]) [A-Za-z0-9]{{20,}}
    | (?:sk|rk|pk)_(?:live|test)_ \w{{8,}}
    | gh[pousr]_ \w{{8,}}
    | github_pat_ \w{{8,}}
    | xox[a-z](?:\.xox[a-z])?- [\w-]{{8,}}
    | xapp- [\w-]{{8,}}
    | hooks\.slack\.com/(?:services|workflows)/ [\w/-]+
    | discord(?:app)?\.com/api/webhooks/ [\w/-]+
    | (?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA) [A-Z0-9]{{12,}}
    | AIza [\w-]{{16,}}
    | ya29\. [\w.-]{{8,}}
    | GOCSPX- [\w-]{{8,}}
    | gl(?:pat|ptt|dt|rt|cbt|soat|sa)[-_] [\w.-]{{8,}}
    | {_START} npm_ [A-Za-z0-9]{{16,}}
    | {_START} hf_ [A-Za-z0-9]{{16,}}
    | pypi-AgE [\w-]{{8,}}
    | SG\. [\w-]{{16,}} (?:\.[\w-]*)?
    | {_START} (?:gsk|r8|whsec|shp(?:at|ss|ca|pa)|lin_api|ntn|sbp|dop_v1|dckr_pat|rubygems)_ [\w+/=-]{{16,}}
    | {_START} (?:xai|pplx|tvly|nvapi|fc|csk)- [\w-]{{16,}}
    | AGE-SECRET-KEY- [A-Z0-9]{{8,}}
    | {_START} [0-9]{{8,10}}:AA [\w-]{{20,}}
    | eyJ [\w-]{{12,}} (?:\.[\w-]*)*
    """,
    re.VERBOSE | re.ASCII,
)
_BEARER = re.compile(r"(?i)\b(bearer[ \t]{1,4})([A-Za-z0-9._~+/=:|-]{4,})")
_BASIC = re.compile(
    r"\b((?:[Bb]asic|BASIC|[Dd]igest|Bot|Token|token)[ \t]{1,4})(?=[A-Za-z]{0,40}[0-9=+/])([\w+/=.-]{8,})"
)

# Without a colon only a long user part is a token; "git@" is not.
_USERINFO = re.compile(
    r"""://(?:
      (?P<user> [^\s:/@"'<>]{0,64}) : (?![0-9]{1,5}(?:[/?\#"'\s]|$)) [^\s@"'<>]{1,128} (?:@[^\s@/"'<>]{1,64})? (?=@)
      | [^\s:/@"'<>]{20,128} (?=@)
    )""",
    re.VERBOSE,
)
_CURL_USER = re.compile(
    r"""(?<![\w-])(-u|--user|--proxy-user)([ \t=]{1,4}["']?)(?!\d{1,8}:\d{1,8}(?!\S))([^\s:"']{1,128}:)([^\s"']+)"""
)
_COMMAND_PASSWORD = re.compile(
    r"""\b((?:
      (?:sshpass|mysql[a-z]{0,20}|mariadb(?:-[a-z]{1,20})?|mongo[a-z]{0,20}|7z[a-z]{0,2}
        |(?:docker|podman|helm|az)\s{1,4}[a-z ]{0,20}login)\b [^\n|;]{0,200}? [ \t]-p[ \t]{0,4}
      | redis-cli\b [^\n|;]{0,200}? [ \t]-a[ \t]{1,4}
      | unzip\b [^\n|;]{0,200}? [ \t]-P[ \t]{0,4}
      | zip\b [^\n|;]{0,200}? [ \t]-P[ \t]{1,4}
    )) (?: "[^"\n]*+"? | '[^'\n]*+'? | [^\s"']+ )""",
    re.VERBOSE,
)
_NETRC = re.compile(r"\b(login[ \t\n]{1,8}\S{1,128}[ \t\n]{1,8}password[ \t\n]{1,8})\S+")
_ELEMENT = re.compile(r"<([\w:.-]{1,80})(?:\s[^<>]{0,200})?>([^<]+)")
_OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w-]*+)[ \t]+(?=[^\s-])", re.ASCII)
_NAME = re.compile(
    r"""(?<![\w.-])(?:(?<=\\)[nrt](?=\w))?
    ((?:(?:api|access|private|secret|auth|signing|encryption)[ ])?[\w.-]++)
    (?:\\*+["'`])?[ \t]*+(?:=>|[:!]?={1,3}|:|%3[AaDd])[ \t]*+""",
    re.VERBOSE | re.IGNORECASE,
)
_QUERY = re.compile(r"([?&](?:key|sig|signature|code|sas|auth)=)[^\s&\"'#]+", re.IGNORECASE)

_OPENING = re.compile(r"""(\\*+)(["'`])""")
_CLOSING = {quote: re.compile(rf"(?<!\\)(\\*+){quote}") for quote in "\"'`"}
_WORD_VALUE = re.compile(r"(?:(?:bearer|basic|digest|token|bot)[ \t]{1,4})?[^\s\"'`&]*+", re.IGNORECASE)
_LINE_VALUE = re.compile(r"[^\r\n]*+")
_BRACKET = re.compile(r"[\[\]{}]")

_SECRET_PARTS = re.compile(
    "password|passwd|passphrase|passcode|passwort|kennwort|contraseña|contrasena|senha|пароль|密码|密碼|secret|apikey|accesskey"
    "|privatekey|signingkey|encryptionkey|sshkey|masterkey|accountkey|servicekey|authkey|storagekey|consumerkey|deploykey"
    "|licensekey|sharedkey|authorization|authorisation|credential|cookie|bearer|mnemonic|seedphrase|recoverycode"
    "|connectionstring|amzsignature|sessid"
)
_SECRET_LAST_WORDS = frozenset(
    (
        "pass",
        "pwd",
        "pw",
        "pswd",
        "auth",
        "oauth",
        "pin",
        "otp",
        "totp",
        "psk",
        "cred",
        "creds",
        "jwt",
        "csrf",
        "xsrf",
    )
)
_WHOLE_LINE = re.compile("authori[sz]ation|cookie|pass_?phrase|seed_?phrase|mnemonic", re.IGNORECASE)
# Counts of model tokens are no secrets.
_TOKEN_COUNT = re.compile(
    r"token(?:s?(?:count|limit|budget|usage|used|iz|per)|s(?:before|after|in$|out$))"
    r"|(?:max|min|num|total|input|output|prompt|completion|new|used|cached?|read|write|context|thinking|reasoning)tokens?$"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_END = 128


def is_secret_name(name: str) -> bool:
    """Tell whether a field, option, header or variable of this name is likely to hold a secret.

    Case and separators do not matter: ``apiKey``, ``API_KEY`` and ``x-api-key`` are all secret.
    """
    if len(name) > 2 * _NAME_END:
        name = name[:_NAME_END] + name[-_NAME_END:]
    flat = "".join(c for c in name.lower() if c.isalnum())
    if _SECRET_PARTS.search(flat) or ("token" in flat and not _TOKEN_COUNT.search(flat)):
        return True
    if flat in _SECRET_LAST_WORDS:
        return True
    words: list[str] = _WORDS.findall(name)
    return bool(words) and words[-1].lower() in _SECRET_LAST_WORDS


def mask(text: str) -> str:
    """Return ``text`` with everything that looks like a secret replaced by ``***``.

    Known key formats, private keys, authorization headers, passwords in URLs, values of options,
    fields and variables with a secret's name, and long random runs. Time is linear in the length.
    """
    if len(text) < 4:
        return text
    for pattern, replacement in _EDITS:
        text = pattern.sub(replacement, text)
    text = _mask_values(text, _OPTION)
    text = _mask_values(text, _NAME)
    return _RUN.sub(_mask_run, text)


def _mask_userinfo(match: re.Match[str]) -> str:
    user = match["user"]
    return f"://{MASK}" if user is None else f"://{user}:{MASK}"


def _mask_element(match: re.Match[str]) -> str:
    if not is_secret_name(match[1]):
        return match[0]
    return match.string[match.start() : match.start(2)] + MASK


_EDITS: tuple[_Edit, ...] = (
    (_PRIVATE_KEY, MASK),
    (_WRAPPED, MASK),
    (_KNOWN_KEYS, MASK),
    (_BEARER, rf"\1{MASK}"),
    (_BASIC, rf"\1{MASK}"),
    (_USERINFO, _mask_userinfo),
    (_QUERY, rf"\1{MASK}"),
    (_CURL_USER, rf"\1\2\3{MASK}"),
    (_COMMAND_PASSWORD, rf"\1{MASK}"),
    (_NETRC, rf"\1{MASK}"),
    (_ELEMENT, _mask_element),
)


def _mask_values(text: str, pattern: re.Pattern[str]) -> str:
    """Mask what follows each match of ``pattern`` whose first group is a secret's name."""
    pieces: list[str] = []
    done = at = 0
    while match := pattern.search(text, at):
        at = match.end()
        if not is_secret_name(match[1]):
            # The separator may be the start of the next name's surroundings, the name itself not.
            at = match.end(1)
            continue
        start, end = _value_span(text, match)
        if end > start:
            pieces += (text[done:start], MASK)
            done = at = end
    pieces.append(text[done:])
    return "".join(pieces)


def _value_span(text: str, name: re.Match[str]) -> tuple[int, int]:
    """Return where the value after ``name`` begins and ends, quotes excluded."""
    at = name.end()
    if opening := _OPENING.match(text, at):
        return opening.end(), _closing(text, opening)
    if text.startswith(("{", "["), at):
        depth = 0
        for bracket in _BRACKET.finditer(text, at):
            depth += 1 if bracket[0] in "[{" else -1
            if depth == 0:
                return at, bracket.end()
        return at, len(text)
    if _WHOLE_LINE.search(name[1]):
        # A header: its value goes on to the end of the quotation it stands in, or of the line.
        before = text[name.start() - 1 : name.start()]
        if before in _CLOSING and (quoted := _CLOSING[before].search(text, at)):
            return at, quoted.start()
        return at, _end_of(_LINE_VALUE, text, at)
    return at, _end_of(_WORD_VALUE, text, at)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _closing(text: str, opening: re.Match[str]) -> int:
    """Return where the quotation ends, at whatever depth of escaping it began."""
    level = len(opening[1])
    for match in _CLOSING[opening[2]].finditer(text, opening.end()):
        slashes = len(match[1])
        if slashes <= level or (slashes - level) % (2 * (level + 1)) == 0:
            return match.start()
    return len(text)


# -- long random runs ---------------------------------------------------------------------------

_RUN = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,3}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9A-Fa-f]+")
_UNBROKEN = re.compile(r"[A-Za-z0-9]{32,}")
# Where one word or number of an identifier ends and the next begins without a separator.
_INNER_EDGE = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9]|[A-Z][a-z])|(?<=[0-9])(?=[A-Za-z])")
_WINDOW = 32
_EDGES_MIXED = 8
_EDGES_ANY = 10
_MEAN_WORD = 4.0


def _mask_run(match: re.Match[str]) -> str:
    run = match[0]
    return MASK if _is_random(run) else run


def _is_random(run: str) -> bool:
    """Tell a random run from a path or an identifier made of words.

    A stretch without separators is random unless it falls into words at its capitals and digits
    (or repeats a few characters); across separators what counts is how often, within any 32
    characters, the kind of character changes inside of a segment: about 16 times in random
    base64, at most 7 or so in paths of CamelCase words.
    """
    bare = _UUID.sub("/", run)
    for stretch in _UNBROKEN.finditer(bare):
        text = stretch[0]
        if len(set(text)) < 8:
            continue
        words = 1 + sum(1 for _ in _INNER_EDGE.finditer(text))
        if words == 1 or len(text) / words < _MEAN_WORD or _HEX.fullmatch(text):
            return True
    edges: list[int] = []
    for edge in _INNER_EDGE.finditer(bare):
        edges.append(edge.start())
        if len(edges) >= _EDGES_ANY and edges[-1] - edges[-_EDGES_ANY] < _WINDOW:
            return True
        if len(edges) >= _EDGES_MIXED and edges[-1] - edges[-_EDGES_MIXED] < _WINDOW:
            around = bare[max(0, edges[-1] - _WINDOW) : edges[-1] + 1]
            if any(map(str.isdigit, around)) and any(map(str.isupper, around)) and any(map(str.islower, around)):
                return True
    return False
