r"""Where secrets stand inside a text: by the shape of a value, by a name before it, as an environment's lines (E7).

Every rule gives spans of the one text that was handed in, so rules cannot spoil each other's findings. Time is linear
in the length of the text: repetitions are possessive or bounded, and a run of characters is entered at its start only.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import secret_names

Span = tuple[int, int]

_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf]))"  # the second: behind an escape such as \n, in a text within a text


class _Shape(NamedTuple):
    """A form that tells by itself. `needle`, lower case, stands in every match; the secret is the last group."""

    needle: str
    pattern: re.Pattern[str]
    convinces: Callable[[str], bool] = lambda _secret: True


def _has_digit(secret: str) -> bool:
    return any(character.isdigit() for character in secret)


def _is_long_or_has_digit(secret: str) -> bool:
    return len(secret) >= 24 or _has_digit(secret)


def _is_user_and_password(secret: str) -> bool:
    try:
        return b":" in base64.b64decode(secret.rstrip("=") + "=" * (-len(secret.rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        return False


def _shapes(*rows: tuple[str, str] | tuple[str, str, Callable[[str], bool]]) -> tuple[_Shape, ...]:
    return tuple(_Shape(needle, re.compile(pattern, re.ASCII), *rest) for needle, pattern, *rest in rows)


_SHAPES = _shapes(
    ("bearer", r"(?i:bearer)[ \t]{1,8}([A-Za-z0-9._~+/=-]{16,}+)", _is_long_or_has_digit),
    ("basic", r"(?i:basic)[ \t]{1,8}([A-Za-z0-9+/=]{16,}+)", _is_user_and_password),
    ("eyj", _START + r"(eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){1,3})"),
    ("akia", r"(AKIA[A-Z0-9]{16})"),
    ("asia", r"(ASIA[A-Z0-9]{16})", _has_digit),
    *((f"gh{kind}_", rf"(gh{kind}_[A-Za-z0-9]{{20,}}+)") for kind in "oprsu"),
    ("github_pat_", r"(github_pat_\w{20,}+)"),
    ("glpat-", r"(glpat-[\w-]{16,}+)"),
    ("sk-", _START + r"(sk-[\w-]{16,}+)", _has_digit),
    ("_live_", r"([rs]k_live_[A-Za-z0-9]{10,}+)"),
    ("_test_", r"([rs]k_test_[A-Za-z0-9]{10,}+)"),
    ("xox", r"(xox[a-z]-[\w-]{11,}+)", _has_digit),
    ("xapp-", r"(xapp-[\w-]{11,}+)", _has_digit),
    ("hooks.slack.com/services/", r"hooks\.slack\.com/services/([A-Za-z0-9/]{16,}+)"),
    ("aiza", _START + r"(AIza[\w-]{30,}+)"),
    ("ya29.", _START + r"(ya29\.[\w.-]{11,}+)"),
    ("npm_", r"(npm_[A-Za-z0-9]{30,}+)"),
    ("hf_", _START + r"(hf_[A-Za-z0-9]{30,}+)"),
    ("pypi-", r"(pypi-[\w-]{30,}+)"),
    ("sg.", _START + r"(SG\.[\w-]{16,}+\.[\w-]{16,}+)"),
    ("age-secret-key-", r"(AGE-SECRET-KEY-1[A-Z0-9]{20,}+)"),
    ("://", r"://[^\s/?#:@\"'<>]*+:([^\s/?#\"'<>@]++(?:@[^\s/?#\"'<>@]++)*)(?=@)"),
    ("://", r"://([\w-]{20,}+)(?=@)", _has_digit),
    ("-u", r"(?<!\S)-u[ \t]{0,4}[\"']?[^\s:\"']{1,128}:([^\s\"']++)"),
    ("-user", r"-user[ \t=]{1,4}[\"']?[^\s:\"']{1,128}:([^\s\"']++)"),
    ("password", r"(?:login|user)[ \t\r\n]{1,8}\S{1,128}[ \t\r\n]{1,8}password[ \t\r\n]{1,8}(\S++)"),
)

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_NAMED = re.compile(r"(?<![\w.\-])([\w.\-]++)\\*+[\"'`]?+[ \t]{0,8}+(?::=|=>|=|:|：)[ \t]{0,8}+")
_OPTION = re.compile(r"(?<![\w.\-])--([\w\-]++)[ \t]{1,8}+(?=[^\s\-=:])")
_TWO_PART_ENDS = frozenset({"key", "keys", "phrase"})
_WORD_BEFORE = re.compile(r"([A-Za-z]{1,20})[ \t]$")
_LINE_START = re.compile(r"(?:^|[\n\r\0])[ \t]*(?:(?:export|set|declare -x|ENV|[-<>+#]) *)?$")
_LONGEST_LINE_START = 40
_QUOTE = re.compile(r"(\\*)([\"'`])")
_UP_TO = {mark: re.compile(rf"(?:[^\\{mark}\n\r\0]|\\[^\n\r\0])*+") for mark in "\"'`"}
_TO_LINE_END = re.compile(r"[^\n\r\0]*+")
_TO_QUOTE = re.compile(r"[^\n\r\0\"'`]*+")
_TO_NEXT_PARAMETER = re.compile(r"[^\s&#\"'`<>]*+")
_TO_SPACE = re.compile(r"[^\s\"'`<>]*+")
_HEADERS = ("authorization", "cookie")
_REFERENCE = re.compile(r"\$\{|\$[A-Z][A-Z0-9_]*+(?![\w.-])|\$\(|\{\{|[A-Za-z_.]++[(\[]")
_NOTHING = re.compile(
    r"(?i:none|null|nil|true|false|undefined|str|string|bytes|int|number|bool|boolean|any|optional)[\s\]),;}|?=]*+|"
)
_COUNT_OR_NOTHING = re.compile(rf"\d[\d_]*+(?![\w.-]).*|{_NOTHING.pattern}")
"""What may stand behind a secret name without giving anything away: a reference, a call, a type, nothing, a count."""

_PIECE = re.compile(r"[^\s,;{}]+")
_KEY_WORD = re.compile(
    r"(?ia)passw|passphrase|secret|token|credential|bearer|(?:api|access|private|signing)[ _-]?key"
    r"|密码|口令|令牌|密钥|私钥"
)
_NEAR_WORDS = 6
_LONG_RUN = re.compile(r"(?<![A-Za-z0-9+/_=~-])[A-Za-z0-9+/_=~-]{16,}+")
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")

_VARIABLE = re.compile(r"(?:^|[\n\r\0])(?:export |declare -x |set )?([A-Za-z_][A-Za-z0-9_]*+)=([^\n\r\0]*+)")

SHORTEST_SHAPE = 16  # characters, without a space among them, of a form that has no sign
TOKEN = string.ascii_letters + string.digits + "+/_=.~-"
"""What such a form is made of."""
_NEEDLES = (
    *(
        "pass",
        "pw",
        "secret",
        "token",
        "cookie",
        "credential",
        "auth",
        "bearer",
        "key",
        "jwt",
        "otp",
        "cvc",
        "cvv",
    ),
    *("mnemonic", "phrase", "signature", "-----begin", '"env', "\\u"),
    *dict.fromkeys(shape.needle for shape in _SHAPES if shape.needle not in ("password", "bearer")),
)
_NEEDLES_AS_THEY_STAND = ("PATH=", '"PATH', "'PATH", *secret_names.CHINESE_NOUNS)


def may_hold(text: str) -> bool:
    """Say at little cost whether `text` could hold a secret. False is certain.

    Every rule needs a sign between a name and a value, or many characters without a space: most texts have neither.
    """
    if not (":" in text or "=" in text or "--" in text or "：" in text):
        if len(text) < SHORTEST_SHAPE:
            return False
        if max(map(len, text.split()), default=0) < SHORTEST_SHAPE:
            return "password" in text
    lowered = text.lower()
    return any(needle in lowered for needle in _NEEDLES) or any(
        needle in text for needle in _NEEDLES_AS_THEY_STAND
    )


def spans(text: str, mask: re.Pattern[str]) -> list[Span]:
    """Give what is to be hidden in `text`, in order and apart from each other; what `mask` matches is hidden already."""
    found = [
        span for rule in (_by_shape, _private_keys, _environment, _near_key_words) for span in rule(text)
    ]
    hidden = [match.span() for match in mask.finditer(text)]
    found = [span for span in found if not _lies_in_one(span, hidden)] if hidden else found
    return _joined([*found, *_by_name(text, mask, hidden)])


def _lies_in_one(span: Span, hidden: list[Span]) -> bool:
    before = bisect_right(hidden, (span[0], sys.maxsize)) - 1
    return before >= 0 and span[1] <= hidden[before][1]


def _joined(found: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in sorted(found):
        if joined and begin < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif begin < end:
            joined.append((begin, end))
    return joined


def _by_shape(text: str) -> Iterator[Span]:
    lowered = text.lower()
    for shape in _SHAPES:
        if shape.needle in lowered:
            for match in shape.pattern.finditer(text):
                if shape.convinces(match[1]):
                    yield match.span(1)


def _private_keys(text: str) -> Iterator[Span]:
    begin = _PEM_BEGIN.search(text)
    while begin:
        end = _PEM_END.search(text, begin.end())
        stop = end.end() if end else len(text)  # a block that was cut off is a key all the same
        yield begin.start(), stop
        begin = _PEM_BEGIN.search(text, stop)


def _environment(text: str) -> Iterator[Span]:
    if "PATH=" not in text:
        return
    variables = {match[1]: match for match in _VARIABLE.finditer(text)}
    if secret_names.is_environment(variables):
        for match in _VARIABLE.finditer(text):
            if not secret_names.is_harmless_variable(match[1]):
                yield match.span(2)


def _near_key_words(text: str) -> Iterator[Span]:
    """Yield what looks random within a few words behind a word such as token: alone it may be any hash."""
    if not _KEY_WORD.search(text):
        return
    words_left = 0
    key_words = _KEY_WORD.finditer(text)
    key_word = next(key_words, None)
    for piece in _PIECE.finditer(text):
        begin, words_left = piece.start(), words_left - 1
        while key_word and key_word.end() <= piece.end():
            begin, words_left = max(begin, key_word.end()), _NEAR_WORDS
            key_word = next(key_words, None)
        if words_left > 0:
            for run in _LONG_RUN.finditer(text, begin, piece.end()):
                if any(map(_looks_random, run[0].split("/"))):
                    yield run.span()


def _looks_random(run: str) -> bool:
    """Say whether letters and digits change places more often than in names, dates and numbers of versions."""
    return len(run) >= 16 and _has_digit(run) and len(_CLASSES.findall(run)) >= 6


def _by_name(text: str, mask: re.Pattern[str], hidden: list[Span]) -> Iterator[Span]:
    """Yield the values behind secret names: `name=value`, `"name": "value"`, headers, `--name value`.

    What looks like a name in what is hidden already is chance: sealed bytes may well end in `Pw==`.
    """
    for pattern in (_NAMED, _OPTION):
        match = pattern.search(text)
        while match:
            at = match.end()
            if not _lies_in_one(match.span(), hidden) and secret_names.is_secret(_full_name(text, match)):
                if already := mask.match(text, at):
                    at = already.end()
                elif not _REFERENCE.match(text, at):
                    begin, end = _value(text, match)
                    if not _says_nothing(text[begin:end], match[1]) and not mask.fullmatch(text, begin, end):
                        yield begin, end
                        at = max(at, end)
            match = pattern.search(text, at)


def _says_nothing(value: str, name: str) -> bool:
    pattern = _COUNT_OR_NOTHING if secret_names.counts(name) else _NOTHING
    return pattern.fullmatch(value) is not None


def _full_name(text: str, match: re.Match[str]) -> str:
    """Give the name; of one that says little by itself, such as the key of `api key: …`, with the word before."""
    name, start = match[1], match.start()
    if name.lower() in _TWO_PART_ENDS and (before := _WORD_BEFORE.search(text[max(0, start - 21) : start])):
        return f"{before[1]}_{name}"
    return name


def _value(text: str, match: re.Match[str]) -> Span:
    """Find where the value behind a name ends: at its quote, else as late as its surroundings allow."""
    begin = match.end()
    if quote := _QUOTE.match(text, begin):
        return _quoted(text, quote)
    start = match.start()
    before = text[max(0, start - _LONGEST_LINE_START) : start]
    if start > _LONGEST_LINE_START:
        before = f".{before}"  # what was cut off here begins no line
    if match[1].lower().endswith(_HEADERS):
        return begin, _end_of(_TO_QUOTE, text, begin, " \t")
    if text[begin : begin + 1] in ("[", "{", "(") or (match.re is _NAMED and _LINE_START.search(before)):
        return begin, _end_of(_TO_LINE_END, text, begin, " \t")
    in_query = before[-1:] in ("?", "&")
    return begin, _end_of(_TO_NEXT_PARAMETER if in_query else _TO_SPACE, text, begin, ",;)]}")


def _end_of(pattern: re.Pattern[str], text: str, begin: int, trailing: str) -> int:
    found = pattern.match(text, begin)
    return begin + len(found[0].rstrip(trailing)) if found else begin


def _quoted(text: str, quote: re.Match[str]) -> Span:
    begin, slashes, mark = quote.end(), quote[1], quote[2]
    if slashes:  # a quote within a quoted text ends at its like, with as many slashes
        closing = re.compile(rf"(?<!\\)({re.escape(slashes)}{mark})|[\n\r\0]").search(text, begin)
        return begin, closing.start() if closing else len(text)
    whole = _UP_TO[mark].match(text, begin)
    return begin, whole.end() if whole else begin
