"""Which names announce a secret: keys of a mapping, headers, options, variables of an environment (E7).

A name is judged by its last word, so that `apiKey`, `X-API-KEY` and `OPENAI_API_KEY_2` are secret while `token_count`,
`secret_name` and `hasApiKey` are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_LONGEST_NAME = 200  # characters; of a longer name only the end is judged

CHINESE_NOUNS = ("密码", "口令", "令牌", "密钥", "私钥", "凭证", "凭据")
_NOUNS = (
    *("password", "passwords", "passwd", "passphrase", "passcode", "passkey", "secret", "secrets"),
    *("token", "tokens", "cookie", "cookies", "credential", "credentials", "authorization", "mnemonic"),
    *CHINESE_NOUNS,
)
_WHOLE_WORDS = frozenset({"auth", "bearer", "cvc", "cvv", "jwt", "otp", "pass", "pw", "pwd"})
_TWO_WORDS = frozenset({"password", "passwords", "passphrase", "passcode", "seedphrase", "accesssignature"})
_KINDS_OF_KEY = (
    *("access", "account", "anthropic", "api", "app", "auth", "azure", "client", "consumer", "crypto"),
    *("decryption", "deploy", "encryption", "functions", "github", "google", "gpg", "hmac", "host", "jwt"),
    *("license", "master", "openai", "pgp", "private", "root", "secret", "security", "service", "session"),
    *("shared", "sign", "signing", "ssh", "storage", "stripe", "subscription", "vault", "wallet"),
)
_KEYS = tuple(f"{kind}{noun}" for kind in _KINDS_OF_KEY for noun in ("key", "keys"))

_ASKING = frozenset({"has", "is"})
_COUNTING = frozenset(
    {"budget", "cached", "completion", "count", "input", "limit", "max", "min", "num", "number", "output"}
    | {"per", "prompt", "reasoning", "remaining", "stop", "total", "usage", "used"}
)
_SAYING_NOTHING = frozenset(
    {"base64", "current", "dev", "hash", "header", "hex", "live", "new", "old", "pem", "plain", "plaintext"}
    | {"previous", "prod", "raw", "staging", "v", "value"}
)

NAME_KEYS = ("name", "key", "header", "field", "variable")
VALUE_KEYS = ("value", "val")
"""An object with one of each says a name and its value: `{"name": "API_KEY", "value": "…"}`."""

ENVIRONMENTS = frozenset({"env", "environ", "environment"})
_HARMLESS_VARIABLES = frozenset(
    {"CI", "COLORTERM", "COLUMNS", "DISPLAY", "EDITOR", "HOME", "HOSTNAME", "LANG", "LANGUAGE", "LINES"}
    | {"LOGNAME", "NODE_ENV", "OLDPWD", "PAGER", "PATH", "PWD", "PYTHONPATH", "SHELL", "SHLVL", "TERM"}
    | {"TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "_"}
)
_HARMLESS_PREFIXES = ("LC_", "XDG_")
_ALWAYS_THERE = frozenset({"HOME", "LANG", "PWD", "SHELL", "USER"})


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Say whether what stands under `name` is a secret whatever it looks like."""
    words = _words(name)
    if not words or words[0] in _ASKING:
        return False
    last, two = words[-1], "".join(words[-2:])
    if last in ("token", "tokens") and not _COUNTING.isdisjoint(words[:-1]):
        return False
    if last.endswith(("key", "keys")) and "".join(words).endswith(_KEYS):
        return True
    return last in _WHOLE_WORDS or two in _TWO_WORDS or last.endswith(_NOUNS)


@lru_cache(maxsize=4096)
def counts(name: str) -> bool:
    """Say whether a number under this secret name is a count: `tokens: 12` is, `password: 1234` is not."""
    words = _words(name)
    return bool(words) and words[-1].endswith("s")


@lru_cache(maxsize=4096)
def is_telling(name: str) -> bool:
    """Say whether this name may decide about what stands under it, so that data with it has to be looked at closely."""
    return is_secret(name) or name == "PATH" or name in VALUE_KEYS or name.lower() in ENVIRONMENTS


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST_NAME:])]
    while words and (words[-1].isdigit() or words[-1] in _SAYING_NOTHING):
        words.pop()
    return words


def is_harmless_variable(name: str) -> bool:
    """Say whether a variable of an environment may stay as it is; whatever is not known to be harmless may not."""
    return name in _HARMLESS_VARIABLES or name.startswith(_HARMLESS_PREFIXES)


def is_environment(names: Mapping[Any, Any]) -> bool:
    """Say whether these are the variables of a whole environment: a search path, and what a login always sets."""
    return "PATH" in names and not _ALWAYS_THERE.isdisjoint(names)
