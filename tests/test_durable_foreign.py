"""`solution.durable_log.foreign`: what is wrong in any JSON lines, by line and offset, whatever happened to them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from solution.durable_log.foreign import AnyObject, Examination
from solution.durable_log.inspection import LogReport, format_of, inspect
from solution.durable_log.log_source import Source
from solution.durable_log.physical_lines import Line, blocks

ZOO = Path(__file__).resolve().parents[1] / "assets/corruption-zoo"
VERDICTS = json.loads((ZOO / "verdicts.json").read_bytes())
FOREIGN = json.loads((ZOO / "foreign/findings.json").read_bytes())
RECORD = {
    "type": "user",
    "uuid": "u-1",
    "message": {"role": "用户", "content": [{"type": "text", "text": 'say "hi"\n{}\\'}]},
}


def line(number: int) -> bytes:
    return json.dumps(RECORD | {"n": number}, ensure_ascii=False, separators=(",", ":")).encode()


def look(path: Path, **options) -> LogReport:
    with Source.open(str(path)) as source:
        return inspect(source, **options)


def examine(raw: bytes, chunk: int = 1 << 16, most: int = 1 << 20) -> Examination:
    examined, at = Examination(AnyObject()), 0

    def read(size: int) -> bytes:
        nonlocal at
        piece = raw[at : at + min(size, chunk)]
        at += len(piece)
        return piece

    examined.read(blocks(read, most))
    return examined


def found(raw: bytes, **options) -> list[tuple[str, int, int]]:
    return [(one.kind, one.line, one.offset) for one in examine(raw, **options).findings]


@pytest.mark.parametrize("name", VERDICTS)
def test_every_log_of_the_zoo_gets_its_verdict(name):
    """Whatever the lesson's format calls sound, torn or corrupt, the command does too, at the same line."""
    wanted = VERDICTS[name]
    for format_ in (None, "lesson"):
        report = look(ZOO / name, format_=format_)

        # The zoo names the line of an error; the report also says on which line a torn tail lies.
        line = wanted["events"] + 1 if wanted["kind"] == "torn" else wanted["line"]
        assert (report.verdict, report.events, report.line) == (wanted["kind"], wanted["events"], line)
        assert (report.good_bytes, report.torn_bytes) == (wanted["good_bytes"], wanted["torn_bytes"])
        assert bool(report.counts.get("missing-newline")) == wanted["missing_newline"]


@pytest.mark.parametrize("name", FOREIGN)
def test_every_foreign_file_of_the_zoo_gets_its_findings(name):
    """Each fault is told by kind, line and offset, and the verdict fits."""
    wanted = FOREIGN[name]
    report = look(ZOO / "foreign" / name)

    assert [[one.kind, one.line, one.offset] for one in report.findings] == wanted["findings"]
    assert (report.verdict, report.events) == (wanted["verdict"], wanted["events"])


def test_the_foreign_wing_is_as_its_maker_makes_it():
    """The committed files are exactly what make_foreign.py writes."""
    command = [sys.executable, ZOO / "foreign/make_foreign.py", "--check"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (made.returncode, made.stdout) == (0, "")


def test_a_fragment_and_the_next_record_are_told_apart_at_every_cut():
    """Wherever a record was cut, the record glued behind it is found where it begins."""
    first, cut, glued = line(1), line(2), line(3)
    for at in range(1, len(cut)):
        begin = len(first) + 1 + at
        examined = examine(b"\n".join((first, cut[:at] + glued, line(4), b"")))

        assert [(one.kind, one.line, one.other) for one in examined.findings] == [
            ("fragment-and-record", 2, begin)
        ], at
        assert (examined.events, examined.records_read) == (1, 2)


def test_every_cut_at_the_end_is_a_torn_tail():
    """Cut anywhere in the last record: the ones before count, and the bytes behind them are torn."""
    first, cut = line(1), line(2)
    for at in range(1, len(cut)):
        examined = examine(first + b"\n" + cut[:at])

        assert (examined.verdict, examined.events, examined.torn_bytes) == ("torn", 1, at)
        assert examined.findings[0].other is None


def test_a_raw_newline_is_found_at_every_place_in_a_text():
    """A newline put anywhere inside a string: one finding, over two lines, and the records around it count."""
    text = "héllo {wörld}, [ok]: 42"
    for at in range(len(text) + 1):
        broken = json.dumps({"type": "user", "text": "@"}, ensure_ascii=False).replace(
            "@", f"{text[:at]}\n{text[at:]}"
        )
        examined = examine(line(1) + b"\n" + broken.encode() + b"\n" + line(2) + b"\n")

        assert [(one.kind, one.line, one.lines) for one in examined.findings] == [("raw-newline", 2, 2)], at
        assert examined.records_read == 2


def test_a_splice_is_found_at_every_cut():
    """One record written into another, at any byte: one finding that covers both lines."""
    outer, inner = line(2), line(3)
    for at in range(1, len(outer)):
        raw = b"\n".join((line(1), outer[:at] + inner, outer[at:], line(4), b""))
        examined = examine(raw)

        assert [(one.kind, one.line, one.lines) for one in examined.findings] == [("splice", 2, 2)], at
        assert examined.findings[0].other == len(line(1)) + 1 + at


def test_the_rest_of_a_record_is_sought_near_by_only():
    """Far behind a fragment, its rest is a bad line of its own and no splice."""
    cut = line(2)
    raw = b"\n".join((cut[:40], *map(line, range(3, 9)), cut[40:], b""))

    assert [kind for kind, _, _ in found(raw)] == ["fragment", "not-json"]


def test_a_record_that_goes_on_does_so_at_once():
    """After good lines, also a whole block of them, nothing continues what was begun before."""
    good = b"".join(line(number) + b"\n" for number in range(100))
    begun = good + b'{"type":"user","text":"a\n'
    later = b"".join(line(number) + b"\n" for number in range(100, 300))
    examined = Examination(AnyObject())
    examined.read(blocks(_pieces(begun, later, b'b"}\n')))

    assert [one.kind for one in examined.findings] == ["fragment", "not-json"]


def test_a_fragment_before_a_spread_record_is_no_part_of_it():
    """Two records begun one after the other: the first was cut, the second goes on over its newline."""
    raw = line(1) + b'\n{"a":"x\n{"type":"user","b":"y\nz"}\n'

    assert [(kind, at) for kind, at, _ in found(raw)] == [("fragment", 2), ("raw-newline", 3)]


def test_a_duplicate_is_told_within_one_block_too():
    """The same line twice in a row, far behind the file's beginning."""
    lines = [line(number) for number in range(300)]
    raw = b"\n".join([*lines[:250], lines[249], *lines[250:], b""])

    assert [(kind, at) for kind, at, _ in found(raw, chunk=4096)] == [("duplicate", 251)]


@pytest.mark.parametrize("raw", [b"{'type': \"it", b'{"type":,"a":"it', b"[1, 2}"])
def test_what_was_never_json_is_no_fragment(raw):
    """A line that goes wrong before its end was not cut there."""
    assert [kind for kind, _, _ in found(line(1) + b"\n" + raw + b"\n")] == ["not-json"]


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 4096])
def test_chunks_change_nothing(chunk):
    """Records, characters and newlines over the border of a chunk are read as if there were none."""
    for name in FOREIGN:
        raw = (ZOO / "foreign" / name).read_bytes()

        assert found(raw, chunk=chunk) == found(raw)


def test_a_line_over_the_cap_is_told_and_the_next_one_judged():
    """A line too long to hold is a finding of its own; nothing behind it is lost."""
    long = b'{"type":"user","text":"' + b"x" * 5000 + b'"}'
    examined = examine(line(1) + b"\n" + long + b"\n" + line(2) + b"\n", chunk=512, most=2000)

    assert [(one.kind, one.line, one.length) for one in examined.findings] == [("too-long", 2, len(long))]
    assert examined.records_read == 2


def test_nul_bytes_over_the_cap_are_still_known_as_such():
    """Power loss may leave megabytes of NULs: a tail of them is torn, however long. Text before them was not judged."""
    examined = examine(line(1) + b"\n" + b"\0" * 9000, chunk=512, most=2000)
    unknown = examine(line(1) + b"\n" + b"x" * 3000 + b"\0" * 9000, chunk=512, most=2000)

    assert (examined.verdict, examined.torn_bytes) == ("torn", 9000)
    assert unknown.counts == {"too-long": 1}


def test_a_fault_hides_no_later_one():
    """Every bad line is told, not the first alone; blocks of good lines between are counted."""
    good = [line(number) for number in range(200)]
    raw = b"\n".join([*good[:100], b"{", *good[100:], b"NaN", b""])
    examined = examine(raw, chunk=1000)

    assert [(one.kind, one.line) for one in examined.findings] == [("fragment", 101), ("nan", 202)]
    assert (examined.events, examined.records_read) == (100, 200)


def test_findings_are_bounded_and_the_first_damage_is_kept():
    """A million notes fill the list; the count goes on, and damage behind them still decides."""
    raw = (line(1) + b"\n") * 1500 + b"x\n"
    examined = examine(raw)

    assert examined.counts["duplicate"] == 1499
    assert examined.verdict == "corrupt"
    assert examined.first_bad.line == 1501
    assert len(examined.findings) == 1001


@pytest.mark.parametrize(
    ("head", "format_"),
    [
        (b'{"v":1,"session":"a","sequence":1,', "durable"),
        (b'{"sequence":1,"type":"t","data":{}}\n', "lesson"),
        (b'{"type":"user","uuid":"x"}\n', "foreign"),
        (b"", "foreign"),
        (b"\0\0\0", "foreign"),
    ],
)
def test_the_first_lines_tell_the_format(head, format_):
    """Durable, lesson or foreign is seen by the records, not by the name."""
    assert format_of(head) == format_


def test_blocks_give_every_byte_back():
    """What is read is what was there: numbers, offsets and sizes add up to the file."""
    raw = b"\n".join([b"a", b"", b"bb" * 50, b"c" * 40, b"d" * 41, b"tail"])
    pieces = []
    for chunk in range(1, 20):
        pieces.clear()
        for piece in blocks(_reader(raw, chunk), 40):
            pieces += [piece] if isinstance(piece, Line) else piece.lines(piece.raws())
        lines = raw.split(b"\n")

        assert [(one.number, one.size) for one in pieces] == [(n, len(one)) for n, one in enumerate(lines, 1)]
        assert [one.offset for one in pieces] == [
            sum(len(one) + 1 for one in lines[:n]) for n in range(len(lines))
        ]
        assert [one.raw for one in pieces] == [one if len(one) <= 40 else None for one in lines]


def _pieces(*pieces: bytes):
    left = iter((*pieces, b""))
    return lambda _size: next(left)


def _reader(raw: bytes, chunk: int):
    at = 0

    def read(_size: int) -> bytes:
        nonlocal at
        at += chunk
        return raw[at - chunk : at]

    return read
