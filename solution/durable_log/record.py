"""One event and its line, both ways, and the chain that binds lines together (docs/formats-durable.md).

Everything here is pure: values in, bytes out. Files and order live in `reading` and `log`.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from itertools import cycle
from marshal import dumps
from typing import Any

import msgspec

from .contract import GENESIS, Event
from .errors import LimitError, RefusedError

encode_value = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_value = msgspec.json.Decoder().decode

NULL = b"null"
_HASH_KEY = b',"event_hash":"'
_END = b'"}\n'
UNHASHED_BYTES = len(_HASH_KEY) + 64 + len(b'"}')
"""The bytes at a line's end, without its newline, that its hash is not over."""

_ATOMS = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})
_FIELDS = set(Event.__struct_fields__)
_SURROGATE = re.compile("([\ud800-\udfff])")
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class Head(msgspec.Struct, frozen=True):
    """The last event of a log or a part of one: its number and its `event_hash`."""

    sequence: int
    hash: str


BEGINNING = Head(0, GENESIS)
"""Before a session's first event."""


def encode_data(data: Any, depth: int) -> tuple[bytes, Any]:
    """Take `data` as it is now: its one serialisation, and a copy that shares nothing with the caller's.

    Raises: RefusedError for what JSON would alter, LimitError for more than `depth` levels of brackets.
    """
    if (
        type(data) is dict
        and _ATOMS.issuperset(map(type, data.values()))
        and _TEXT.issuperset(map(type, data))
    ):
        try:
            raw = encode_value(data)
            if raw.rfind(NULL) < 0:  # NaN and infinity would be one; rfind is the faster here
                return raw, data.copy()  # nothing in it can change, so nothing needs to be read back
        except ValueError:
            pass  # what follows can encode it, or say what is wrong
    try:
        # marshal knows the exact built-in types alone, so it refuses the subclasses that == lets pass.
        dumps(data)
        raw = encode_value(data)
        copy = _decode_value(raw)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        raw, copy = _encode_rare(data)
    if copy != data:  # NaN became null, a tuple a list, bytes a string
        raise RefusedError(
            "data: would not come back as it is; convert what is no JSON value before you append"
        )
    if len(raw) > 2 * depth and raw.count(b"[") + raw.count(b"{") > depth and depth_of(raw) > depth:
        raise LimitError(f"data: is nested deeper than {depth} levels; store a flatter form of it")
    return raw, copy


def _encode_rare(data: Any) -> tuple[bytes, Any]:
    """Encode what msgspec alone cannot: halves of surrogate pairs, and integers that it writes and does not read."""
    try:
        raw = encode_text(data)
        dumps(data)  # behind, for it has no word of its own for what is nested too deep
        return raw, json.loads(raw)
    except RecursionError:
        raise LimitError("data: holds itself, or is nested too deep; store a flat form of it") from None
    except (TypeError, ValueError, OverflowError):
        raise RefusedError(
            "data: holds a value or a key that JSON does not have; make it of dict, list, str, int, float, bool, None"
        ) from None


def encode_text(value: Any) -> bytes:
    """Return the one serialisation of a text, or of any JSON value, with whatever characters."""
    try:
        return encode_value(value)
    except UnicodeEncodeError:
        return _escaped(value)


def _escaped(value: Any) -> bytes:
    """Serialise as `encode_value` does, but for halves of surrogate pairs, which UTF-8 does not have."""
    if isinstance(value, str):
        parts = _SURROGATE.split(value)
        parts[1::2] = [f"\\u{ord(half):04x}" for half in parts[1::2]]
        return b'"%b"' % b"".join(
            part.encode() if odd else encode_value(part)[1:-1]
            for part, odd in zip(parts, cycle((False, True)))
        )
    if isinstance(value, list):
        return b"[%b]" % b",".join(map(_escaped, value))
    if isinstance(value, dict):
        return b"{%b}" % b",".join(b"%b:%b" % (_escaped(key), _escaped(value[key])) for key in value)
    return encode_value(value)


def line_form(session: str) -> bytes:
    """Return what becomes a line of this session, up to its hash, when the fields behind the session are put in by `%`.

    They are v, sequence, event_id, type, data, occurred_at, causation_id, correlation_id and previous_hash: serialised,
    but for the two numbers, and for the hash, which stands without its quotes.
    """
    return (
        f'{{"v":%d,"session":"{session}","sequence":%d,"event_id":%b,"type":%b,"data":%b,'
        '"occurred_at":%b,"causation_id":%b,"correlation_id":%b,"previous_hash":"%b"'
    ).encode()


def seal(head: bytes) -> tuple[bytes, str]:
    """Return the whole line, newline included, that begins with `head`, and its hash."""
    digest = sha256(head).hexdigest()
    return b"".join((head, _HASH_KEY, digest.encode(), _END)), digest


def encode_event(event: Event) -> bytes:
    """Return the one serialisation of an event, without a newline; the hash that it carries is not looked at."""
    try:
        return encode_value(event)
    except UnicodeEncodeError:
        return _escaped(msgspec.structs.asdict(event))


def same_data(one: Any, other: Any) -> bool:
    """Say whether two JSON values are the same, types included: 1, 1.0 and true are three. Keys may stand anyhow."""
    try:
        return _encode_sorted(one) == _encode_sorted(other)
    except UnicodeEncodeError:
        return bool(one == other)


def hash_of(line: bytes) -> str:
    """Return the hash that a line, without its newline, has to carry."""
    return sha256(line[:-UNHASHED_BYTES]).hexdigest()


def as_event(value: Any) -> Event:
    """Return the event that a decoded line stands for. Raises: ValueError, which quotes nothing, when it is none."""
    try:
        if isinstance(value, dict) and value.keys() == _FIELDS:
            return msgspec.convert(value, Event, strict=True)
    except (msgspec.ValidationError, RecursionError):
        pass
    raise ValueError("is not a record of this format")


def depth_of(raw: bytes) -> int:
    """Count the levels of brackets in one JSON text, without recursion."""
    deepest = level = 0
    for found in _STRING_OR_BRACKET.findall(raw):
        if found in (b"[", b"{"):
            level += 1
            deepest = max(deepest, level)
        elif found in (b"]", b"}"):
            level -= 1
    return deepest
