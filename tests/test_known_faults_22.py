"""Faults seen in the field in logs like ours, as tests of the lesson's store.

One test for each reported fault, named by its number and titled by its kind. The report was one sample of its kind;
the test covers the kind: every cut, every place, every form.

Left to `durable_log`, because this tier does not have the part they are about:

    37 51 53       streaming reads and followers
    62 67 68 69    a second process, unknown types, segments, a bounded queue
    70 71 72       syncs and what a failed one means
    74 75 76 77    rotation, compaction, event ids
    79 80 81 83 84 the hash chain, manifest, repair command, schema versions
    85 to 91       session folders, ids, redaction
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from solution.lesson_22 import CorruptLogError, JsonlSessionStore, SessionEvent
from solution.lesson_22.session_store import scan
from tests.child_process import KIT, answer_of, run_child

NL = b"\n"
NO_NUMBERS = ["true", "false", "null", '"1"', '""', "[1]", "{}", "NaN", "Infinity"]
NOT_EVENTS = ['"x"', "null", "true", "false", "0", "2", "-1.5", '""', "[]", "[1]", "{}", '[{"sequence":2}]']
LONE_SURROGATES = ["\\udcb2", "\\ud83d", "\\ude00\\ud83d", "a\\ud800b"]
BLANKS = [b"", b" ", b"\t", b"\r", b" \t\r "]


def record(sequence: object, data: str = "{}") -> bytes:
    return f'{{"sequence":{sequence},"type":"t","data":{data}}}'.encode()


def log_of(*lines: bytes) -> bytes:
    return b"".join(line + NL for line in lines)


E1, E2, E3 = record(1), record(2), record(3)
STORY = [record(1, '{"m":"茶 é 🍵"}'), record(2, '{"m":"\\u2615"}'), record(3, '{"m":[1,-2.5e3,null]}')]


def read_bytes(folder: Path, raw: bytes) -> list[SessionEvent]:
    """Return what the store reads from a log that holds `raw`."""
    path = folder / "log.jsonl"
    path.write_bytes(raw)
    return asyncio.run(JsonlSessionStore(path).read())


def refused_line(folder: Path, raw: bytes) -> int:
    """Return the line at which the store refuses a log that holds `raw`."""
    with pytest.raises(CorruptLogError) as caught:
        read_bytes(folder, raw)
    return caught.value.line


def sequences(events: list[SessionEvent]) -> list[int]:
    return [event.sequence for event in events]


def append(path: Path, type_: Any, data: Any) -> SessionEvent:
    """Append by a new store, as after a restart."""

    async def one() -> SessionEvent:
        return await JsonlSessionStore(path).append(type_, data)

    return asyncio.run(one())


def append_after(folder: Path, raw: bytes) -> tuple[int, bytes, dict[str, bytes]]:
    """Append to a log that holds `raw`: the number given, the log's bytes, and what else lies in the folder."""
    for old in folder.iterdir():
        old.unlink()
    path = folder / "log.jsonl"
    path.write_bytes(raw)
    given = append(path, "t", {}).sequence
    others = {other.name: other.read_bytes() for other in folder.iterdir() if other != path}
    return given, path.read_bytes(), others


# --- Reading: bytes that are no record ---


def test_row_1_nul_run_inside_a_log(tmp_path):
    """A run of NUL bytes, at any place before the end of the last line, is refused at its line."""
    raw = log_of(E1, E2, E3)
    for size, offset in itertools.product((1, 8, 4096), range(len(raw))):
        damaged = raw[:offset] + bytes(size) + raw[offset:]

        assert refused_line(tmp_path, damaged) == raw[:offset].count(NL) + 1


@pytest.mark.parametrize("size", [1, 8, 512, 4096, 70_000])
def test_row_3_nul_tail_after_a_power_cut(tmp_path, size):
    """A NUL tail of any length is torn: what stands before it is read, and an append keeps it aside and goes on."""
    raw = log_of(E1) + bytes(size)

    assert sequences(read_bytes(tmp_path, raw)) == [1]
    assert append_after(tmp_path, raw) == (2, log_of(E1, E2), {f"log.jsonl.torn-{len(E1) + 1}": bytes(size)})


@pytest.mark.parametrize("separator", ["\u2028", "\u2029"])
def test_row_4_unicode_line_separators_are_data(tmp_path, separator):
    """A raw U+2028 or U+2029 in a string comes back as it is, whoever wrote it."""
    text = f"a{separator}b"

    assert read_bytes(tmp_path, log_of(record(1, f'{{"m":"{text}"}}')))[0].data == {"m": text}
    assert append(tmp_path / "own.jsonl", "t", {"m": text}).data == {"m": text}
    assert asyncio.run(JsonlSessionStore(tmp_path / "own.jsonl").read())[0].data == {"m": text}


@pytest.mark.parametrize("boundary", "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
def test_row_5_only_the_newline_byte_ends_a_line(tmp_path, boundary):
    """Every character at which `splitlines` would cut goes through the log unharmed, in any position."""
    for text in (boundary, boundary + "b", "a" + boundary, f"a{boundary}b"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        append(path, "t", {text: [text]})
        append(path, "t", None)

        assert [event.data for event in asyncio.run(JsonlSessionStore(path).read())] == [{text: [text]}, None]


@pytest.mark.parametrize("control", [chr(code) for code in range(0x20)])
def test_row_7_raw_control_characters_inside_a_string(tmp_path, control):
    """Written by others raw, a control character is refused at its line; written by us, a record has one newline."""
    raw = log_of(E1) + record(2, f'{{"m":"a{control}b"}}') + NL + log_of(E3)

    assert refused_line(tmp_path, raw) == 2
    path = tmp_path / "own.jsonl"
    append(path, "t", {"m": f"a{control}b", control: control})
    assert path.read_bytes().count(NL) == 1
    assert asyncio.run(JsonlSessionStore(path).read())[0].data == {"m": f"a{control}b", control: control}


@pytest.mark.parametrize("line", [1, 2, 3])
def test_row_8_byte_order_mark(tmp_path, line):
    """A byte order mark is refused wherever a record begins."""
    lines = [E1, E2, E3]
    lines[line - 1] = b"\xef\xbb\xbf" + lines[line - 1]

    assert refused_line(tmp_path, log_of(*lines)) == line


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_row_8_other_unicode_encodings(tmp_path, encoding):
    """What a JSON library fed with bytes would accept as UTF-16 or UTF-32 is refused."""
    assert refused_line(tmp_path, log_of(E1, E2).decode().encode(encoding)) == 1


@pytest.mark.parametrize("endings", list(itertools.product([b"\n", b"\r\n"], repeat=3)))
def test_row_11_carriage_returns_from_a_checkout(tmp_path, endings):
    """Any mixture of LF and CRLF reads the same, and an append goes on behind it."""
    raw = b"".join(line + end for line, end in zip((E1, E2, E3), endings, strict=True))

    assert sequences(read_bytes(tmp_path, raw)) == [1, 2, 3]
    assert append_after(tmp_path, raw) == (4, raw + log_of(record(4)), {})


@pytest.mark.parametrize("blank", BLANKS)
def test_row_12_blank_lines(tmp_path, blank):
    """A blank line, of whatever white space, is refused at its line: first, in the middle, last."""
    for at in range(4):
        lines = [E1, E2, E3]
        lines.insert(at, blank)

        assert refused_line(tmp_path, log_of(*lines)) == at + 1


def test_row_13_lines_are_counted_physically(tmp_path):
    """The line in the error is the physical one, from 1, for a bad line at any place."""
    good = [record(number) for number in range(1, 31)]
    for at in range(30):
        assert refused_line(tmp_path, log_of(*good[:at], b"x", *good[at:])) == at + 1


@pytest.mark.parametrize("empty", ["", "null", "false", "0", '""', "[]", "{}"])
def test_row_14_an_empty_item_is_not_the_end(tmp_path, empty):
    """An item that counts as false in Python ends no reading early: it is refused at its line."""
    for at in range(4):
        lines = [E1, E2, E3]
        lines.insert(at, empty.encode())

        assert refused_line(tmp_path, log_of(*lines)) == at + 1


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" + "0" * 400 + ".0"])
@pytest.mark.parametrize("place", ["@", '{"x":@}', "[1,@]", '{"x":{"y":[[@]]}}'])
def test_row_16_numbers_that_are_not_finite(tmp_path, token, place):
    """NaN, the infinities, and what overflows into one are refused, however deep they stand."""
    assert refused_line(tmp_path, log_of(E1, record(2, place.replace("@", token)), E3)) == 2


@pytest.mark.parametrize("escaped", LONE_SURROGATES)
def test_row_19_escaped_lone_surrogates(tmp_path, escaped):
    """Half of a surrogate pair, written as an escape, is read as it is and stands in nobody's way."""
    raw = log_of(record(1, f'{{"m":"{escaped}"}}'))

    assert read_bytes(tmp_path, raw)[0].data == {"m": json.loads(f'"{escaped}"')}
    assert append_after(tmp_path, raw)[:2] == (2, raw + log_of(E2))


@pytest.mark.parametrize(
    "line",
    [
        '{"sequence":9,"sequence":1,"type":"t","data":{}}',
        '{"sequence":1,"type":"t","type":"t","data":{}}',
        '{"sequence":1,"type":"t","data":{},"data":{}}',
        '{"sequence":1,"type":"t","data":{"a":1,"a":1}}',
        '{"sequence":1,"type":"t","data":[[{"a":{"b":1,"c":2,"b":1}}]]}',
        '{"sequence":1,"type":"t","data":{"a":1,"\\u0061":2}}',
        '{"sequence":1,"type":"t","data":{"":1,"":2}}',
    ],
)
def test_row_22_doubled_keys(tmp_path, line):
    """A key that stands twice in one object, at any depth and however it is spelt, is refused."""
    assert refused_line(tmp_path, log_of(line.encode(), E2)) == 1


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_row_23_what_is_no_number_is_no_sequence(tmp_path, value):
    """True, null, text and containers are no sequence, although True equals 1 in Python."""
    assert refused_line(tmp_path, log_of(record(value), E2)) == 1


@pytest.mark.parametrize("at", [1, 2, 3])
def test_row_24_a_float_is_no_sequence(tmp_path, at):
    """A float that equals the number that is due is refused all the same."""
    lines = [E1, E2, E3]
    lines[at - 1] = record(f"{at}.0")

    assert refused_line(tmp_path, log_of(*lines)) == at


@pytest.mark.parametrize("value", ["1e0", "1E0", "1E+0", "1e-0", "10e-1", "0.1e1"])
def test_row_25_exponent_forms_are_no_sequence(tmp_path, value):
    """Every way of writing 1 with an exponent is refused."""
    assert refused_line(tmp_path, log_of(record(value))) == 1


@pytest.mark.parametrize("power", [53, 63, 64, 1000])
def test_row_27_large_integers_stay_exact(tmp_path, power):
    """Integers beyond what a double or a machine word holds come back exactly."""
    numbers = [sign * (2**power + off) for sign in (1, -1) for off in (-1, 0, 1)]

    assert read_bytes(tmp_path, log_of(record(1, json.dumps(numbers))))[0].data == numbers
    assert append(tmp_path / "own.jsonl", "t", numbers).data == numbers


def nested(levels: int, kind: str) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value] if kind == "[" else {"a": value}
    return value


@pytest.mark.parametrize("kind", ["[", "{"])
@pytest.mark.parametrize("levels", [101, 500, 5_000, 100_000])
def test_row_28_deep_nesting(tmp_path, kind, levels):
    """Too deep is an error with its line when read, a ValueError when appended; the next append works."""
    opening, closing = ("[", "]") if kind == "[" else ('{"a":', "}")
    for data in (opening * levels + "0" + closing * levels, opening * levels):
        assert refused_line(tmp_path, log_of(E1, record(2, data))) == 2
    path = tmp_path / "own.jsonl"
    with pytest.raises(ValueError, match="nest"):
        append(path, "t", nested(levels, kind))
    assert not path.exists()
    assert append(path, "t", nested(100, kind)).sequence == 1
    assert sequences(asyncio.run(JsonlSessionStore(path).read())) == [1]


@pytest.mark.parametrize("value", NOT_EVENTS)
def test_row_29_json_that_is_no_event(tmp_path, value):
    """Legal JSON that is no event is refused at its line, also when its newline is missing."""
    for at in range(3):
        lines = [E1, E2]
        lines.insert(at, value.encode())

        assert refused_line(tmp_path, log_of(*lines)) == at + 1
    assert refused_line(tmp_path, log_of(E1) + value.encode()) == 2


def test_row_31_the_locale_does_not_matter(tmp_path):
    """Under an ASCII locale the same text is written and read."""
    source = """
import asyncio, locale
from lesson_22 import JsonlSessionStore
async def both():
    store = JsonlSessionStore(folder / "log.jsonl")
    await store.append("t", "\\u201d \\u8336 \\U0001f375")
    return [event.data for event in await store.read()]
answer([locale.getencoding(), asyncio.run(both())])
"""
    finished = run_child(
        source,
        tmp_path,
        options=("-X", "utf8=0"),
        imports=(KIT / "solution",),
        environment={**os.environ, "LC_ALL": "C"},
    )

    encoding, texts = answer_of(finished)
    assert encoding.lower() not in ("utf-8", "utf8")
    assert texts == ["” 茶 🍵"]
    assert (tmp_path / "log.jsonl").read_bytes() == record(1, '"” 茶 🍵"') + NL


def test_row_32_a_bad_line_in_the_middle_is_no_torn_tail(tmp_path):
    """A fragment with its newline is refused at its line: cut at every byte, in the middle and at the end."""
    for cut in range(1, len(E2)):
        assert refused_line(tmp_path, log_of(E1, E2[:cut], E2)) == 2
        assert refused_line(tmp_path, log_of(E1, E2[:cut])) == 2


def test_row_33_what_stands_before_the_bad_line_is_known(tmp_path):
    """The line in the error says how much is good: everything before it is sound, to the byte."""
    good = STORY
    for at in range(4):
        lines = [*good[:at], b'{"seq', *good[at:]]
        line = refused_line(tmp_path, log_of(*lines))
        found = scan(log_of(*lines[: line - 1]), tmp_path)

        assert (len(found.events), found.good_bytes, found.torn) == (at, len(log_of(*good[:at])), b"")


def test_row_39_a_cut_inside_a_character(tmp_path):
    """A write cut inside a character of two, three or four bytes is a torn tail."""
    for character in ("é", "ß", "茶", "€", "🍵", "\U0010ffff"):
        encoded = character.encode()
        for cut in range(1, len(encoded)):
            raw = log_of(E1) + b'{"sequence":2,"type":"t","data":{"m":"' + encoded[:cut]

            assert sequences(read_bytes(tmp_path, raw)) == [1]


# --- Reading: a file that cannot be read ---


UNPRIVILEGED = """
import asyncio, os
from lesson_22 import JsonlSessionStore
if os.getuid() == 0:  # root reads everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
def outcome(work):
    try:
        return [event.sequence for event in asyncio.run(work)]
    except Exception as error:
        return type(error).__name__
async def append(path):
    return [await JsonlSessionStore(path).append("t", {})]
paths = [folder / name for name in ("open.jsonl", "closed.jsonl", "closed/log.jsonl", "new.jsonl", "fixed.jsonl")]
answer([[outcome(JsonlSessionStore(path).read()) for path in paths], [outcome(append(path)) for path in paths]])
"""


def test_row_35_no_permission_is_no_empty_history():
    """A file or folder that may not be read is a PermissionError, for read and append, never an empty history."""
    with tempfile.TemporaryDirectory() as name:  # below pytest's own folder another user could reach nothing
        folder = Path(name)
        for log, mode in (("open", 0o666), ("closed", 0), ("fixed", 0o444)):
            (folder / f"{log}.jsonl").write_bytes(log_of(E1))
            (folder / f"{log}.jsonl").chmod(mode)
        (folder / "closed").mkdir(mode=0)
        folder.chmod(0o555)
        reads, appends = answer_of(run_child(UNPRIVILEGED, folder, imports=(KIT / "solution",)))
        folder.chmod(0o755)
        (folder / "closed").chmod(0o700)

        denied = "PermissionError"
        assert reads == [[1], denied, denied, [], [1]]
        assert appends == [[2], denied, denied, denied, denied]
        assert (folder / "closed.jsonl").read_bytes() == (folder / "fixed.jsonl").read_bytes() == log_of(E1)


STORE = """
import asyncio, json, os, resource
from lesson_22 import JsonlSessionStore
path = folder / "log.jsonl"
async def outcome(called):
    try:
        return (await called).sequence
    except OSError as error:
        return error.strerror
def fresh(content):
    for old in folder.iterdir():
        old.unlink()
    path.write_bytes(content)
def left():
    return {old.name: old.read_bytes().decode() for old in folder.iterdir()}
def numbers():
    return [event.sequence for event in asyncio.run(JsonlSessionStore(path).read())]
E1, E2 = ('{"sequence":%d,"type":"t","data":{}}\\n' % n for n in (1, 2))
E1, E2 = E1.encode(), E2.encode()
"""


def in_child(folder: Path, source: str) -> Any:
    """Run `source` after STORE in a child with the file layer; return its answer."""
    return answer_of(run_child(STORE + source, folder, imports=(KIT / "solution",)))


def test_row_36_a_read_error_reaches_the_caller(tmp_path):
    """Whichever call of a read fails, the error comes out of `read` and `append`, and the log stays as it is."""
    source = """
content = b"".join(b'{"sequence":%d,"type":"t","data":"%s"}\\n' % (n, b"x" * 1_000_000) for n in (1, 2, 3, 4))
fresh(content)
outcomes = []
async def read(store):
    try:
        return len(await store.read())
    except OSError as error:
        return error.strerror
async def append(store):
    return await outcome(store.append("t", {}))
for work in (read, append):
    layer.arm([], root=folder)
    asyncio.run(work(JsonlSessionStore(path)))
    calls = [entry["op"] for entry in layer.log()]
    fresh(content)
    faults = [(op, nth) for op in ("open", "read") for nth in range(1, calls.count(op) + 1)]
    for op, nth in faults:
        layer.arm([{"op": op, "nth": nth, "do": "EIO"}], root=folder)
        outcomes.append([work.__name__, op, asyncio.run(work(JsonlSessionStore(path)))])
    layer.disarm()
answer([outcomes, path.read_bytes() == content, numbers()])
"""
    outcomes, untouched, numbers = in_child(tmp_path, source)

    assert {(work, op) for work, op, _ in outcomes} == set(
        itertools.product(("read", "append"), ("open", "read"))
    )
    assert len(outcomes) >= 2 * (1 + 2)  # one open, and the bytes come in more than one read
    assert [result for *_, result in outcomes] == ["Input/output error"] * len(outcomes)
    assert (untouched, numbers) == (True, [1, 2, 3, 4])


# --- Writing: what cannot be a record ---


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "wrap", [lambda x: x, lambda x: {"x": x}, lambda x: [1, (x,)], lambda x: {"a": [{"b": x}]}]
)
def test_row_17_numbers_that_are_not_finite_are_not_written(tmp_path, number, wrap):
    """NaN and the infinities are refused at the call, however deep; no byte is written, no number burned."""
    path = tmp_path / "log.jsonl"
    with pytest.raises(ValueError, match="data"):
        append(path, "t", wrap(float(number)))

    assert not path.exists()
    assert append(path, "t", {}).sequence == 1


@pytest.mark.parametrize("escaped", LONE_SURROGATES)
def test_row_20_lone_surrogates_are_not_written(tmp_path, escaped):
    """Half of a surrogate pair in type, key or value is refused before the file is touched; the number is kept."""
    path, half = tmp_path / "log.jsonl", json.loads(f'"{escaped}"')
    append(path, "t", {})
    before = path.read_bytes()
    for type_, data in (("t", half), ("t", {"m": [half]}), ("t", {half: 1}), (half, {})):
        with pytest.raises(ValueError, match="surrogate"):
            append(path, type_, data)

        assert path.read_bytes() == before
    assert append(path, "t", {}).sequence == 2


# --- The tail: what an interrupted write leaves ---


def test_row_40_an_append_after_a_cut_character(tmp_path):
    """An append behind half a character is not swallowed: the event is there, and the fragment is kept."""
    for character in ("é", "茶", "🍵"):
        for cut in range(1, len(character.encode())):
            fragment = b'{"sequence":2,"type":"t","data":{"m":"' + character.encode()[:cut]
            expected = (2, log_of(E1, E2), {f"log.jsonl.torn-{len(E1) + 1}": fragment})

            assert append_after(tmp_path, log_of(E1) + fragment) == expected


def test_row_41_a_full_disk_leaves_no_fragment(tmp_path):
    """When the real limit lets any part of a record through, the part is taken back; after that the number is free."""
    source = """
outcomes = []
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
async def three(room):
    store = JsonlSessionStore(path)
    first = await outcome(store.append("t", {}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(E1) + room, hard))
    second = await outcome(store.append("t", {}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    size = path.stat().st_size
    return [first, second, size - len(E1), await outcome(store.append("t", {}))]
for room in range(len(E2)):
    path.unlink(missing_ok=True)
    outcomes.append([*asyncio.run(three(room)), left() == {path.name: (E1 + E2).decode()}, numbers()])
answer(outcomes)
"""
    outcomes = in_child(tmp_path, source)

    assert outcomes == [[1, "File too large", 0, 2, True, [1, 2]]] * (len(E2) + 1)


def test_row_41_a_fragment_that_could_not_be_taken_back(tmp_path):
    """When even taking back fails, the next append, by this store or a new one, finds a torn tail and mends it."""
    source = """
outcomes = []
async def two(size, restart):
    fresh(E1)
    store = JsonlSessionStore(path)
    layer.arm([
        {"op": "write", "match": "*.jsonl", "do": f"short:{size}"},
        {"op": "write", "match": "*.jsonl", "nth": 2, "do": "ENOSPC"},
        {"op": "ftruncate", "do": "EIO"},
    ], root=folder)
    first = await outcome(store.append("t", {}))
    layer.disarm()
    fragment = path.read_bytes() == E1 + E2[:size]
    store = JsonlSessionStore(path) if restart else store
    return [first, fragment, await outcome(store.append("t", {}))]
for size in range(1, len(E2) - 1):
    for restart in (False, True):
        outcomes.append(asyncio.run(two(size, restart)))
        kept = {path.name: (E1 + E2).decode(), f"log.jsonl.torn-{len(E1)}": E2[:size].decode()}
        outcomes[-1] += [left() == kept, numbers()]
answer(outcomes)
"""
    outcomes = in_child(tmp_path, source)

    assert outcomes == [["No space left on device", True, 2, True, [1, 2]]] * 2 * (len(E2) - 1)


def test_row_42_an_append_never_glues(tmp_path):
    """After a tear at every byte of every record: the torn bytes are kept aside, the new event has its own line."""
    raw = log_of(*STORY)
    for cut in range(len(raw)):
        whole = raw[:cut].count(NL)
        start = len(log_of(*STORY[:whole]))
        complete = cut == start + len(STORY[whole])  # only the newline is missing
        torn = b"" if complete else raw[start:cut]
        given, left, others = append_after(tmp_path, raw[:cut])

        assert given == whole + complete + 1
        assert left == log_of(*STORY[: whole + complete], record(given))
        assert others == ({f"log.jsonl.torn-{start}": torn} if torn else {})


def test_row_42_torn_bytes_are_never_overwritten(tmp_path):
    """Tears at the same offset, one after the other, are each kept under a name of their own."""
    path = tmp_path / "log.jsonl"
    for fragment in (b'{"a', b'{"b', b'{"c'):
        path.write_bytes(log_of(E1) + fragment)
        append(path, "t", {})

    name = f"log.jsonl.torn-{len(E1) + 1}"
    kept = {other.name: other.read_bytes() for other in tmp_path.iterdir() if other != path}
    assert kept == {name: b'{"a', f"{name}-2": b'{"b', f"{name}-3": b'{"c'}


def test_row_45_a_torn_last_record_blocks_nothing(tmp_path):
    """Cut at every byte, a log reads as the records that are complete before the cut."""
    raw = log_of(*STORY)
    for cut in range(len(raw) + 1):
        whole = sum(cut >= len(log_of(*STORY[:number])) - 1 for number in (1, 2, 3))

        assert sequences(read_bytes(tmp_path, raw[:cut])) == list(range(1, whole + 1))


@pytest.mark.parametrize("trailing", [b"", b"\r", b" ", b"\t\r"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_row_47_a_missing_final_newline(tmp_path, trailing, count):
    """A whole last record without its newline counts, and gets its newline before the next one."""
    raw = log_of(*STORY[:count])[:-1] + trailing

    assert sequences(read_bytes(tmp_path, raw)) == list(range(1, count + 1))
    assert append_after(tmp_path, raw) == (count + 1, raw + NL + log_of(record(count + 1)), {})


def test_row_48_a_cut_record_is_not_a_clean_end():
    """A lone fragment of any length is no event, and the report counts its bytes."""
    for cut in range(1, len(STORY[0])):
        found = scan(STORY[0][:cut], Path("log.jsonl"))

        assert (found.events, found.good_bytes, len(found.torn)) == ((), 0, cut)


@pytest.mark.parametrize("prepare", [lambda path: path.touch(), lambda path: None])
@pytest.mark.parametrize("place", ["log.jsonl", "deep/er/log.jsonl"])
def test_row_49_nothing_yet_is_an_empty_history(tmp_path, prepare, place):
    """A missing file, a missing folder and a file of zero bytes read as no events, and the first append is 1."""
    path = tmp_path / place
    if place == "log.jsonl":
        prepare(path)

    assert asyncio.run(JsonlSessionStore(path).read()) == []
    assert append(path, "t", {}).sequence == 1
    assert path.read_bytes() == log_of(E1)


def test_row_50_nothing_is_cut_before_its_copy_is_safe(tmp_path):
    """Whichever step of keeping the torn bytes fails, the log is untouched, and the next append succeeds."""
    source = """
torn = b'{"sequence":2,"ty'
steps = [("open", "EACCES"), ("write", "ENOSPC"), ("write", "half,ENOSPC"), ("write", "full,EIO"), ("fsync", "EIO")]
rules = [{"op": op, "match": "*.torn-*", "do": do, "times": None} for op, do in steps]
rules.append({"op": "fsync", "match": folder.name, "do": "EIO"})
outcomes = []
for rule in rules:
    fresh(E1 + torn)
    layer.arm([rule], root=folder.parent)
    store = JsonlSessionStore(path)
    async def fail_then_succeed():
        failed = await outcome(store.append("t", {}))
        layer.disarm()
        untouched = path.read_bytes() == E1 + torn
        return [isinstance(failed, str), untouched, await outcome(store.append("t", {}))]
    outcomes.append(asyncio.run(fail_then_succeed()))
    outcomes[-1] += [numbers(), torn.decode() in left().values()]
answer(outcomes)
"""
    folder = tmp_path / "session"
    folder.mkdir()

    assert in_child(folder, source) == [[True, True, 2, [1, 2], True]] * 6


def test_row_50_killed_at_any_step_of_mending_nothing_is_lost(tmp_path):
    """Killed at each operation of an append to a torn log: the torn bytes are in the log or beside it, and it reads."""
    torn = b'{"sequence":2,"ty'
    source = """
layer.arm([{{"op": "change", "nth": {nth}, "do": "half,kill"}}], root=folder.parent)
async def one():
    return await outcome(JsonlSessionStore(path).append("t", {{}}))
answer(asyncio.run(one()))
"""
    for nth in itertools.count(1):
        folder = tmp_path / str(nth)
        folder.mkdir()
        path = folder / "log.jsonl"
        path.write_bytes(log_of(E1) + torn)
        finished = run_child(STORE + source.format(nth=nth), folder, imports=(KIT / "solution",))
        kept = [other.read_bytes() for other in folder.iterdir()]

        assert torn in kept or log_of(E1) + torn in kept
        assert sequences(asyncio.run(JsonlSessionStore(path).read())) in ([1], [1, 2])
        append(path, "t", {})
        assert sequences(asyncio.run(JsonlSessionStore(path).read()))[:2] == [1, 2]
        if finished.returncode == 0:
            break
        assert finished.returncode == -signal.SIGKILL, finished.stderr
    assert nth > 6  # open log, open copy, write, sync, sync folder, cut, sync, write


# --- Appending: numbers, order, failures ---


class Strange:
    """Something that JSON has no word for."""


def cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


UNSTORABLE = [
    ("t", {1, 2}),
    ("t", b"bytes"),
    ("t", Strange()),
    ("t", {"x": Strange()}),
    ("t", cycle()),
    ("t", math.nan),
    ("t", "\ud800"),
    ("t", {1: "a", "1": "b"}),
    ("t", {(1, 2): "tuple key"}),
    ("t", 10**5000),
    ("t", nested(200, "[")),
    ("", {}),
    ("  \n", {}),
    (None, {}),
    (7, {}),
]


@pytest.mark.parametrize(("type_", "data"), UNSTORABLE, ids=range(len(UNSTORABLE)))
def test_row_55_one_refusal_spoils_nothing(tmp_path, type_, data):
    """Between two good appends, one that cannot be stored fails alone: the others get 1 and 2."""
    path = tmp_path / "log.jsonl"

    async def three() -> list[int]:
        store = JsonlSessionStore(path)
        first = store.append("t", {})
        with pytest.raises((ValueError, TypeError)):
            await store.append(type_, data)
        second = store.append("t", {})
        return [(await first).sequence, (await second).sequence]

    assert asyncio.run(three()) == [1, 2]
    assert path.read_bytes() == log_of(E1, E2)


def test_row_56_a_failed_write_burns_no_number(tmp_path):
    """However the first write fails, and whatever part of it went down, the second append gets the same number."""
    source = """
outcomes = []
for start, ends in ((b"", ("ENOSPC", "EIO", "EDQUOT", "EFBIG", "EINTR")), (E1, ("ENOSPC", "EIO"))):
    for part in ("none", "short:1", "half", "short:30", "full"):
        for end in ends:
            fresh(start)
            async def two():
                store = JsonlSessionStore(path)
                layer.arm([{"op": "write", "do": f"{part},{end}"}], root=folder)
                failed = await outcome(store.append("t", {}))
                return [isinstance(failed, str), await outcome(store.append("t", {}))]
            outcomes.append([*asyncio.run(two()), left() == {path.name: (E1 + E2 if start else E1).decode()}])
answer(outcomes)
"""
    assert in_child(tmp_path, source) == [[True, 1, True]] * 25 + [[True, 2, True]] * 10


def test_row_57_a_failure_among_concurrent_appends_leaves_no_gap(tmp_path):
    """Of five appends at once any one, or any two, may fail: the rest are 1, 2, 3 …, and a new store goes on."""
    source = """
import itertools
outcomes = []
for failing in [*itertools.combinations(range(5), 1), *itertools.combinations(range(5), 2)]:
    for part in ("none", "half", "full"):
        path.unlink(missing_ok=True)
        rules = [{"op": "write", "nth": at + 1, "do": f"{part},ENOSPC"} for at in failing]
        layer.arm(rules, root=folder)
        async def five():
            store = JsonlSessionStore(path)
            return await asyncio.gather(*[outcome(store.append("t", {})) for _ in range(5)])
        results = asyncio.run(five())
        layer.disarm()
        stored = numbers()
        async def one():
            return await outcome(JsonlSessionStore(path).append("t", {}))
        good = [result for result in results if isinstance(result, int)]
        failed = tuple(at for at, result in enumerate(results) if isinstance(result, str))
        outcomes.append([failed == failing, good == stored == list(range(1, 6 - len(failing))), asyncio.run(one())])
answer(outcomes)
"""
    outcomes = in_child(tmp_path, source)

    assert outcomes == [[True, True, 5]] * 5 * 3 + [[True, True, 4]] * 10 * 3


def test_row_59_short_writes_are_continued(tmp_path):
    """A write that takes only a part, of any length, once or byte by byte, still gives one whole line."""
    source = """
outcomes = []
for rule in [{"do": f"short:{n}"} for n in range(1, len(E1))] + [{"do": "short", "times": None}]:
    path.unlink(missing_ok=True)
    layer.arm([{"op": "write", **rule}], root=folder)
    async def two():
        store = JsonlSessionStore(path)
        return await asyncio.gather(*[outcome(store.append("t", {})) for _ in range(2)])
    results = asyncio.run(two())
    layer.disarm()
    outcomes.append([results, path.read_bytes() == E1 + E2])
answer(outcomes)
"""
    assert in_child(tmp_path, source) == [[[1, 2], True]] * (len(E1) + 1)


def test_row_61_a_large_record_is_one_write(tmp_path):
    """Records of any size go down in one write each, whole and in call order."""
    source = """
outcomes = []
for size in (100, 70_000, 513 * 1024, 700_000, 3_000_000):
    path.unlink(missing_ok=True)
    layer.arm([], root=folder)
    async def two():
        store = JsonlSessionStore(path)
        return await asyncio.gather(*[outcome(store.append("t", letter * size)) for letter in "ab"])
    results = asyncio.run(two())
    writes = [entry["size"] for entry in layer.log() if entry["op"] == "write"]
    layer.disarm()
    lines = path.read_bytes().splitlines(keepends=True)
    same = writes == [len(line) for line in lines]
    outcomes.append([results, same, [json.loads(line)["data"][-1] for line in lines], len(lines[1]) > size])
answer(outcomes)
"""
    assert in_child(tmp_path, source) == [[[1, 2], True, ["a", "b"], True]] * 5


def test_row_64_two_stores_on_one_log_never_share_a_number(tmp_path):
    """Two or more stores on one path in one process, in every interleaving, number on: no number twice."""
    for trial, turns in enumerate(itertools.product(range(3), repeat=4)):
        path = tmp_path / f"{trial}.jsonl"

        async def all_turns(path: Path = path, turns: tuple[int, ...] = turns) -> list[SessionEvent]:
            stores = [JsonlSessionStore(path) for _ in range(3)]
            return await asyncio.gather(*[stores[turn].append("t", {}) for turn in turns])

        assert sorted(sequences(asyncio.run(all_turns()))) == [1, 2, 3, 4]
        assert sequences(asyncio.run(JsonlSessionStore(path).read())) == [1, 2, 3, 4]


def test_row_65_a_number_used_twice_is_refused(tmp_path):
    """A sequence that stands again, at any later place, is refused there, also with another content."""
    for length in range(1, 7):
        good = [record(number) for number in range(1, length + 1)]
        for again in range(1, length + 1):
            raw = log_of(*good, record(again, '{"m":"other"}'), record(length + 1))

            assert refused_line(tmp_path, raw) == length + 1
