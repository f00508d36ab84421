"""What happened to one line that is not strict JSON: which crash, race or other program leaves such bytes.

An explanation only: that the line is bad was decided before. Each search here is bounded, so that no line, however
it was made, costs more than some twenty readings of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from .strict_json import NotStrictError, judge

KNOWN_KEYS = frozenset(
    (
        *("type", "uuid", "parentUuid", "timestamp", "sessionId", "session_id", "sequence", "event_id"),
        *("id", "parentId", "role", "message", "payload", "data", "v", "session", "kind", "source"),
    )
)
"""Keys by which records of session files are known. The only names that any output may show."""

_MOST_TRIES = 200
_MOST_WORK = 20  # in readings of the line
_JSON_SPACE = (" ", "\t", "\r", "\n")
_OPENING = re.compile(r'\{[ \t]*"')
_STRING_REST = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_QUOTE_OR_BRACKET = re.compile(rb'["\[\]{}]')
_MAY_HIDE_A_RECORD = ("not-json", "control-character", "utf-8", "encoded-surrogate")
_Decoder = json.JSONDecoder()


class Damage(NamedTuple):
    """What a bad line is.

    `at` is where the fault shows and `second` where a later record begins in the line, both in bytes from its start.
    `fragment` is (start, end) of a piece whose rest may stand on another line.
    """

    kind: str
    at: int = 0
    second: int | None = None
    fragment: tuple[int, int] | None = None
    length: int = 0


def explain(raw: bytes, fault: NotStrictError, shapes: Collection[frozenset[str]] = ()) -> Damage:
    """Say what happened to a line that `judge` refused with `fault`; `shapes` are the key sets of the file's records."""
    if b"\0" in raw:
        return _with_nul(raw)
    if fault.kind in _MAY_HIDE_A_RECORD:
        found = _several_in_one(raw, shapes)
        if found is not None:
            return found
        if is_cut_short(raw, fault):
            return Damage("fragment", len(raw), fragment=(0, len(raw)))
    return Damage(fault.kind, fault.offset)


def is_utf_16(raw: bytes) -> bool:
    """Say whether the line is text with a NUL for every second byte, or opens with the mark of such text."""
    return raw.startswith((b"\xff\xfe", b"\xfe\xff")) or (
        len(raw) >= 4
        and raw.strip(b"\0") != b""
        and raw.count(0) * 3 >= len(raw)
        and b"\0\0" not in raw.strip(b"\0")
    )


def _with_nul(raw: bytes) -> Damage:
    if is_utf_16(raw):
        return Damage("utf-16", length=len(raw))
    start = raw.index(0)
    run = len(raw) - start - len(raw[start:].lstrip(b"\0"))
    return Damage("nul-run", start, length=run)


def _several_in_one(raw: bytes, shapes: Collection[frozenset[str]]) -> Damage | None:
    """Find a second record in the line: behind a whole one, behind a fragment, or inside another."""
    text = raw.decode("utf-8", "surrogateescape")
    whole_to, wholes = _whole_objects(text)
    end = len(text.rstrip())
    if wholes > 1 or (wholes and text.startswith("{", whole_to)):
        second = _size(text[: whole_to if wholes == 1 else _first_end(text)])
        rest = None if whole_to == end else (_size(text[:whole_to]), len(raw))
        return Damage("fused-records", second, second, rest)
    return None if whole_to == end else _behind_or_inside(text, raw, shapes)


def _behind_or_inside(text: str, raw: bytes, shapes: Collection[frozenset[str]]) -> Damage | None:
    work = 0
    for tries, opening in enumerate(_OPENING.finditer(text)):
        start = opening.start()
        if tries >= _MOST_TRIES or work > _MOST_WORK * len(text):
            return None
        found = _value_at(text, start)
        work += (found[1] if found else len(text)) - start
        if start == 0 or found is None or not isinstance(found[0], dict):
            continue
        value, end = found
        if not text[end:].strip():
            at = _size(text[:start])
            if _could_be_a_member(raw[:at]) and frozenset(value) not in shapes:
                return None
            return Damage("fragment-and-record", at, at, (0, at))
        if len(value) > 1 and not KNOWN_KEYS.isdisjoint(value):
            work += len(text)
            if is_record(raw[: _size(text[:start])] + raw[_size(text[:end]) :]):
                return Damage("splice", _size(text[:start]), _size(text[:start]))
    return None


def _could_be_a_member(before: bytes) -> bool:
    """Say whether an object behind these bytes may be a part of theirs: then only its keys tell that it is not."""
    if not before.rstrip().endswith((b":", b"[", b",")):
        return False
    nesting = Nesting()
    nesting.feed(before)
    return not nesting.in_string


def is_record(raw: bytes) -> bool:
    """Say whether the bytes are one strict JSON object with something in it."""
    try:
        value = judge(raw).value
    except NotStrictError:
        return False
    return isinstance(value, dict) and bool(value)


def _whole_objects(text: str) -> tuple[int, int]:
    """Give where the whole objects at the line's start end, and how many they are."""
    position = count = 0
    while count < _MOST_TRIES and (found := _value_at(text, position)) and isinstance(found[0], dict):
        position, count = _behind_space(text, found[1]), count + 1
    return position, count


def _behind_space(text: str, position: int) -> int:
    while text[position : position + 1] in _JSON_SPACE:
        position += 1
    return position


def _first_end(text: str) -> int:
    found = _value_at(text, 0)
    return found[1] if found else 0


def _value_at(text: str, position: int) -> tuple[Any, int] | None:
    try:
        return _Decoder.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def is_cut_short(raw: bytes, fault: NotStrictError) -> bool:
    """Say whether the line is the beginning of a record: it fails at its very end, or in a string that never ends."""
    if raw.lstrip()[:1] not in (b"{", b"["):
        return False
    nesting = Nesting()
    nesting.feed(raw)
    if fault.kind == "utf-8" and fault.offset < len(raw) - 3:
        return False
    if nesting.in_string:
        return fault.offset >= nesting.string_start
    return nesting.depth > 0 and fault.offset >= len(raw.rstrip()) - len("false")


class Nesting:
    """How deep, and whether inside a string, the bytes fed so far end."""

    def __init__(self) -> None:
        self.depth = 0
        self.in_string = False
        self.string_start = 0
        self.closed_early = False

    def feed(self, raw: bytes) -> None:
        """Read on. `closed_early` becomes true when more than white space follows the value's end."""
        position = 0
        while True:
            if self.in_string:
                rest = _STRING_REST.match(raw, position)
                if rest is None or not rest[1]:
                    return
                self.in_string, position = False, rest.end()
            found = _QUOTE_OR_BRACKET.search(raw, position)
            if found is None:
                return
            position = found.end()
            if found[0] == b'"':
                self.in_string, self.string_start = True, found.start()
                continue
            self.depth += 1 if found[0] in b"[{" else -1
            if self.depth <= 0 and raw[position:].strip():
                self.closed_early = True
                return
