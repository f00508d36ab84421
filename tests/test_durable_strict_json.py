"""What is strict JSON: the fast judge never says yes where the exact one says no."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solution.durable_log import strict_json
from solution.durable_log.strict_json import (
    MAX_DEPTH,
    MAX_DIGITS,
    NotStrictError,
    judge,
    judge_exactly,
    judge_objects,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
PIECES = st.sampled_from(
    [
        *('{"a":1', '"a":', '"a" :', '"', '\\"', "\\\\", "\\u0022", "{", "}", "[", "]", ",", ":", "1", "-0"),
        *(
            "1e400",
            "NaN",
            "true",
            " ",
            "\t",
            "\r",
            "\x00",
            "\u2028",
            "é",
            '"\\ud800"',
            "18446744073709551616",
        ),
    ]
)


def verdict(judge_it, raw: bytes):
    try:
        judged = judge_it(raw)
    except NotStrictError as fault:
        return fault.kind
    return json.dumps(judged.value), judged.notes


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
@example('{"a" :1,"a":2}')
@example('{"a":1,"a":"\\u0022"}')
@example('{"a":1,"a":"\\u0022\\u0022"}')
@example('{"a\\\\":1,"a\\\\":2}')
@example('{"a":":","a":2}')
@example('{"\\"":1,"\\u0022":2}')
@example('{"x":"\\\\","x":"\\""}')
def test_both_judges_agree_on_anything(text):
    """Fast or exact, the same bytes get the same verdict and the same value."""
    raw = text.encode()

    assert verdict(judge, raw) == verdict(judge_exactly, raw)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.integers(0, 200), st.integers(0, 255))
def test_both_judges_agree_on_damaged_json(value, ascii_only, indent, at, byte):
    """One byte changed in real JSON: still one verdict."""
    raw = bytearray(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace"))
    raw[at % len(raw)] = byte

    assert verdict(judge, bytes(raw)) == verdict(judge_exactly, bytes(raw))


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'{"a":1,"a":2}', "doubled-key"),
        (b'{"a":{"b":1,"\\u0062":2}}', "doubled-key"),
        (b'{"a":NaN}', "nan"),
        (b'{"a":-Infinity}', "nan"),
        (b'{"a":1e400}', "number-overflow"),
        (b'{"a":%b}' % (b"9" * (MAX_DIGITS + 1)), "integer-too-long"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "too-deep"),
        (b"[" * 100_000, "too-deep"),
        (b"\xef\xbb\xbf{}", "bom"),
        (b'{"a":"\xff"}', "utf-8"),
        (b'{"a":"\xed\xa0\x80"}', "encoded-surrogate"),
        (b'{"a":"\t"}', "control-character"),
        (b" \r", "blank-line"),
        (b'{"a":01}', "not-json"),
        (b"{'a':1}", "not-json"),
    ],
)
def test_a_fault_has_its_name(raw, kind):
    """What is wrong is told by kind, and the error holds no byte of the line."""
    with pytest.raises(NotStrictError) as caught:
        judge(raw)

    assert (caught.value.kind, str(caught.value)) == (kind, kind)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_is_odd_and_sound_is_said():
    """An integer past 64 bits and half a surrogate pair count, exactly, and are told."""
    huge, lone = judge(b'{"a":18446744073709551617}'), judge(b'{"a":"\\ud83d"}')

    assert (huge.value["a"], huge.notes) == (2**64 + 1, ("huge-integer",))
    assert (lone.value["a"], lone.notes) == ("\ud83d", ("lone-surrogate",))


@pytest.mark.parametrize(("levels", "sound"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_the_limit_of_depth_is_one_for_both_judges(levels, sound):
    """So many levels are sound and one more is not, fast or exact, alone or among many lines."""
    raw = b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    assert (verdict(judge, raw) == verdict(judge_exactly, raw) != "too-deep") == sound
    assert (judge_objects([b"{}", raw], b"{}\n" + raw) is not None) == sound


@pytest.mark.parametrize(
    "raw", [b'{"a":1,"a":2}', b"[]", b'{"a":"\\u0022","b":1,"b":1}', b'{"a":18446744073709551617}', b"{"]
)
def test_many_lines_at_once_are_refused_for_one(raw):
    """What the exact judge has to see, or would refuse, sends the whole block to it."""
    assert judge_objects([b'{"a":"\\""}', b"{}"], b'{"a":"\\""}\n{}\n') == [{"a": '"'}, {}]
    assert judge_objects([b"{}", raw], b"{}\n" + raw + b"\n") is None


def test_ordinary_lines_never_wait_for_the_exact_judge(monkeypatch):
    """JSON inside JSON, escapes and Chinese text are judged by the fast path alone."""
    monkeypatch.setattr(strict_json, "judge_exactly", None)
    value = {
        "类型": "user",
        "text": 'say "hi"\n\\',
        "nested": json.dumps({"a": json.dumps({"b": ":"})}),
        "n": [1, {}],
    }

    assert judge(json.dumps(value, ensure_ascii=False).encode()).value == value


LEAST, MOST = -(2**63), 2**64 - 1


@pytest.mark.parametrize(
    ("raw", "kind", "offset"),
    [
        (b"\xef\xbb\xbf{}", "bom", 0),
        ('{"é":"'.encode() + b'\xff"}', "utf-8", 7),
        ('{"é":"'.encode() + b'\xed\xa0\x80"}', "encoded-surrogate", 7),
        ('{"é":"'.encode() + b'\xed\x9f\x41"}', "utf-8", 7),
        ('{"é":"a\tb"}'.encode(), "control-character", 8),
        (' \t{"é":01}'.encode(), "not-json", 9),
        ('{"é":1} x'.encode(), "not-json", 8),
        (b" \t\r[1 2]", "not-json", 6),
        (b'{"\\ud83d":"\xc3\xa9" 1}', "not-json", 15),
        (b" \t\r", "blank-line", 0),
        (b"", "blank-line", 0),
        (b"\x0c", "not-json", 0),
        (b"[]\x0b", "not-json", 2),
        (b"nul", "not-json", 0),
        (b"[Infinity]", "nan", 0),
        (b"[-1e999]", "number-overflow", 0),
        (b'[{"a":1,"b":2,"a":1}]', "doubled-key", 0),
    ],
)
@pytest.mark.parametrize("judge_it", [judge, judge_exactly])
def test_a_fault_has_its_place(judge_it, raw, kind, offset):
    """The offset counts bytes of the line, spaces and letters of many bytes before it included."""
    with pytest.raises(NotStrictError) as caught:
        judge_it(raw)

    assert (caught.value.kind, caught.value.offset) == (kind, offset)
    assert caught.value.__cause__ is None


def test_the_place_in_a_text_that_is_no_utf_8():
    """Half a surrogate pair, as a decoder may leave one, counts the three bytes that it would take."""
    with pytest.raises(NotStrictError) as caught:
        strict_json.parse_exactly('["\ud800" 1]')

    assert (caught.value.kind, caught.value.offset) == ("not-json", 7)


@pytest.mark.parametrize(
    ("value", "notes"),
    [
        (None, ()),
        ([LEAST, MOST, 1e300, True], ()),
        (LEAST - 1, ("huge-integer",)),
        ({"a": [{"b": MOST + 1}]}, ("huge-integer",)),
        ({"\udfff": 1}, ("lone-surrogate",)),
        ([["é\ud800"], MOST + 1, "é", MOST + 2], ("huge-integer", "lone-surrogate")),
        ("\ud7ff\ue000", ()),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("judge_it", [judge, judge_exactly])
def test_what_is_odd_is_found_wherever_it_stands(judge_it, value, notes):
    """In a key, a list, an object: the border is 64 bits, exactly; ordinary values are told as they are."""
    judged = judge_it(b" %b\t" % json.dumps(value).encode())

    assert (judged.value, type(judged.value), judged.notes) == (value, type(value), notes)


def brackets(levels: int, pair: bytes = b"[]") -> bytes:
    return pair[:1] * levels + pair[1:] * levels


@pytest.mark.parametrize(
    "raw",
    [
        brackets(MAX_DEPTH),
        b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH,
        b"[" + b"[]," * MAX_DEPTH + b"{}]",
        b"[[]," + brackets(MAX_DEPTH - 1) + b"]",
        b'["' + b"[{" * MAX_DEPTH + b'\\"[]"]',
        b"[" + b"9" * MAX_DIGITS + b"]",
    ],
    ids=lambda raw: ascii(raw)[:12],
)
def test_the_deepest_and_longest_that_is_allowed(raw):
    """So many levels, and so many digits, are strict JSON: siblings and brackets in strings are no levels."""
    assert judge(raw) == judge_exactly(raw)
    assert judge(raw).value == json.loads(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"[[]," + brackets(MAX_DEPTH) + b"]",
        b"[" + b"[]," * MAX_DEPTH + brackets(MAX_DEPTH) + b"]",
        b"[" * 300 + b"[]," + b"[" * (MAX_DEPTH - 299) + b"]" * (MAX_DEPTH + 1),
    ],
    ids=lambda raw: ascii(raw)[:12],
)
def test_siblings_hide_no_depth(raw):
    """One level too many is found behind as many closed ones as you like."""
    for judge_it in (judge, judge_exactly):
        with pytest.raises(NotStrictError, match="too-deep"):
            judge_it(raw)


@pytest.mark.parametrize(
    ("lines", "objects"),
    [
        ([b'{"a":[1,"x"]}', b'{"a":{"b":"\\n"}}'], [{"a": [1, "x"]}, {"a": {"b": "\n"}}]),
        ([b"{}"], [{}]),
        ([b'{"q":"a\\"b"}'], [{"q": 'a"b'}]),
        ([b'{"m":%d}' % MOST, b'{"l":%d}' % LEAST], [{"m": MOST}, {"l": LEAST}]),
        ([], None),
        ([b"{}", b"[]"], None),
        ([b"{}", b"1"], None),
        ([b"[]"], None),
        ([b"{}", b"{"], None),
        ([b'{"a":1}', b'{"a":1,"a":2}'], None),
        ([b'{"a":{"b":1,"b":"\\u0022"}}'], None),
        ([b'{"a":[%d]}' % (MOST + 1)], None),
        ([b'{"a":[%d]}' % (LEAST - 1)], None),
        ([b'{"a":"\xff"}'], None),
        ([b'{"a":' + brackets(MAX_DEPTH) + b"}"], None),
        ([brackets(100_000)], None),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_many_objects_are_judged_at_once_or_not_at_all(lines, objects):
    """All of them, or None as soon as one needs a closer look; equal to what each gives by itself."""
    assert strict_json.judge_objects(lines, b"\n".join(lines)) == objects
    if objects is not None:
        assert [judge(line).value for line in lines] == objects
