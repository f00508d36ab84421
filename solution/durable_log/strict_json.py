"""Is one line one strict JSON text? Two judges, one verdict: an exact one that can name the fault, a fast one before it.

The fast judge may say yes only where the exact one would; whatever it is not sure of goes to the exact one
(tests/test_durable_strict_json.py holds them side by side). Neither keeps or quotes a byte of the line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

import msgspec

MAX_DEPTH = 500
"""Levels of `[` and `{`: half of what Python's own parser bears, so that the verdict never hangs on its stack."""

MAX_DIGITS = 4_300
"""Digits of an integer that Python reads back."""

_JSON_SPACE = " \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_decode = msgspec.json.Decoder().decode


class NotStrictError(ValueError):
    """The line is not strict JSON. `kind` names the fault (docs/log-command.md); `offset` is in bytes of the line."""

    def __init__(self, kind: str, offset: int = 0) -> None:
        super().__init__(kind)
        self.kind = kind
        self.offset = offset


class Judged(msgspec.Struct, frozen=True, gc=False):
    """A line that is strict JSON: its value, and by kind what in it other readers stumble over."""

    value: Any
    notes: tuple[str, ...] = ()


def judge(raw: bytes) -> Judged:
    """Give the value of one line (without its newline).

    Raises: NotStrictError, which says what kind of fault it is and where.
    """
    try:
        value = _decode(raw)
        if raw.count(b'"') == _quotes((value,)) and b"\\u0022" not in raw:
            return Judged(value)
    except (msgspec.MsgspecError, RecursionError, ValueError, _UnsureError):
        pass  # the exact judge knows what is wrong with it, if anything is
    return judge_exactly(raw)


def judge_objects(lines: list[bytes], data: bytes) -> list[dict[str, Any]] | None:
    """Give the objects of many lines at once; `data` is all their bytes, newlines between them.

    None when one of them is no strict JSON object, or needs a closer look: then `judge` looks at each.
    """
    try:
        values = list(map(_decode, lines))
        if data.count(b'"') != _quotes(values) or b"\\u0022" in data:
            return None
    except (msgspec.MsgspecError, RecursionError, ValueError, _UnsureError):
        return None
    return values if set(map(type, values)) == {dict} else None


class _UnsureError(Exception):
    """The fast judge leaves this one to the exact judge."""


def _quotes(values: Iterable[Any]) -> int:
    """Count the quotes by which decoded values are written: two a string, key or value, and those inside values.

    msgspec keeps the last of two equal keys and says nothing: then the text has more. It has fewer only where a quote is
    written as an escaped code.
    """
    count = depth = 0
    level: list[Iterable[Any]] = [values]
    while level:
        if depth > MAX_DEPTH:
            raise _UnsureError
        below: list[Iterable[Any]] = []
        for members in level:
            for value in members:
                kind = value.__class__
                if kind is str:
                    count += 2 + value.count('"') if '"' in value else 2
                elif kind is dict:
                    count += 2 * len(value)
                    below.append(value.values())
                elif kind is list:
                    below.append(value)
                elif kind is int and not _LEAST <= value <= _MOST:
                    raise _UnsureError
        level, depth = below, depth + 1
    return count


def judge_exactly(raw: bytes) -> Judged:
    """Give the value of one line by Python's own parser, made strict. The definition that `judge` is held to.

    Raises: NotStrictError.
    """
    if raw.startswith(_BYTE_ORDER_MARK):
        raise NotStrictError("bom")
    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        start = problem.start
        encoded = _ENCODED_SURROGATE.match(raw, start)
        raise NotStrictError("encoded-surrogate" if encoded else "utf-8", start) from None
    value = parse_exactly(text)
    return Judged(value, _odd(value))


def parse_exactly(text: str) -> Any:
    """Give the value of one JSON text. Raises: NotStrictError; its offset counts UTF-8 bytes."""
    if text.count("[") + text.count("{") > MAX_DEPTH and _too_deep(text):
        raise NotStrictError("too-deep")
    body = text.strip(_JSON_SPACE)
    if not body:
        raise NotStrictError("blank-line")
    try:
        value, end = _STRICT.raw_decode(body)
    except NotStrictError:
        raise
    except json.JSONDecodeError as problem:
        # `from None`: the parser's own error keeps the whole text.
        kind = "control-character" if problem.msg.startswith("Invalid control character") else "not-json"
        raise NotStrictError(kind, _bytes_before(text, body, problem.pos)) from None
    except ValueError:
        raise NotStrictError("integer-too-long") from None
    if end != len(body):
        raise NotStrictError("not-json", _bytes_before(text, body, end))
    return value


def _too_deep(text: str) -> bool:
    """Count levels of brackets without recursion, so that a nesting bomb reaches no parser's stack."""
    level = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        if found[0] in "[{":
            level += 1
            if level > MAX_DEPTH:
                return True
        elif found[0] in "]}":
            level -= 1
    return False


def _bytes_before(text: str, body: str, position: int) -> int:
    start = len(text) - len(text.lstrip(_JSON_SPACE))
    return start + len(body[:position].encode("utf-8", "surrogatepass"))


def _odd(value: Any) -> tuple[str, ...]:
    """Say whether a value holds an integer past 64 bits, and whether it holds half of a surrogate pair."""
    notes = set()
    rest = [value]
    while rest:
        found = rest.pop()
        if isinstance(found, dict):
            rest.extend(found)
            rest.extend(found.values())
        elif isinstance(found, list):
            rest.extend(found)
        elif isinstance(found, str) and not found.isascii() and _SURROGATE.search(found):
            notes.add("lone-surrogate")
        elif type(found) is int and not _LEAST <= found <= _MOST:
            notes.add("huge-integer")
    return tuple(sorted(notes))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotStrictError("doubled-key")
    return members


def _refuse_constant(_token: str) -> NoReturn:
    raise NotStrictError("nan")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotStrictError("number-overflow")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
