"""Hiding secrets: what looks like a key, a token or a password becomes ``***``.

Masking errs on the side of hiding. Every pattern here runs in linear time, whatever the input: a
repetition without bound either starts only where its run starts (a look-behind), never gives back
what it took (possessive), or has nothing after it that could fail.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

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
    | {_START} [MNO][\w-]{{22,28}} \. [\w-]{{6}} \. [\w-]{{20,}}
    | {_START} hv[sbr]\. [\w-]{{8,}}
    | (?:(?<![\w.-])|(?<=\\[nrt])) [sbr]\. (?=[A-Za-z]{{0,40}}[0-9]) [A-Za-z0-9]{{24,}}
    | {_START} dp\.(?:pt|st|ct|sa|scim|audit)\. [\w.-]{{8,}}
    | {_START} dapi [0-9a-f]{{32}} (?:-[0-9])?
    | (?<![\w/]) 1//0 [\w-]{{16,}}
    | {_START} (?:fig[a-z]{{1,2}}|sntr[a-z]{{2}}|glc|nfp|fo1|fm[12]|phx|sb_secret|lsv2_[a-z]{{2}}) _
      [\w+/=-]{{16,}}
    | {_START} (?:PMAK|NRAK|NRAA|NRII|NRJS|xkeysib|xsmtpsib|pul) - [\w-]{{12,}}
    | {_START} sq0[a-z]{{3}}- [\w-]{{8,}}
    | {_START} EAA[A-Z] [\w-]{{16,}}
    | {_START} AT[AC]TT3 [\w=-]{{16,}}
    | {_START} (?:LTAI|AKID) (?=[A-Za-z]{{0,40}}[0-9]) [A-Za-z0-9]{{12,}}
    | {_START} re_ [A-Za-z0-9]{{8}} _ [A-Za-z0-9]{{12,}}
    | (?<![\w-]) A{{10,}}+ [\w%-]{{20,}}
    | (?<![\w-]) A{{4,}}+ [\w-]{{8,}}+ % (?:2[BFbf]|3[Dd]) [\w%-]*
    | {_START} secret_ (?=[A-Za-z]{{0,40}}[0-9]) [A-Za-z0-9]{{16,}}
    | {_START} pat[A-Za-z0-9]{{14}} \. [0-9a-f]{{16,}}
    | {_START} key (?=[A-Za-z]{{0,13}}[0-9]) (?=[A-Z0-9]{{0,13}}[a-z]) (?=[a-z0-9]{{0,13}}[A-Z])
      [A-Za-z0-9]{{14}} (?![A-Za-z0-9])
    | [A-Za-z0-9]{{14}} \.atlasv1\. [\w-]{{16,}}
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
# The user of a web address that is no plain word is a token, however short.
_URL_TOKEN = re.compile(r"(?i:(?<=http)|(?<=https))://(?![a-z._-]{1,19}@)[^\s:/@\"'<>]{3,128}(?=@)")

# What may stand between a program and its option: the rest of one command, continued lines included.
_GAP = r"(?:[^\n|;&\\]|\\\r?\n|\\(?!\r?\n)|[|;&](?![\s|;&])){0,200}?"
_SPACE = r"(?:\s|\\{1,4}[nrt]){1,8}"
_ARGUMENT = r"""(?: \\{0,4}"[^"\n]*+"? | \\{0,4}'[^'\n]*+'? | [^\s"']+ )"""
_ECHOED = r"""(?: "[^"\n]{0,200}" | '[^'\n]{0,200}' | [^\n|;&"'] ){1,200}+"""

_USER_OPTION = re.compile(
    rf"""(
        (?<![\w-])(?:-u|--user|--proxy-user) [ \t=]{{1,4}} (?!["']?\d{{1,8}}:\d{{1,8}}["']?(?!\S))
      | \bcurl\b {_GAP} [ \t] (?:-[A-Za-z]{{0,8}}[uU] | --(?:proxy-)?user) [ \t=]{{0,4}}
      | (?<![\w/:.-])https?(?=[ \t]) {_GAP} [ \t]-a [ \t]{{0,4}}
    ) (?: (?P<quote>\\{{0,4}}["']) (?P<user>[^\s:"']{{0,128}}:) (?:(?!(?P=quote))[^\n])+
        | (?P<bare>[^\s:"']{{1,128}}:) [^\s"']+ )""",
    re.VERBOSE,
)
_LFTP_USER = re.compile(rf"""\b(lftp\b{_GAP}[ \t]-u[ \t]{{0,4}}["']?[^\s,"']{{1,128}},)[^\s"']+""")
_SMB_USER = re.compile(r"(?<![\w-])((?:-U|--user)[ \t=]{0,4}[\"']?[^\s%\"'|;]{1,80}%)[^\s\"']+")
_COMMAND_PASSWORD = re.compile(
    rf"""\b((?:
      (?:sshpass|mysql[a-z]{{0,20}}|mariadb(?:-[a-z]{{1,20}})?|mongo[a-z]{{0,20}}|7z[a-z]{{0,2}}|u?n?rar
        |useradd|usermod|adduser|psexec|cqlsh|cypher-shell|netexec|nxc|crackmapexec|evil-winrm
        |(?:docker|podman|helm|az|oc)\s{{1,4}}[a-z ]{{0,20}}login)\b {_GAP} [ \t]-(?:p|hp) [ \t]{{0,4}}
      | redis-cli\b {_GAP} [ \t]-a [ \t]{{1,4}}
      | (?:unzip|sqlcmd|osql|bcp|ipmitool|mosquitto_(?:pub|sub))\b {_GAP} [ \t]-P [ \t]{{0,4}}
      | zip\b {_GAP} [ \t]-P [ \t]{{1,4}}
      | openssl\b {_GAP} [ \t]-[kK] [ \t]{{1,4}}
      | ldap[a-z]{{3,10}}\b {_GAP} [ \t]-w [ \t]{{0,4}}
      | ldappasswd\b {_GAP} [ \t]-[sa] [ \t]{{0,4}}
      | security\s{{1,4}}[a-z-]{{4,30}}\b {_GAP} [ \t]-w [ \t]{{1,4}}
      | ssh-keygen\b {_GAP} [ \t]-[NP] [ \t]{{0,4}}
      | (?:plink|pscp|psftp|putty)\b {_GAP} [ \t]-pw [ \t]{{1,4}}
      | (?:x|w|sdl-)freerdp\b {_GAP} [ \t]/p:
      | rdesktop\b {_GAP} [ \t]-p [ \t]{{0,4}}
      | nmcli\b {_GAP} [ \t]password [ \t]{{1,4}}
      | rabbitmqctl\b {_GAP} [ \t](?:add_user|change_password) [ \t]{{1,4}} \S{{1,64}} [ \t]{{1,4}}
      | ConvertTo-SecureString [ \t]{{1,4}} (?:-String[ \t]{{1,4}})?
      | schtasks\b {_GAP} [ \t]/rp [ \t:]{{1,4}}
    )) {_ARGUMENT}""",
    re.VERBOSE,
)
# Not those of msbuild, which are "/p:Name=value".
_SLASH_PASSWORD = re.compile(r"(?<!\S)(/p:)(?![A-Za-z_.]{1,80}=)[^\s\"']+")
# Commands whose plain arguments are the password.
_COMMAND_LINE = re.compile(
    r"""\b(
        htpasswd[ \t]{1,4} (?:-[A-Za-z]{1,8}[ \t]{1,4}){0,3} -[A-Za-z]{0,6}b[A-Za-z]{0,6} [ \t]{1,4}
      | openssl[ \t]{1,4}passwd[ \t]{1,4} | mkpasswd[ \t]{1,4} | wpa_passphrase[ \t]{1,4}
      | vault[ \t]{1,4}login[ \t]{1,4}(?!-)
      | (?<![\w,][ ]) net[ \t]{1,4}user[ \t]{1,4} \S{1,64}[ \t]{1,4} (?=\S{1,128}[ \t]{0,4}(?:\Z|[/|;&"'\n\\]))
    ) [^\n|;&]+""",
    re.VERBOSE,
)
_COOKIES = re.compile(
    rf"""\b(curl\b {_GAP} [ \t]-[A-Za-z]{{0,8}}b [ \t]{{0,4}})
    (?: \\{{0,4}}"[^"\n]*+"? | \\{{0,4}}'[^'\n]*+'? | [^\s"'=]{{1,128}}=[^\s"']* )""",
    re.VERBOSE,
)
_ASKS = r"""(?: sudo\b [^\n|;]{0,60}? [ \t] -[A-Za-z]{0,8}S | --stdin
    | \b(?:su|chpasswd|passwd|smbpasswd|cryptsetup|kinit)\b
    | pass(?:word|phrase)?[_-](?:stdin|fd|file) | with-token | pass(?:in|out)?[ \t]stdin )"""
_PIPED = re.compile(rf"\b((?:echo|printf)\b){_ECHOED}(?= \| {{1,2}} [^\n|;]{{0,100}}? {_ASKS})", re.VERBOSE)
_HERE_STRING = re.compile(rf"({_ASKS} [^\n|;<]{{0,100}} <<<[ \t]{{0,4}}) {_ARGUMENT}", re.VERBOSE)
_HERE_DOCUMENT = re.compile(
    rf"""({_ASKS} [^\n|;<]{{0,100}} <<-?[ \t]{{0,4}}["']?(\w{{1,40}}+)["']? [^\n]{{0,100}}? (?:\n|\\{{1,4}}n))
    .*? (?= (?:\n|\\{{1,4}}n)[ \t]*\2\b | \Z)""",
    re.VERBOSE | re.DOTALL,
)
_NETRC = re.compile(
    rf"""(?:\b|(?<=\\[nrt]))((?:login|machine){_SPACE}\S{{1,128}}?{_SPACE}
    (?:(?:login|account){_SPACE}\S{{1,128}}?{_SPACE}){{0,2}} password{_SPACE}) [^\s\\"']\S*""",
    re.VERBOSE,
)
_PHRASE = re.compile(
    r"(?i)((?:mnemonic|(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words))\b[^\n]{0,24}?)"
    r"(?<![a-z])(?-i:[a-z]{3,8}[ \t,]{1,4}){11,23}[a-z]{3,8}"
)
_PARAMETER = re.compile(
    r"""([?&](?:key|code|sas|auth|sig)= | (?<![\w.-])(?:x-[a-z]{2,10}-)?(?:signature|sig|hmac|session_?id|sid)=)
    [^\s&"'\#=] [^\s&"'\#]*""",
    re.VERBOSE | re.IGNORECASE,
)
_SECRET_SET = re.compile(r"\b(secrets?[ \t]{1,4}set[ \t]{1,4}\w{1,80}=)[^\s\"']+")
_ELEMENT = re.compile(r"<([\w:.-]{1,80})(\s[^<>]{0,200})?>([^<]+)")

# -- names and what stands for their values -----------------------------------------------------

# Invisible characters and combining marks do not end a name.
_IGNORED = (
    "\u0300-\u036f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3099\u309a\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_NAME_CHAR = rf"[\w.\-{_IGNORED}]"
_BLANK = "[ \t\u00a0\u202f\u3000]"
_OPTION = re.compile(
    rf"""(?<![\w\-{_IGNORED}])[-－]{{1,2}}
    (?P<name>[^\W\d_](?:[\w\-{_IGNORED}]++|\\{{1,4}}u[0-9A-Fa-f]{{4}})*+)[ \t]+(?=[^\s-])""",
    re.VERBOSE,
)
_NAME = re.compile(
    rf"""(?<!{_NAME_CHAR})(?:(?<=\\)[nrt](?=\w))?
    (?P<name>
      (?:(?:api|access|private|secret|auth|signing|encryption|seed|recovery|backup|pass|mot[ ]de)[ ])?
      (?:{_NAME_CHAR}++ | \\{{1,4}}u(?!ff1[ad])[0-9A-Fa-f]{{4}}){{1,40}}+
    )
    (?:\\*+["'`]|\*{{1,2}})?
    (?:\](?:\[[\w"']{{0,40}}\])? | \[\w{{0,40}}\] | %5[Dd])?
    {_BLANK}*+(?:=>|[:!]?={{1,3}}|[:：＝]|%3[AaDd]|\\{{1,4}}uff1[AaDd]){_BLANK}*+
    (?:\*{{1,2}}[ \t]++)?+
    (?:(?:str|string|bytes|any|text|SecretStr|&(?:'\w{{1,20}}[ ])?str|Optional\[str\]
         |(?:str|string)[ ]?\|[ ]?(?:None|null|undefined))
       [ \t]*+=(?!=)[ \t]*+)?+""",
    re.VERBOSE | re.IGNORECASE,
)
# "setx NAME value" and the like; after a plain "set" or "export" only what is spelled as a variable.
_ASSIGNMENT = re.compile(
    rf"""(?<![\w-])(?:
        (?: setx | setenv | ENV | ARG | config(?:ure)?[ \t]{{1,4}}(?:set|add) | secrets?[ \t]{{1,4}}set
          | set(?:[ \t]{{1,4}}-{{1,2}}[A-Za-z-]{{1,12}}){{1,3}} | git[ \t]{{1,4}}config )
        (?:[ \t]{{1,4}}-{{1,2}}[A-Za-z-]{{1,20}}){{0,3}} [ \t]{{1,4}} (?P<name>[^\s"'=]{{1,100}})
      | (?: set | export | SET | define ) [ \t]{{1,4}} (?P<variable>(?=[a-z]{{0,100}}[A-Z_.]) {_NAME_CHAR}{{1,100}}+)
    ) [ \t]{{1,4}} (?![=:&|;<>\s])""",
    re.VERBOSE,
)
# "password 'hunter2'", as SQL has it.
_QUOTED = re.compile(
    rf"""(?P<name>pass(?:word|wd|phrase|code)|pwd)(?:{_SPACE}(?:is|was|to|as|be))?{_SPACE}(?=\\{{0,4}}["'`$])
    | identified{_SPACE}(?:with{_SPACE}\S{{1,60}}{_SPACE})?by{_SPACE}(?:password{_SPACE})?(?=\\{{0,4}}["'`])
    | password{_SPACE}for{_SPACE}\S{{1,100}}[ \t]{{0,4}}=[ \t]{{0,4}}(?=\\{{0,4}}["'`])
    | \bencrypt_string{_SPACE}(?=["'])""",
    re.VERBOSE | re.IGNORECASE,
)
# Two strings one after the other, the first being a name or a selector: a list, or the arguments of a call.
_LISTED = re.compile(
    r"""(?<![^\s(\[,{])(?P<quote>\\*+["'`]) (?P<name>(?:(?!(?P=quote))[^\s,]){1,100}) (?P=quote)
    [ \t]{0,8}(?:,|\)\s{0,40}\.\w{1,40}\()\s{0,40}(?=\\*+["'`])""",
    re.VERBOSE,
)
_AFTER_KEY = re.compile(r"\\*+[\"'`]\s{0,8}:")
_MARKED_UP = re.compile(
    r"<(key|name|Key|Name)>\s{0,40}(?P<name>[^<>]{1,100}?)\s{0,40}</\1>(?:\s|\\{1,4}[nrt]){0,40}<[\w:.-]{1,40}>(?P<value>[^<]+)"
)

#: Fields that say what their object is about, and those that then hold the secret; spelled flat.
NAMING_FIELDS = frozenset(
    {
        *("name", "key", "header", "variable", "field", "label", "kind", "type", "selector", "id", "ref", "element"),
        *("target", "locator", "placeholder", "arialabel", "property", "parameter", "param", "attribute", "env"),
        *("envvar", "secretname", "displayname", "fieldname"),
    }
)
VALUE_FIELDS = frozenset(
    {
        *("value", "val", "values", "content", "contents", "data", "text", "default", "defaultvalue", "input"),
        *("newvalue", "oldvalue", "inputvalue", "stringvalue", "plaintext", "answer"),
    }
)
_CHUNK = re.compile(r"\{[^{}]*+|<[A-Za-z][^<>]*+")
_FIELD = re.compile(r"(?<![\w-])([\w-]++)(?:\\*+[\"'`])?[ \t]*+(?:=>|[:=])\s*+")
_FIELD_VALUE = re.compile(r"\\*+[\"'`]?([^\"'`\\\n]{1,200})")
_REACH = 400
_LIST = re.compile(r"\[(?=\s{0,40}\\*[\"'`])[^\[\]]*+")
_LIST_ITEM = re.compile(r"(?P<quote>\\{0,8}[\"'`])(?P<item>(?:(?!(?P=quote))[^\n])*+)(?P=quote)")
_LIST_OPTION = re.compile("[\"'`](?:[-/]|rabbitmqctl|mkpasswd)")
_LIST_HEAD = 200
_PROGRAM = re.compile(
    r"\b(?:command|cmd|program|executable|exe|binary|bin)\\{0,8}[\"'`]?\s{0,8}[:=]\s{0,8}\\{0,8}[\"'`]([^\"'`\\]{1,100})"
)
# As much of an argument vector is read as a command line.
_MAX_WORDS = 200
_WORD_LIMIT = 80
_NOT_IN_WORDS = re.compile(r"[\s\"'`|;&\\]")
_ADJACENT = re.compile(
    rf"""(?<![A-Za-z])(?:
        [\w-]{{0,20}}?(?:name|key|label|field|header|variable)\\{{0,8}}["'`]?[ \t]{{0,8}}[:=][ \t]{{0,8}}
        \\{{0,8}}["'`]?(?P<name>[\w./-]{{1,100}}+)\\{{0,8}}["'`]?(?:[\s,;]|\\[nrt]){{1,40}}(?:-[ \t])?
        \\{{0,8}}["'`]?[\w-]{{0,20}}?(?:value|val|text|content|data)\\{{0,8}}["'`]?[ \t]{{0,8}}[:=][ \t]{{0,8}}
      | --(?:name|key|field|selector)[ \t=]{{1,4}}(?P<option>\S{{1,100}})[ \t]
        {_GAP}--(?:value|body|text|data|content)[ \t=]{{1,4}}
    )""",
    re.VERBOSE | re.IGNORECASE,
)

_OPENING = re.compile(r"""(?:[bBrRfFuU]{1,2}|[@$])?(\\*+)(["'`])""")
_TRIPLE = re.compile(r"""(?:[bBrRfFuU]{1,2})?((\\*+["'`])\2\2)""")
_CLOSING = {quote: re.compile(rf"(?<!\\)(\\*+){quote}") for quote in "\"'`"}
_WORD_VALUE = re.compile(r"(?:(?:bearer|basic|digest|token|bot)[ \t]{1,4})?[^\s\"'`&]*+", re.IGNORECASE)
_LINE_VALUE = re.compile(r"[^\r\n]*+")
_CALL = re.compile(r"(?:(?:new|await)[ ])?[\w.:]{0,80}\(")
_CALL_LENGTH = 500
_NESTING = {kind: re.compile(rf"""\"[^\"\n]*\"|'[^'\n]*'|[{kind}]""") for kind in (r"\[\]{}", "()")}
# A block of YAML: its header, and its lines. Line breaks may be spelled out, in a string.
_BREAK = r"(?:\r?\n|(?:\\+r)?\\+n)"
_BLOCK = re.compile(rf"(?P<sign>[|>][-+0-9]{{0,3}})?[ \t]*+(?:#[^\n]*+)?{_BREAK}")
_BLOCK_LINE = re.compile(rf"(?P<indent>[ \t]*+)(?P<item>-[ \t])?(?P<rest>(?:(?!{_BREAK})[^\n])*+)(?:{_BREAK})?")
_LINE_HEAD = re.compile(r"(?:\A|\n|\\n|[\"'`])([ \t]*+)(?:-[ \t]+)?(?:\\*+[\"'])?\Z")

_SECRET_PARTS = re.compile(
    "password|passwd|passphrase|passcode|secret|apikey|accesskey"
    "|privatekey|signingkey|encryptionkey|sshkey|masterkey|accountkey|servicekey|authkey|storagekey|consumerkey|deploykey"
    "|licensekey|sharedkey|authorization|authorisation|credential|cookie|bearer|mnemonic|seedphrase|recoverycode"
    "|recoveryphrase|backupphrase|connectionstring|amzsignature|googsignature|sessid"
    "|passwort|kennwort|contraseña|contrasena|senha|motdepasse|wachtwoord|lösenord|salasana|adgangskode|jelszó|hasło|şifre"
    "|парол|密码|密碼|口令|密钥|密鑰|パスワード|暗証番号|비밀번호|암호"
)
_SECRET_LAST_WORDS = frozenset(
    {
        *("pass", "pwd", "pw", "pswd", "auth", "oauth", "pin", "otp", "totp", "psk", "cred", "creds", "jwt", "csrf"),
        *("xsrf", "hmac", "clave", "parola", "haslo", "heslo", "mdp", "sifre"),
    }
)
_PASS_ENDING = re.compile(
    r"(?<!by)(?<!com)(?<!encom)(?<!tres)(?<!sur)(?<!over)(?<!under)(?<!multi)pass$|(?<!old)pwd$"
)
_WHOLE_LINE = re.compile(
    "authori[sz]ation|cookie|pass_?phrase|(?:seed|recovery|backup)[ _-]?phrase|mnemonic", re.IGNORECASE
)
# Counts of model tokens are no secrets.
_TOKEN_COUNT = re.compile(
    r"token(?:s?(?:count|limit|budget|usage|used|iz|per)|s(?:before|after|in$|out$))"
    r"|(?:max|min|num|total|input|output|prompt|completion|new|used|cached?|read|write|context|thinking|reasoning)tokens?$"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_END = 128
_SPELLED = re.compile(r"\\{1,4}u([0-9A-Fa-f]{4})")


def is_secret_name(name: str) -> bool:
    """Tell whether a field, option, header or variable of this name is likely to hold a secret.

    Case, separators, invisible characters and compatibility forms do not matter: ``apiKey``,
    ``API_KEY``, ``x-api-key`` and fullwidth letters are all secret.
    """
    if len(name) > 2 * _NAME_END:
        name = name[:_NAME_END] + name[-_NAME_END:]
    if "\\u" in name:
        name = _SPELLED.sub(lambda spelled: chr(int(spelled[1], 16)), name)
        name = name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        name = "".join(c for c in name if unicodedata.category(c) not in {"Cf", "Mn"})
    flat = "".join(c for c in name.lower() if c.isalnum())
    if _SECRET_PARTS.search(flat) or ("token" in flat and not _TOKEN_COUNT.search(flat)):
        return True
    if flat in _SECRET_LAST_WORDS:
        return True
    words: list[str] = _WORDS.findall(name)
    if not words:
        return False
    last = words[-1].lower()
    return last in _SECRET_LAST_WORDS or _PASS_ENDING.search(last) is not None


def mask(text: str) -> str:
    """Return ``text`` with everything that looks like a secret replaced by ``***``.

    Known key formats, private keys, authorization headers, passwords in URLs, values of options,
    fields and variables with a secret's name, and long random runs. Time is linear in the length.
    """
    if len(text) < 4:
        return text
    for pattern, replacement in _EDITS:
        text = pattern.sub(replacement, text)
    text = _mask_argument_lists(text)
    text = _mask_pairs(text)
    for names in _NAMES:
        text = _mask_values(text, names)
    return _RUN.sub(_mask_run, text)


def mask_keys(text: str) -> str:
    """Return ``text`` without keys in a format that nothing else has, and without passwords in URLs.

    For names and identifiers, which are to stay readable: nothing is guessed from randomness or
    from what stands around.
    """
    if len(text) < _SHORTEST_KEY:
        return text
    if len(text) <= 2 * _NAME_END:
        return _mask_keys_of_name(text)
    return _mask_keys(text)


def _mask_keys(text: str) -> str:
    text = _KNOWN_KEYS.sub(_mask_sure_key, text)
    if "://" in text:
        text = _URL_TOKEN.sub(f"://{MASK}", _USERINFO.sub(_mask_userinfo, text))
    if "-----" in text:
        text = _PRIVATE_KEY.sub(MASK, text)
    return text


_mask_keys_of_name = lru_cache(maxsize=4096)(_mask_keys)


def _mask_sure_key(match: re.Match[str]) -> str:
    key = match[0]
    before = match.string[match.start() - 1 : match.start()]
    if before.isascii() and before.isalnum() and not match.string.endswith(("\\n", "\\r", "\\t"), 0, match.start()):
        return key  # the end of a longer word
    if key.startswith("key") or (_LOOSE_PREFIX.match(key) and not _SOLID.search(key)):
        return key
    return MASK


def _mask_user(match: re.Match[str]) -> str:
    return f"{match[1]}{match['quote'] or ''}{match['user'] or match['bare']}{MASK}"


def _mask_marked_up(match: re.Match[str]) -> str:
    if not is_secret_name(match["name"]):
        return match[0]
    return match.string[match.start() : match.start("value")] + MASK


def _mask_userinfo(match: re.Match[str]) -> str:
    user = match["user"]
    return f"://{MASK}" if user is None else f"://{user}:{MASK}"


def _mask_element(match: re.Match[str]) -> str:
    if is_secret_name(match[1]) or (match[2] and any(map(_says_secret, _FIELD.finditer(match[2])))):
        return match.string[match.start() : match.start(3)] + MASK
    return match[0]


_SHORTEST_KEY = 10
# Words begin with these as well; then only an unbroken stretch of some length is a key.
_LOOSE_PREFIX = re.compile(
    r"sk-(?!(?:ant|proj|or|svcacct|admin|None)-)|gh[pousr]_|(?:npm|hf|gsk|r8|re|ntn|sbp|shp[a-z]{2}|glc|nfp|phx|fo1|fm[12]|secret)_"
    r"|(?:xai|pplx|tvly|fc|csk|pul)-|SG\.|[sbr]\.|pat|EAA|AAAA|gl[a-z]{2,4}[-_]|dp\.|[MNO]"
)
_SOLID = re.compile(r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{12,}|[A-Za-z]{20,}")

_EDITS: tuple[_Edit, ...] = (
    (_PRIVATE_KEY, MASK),
    (_WRAPPED, MASK),
    (_KNOWN_KEYS, MASK),
    (_BEARER, rf"\1{MASK}"),
    (_BASIC, rf"\1{MASK}"),
    (_USERINFO, _mask_userinfo),
    (_URL_TOKEN, f"://{MASK}"),
    (_PARAMETER, rf"\1{MASK}"),
    (_PIPED, rf"\1 {MASK} "),
    (_HERE_STRING, rf"\1{MASK}"),
    (_HERE_DOCUMENT, rf"\1{MASK}"),
    (_USER_OPTION, _mask_user),
    (_LFTP_USER, rf"\1{MASK}"),
    (_SMB_USER, rf"\1{MASK}"),
    (_COOKIES, rf"\1{MASK}"),
    (_COMMAND_PASSWORD, rf"\1{MASK}"),
    (_SLASH_PASSWORD, rf"\1{MASK}"),
    (_COMMAND_LINE, rf"\1{MASK}"),
    (_SECRET_SET, rf"\1{MASK}"),
    (_NETRC, rf"\1{MASK}"),
    (_PHRASE, rf"\1{MASK}"),
    (_ELEMENT, _mask_element),
    (_MARKED_UP, _mask_marked_up),
)
_COMMANDS = (
    _USER_OPTION,
    _LFTP_USER,
    _SMB_USER,
    _COOKIES,
    _COMMAND_PASSWORD,
    _SLASH_PASSWORD,
    _COMMAND_LINE,
    _SECRET_SET,
)
_NAMES = (_ADJACENT, _QUOTED, _ASSIGNMENT, _OPTION, _NAME, _LISTED)


def _mask_pairs(text: str) -> str:
    """Mask fields such as ``value`` near one that names a secret, within one object or one tag."""
    spans: list[tuple[int, int]] = []
    for chunk in _CHUNK.finditer(text):
        naming: list[int] = []
        holding: list[re.Match[str]] = []
        for field in _FIELD.finditer(text, chunk.start() + 1, chunk.end()):
            flat = flat_name(field[1])
            if flat in VALUE_FIELDS:
                holding.append(field)
            elif _says_secret(field):
                naming.append(field.start())
        if not naming:
            continue
        for field in holding:
            if spans and field.end() < spans[-1][1]:
                continue
            near = bisect_left(naming, field.start() - _REACH)
            if near < len(naming) and naming[near] <= field.end() + _REACH:
                start, end = _value_span(text, field, field[1])
                if end > start:
                    spans.append((start, end))
    return _without(text, spans)


def _mask_argument_lists(text: str) -> str:
    """Mask passwords in lists of strings that are a program and its arguments."""
    spans: list[tuple[int, int]] = []
    for chunk in _LIST.finditer(text):
        if not _LIST_OPTION.search(text, chunk.start(), chunk.end()):
            continue
        items = list(_LIST_ITEM.finditer(text, chunk.start() + 1, chunk.end()))
        before = text[max(0, chunk.start() - _LIST_HEAD) : chunk.start()]
        programs = " ".join(_PROGRAM.findall(before)[-1:]).split()
        found = secret_arguments([*programs, *(item["item"] for item in items)])
        spans += (items[at - len(programs)].span("item") for at in found if at >= len(programs))
    return _without(text, spans)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], MASK)
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def secret_arguments(words: list[str]) -> list[int]:
    """Return which words, of those a program is called with, hold a password. The work is bounded."""
    words = [_NOT_IN_WORDS.sub("_", word[:_WORD_LIMIT]) or "_" for word in words[:_MAX_WORDS]]
    if len(words) < 2:
        return []
    line = " ".join(words)
    spans = [(match.end(1), match.end()) for pattern in _COMMANDS for match in pattern.finditer(line)]
    for names in (_OPTION, _ASSIGNMENT):
        spans += ((match.end(), match.end() + 1) for match in names.finditer(line) if is_secret_name(_said(match)))
    found: list[int] = []
    at = 0
    for number, word in enumerate(words):
        end = at + len(word)
        if any(start < end and at < stop for start, stop in spans):
            found.append(number)
        at = end + 1
    return found


def _says_secret(field: re.Match[str]) -> bool:
    """Tell whether a field says of its object that it is about a secret."""
    said = _FIELD_VALUE.match(field.string, field.end()) if flat_name(field[1]) in NAMING_FIELDS else None
    return said is not None and is_secret_name(said[1])


def flat_name(name: str) -> str:
    """Return the name without case and separators."""
    return name.lower().replace("_", "").replace("-", "") if len(name) <= 40 else ""


def _mask_values(text: str, pattern: re.Pattern[str]) -> str:
    """Mask what follows each match of ``pattern`` that has a secret's name."""
    pieces: list[str] = []
    done = at = 0
    while match := pattern.search(text, at):
        at = match.end()
        name = _said(match)
        if not is_secret_name(name):
            # The separator may be the start of the next name's surroundings, the name itself not.
            at = max(match.end("name"), match.start() + 1)
            continue
        start, end = _value_span(text, match, name)
        if pattern is _LISTED and _AFTER_KEY.match(text, end):
            continue  # the next field of an object, not a value
        if end > start:
            pieces += (text[done:start], MASK)
            done = at = end
    pieces.append(text[done:])
    return "".join(pieces)


def _said(match: re.Match[str]) -> str:
    """Return the name that a match of one of the patterns has found."""
    return match["name"] or (match[match.lastgroup] if match.lastgroup else "password")


def _value_span(text: str, match: re.Match[str], name: str) -> tuple[int, int]:
    """Return where the value after the name begins and ends, quotes excluded."""
    at = match.end()
    if triple := _TRIPLE.match(text, at):
        end = text.find(triple[1], triple.end())
        return triple.end(), end if end >= 0 else len(text)
    if opening := _OPENING.match(text, at):
        return opening.end(), _closing(text, opening)
    if text.startswith(("{", "["), at):
        end = _balanced(text, at, r"\[\]{}")
        return at, end if end >= 0 else len(text)
    if block := _BLOCK.match(text, at):
        end = _block_end(text, match.start(), block)
        if end > block.end():
            return block.end(), end
    if _WHOLE_LINE.search(name):
        # A header: its value goes on to the end of the quotation it stands in, or of the line.
        before = text[match.start() - 1 : match.start()]
        if before in _CLOSING and (quoted := _CLOSING[before].search(text, at)):
            return at, quoted.start()
        return at, _end_of(_LINE_VALUE, text, at)
    if call := _CALL.match(text, at):
        end = _balanced(text, call.end() - 1, "()", _CALL_LENGTH)
        return at, end if end >= 0 else _end_of(_LINE_VALUE, text, at)
    return at, _end_of(_WORD_VALUE, text, at)


def _balanced(text: str, at: int, kind: str, within: int | None = None) -> int:
    """Return where the bracket that opens at ``at`` has been closed again, or -1."""
    depth = 0
    for token in _NESTING[kind].finditer(text, at, len(text) if within is None else at + within):
        if token[0] in "[{(":
            depth += 1
        elif token[0] in "]})":
            depth -= 1
            if depth == 0:
                return token.end()
    return -1


def _block_end(text: str, start: int, block: re.Match[str]) -> int:
    """Return where the indented lines below a name end, or -1 if there are none that belong to it."""
    head = _LINE_HEAD.search(text[max(0, start - 64) : start])
    if head is None and not block["sign"]:
        return -1  # "if token:" and the like
    indent = len(head[1]) if head else 0
    end = -1
    at = block.end()
    while at < len(text) and (line := _BLOCK_LINE.match(text, at)):
        if line["rest"] or line["item"]:
            depth = len(line["indent"])
            if depth < indent or (depth == indent and not (line["item"] and not block["sign"])):
                break
            end = line.end("rest")
        at = line.end()
    return end


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
