"""Secrets are hidden, refused or encrypted before anything is written (E7)."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import time
from contextlib import suppress
from itertools import cycle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from solution.durable_log import secret_names
from solution.durable_log.errors import RefusedError, SecretError
from solution.durable_log.record import encode_data
from solution.durable_log.secrets import _REDACTED, Encrypt, _Search, keep, redact, refuse

SECRET = "hunter2-correct-horse"
RANDOM = "8f3a9c1d2b7e4f60a1b2c3d4"


class Sealer:
    """A cipher as a caller might bring one: another result each time, and only its own results open."""

    def __init__(self, key: bytes = b"key"):
        self.key, self.count = key, 0

    def _stream(self, data: bytes, nonce: bytes) -> bytes:
        return bytes(a ^ b for a, b in zip(data, cycle(hashlib.sha256(self.key + nonce).digest())))

    def encrypt(self, data: bytes) -> bytes:
        self.count += 1
        nonce = self.count.to_bytes(8)
        sealed = nonce + self._stream(data, nonce)
        return sealed + hashlib.sha256(self.key + sealed).digest()

    def decrypt(self, data: bytes) -> bytes:
        if hashlib.sha256(self.key + data[:-32]).digest() != data[-32:]:
            raise ValueError(data)
        return self._stream(data[8:-32], data[:8])


def test_nested_credentials_are_found():
    """Row 91: what stands under a telling name is hidden at every level, and a yes or no stays."""
    given = {"h": {"Authorization": "Bearer x"}, "l": [{"apiKey": "y"}], "hasApiKey": True}

    assert redact(given) == {
        "h": {"Authorization": "[redacted]"},
        "l": [{"apiKey": "[redacted]"}],
        "hasApiKey": True,
    }


SECRET_NAMES = [
    "authorization",
    "Proxy-Authorization",
    "apiKey",
    "api_key",
    "API-KEY",
    "api.key",
    "apikey",
    "APIKey",
    "X-API-KEY",
    "apiKeys",
    "OPENAI_API_KEY",
    "openai_key",
    "api_key_2",
    "password",
    "Password",
    "userPassword",
    "db_password",
    "passwd",
    "pwd",
    "DB_PWD",
    "passphrase",
    "pass_word",
    "token",
    "authToken",
    "access_token",
    "refresh-token",
    "AccessToken",
    "CSRF_TOKEN",
    "nextPageToken",
    "cookie",
    "Set-Cookie",
    "cookies",
    "secret",
    "client_secret",
    "clientSecret",
    "private_key",
    "privateKey",
    "PRIVATE-KEY",
    "ssh_key",
    "signingKey",
    "aws_secret_access_key",
    "AccountKey",
    "SharedAccessKey",
    "credentials",
    "jwt",
    "otp",
    "bearer",
    "auth",
    "_authToken",
    "token_value",
    "passwordHash",
    "secret1",
    "密码",
    "数据库密码",
    "访问令牌",
    "私钥",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_is_known_in_every_spelling(name):
    """The value is hidden under this name: as a key, in JSON within a text, in a line NAME=value, in a header."""
    assert redact({name: SECRET}) == {name: "[redacted]"}
    for text in (json.dumps({"a": {name: SECRET}}), f"x: 1\n{name}={SECRET}\n", f"a ({name}: '{SECRET}')"):
        assert SECRET not in json.dumps(redact([text]), ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hasApiKey", True),
        ("has_password", "no"),
        ("token_count", 12),
        ("max_tokens", 4096),
        ("max_tokens", "4096"),
        ("total_tokens", 5),
        ("tokens", 12),
        ("completion_tokens", 3),
        ("token_type", "access"),
        ("secret_name", "prod/db"),
        ("password", None),
        ("password", ""),
        ("key", "todo-1"),
        ("primary_key", "id"),
        ("keyboard", "qwerty"),
        ("author", "ada"),
        ("tokenizer", "bpe"),
        ("passed", "yes"),
        ("secretary", "ada"),
        ("cookie_policy", "strict"),
        ("event_id", RANDOM),
    ],
)
def test_a_harmless_name_hides_nothing(name, value):
    """Counts, yes and no, names of secrets and words that only look alike stay as they are."""
    data = {name: value}

    assert redact(data) is data
    assert refuse(data) is data


SHAPES = {
    "bearer": f"Bearer {RANDOM}",
    "basic": "Basic " + base64.b64encode(b"ada:king-of-lovelace").decode(),
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlLWJ5dGVz",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----",
    "cut pem": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
    "aws": "AKIA" + "A2B3" * 4,
    "github": "ghp_" + "a1B2" * 9,
    "github fine": "github_pat_" + "a1B2" * 10,
    "gitlab": "glpat-" + "a1B2" * 5,
    "openai": "sk-proj-" + "a1B2" * 10,
    "stripe": "sk_live_" + "a1B2" * 6,
    "slack": "xoxb-123456789012-" + "a1B2" * 6,
    "google": "AIza" + "a1B2" * 9,
    "npm": "npm_" + "a1B2" * 9,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("around", ["{}", "see {} here", "x={}", '{{"m":"{}"}}', "line\n{}\nline"])
def test_a_shape_is_known_wherever_it_stands(shape, around):
    """Forms that tell by themselves are hidden under any name, within any text, and as a key."""
    secret = SHAPES[shape]
    text = around.format(json.dumps(secret)[1:-1] if around.startswith("{{") else secret)
    kernel = secret.removeprefix("Bearer ").removeprefix("Basic ").split("\n")[-2 if shape == "pem" else -1]

    for data in ({"note": text}, [text], {text: 1}):
        assert kernel not in json.dumps(redact(data)), data


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("postgres://ada:pw%40x@db/app", "postgres://ada:[redacted]@db/app"),
        ("redis://ada:p@ss@localhost/x", "redis://ada:[redacted]@localhost/x"),
        ("https://localhost/?token=abc&page=2", "https://localhost/?token=[redacted]&page=2"),
        ("curl -u ada:pw https://localhost", "curl -u ada:[redacted] https://localhost"),
        (
            "curl -H 'Authorization: Bearer x' https://localhost",
            "curl -H 'Authorization: [redacted]' https://localhost",
        ),
        ("Cookie: a=b; c=d\r\nAccept: text", "Cookie: [redacted]\r\nAccept: text"),
        ("run --api-key abc --max-tokens 5", "run --api-key [redacted] --max-tokens 5"),
        ("run --password=abc --verbose", "run --password=[redacted] --verbose"),
        ("export DB_PASSWORD=a b c\nexport PORT=5", "export DB_PASSWORD=[redacted]\nexport PORT=5"),
        ("the api key is 8f3a9c1d2b7e4f60a1b2", "the api key is [redacted]"),
        ("token: 8f3a9c1d2b7e4f60a1b2!", "token: [redacted]"),
        ("(password: abc)", "(password: [redacted])"),
        ('{"password": "a\\"b", broken', '{"password": "[redacted]", broken'),
        (r"{\"password\":\"abc\", broken", r"{\"password\":\"[redacted]\", broken"),
        ("machine h login ada password abc", "machine h login ada password [redacted]"),
        ("密码：abc", "密码：[redacted]"),
        ("//registry/:_authToken=abc", "//registry/:_authToken=[redacted]"),
        ('say "tea"\n{"auth":{"user":"ada"}}\nend', 'say "tea"\n{"auth":{"user":"[redacted]"}}\nend'),
        (json.dumps(json.dumps({"secret": "abc"})), json.dumps('{"secret":"[redacted]"}')),
        (r'{"\u0070assword": "abc"}', '{"password":"[redacted]"}'),
    ],
)
def test_a_secret_within_a_text_is_cut_out(text, hidden):
    """In addresses, headers, command lines, settings and JSON, the secret goes and the rest of the text stays."""
    assert redact(text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "the bearer of bad news, basic instructions follow",
        "commit 8f3a9c1d2b7e4f60a1b2c3d4e5f60718293a4b5c",
        "https://localhost:8080/a@b and mailto:ada@host",
        "def f(token: str, max_tokens: int = 5) -> bool: return token.ok",
        "password = os.environ['DB_PASSWORD']; token = get_token(1)",
        "password: ${DB_PASSWORD}",
        "usage: tokens: 12, hasApiKey=true, token=null",
        "task-22-state-and-jsonl risk-averse-2-something",
        "a key: of the piano, a tokenizer: of words",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "水壶开了，倒茶：一杯。",
        "\ud800",
    ],
)
def test_an_ordinary_text_stays(text):
    """Prose, code, hashes and addresses without a secret come back as the very object."""
    data = {"output": text}

    assert redact(data) is data


def test_an_environment_keeps_only_what_is_known_to_be_harmless():
    """Dumped as an object, under a name, as a list, as lines or between NULs: whatever is not known is hidden."""
    variables = {"PATH": "/bin", "HOME": "/home/ada", "LC_ALL": "C", "FOO": SECRET}
    lines = [f"{name}={value}" for name, value in variables.items()]
    hidden = {**variables, "FOO": "[redacted]"}

    assert redact(variables) == hidden
    assert redact({"env": {"FOO": SECRET}}) == {"env": {"FOO": "[redacted]"}}
    assert redact({"Env": lines})["Env"][3] == "FOO=[redacted]"
    assert redact({"env": [{"name": "FOO", "value": SECRET}]}) == {
        "env": [{"name": "FOO", "value": "[redacted]"}]
    }
    for separator in ("\n", "\0"):
        assert redact(separator.join(lines)).split(separator) == [
            f"{name}={value}" for name, value in hidden.items()
        ]


def test_pairs_of_name_and_value_are_understood():
    """Header lists, name-and-value objects and options of a command line tell what the next value is."""
    assert redact([["Cookie", "a"], ["Accept", "b"]]) == [["Cookie", "[redacted]"], ["Accept", "b"]]
    assert redact({"name": "API_KEY", "value": "a"}) == {"name": "API_KEY", "value": "[redacted]"}
    assert redact(["run", "--password", "a", "--port", "5"]) == [
        "run",
        "--password",
        "[redacted]",
        "--port",
        "5",
    ]


def test_the_kind_of_a_value_stays_or_is_told():
    """Lists and objects keep their shape, yes, no and nothing stay, and a number says that it was one."""
    given = {"secret": {"a": ["x", 5, 1.5, True, None, ""], "b": {}}}

    assert redact(given) == {
        "secret": {"a": ["[redacted]", "[redacted:number]", "[redacted:number]", True, None, ""], "b": {}}
    }


def test_two_secret_keys_stay_two():
    """Members under keys that are hidden are not lost to each other."""
    given = {SHAPES["github"]: 1, SHAPES["aws"]: 2, "[redacted]": 3}

    assert redact(given) == {"[redacted] 2": 1, "[redacted] 3": 2, "[redacted]": 3}


def test_what_was_given_is_not_changed():
    """The caller's own data stay whole, and data without secrets come back as the very object."""
    given = {"a": [{"password": SECRET}], "t": f"token={SECRET}"}
    before = copy.deepcopy(given)
    redact(given)

    assert given == before


# --- Whatever the data is ---

NAMES = st.sampled_from(
    [*SECRET_NAMES, "note", "PATH", "HOME", "env", "name", "value", "key", "--token", "tokens"]
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [*SHAPES.values(), "password=", "token: ", "[redacted]", "=", '"', "\\", "\n", "--secret "]
    ),
)
PHRASES = st.lists(st.one_of(TEXTS, NAMES, st.just(RANDOM)), max_size=6).map("".join)
DATA = st.recursive(
    st.one_of(PHRASES, st.integers(), st.floats(), st.booleans(), st.none(), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(NAMES, PHRASES), inner, max_size=4),
        inner.map(lambda value: json.dumps(value, default=str)),
    ),
    max_leaves=8,
)


@given(DATA)
@example({"PATH": "", "HOME": "", "x": [1, "[redacted]"]})
@example("token a8f3a9c1d2b7e4f60a1b2 b8f3a9c1d2b7e4f60a1b2")
def test_hiding_twice_is_hiding_once(data):
    """What was hidden is not hidden again, whatever the data is."""
    once = redact(data)

    assert repr(redact(once)) == repr(once)


@given(
    st.lists(st.one_of(st.sampled_from(["a", "l"]), st.integers(0, 1)), max_size=5),
    st.sampled_from(SECRET_NAMES),
)
def test_a_planted_secret_is_found_at_any_depth(way, name):
    """Lists, objects and texts within texts around a secret do not protect it."""
    data = {name: SECRET}
    for step in way:
        data = {
            "a": {"m": data},
            "l": [1, data],
            0: json.dumps(data),
            1: {"log": f"x\n{json.dumps(data)}\ny"},
        }[step]

    assert SECRET not in json.dumps(redact(data), ensure_ascii=False)
    with pytest.raises(SecretError):
        refuse(data)


@given(st.one_of(DATA, st.dictionaries(st.one_of(NAMES, st.just("note")), PHRASES, max_size=3)))
@example({"note": "Bearer " + RANDOM})
@example({"note": "machine h login ada password abc"})
@example({"note": "密码：abc"})
@example({"note": "token: abc"})
@example({"note": "token=abc"})
@example({"note": "--secret abc"})
@example({"note": "eyJ密密密密密密密密.密密密密密密密密."})
@example({"note": ["--password", "x"], "-password": "y"})
@example({"note": ["-token", "abc"]})
@example({"note": [["token", "abc"]]})
@example({"note": {"token": "abc"}})
@example({"note": {}, "more": {"token": "abc"}})
def test_a_glance_clears_only_what_a_search_would_leave(data):
    """What is cleared at a glance, a whole search would give back unchanged."""
    with suppress(RefusedError):
        raw, copied = encode_data(data, 100)
        if redact.clears(raw, copied):
            assert _Search(redact._hide, _REDACTED).value(copied) is copied


def test_a_glance_suffices_for_plain_data():
    """The data of most events is not walked through."""
    data = {"id": "todo-1", "n": 5, "ok": True, "output": "tea, water and a kettle; 茶", "at": None}

    assert redact.clears(*encode_data(data, 9))


@pytest.mark.parametrize("sealed", ["[encrypted:dGVhAzfqWaPw==]", "a [encrypted:number:AzfqWaPw==] b"])
def test_sealed_bytes_that_look_like_a_name_are_no_name(sealed):
    """Sooner or later a sealed text ends in `Pw==`; it is not sealed a second time."""
    assert Encrypt(Sealer())(sealed) == sealed


def test_what_only_looks_sealed_is_a_secret():
    """No sealed text has a sign of equality before its end."""
    assert "hunter2" not in Encrypt(Sealer())("[encrypted:password=hunter2]")


@given(DATA)
def test_what_was_encrypted_comes_back(data):
    """With its cipher, encrypted data is what it was before; encrypting it again changes nothing."""
    policy = Encrypt(Sealer())
    sealed = policy(data)

    assert repr(policy(sealed)) == repr(sealed)
    if "[redacted" not in repr(data):
        assert repr(policy.reveal(sealed)) == repr(data)


@pytest.mark.parametrize(
    "odd",
    [
        object(),
        {1: "a", None: {"password": "x"}},
        (1, {"password": "x"}),
        {"password": b"x"},
        {"password": float("nan")},
        {"password": 10**5000},
        {"password": "\ud800"},
        '{"a":' * 100_000,
        "[" * 100_000,
        '{"a": 1e999, "password": NaN}',
        '{"password": "a", "password": null}',
    ],
)
def test_odd_data_raises_nothing(odd):
    """What is no JSON is not this policy's to refuse."""
    hidden = redact(odd)

    assert repr(redact(hidden)) == repr(hidden)


def test_data_that_holds_itself_ends():
    """Cycles, and lists that are shared over and over, are walked once."""
    cyclic = {"password": "x"}
    cyclic["a"] = [cyclic, cyclic]
    shared = ["password=x"]
    for _ in range(100):
        shared = [shared, shared]

    assert redact(cyclic)["password"] == "[redacted]"
    assert redact(cyclic)["a"] == ["[redacted:too deep]"] * 2
    assert redact(shared) != shared[:1]


def test_a_doubled_key_hides_nothing_from_the_search():
    """The first of two equal keys counts too: a parser would give the last alone."""
    assert SECRET not in redact(f'{{"password": "{SECRET}", "password": null}}')


LONG = {
    "a": "a",
    "backslashes": "\\",
    "names": "password=",
    "open quotes": 'password="',
    "open escaped quotes": 'password\\\\":\\\\"',
    "jwt": "eyJ",
    "addresses": "://a:",
    "ats": "://a:b@",
    "pem": "-----BEGIN PRIVATE KEY-----",
    "near": "token a1B2c3D4 ",
    "brackets": "[",
    "json lines": "{\n",
    "masks": "password=[redacted] token ",
    "references": "password=${ ",
    "bearer": "bearer ",
    "login": "login a ",
    "options": "--password ",
    "spaces": "key: ",
    "escapes": "\\u0070",
}


@pytest.mark.proof
@pytest.mark.parametrize("unit", LONG)
def test_time_is_linear(unit):
    """Four times the text takes about four times as long, however it is made to look."""

    def seconds(length):
        text = LONG[unit] * (length // len(LONG[unit])) + "password=x\nPATH=\nHOME="
        start = time.process_time()
        redact({"x": text})
        return time.process_time() - start

    assert min(seconds(400_000) for _ in range(3)) < 8 * min(seconds(100_000) for _ in range(3)) + 0.05


@pytest.mark.parametrize("unit", LONG)
def test_a_long_text_is_searched_to_its_end(unit):
    """A text of 100,000 characters that a careless pattern would choke on is done, and its last word found."""
    text = LONG[unit] * (100_000 // len(LONG[unit])) + f"\n-u ada:{SECRET}"

    assert SECRET not in redact(text)


# --- Refusing and encrypting ---


@pytest.mark.parametrize("policy", [refuse, Encrypt(Sealer())])
def test_an_error_says_nothing_of_the_data(policy):
    """Neither message nor chain of exceptions holds the secret or its name's surroundings."""
    broken = Encrypt(Sealer(b"other"))
    act = policy if policy is refuse else lambda data: broken.reveal(policy(data))
    with pytest.raises(SecretError) as caught:
        act({"note-of-ada": {"password": SECRET}})

    told = "".join(map(repr, (caught.value, caught.value.__cause__, caught.value.__dict__)))
    assert not any(part in told for part in (SECRET, "ada", "hunter2"))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_cipher_that_fails_is_told_without_its_words():
    """What a cipher says may hold what it was to hide: only its kind of error is told."""

    class Failing:
        def encrypt(self, data):
            raise ValueError(data)

        decrypt = encrypt

    with pytest.raises(SecretError, match=r"cipher failed \(ValueError\)") as caught:
        Encrypt(Failing())({"password": SECRET})
    assert caught.value.__suppress_context__


def test_encryption_hides_and_gives_back():
    """On the way in the secret is sealed in its place; the key brings it back, types included."""
    policy = Encrypt(Sealer())
    data = {"password": 1234, "h": f"Authorization: Bearer {RANDOM}", "l": [{"apiKey": SECRET}]}
    sealed = policy(data)

    assert not any(secret in json.dumps(sealed) for secret in ("1234", RANDOM, SECRET))
    assert policy.reveal(sealed) == data
    assert type(policy.reveal(sealed)["password"]) is int


def test_keep_keeps():
    """Whoever looked through the data before may have it stored as it is."""
    data = {"password": SECRET}

    assert keep(data) is data


def test_names_are_judged_by_their_end():
    """A very long name costs no more than a short one, and its end decides."""
    assert secret_names.is_secret("x" * 100_000 + "_password")
    assert not secret_names.is_secret("password_" + "x" * 100_000)
