"""Text from transcripts cannot act on a terminal, and secrets do not get out."""

from __future__ import annotations

import json
import random
import string
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopscan.events import Json
from loopscan.masking import MASK, is_secret_name, mask_keys
from loopscan.sanitize import clean, escape_json, mask, name, preview

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
            ("नमस्ते กำ ກຳ", "नमस्ते กำ ກຳ"),
            ("क" + "\u093e" * 6, "क" + "\u093e" * 4 + r"\u093e\u093e"),
            ("ก" + "\u0e33" * 5, "ก" + "\u0e33" * 4 + r"\u0e33"),
            ("ກ" + "\u0eb3" * 5, "ກ" + "\u0eb3" * 4 + r"\u0eb3"),
            ("a" + "\u0301\u093e" * 3, "a" + "\u0301\u093e" * 2 + r"\u0301\u093e"),
            ("ｶ" + "\uff9e" * 5, "ｶ" + "\uff9e" * 4 + r"\uff9e"),
            ("\u1100" + "\u1161" * 5, "\u1100" + "\u1161" * 4 + r"\u1161"),
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
        # Twenty million escapes would take minutes to make; only those that are shown are.
        assert len(clean("\u202e" * 20_000_000, 60)) <= 60


class TestEscapeJson:
    @given(anything)
    def test_it_stays_the_same_json_and_is_harmless(self, text: str) -> None:
        document = escape_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
        assert json.loads(document) == {text: [text]}
        assert not {unicodedata.category(char) for char in document.replace("\n", "")} & UNPRINTABLE
        document.encode()

    @pytest.mark.parametrize("accent", ["\u0301", "\u093e", "\u0e33", "\u20dd", "\U0001d165"])
    def test_accents_beyond_the_fourth_are_escaped(self, accent: str) -> None:
        few = json.dumps("e" + accent * 4, ensure_ascii=False)
        assert escape_json(few) == few
        document = escape_json(json.dumps("e" + accent * 500, ensure_ascii=False))
        assert document.count(accent) == 4
        assert json.loads(document) == "e" + accent * 500

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
# What stands for a secret in these is "hunter2".
SHAPES = [
    "setx DB_PASSWORD hunter2",
    "set -x DB_PASSWORD hunter2",
    "set -gx DB_PASSWORD 'hunter2'",
    "export DB_PASSWORD hunter2",
    "SSHPASS=hunter2 sshpass -e ssh host",
    "aws configure set aws_secret_access_key hunter2",
    "setenv API_TOKEN hunter2",
    "ENV DB_PASSWORD hunter2",
    "git config --global user.password hunter2",
    "npm config set //registry.example.org/:_authToken hunter2",
    "user[password]=hunter2",
    "login[passwd]=hunter2",
    "os.environ['DB_PASSWORD'] = 'hunter2'",
    'os.environ["DB_PASSWORD"]="hunter2"',
    "user%5Bpassword%5D=hunter2",
    "user[password][0]=hunter2",
    "password[]=hunter2",
    "os.environ.setdefault('DB_PASSWORD', 'hunter2')",
    "page.fill('#password', 'hunter2')",
    "page.getByLabel('Password').fill('hunter2')",
    "driver.find_element(By.ID, 'password').send_keys('hunter2')",
    "vault login hunter2",
    "page.fill('input[name=\"password\"]', 'hunter2')",
    "requests.get(u, auth=('bob','hunter2'))",
    "requests.get(u, auth=HTTPBasicAuth('bob', 'hunter2'))",
    "auth=('bob','x)hunter2')",
    '<add key="Password" value="hunter2"/>',
    '<input value="hunter2" type="password">',
    "<key>password</key>\n<string>hunter2</string>",
    '<string name="api_key">hunter2</string>',
    "CREATE USER bob PASSWORD 'hunter2'",
    "CREATE USER bob IDENTIFIED BY 'hunter2'",
    "ALTER USER bob IDENTIFIED WITH mysql_native_password BY 'hunter2'",
    "SET PASSWORD FOR 'bob'@'%' = 'hunter2'",
    '#define DB_PASSWORD "hunter2"',
    "password: |\n  hunter2\n  more",
    "passwords:\n  - hunter2",
    "passwords:\n- hunter2",
    "password: >-\\n  hunter2",
    "db:\n  password: |\n    hunter2\n  user: bob",
    "password:\n  hunter2",
    "seed phrase: hunter2 able about",
    "mnemonic: able hunter2 about",
    "recovery phrase = able hunter2",
    "machine example.org password hunter2",
    "machine example.org\nlogin bob\npassword hunter2",
    "machine example.org\\n  login bob\\n  password hunter2",
    '{"label":"Password","text":"hunter2"}',
    '{"kind":"password","value":"hunter2"}',
    '{"kind":"password","value":["hunter2"]}',
    '{"name":"DB_PASSWORD","value":"hunter2"}',
    '{"selector":"#password","value":"hunter2"}',
    '{"value":"hunter2","name":"DB_PASSWORD"}',
    '{"element":"Password field","ref":"e1","text":"hunter2"}',
    '{"type":"password","id":"x","default":"hunter2"}',
    '{"field":"token","input":"hunter2"}',
    '{"fields":[{"name":"Password","type":"textbox","value":"hunter2"}]}',
    '{\\"label\\":\\"Password\\",\\"text\\":\\"hunter2\\"}',
    "{name: 'password', value: 'hunter2'}",
    "- name: DB_PASSWORD\n  value: hunter2",
    "ParameterKey=DbPassword,ParameterValue=hunter2",
    "aws ssm put-parameter --name /db/password --type SecureString --value hunter2",
    '["mysql","-p","hunter2"]',
    '["sshpass","-p","hunter2"]',
    '["curl","-u","bob:hunter2"]',
    '["--password","hunter2"]',
    '["sudo","mysql","-u","root","-phunter2"]',
    '["htpasswd","-b","f","u","hunter2"]',
    '["setx","DB_PASSWORD","hunter2"]',
    '{"command":"mysql","args":["-u","root","-p","hunter2"]}',
    '["aws","configure","set","aws_secret_access_key","hunter2"]',
    "curl -ubob:hunter2 https://example.org",
    "curl -sSu bob:hunter2 https://example.org",
    "curl -u 'bob:a hunter2' https://example.org",
    'curl -b "sid=hunter2" https://example.org',
    "curl -b sid=hunter2 https://example.org",
    'curl -H "Cookie: sid=hunter2" https://example.org',
    "curl \\\n  -X POST \\\n  -u bob:hunter2",
    "openssl enc -aes-256-cbc -k hunter2 -in f",
    "openssl rsa -passin pass:hunter2 -in f",
    "openssl rsa -passout 'pass:hunter2'",
    "ldapsearch -x -D cn=admin -w hunter2 -b dc=x",
    "sqlcmd -S host -U sa -P hunter2",
    "lftp -u bob,hunter2 host",
    "smbclient //host/share -U bob%hunter2",
    "htpasswd -b f u hunter2",
    "htpasswd -nbB u hunter2",
    "useradd -m -p hunter2 bob",
    "xfreerdp /u:bob /p:hunter2 /v:host",
    "cmd /p:hunter2",
    "echo hunter2 | sudo -S ls",
    "echo 'hunter2' | sudo -kS ls",
    'echo "bob:hunter2" | chpasswd',
    "printf '%s' hunter2 | docker login --password-stdin",
    "chpasswd <<< bob:hunter2",
    "sudo chpasswd <<EOF\nbob:hunter2\nEOF",
    "mysql -e 'select 1;' -p hunter2",
    "mysql -u root \\\n -phunter2",
    "plink -pw hunter2 host",
    "ssh-keygen -f k -N 'hunter2'",
    "net user bob hunter2 /add",
    "ConvertTo-SecureString 'hunter2' -AsPlainText",
    "unzip -P hunter2 f.zip",
    "nmcli dev wifi connect ap password hunter2",
    "rabbitmqctl add_user bob hunter2",
    "mkpasswd hunter2",
    "fly secrets set FOO=hunter2",
    "https://hunter2@example.org/x.git",
    "https://TOKENhunter2@example.org",
    "X-Goog-Signature=hunter2",
    "https://x.example/?a=1&X-Amz-Signature=hunter2",
    "signature=hunter2",
    "https://x.example/p?sig=hunter2",
    "hmac=hunter2",
    "session_id=hunter2",
    "sid=hunter2",
    "https://x.example/p?key=hunter2",
    "mot de passe: hunter2",
    "mot de passe\xa0: hunter2",
    "motdepasse=hunter2",
    "contraseña: hunter2",
    "contraseña: hunter2",
    "clave=hunter2",
    "senha: hunter2",
    "Passwort: hunter2",
    "kennwort=hunter2",
    "parola: hunter2",
    "hasło: hunter2",
    "пароль: hunter2",
    "密码：hunter2",
    "パスワード: hunter2",
    "パスワード: hunter2",
    "비밀번호: hunter2",
    "db_clave = hunter2",
    "ｐａｓｓｗｏｒｄ=hunter2",
    "ｐａｓｓｗｏｒｄ＝hunter2",
    "pass\u200bword=hunter2",
    "--pass\u200bword hunter2",
    "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝: hunter2",
    "p\xadassword: hunter2",
    "**Password**: hunter2",
    "**Password:** hunter2",
    "password: str = 'hunter2'",
    'const password: string = "hunter2"',
    'password = """hunter2"""',
    "password = b'hunter2'",
    "password = '''\nhunter2\n'''",
]
KEYS = [
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "hvs.CAESIJlWh",
    "hvs.AbCdEfGhIjKlMnOpQrStUvWx",
    "s.Ab3dEfGhIjKlMnOpQrStUvWx",
    "dp.pt.AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd",
    "dapi0123456789abcdef0123456789abcdef",
    "1//0gAbCdEfGhIjKlMnOpQrStUvWx-Ab",
    "figd_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd",
    "PMAK-0123456789abcdef01234567-0123456789abcdef0123456789abcdef01",
    "NRAK-ABCDEFGHIJKLMNOPQRSTUVWX123",
    "sntrys_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd",
    "glc_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd",
    "sq0atp-AbCdEfGhIjKlMnOpQrStUv",
    "EAAAAbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWx",
    "EAACEdEose0cBAAbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd",
    "AAAAAAAAAAAAAAAAAAAAAMLheAAAAAAA0%2BuSeid%2BULvsea4JtiGRiSDSJSI%3DEUifiRBkKG5E2XzMDjRfl76ZC9Ub0wnz4XsNiRVBChTYbJcE3F",
    "secret_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfG",
    "patAbCdEfGhIjKlMn.0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "keyAbC1EfGhIjKlMn",
]
HARMLESS = [
    "git commit -m 'Add password reset page'",
    "fix: the password reset page crashes on empty input",
    "git log -p",
    "git log -p -- src/secret_store.py",
    "ssh -p 22 host",
    "mkdir -p dir",
    "docker run -p 80:80 nginx",
    "docker run -d -p 80:80 -v a:b -u 1000:1000 img",
    "cp -u a b",
    "sort -k 2 file",
    "sort -u file",
    "tar -b 20 -cf x.tar dir",
    "password reset page",
    "the password is wrong",
    "export PATH",
    "set -x",
    "set -euo pipefail",
    "grep -rn token src/",
    "ls -la /etc/passwd",
    "cat /etc/passwd | wc -l",
    "echo hello | sudo tee /etc/hosts",
    "echo hello | grep -S x",
    "curl -b cookies.txt -o out.html https://example.org",
    "curl -fsSL https://example.org/install.sh | sh",
    "curl -X PUT http://localhost:8080/a",
    "msbuild /p:Configuration=Release /p:Platform=x64",
    "psql -U postgres -d app",
    "npm config set fund false",
    "git config user.name bob",
    "if token:\n    return parse(x)",
    "def f(token):\n    return token",
    "ssh://deploy@host/repo",
    "git clone https://bob@example.org/x.git",
    "https://example.org/@scope/pkg@1.2.3",
    "date +%s",
    "python -m http.server 8000",
    "find . -name key -type f",
    "openssl version",
    "base64 -w 0 file",
    "xargs -P 4 -n 1",
    "rsync -u a b",
    "make -k test",
    "test_key_press",
    "s.getElementByIdAndSomethingElse()",
    "patternRecognizer.getSomethingVeryLong",
    "keyboardShortcuts keyboardEventLoop",
    "net user growth is good",
    "vector AAAABBBB",
    "the secret to good tests is patience",
    "kubectl get secrets -n app",
    "aws s3 ls s3://bucket/key",
    "ps aux | grep ssh",
    "SELECT name, email FROM users WHERE id = 1",
    "for key in keys: print(key)",
    "bypass=1 compass=north",
    "const [a, b] = useState('x')",
    '["read", "write"]',
    "- name: FOO\n  value: bar",
]
HARMLESS_OBJECTS = [
    '{"key":"ArrowDown"}',
    '{"type":"text","text":"hello"}',
    '{"name":"notes.txt","content":"hello"}',
    '{"selector":"#email","value":"a@b.c"}',
    '{"args":["-p","22","host"]}',
    '{"command":"mkdir","args":["-p","dir"]}',
    '["docker","run","-p","80:80"]',
    '["git","log","-p"]',
    '["sort","-k","2"]',
    '{"session_id":"abc-def"}',
    '{"label":"Email","text":"bob"}',
    '{"element":"Search box","ref":"e12","text":"cats"}',
    '{"path":"src/auth.py","text":"x = 1"}',
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

    @pytest.mark.parametrize("text", SHAPES)
    def test_shapes_that_secrets_have(self, text: str) -> None:
        assert "hunter2" not in mask(text)
        assert "hunter2" not in mask(json.dumps({"x": text}))

    @pytest.mark.parametrize("text", HARMLESS + HARMLESS_OBJECTS)
    def test_harmless_texts_stay(self, text: str) -> None:
        assert mask(text) == text

    @given(st.sampled_from(PLACES), plain_secret, surroundings, surroundings)
    def test_a_planted_secret_never_shows(self, place: str, secret: str, before: str, after: str) -> None:
        text = f"{before} {place.format(secret)} {after}"
        if secret not in before and secret not in after and secret not in place:
            assert secret not in mask(text)

    @pytest.mark.parametrize("secret", KEYS)
    def test_keys_of_less_known_formats(self, secret: str) -> None:
        for before, after in [("", ""), ("see ", " here"), ('"', '"'), ("x=", "&y"), ("\\n", "\\n")]:
            assert secret not in mask(f"{before}{secret}{after}")

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
        assert mask("curl -u 1000:1234567 https://x.org") == "curl -u 1000:*** https://x.org"
        assert mask("seed phrase is " + "able about " * 6 + ".") == "seed phrase is *** ."
        assert mask("password:\n  hunter2\nuser: bob") == "password:\n***\nuser: bob"
        assert mask('{"label":"PIN","text":"1","ref":"e2"}') == '{"label":"PIN","text":"***","ref":"e2"}'
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
            "AAAA-",
            "patAAAA",
            "curl ",
            "curl -u ",
            'curl -b "',
            "http ",
            "echo '",
            "echo x | sudo ",
            "sudo -S <<EOF\n",
            "passwd <<a\\n",
            "machine a login b ",
            "seed phrase abc def ",
            "<key>",
            "<a name=password ",
            "{name:password,",
            "{value:x,name:password,",
            "name=x,",
            "--name a ",
            "set -x ",
            "export A_B ",
            "password 'x' ",
            '"a", ',
            '["a","-b"]',
            '["curl","-u",',
            '[\\"-',
            "\\\\u0061",
            "a\\u0061",
            "password: |\n  a\n",
            "password:\\n",
            "password: |\n\n",
            "password=f(\n",
            "password=('",
            "password='''",
            "-U a%",
            "mysql ;",
            "password\u200b",
            "a[x]",
        ],
    )
    def test_a_flood_comes_to_an_end(self, shape: str) -> None:
        """A pattern that costs the square of its input would not; benchmarks/scaling.py has the figures."""
        text = shape * (30_000 // len(shape))
        assert isinstance(mask(text), str)
        assert len(preview({"x": text})) <= 60


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
            "SSHPASS",
            "requirepass",
            "mot de passe",
            "contraseña",
            "contrasen\u0303a",
            "db_clave",
            "hasło",
            "пароль",
            "パスワード",
            "비밀번호",
            "ｐａｓｓｗｏｒｄ",
            "pass\u200bword",
            "db_p\u00adass",
            r"\u5bc6\u7801",
            "seed phrase",
            "X-Goog-Signature",
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
            "bypass",
            "OLDPWD",
            "enclave",
            "hasLocation",
            "session_id",
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
            ({"file": "sudo mysql", "args": ["-p", "a b", "x"]}, '{"file":"sudo mysql","args":["-p","***","x"]}'),
            ({"content": "x y " * 99, "path": "/a/b"}, '{"content":"x y x y x y x y x y x y x …","path":"/a/b"}'),
            ({"text": "a\nb\u202e"}, r'{"text":"a\nb\u202e"}'),
            ({"n": 10**5000}, '{"n":…}'),
        ],
    )
    def test_examples(self, arguments: Json, shown: str) -> None:
        assert preview(arguments) == shown

    @pytest.mark.parametrize("text", SHAPES)
    def test_shapes_that_secrets_have(self, text: str) -> None:
        places: list[Json] = [
            text,
            {"command": f"cat <<EOF\n{text}\nEOF"},
            {"command": f'bash -c "{text}"'},
            ["x", text],
        ]
        places.append({"a": {"b": json.dumps({"c": text})}})
        if text.startswith(("{", "[")) and "\\" not in text and "'" not in text:
            places += [json.loads(text), {"x": [json.loads(text)]}]
        for place in places:
            for limit in (60, 600):
                assert "hunter2" not in preview(place, limit)

    @pytest.mark.parametrize("secret", KEYS)
    def test_keys_of_less_known_formats(self, secret: str) -> None:
        assert secret[:12] not in preview({"command": f"x {secret} y", "z": [secret]}, 400)

    @pytest.mark.parametrize("text", HARMLESS_OBJECTS)
    def test_harmless_arguments_stay(self, text: str) -> None:
        assert preview(json.loads(text), 400) == text

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
            assert len(preview(arguments, 5000)) <= 5000


class TestName:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "read_file",
            "mcp__github__create_issue",
            "sk-learn-v2-model",
            "claude-sonnet-4-20250514",
            "meta-llama/Llama-3.1-8B",
            "550e8400-e29b-41d4-a716-446655440000",
            "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "toolu_01AbCdEfGhIjKlMnOpQrSt",
            "call_AbCdEfGhIjKlMnOpQrStUvWx",
            "npm_run_build_scripts",
            "secret_manager_list",
            "weighs_something2",
            "keyAbC1EfGhIjKlMn",
            "password=x",
        ],
    )
    def test_names_and_identifiers_stay(self, text: str) -> None:
        assert name(text) == text

    @pytest.mark.parametrize("secret", SECRETS[:16] + KEYS[:-1])
    def test_keys_go(self, secret: str) -> None:
        for text in (secret, f"mcp {secret}", f"x:{secret}:y"):
            assert secret[:20] not in name(text)
            assert secret[:20] not in name(text, 40)
            assert secret not in mask_keys(f"{text} " * 40)

    def test_it_is_clean_and_has_a_limit(self) -> None:
        assert name("a\x1bb") == r"a\x1bb"
        assert name("abcdefghijkl", 10) == "abcdef…jkl"
        assert name("https://bob:hunter2@example.org/model") == "https://bob:***@example.org/model"

    @pytest.mark.parametrize("length", [4000, 4100, 8190, 8200, 9000, 50_000])
    def test_a_cut_through_a_key_leaves_nothing_of_it(self, length: int) -> None:
        key = "ghp_" + "A1b2" * (length // 4)
        for text in (key, "x " * 10 + key, "x " * 3000 + key, key + " x"):
            shown = name(text, 60)
            assert "A1b2" not in shown
            assert len(shown) <= 60

    @given(anything, st.integers(-2, 40))
    def test_the_limit_holds(self, text: str, limit: int) -> None:
        assert len(name(text * 400, limit)) <= max(limit, 0)

    def test_a_flood_comes_to_an_end(self) -> None:
        assert len(name("ghp_" * 10_000_000, 60)) <= 60
