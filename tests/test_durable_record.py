"""One record both ways, byte by byte: what is taken, what is refused and in which words, and what the chain is over."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest

from solution.durable_log.contract import GENESIS, Event
from solution.durable_log.errors import LimitError, RefusedError
from solution.durable_log.record import (
    BEGINNING,
    UNHASHED_BYTES,
    Head,
    as_event,
    depth_of,
    encode_data,
    encode_event,
    encode_text,
    hash_of,
    line_form,
    same_data,
    seal,
)

HALF, OTHER_HALF = "\ud83d", "\ude00"
FIELDS: dict[str, Any] = {
    "v": 3,
    "session": "build-7",
    "sequence": 2,
    "event_id": "id-2",
    "type": "noted",
    "data": {"茶": [1, -2.5, None, True]},
    "occurred_at": "2026-11-30T16:00:00.000000Z",
    "causation_id": None,
    "correlation_id": "c",
    "previous_hash": "a" * 64,
    "event_hash": "b" * 64,
}
ALTERED = "data: would not come back as it is; convert what is no JSON value before you append"
NO_JSON = (
    "data: holds a value or a key that JSON does not have; make it of dict, list, str, int, float, bool, None"
)
ENDLESS = "data: holds itself, or is nested too deep; store a flat form of it"


class Word(str):
    __slots__ = ()


def nested(levels: int) -> Any:
    data: Any = 1
    for level in range(levels):
        data = [data] if level % 2 else {"k": data}
    return data


def endless() -> list[Any]:
    data: list[Any] = []
    data.append(data)
    return data


@pytest.mark.parametrize(
    ("data", "raw"),
    [
        (None, b"null"),
        (-0.0, b"-0.0"),
        ("é\u2028\x00\x7f", '"é\u2028\\u0000\x7f"'.encode()),
        ({"茶": [1, True, 1.0, {}]}, '{"茶":[1,true,1.0,{}]}'.encode()),
        (2**64 - 1, b"18446744073709551615"),
        (2**64 + 1, b"18446744073709551617"),
        (HALF, b'"\\ud83d"'),
        (OTHER_HALF + '"' + HALF, b'"\\ude00\\"\\ud83d"'),
        (f"a\n{HALF}é{OTHER_HALF}", '"a\\n\\ud83dé\\ude00"'.encode()),
        ([HALF, 1, None], b'["\\ud83d",1,null]'),
        ({HALF: {"a": 1}, "b": [HALF]}, b'{"\\ud83d":{"a":1},"b":["\\ud83d"]}'),
        ({HALF: HALF}, b'{"\\ud83d":"\\ud83d"}'),
        (
            {"a": "b", "c": 2**64 + 1, "d": -0.0, "e": True},
            b'{"a":"b","c":18446744073709551617,"d":-0.0,"e":true}',
        ),
        ({"a": None, "b": 0.5, "c": "null"}, b'{"a":null,"b":0.5,"c":"null"}'),
    ],
    ids=ascii,
)
def test_a_value_has_one_serialisation_and_comes_back(data: Any, raw: bytes) -> None:
    """The bytes are as written here, and reading them gives the very value, types included, as a copy."""
    stored, copy = encode_data(data, 100)

    assert stored == raw
    assert (repr(copy), copy is data and isinstance(data, (dict, list))) == (repr(data), False)
    assert encode_text(data) == raw


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (float("nan"), RefusedError, ALTERED),
        (float("inf"), RefusedError, ALTERED),
        ({"a": 1, "b": float("nan")}, RefusedError, ALTERED),
        ({"a": float("-inf"), "b": None}, RefusedError, ALTERED),
        ({"a": Word("b")}, RefusedError, NO_JSON),
        ({Word("a"): 1}, RefusedError, NO_JSON),
        ({"a": 10**5_000}, RefusedError, NO_JSON),
        ((1, 2), RefusedError, ALTERED),
        ({"a": b"raw"}, RefusedError, ALTERED),
        ({1: 2}, RefusedError, ALTERED),
        ({None: 2}, RefusedError, NO_JSON),
        (Word("a"), RefusedError, NO_JSON),
        ([HALF, object()], RefusedError, NO_JSON),
        ([HALF, Word("a")], RefusedError, NO_JSON),
        ([HALF, (1,)], RefusedError, ALTERED),
        (endless(), LimitError, ENDLESS),
        (nested(5_000), LimitError, ENDLESS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_be_altered_is_refused_in_these_words(
    data: Any, error: type[RefusedError], words: str
) -> None:
    """A value that JSON alters, lacks or cannot end is refused, and the message says what to do."""
    with pytest.raises(RefusedError) as caught:
        encode_data(data, 100)

    assert (type(caught.value), str(caught.value)) == (error, words)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_the_depth_that_is_allowed_is_the_last(depth: int) -> None:
    """So many levels are stored, one more is refused; siblings, and brackets in strings, are no levels."""
    siblings = [[{}, []]] if depth > 2 else ["[{"]

    assert encode_data(nested(depth), depth)[1] == nested(depth)
    assert encode_data(siblings * 50, depth)[1] == siblings * 50
    empty_lists: Any = []
    for _level in range(depth):
        empty_lists = [empty_lists]
    for deeper in (nested(depth + 1), [nested(depth)] * 2, empty_lists):
        with pytest.raises(LimitError) as caught:
            encode_data(deeper, depth)

        assert str(caught.value) == f"data: is nested deeper than {depth} levels; store a flatter form of it"


@pytest.mark.parametrize(
    ("raw", "levels"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b'{"a":[1,{"b":2}]}', 3),
        (b"[[],[],[[]],[]]", 3),
        (b"[{},{},{}]", 2),
        (b'["[[[[", "\\"[[[", "\\\\"]', 1),
        (b'["a\n[[b",[1]]', 2),
        (b"[" * 100_000, 100_000),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_levels_are_counted_outside_of_strings(raw: bytes, levels: int) -> None:
    """The deepest level counts; what stands in a string does not."""
    assert depth_of(raw) == levels


@pytest.mark.parametrize("data", [{"茶": 1}, [HALF], "x"], ids=ascii)
def test_a_line_is_made_of_its_parts_and_sealed(data: Any) -> None:
    """The form, filled in and sealed, is the serialisation of the event that carries its own hash."""
    event = Event(**{**FIELDS, "data": data})
    head = line_form("build-7") % (
        *(3, 2, b'"id-2"', b'"noted"', encode_text(data), encode_text(FIELDS["occurred_at"])),
        *(b"null", b'"c"', b"a" * 64),
    )
    line, digest = seal(head)

    assert digest == hashlib.sha256(head).hexdigest()
    assert line == encode_event(msgspec.structs.replace(event, event_hash=digest)) + b"\n"
    assert line == head + b',"event_hash":"' + digest.encode() + b'"}\n'
    assert json.loads(line) == {**FIELDS, "data": data, "event_hash": digest}
    assert hash_of(line[:-1]) == digest


def test_the_hash_is_over_every_byte_before_it() -> None:
    """82 bytes of fixed form end a line with its newline; any bit before them alters the hash, none in them does."""
    line = encode_event(Event(**FIELDS))

    assert UNHASHED_BYTES == 81 == len(line) - line.index(b',"event_hash"')
    for at in range(len(line)):
        changed = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
        assert (hash_of(changed) == hash_of(line)) == (at >= len(line) - UNHASHED_BYTES)


def test_the_chain_begins_at_genesis() -> None:
    """Before the first event stands number 0 and the hash of 64 zeros."""
    assert Head(0, "0" * 64) == BEGINNING == Head(0, GENESIS)


@pytest.mark.parametrize("data", [None, HALF, {"a": [1]}], ids=ascii)
def test_a_decoded_line_is_an_event(data: Any) -> None:
    """A line's value with all its keys, in any order, is that event."""
    fields = {**FIELDS, "data": data}

    assert as_event(dict(reversed(fields.items()))) == Event(**fields)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "v",
        list(FIELDS),
        {},
        {key: value for key, value in FIELDS.items() if key != "causation_id"},
        {**FIELDS, "extra": 1},
        {**FIELDS, "v": "3"},
        {**FIELDS, "v": True},
        {**FIELDS, "sequence": 2.5},
        {**FIELDS, "sequence": None},
        {**FIELDS, "event_id": 2},
        {**FIELDS, "causation_id": 1},
        {**FIELDS, "event_hash": None},
    ],
    ids=lambda value: ascii(value)[-30:],
)
def test_what_is_no_record_is_said_to_be_none(value: Any) -> None:
    """A key missing or too many, or a value of another type, is no record; the error quotes nothing."""
    with pytest.raises(ValueError, match=r"^is not a record of this format$") as caught:
        as_event(value)

    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
        ([1, 2], [2, 1], False),
        (1, 1.0, False),
        (1, True, False),
        (0, None, False),
        (HALF, HALF, True),
        ([HALF], [OTHER_HALF], False),
        ({HALF: 1, "b": 2}, {"b": 2, HALF: 1}, True),
    ],
    ids=ascii,
)
def test_the_same_data_is_of_the_same_types(one: Any, other: Any, *, same: bool) -> None:
    """Order of keys does not count; order in a list and the type of a number do."""
    assert same_data(one, other) is same
    assert same_data(other, one) is same
