"""One scanner for everybody: what it says about every cut, every flipped bit and every border of a piece (E2, E9, E10, E16)."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from solution.durable_log import CorruptLogError, Event, Limits, Report, Scan, UnknownVersionError
from solution.durable_log.record import BEGINNING, Head
from tests.durable_session import SESSION, record

DATA = ["plain", {"茶": [1, -2.5, None, True]}, {"m": "\ud83d half \u2028"}, [], {"x": 18446744073709551617}]
NL = b"\n"


@cache
def story(count: int) -> tuple[tuple[bytes, ...], tuple[Head, ...]]:
    """Return the lines of a sound log, and the head before each of them and behind the last."""
    lines, heads = [], [BEGINNING]
    for number in range(count):
        line, head = record(heads[-1], DATA[number % len(DATA)])
        lines.append(line)
        heads.append(head)
    return tuple(lines), tuple(heads)


def scanned(raw: bytes, before: Head = BEGINNING, **how: object) -> tuple[list[Event], Report]:
    """Return what a scan gives before it stops, and its report."""
    scan = Scan(io.BytesIO(raw), session=SESSION, before=before, name="log", **how)  # type: ignore[arg-type]
    events: list[Event] = []
    try:
        events.extend(scan)
    except CorruptLogError:
        assert scan.report.verdict == "corrupt"
    return events, scan.report


def flips(line: bytes) -> Iterator[bytes]:
    for at in range(len(line)):
        for bit in range(8):
            yield line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]


def test_the_crash_proof_cut_at_every_byte() -> None:
    """100 events cut at every byte: the events before the cut are read, and at most the one it hits is lost."""
    lines, heads = story(100)
    for index, line in enumerate(lines):
        for cut in range(len(line) + 1):
            whole = cut >= len(line) - 1
            _events, report = scanned(line[:cut], heads[index])

            assert report.verdict == ("sound" if whole or not cut else "torn")
            assert (report.last_sequence, report.torn_bytes) == (index + whole, 0 if whole else cut)


def test_the_crash_proof_flipped_at_every_bit() -> None:
    """100 events flipped at every bit: found at its line, whichever bit it was; only the last event can be lost."""
    lines, heads = story(100)
    for index, line in enumerate(lines):
        last = index == 99
        for flipped in flips(line):
            events, report = scanned(flipped + (b"" if last else lines[index + 1]), heads[index])

            assert not events
            assert (report.verdict, report.line) == ("corrupt", 1) or (last and report.verdict == "torn")


def test_a_flip_is_found_in_the_whole_log_too() -> None:
    """A flip anywhere in a whole log gives the events before it, its physical line and its offset."""
    lines, _heads = story(100)
    raw, draw = b"".join(lines), random.Random(22)
    for _turn in range(300):
        at = draw.randrange(len(raw) - len(lines[-1]))
        flipped = raw[:at] + bytes([raw[at] ^ 1 << draw.randrange(8)]) + raw[at + 1 :]
        due = raw.count(NL, 0, at)
        events, report = scanned(flipped)

        assert [event.sequence for event in events] == list(range(1, due + 1))
        assert (report.verdict, report.line, report.events) == ("corrupt", due + 1, due)
        assert report.offset == report.good_bytes == len(b"".join(lines[:due]))


@pytest.mark.parametrize("change", ["swap", "delete", "double", "insert"])
def test_lines_moved_about_are_found(change: str) -> None:
    """A line that is swapped, deleted, doubled or inserted is found at its place, with numbers made to fit or not."""
    lines, heads = story(8)
    for index in range(1, 7):
        changed = list(lines)
        if change == "swap":
            changed[index], changed[index - 1] = changed[index - 1], changed[index]
        elif change == "delete":
            del changed[index]
        elif change == "double":
            changed.insert(index, changed[index - 1])
        else:
            changed.insert(index, record(heads[index], "forged")[0])
        _events, report = scanned(b"".join(changed))

        assert report.verdict == "corrupt"
        assert report.line == (index if change == "swap" else index + 1 + (change == "insert"))


def test_pieces_of_any_size_give_the_same() -> None:
    """However the bytes come, one by one or all at once, events and report are the same."""

    class Pieces(io.RawIOBase):
        def __init__(self, raw: bytes, size: int) -> None:
            self.raw, self.size = io.BytesIO(raw), size

        def read(self, _most: int = -1) -> bytes:
            return self.raw.read(self.size)

    lines, _heads = story(10)
    for raw in (b"".join(lines), b"".join(lines)[:-30], b"".join(lines[:3]) + b"{}\n" + lines[4]):
        whole = scanned(raw)
        for size in [*range(1, 12), 64, 1000, 10**6]:
            scan = Scan(Pieces(raw, size), session=SESSION, name="log")  # type: ignore[arg-type]
            events: list[Event] = []
            with contextlib.suppress(CorruptLogError):
                events.extend(scan)

            assert (events, scan.report) == whole


def test_every_record_has_its_offset() -> None:
    """A block tells at which byte of the file each of its events begins, in the fast pass and in the slow one."""
    lines, _heads = story(30)
    scan = Scan(io.BytesIO(b"".join(lines)))
    starts = [start for block in scan.blocks() for start in block.offsets()]

    assert starts == [len(b"".join(lines[:index])) for index in range(30)]


def test_a_line_over_the_limit_is_damage() -> None:
    """A reader holds no more than its limit: a longer line, ended or not, is refused at its place."""
    lines, _heads = story(3)
    limits = Limits(record_bytes=600, line_bytes=600)
    for tail in (b"x" * 700, b"x" * 700 + NL, b"x" * 5000):
        events, report = scanned(b"".join(lines) + tail, limits=limits)

        assert (len(events), report.verdict, report.line) == (3, "corrupt", 4)


def test_a_follower_waits_for_the_newline() -> None:
    """Half a line is left until it is whole: its event comes once, and the offset waits behind the one before."""
    lines, _heads = story(2)
    for cut in range(1, len(lines[1])):
        file = io.BytesIO(lines[0] + lines[1][:cut])
        scan = Scan(file, session=SESSION)
        first = [event.sequence for block in scan.blocks(final=False) for event in block.events]
        offset = scan.good_bytes
        file.seek(0, io.SEEK_END)
        file.write(lines[1][cut:])
        file.seek(len(lines[0]) + cut)
        later = [event.sequence for block in scan.blocks(final=False) for event in block.events]

        assert (first, offset, later) == ([1], len(lines[0]), [2])


def test_another_session_is_refused() -> None:
    """A record of another session, though it links, is damage."""
    lines, heads = story(2)
    foreign = record(heads[1])[0].replace(SESSION.encode(), b"other-1")

    assert scanned(lines[0] + foreign)[1].reason == "belongs to another session"


def test_a_newer_version_stops_the_reader() -> None:
    """A record of a newer version is no damage: the reader stops and names both versions."""
    lines, heads = story(1)
    newer = record(heads[1])[0].replace(b'{"v":1,', b'{"v":99,"shape":[],')
    with pytest.raises(UnknownVersionError, match=r"log:2: .*99.*1"):
        list(Scan(io.BytesIO(lines[0] + newer), name="log"))


def test_without_the_chain_the_rest_is_still_checked() -> None:
    """Without hashes, numbers, links, sessions and the form of every line are compared all the same."""
    lines, _heads = story(6)
    raw = b"".join(lines)
    assert len(scanned(raw, verify_chain=False)[0]) == 6
    for bad in (
        raw.replace(b'"sequence":4', b'"sequence":5'),
        raw.replace(b'"n"', b'"n" '),
        lines[0] + lines[2],
    ):
        if bad != raw:
            assert scanned(bad, verify_chain=False)[1].verdict == "corrupt"
    doubled = raw.replace(b'"sequence":2,', b'"sequence":9,"sequence":2,')
    assert scanned(doubled, verify_chain=False)[1].line == 2


def test_no_message_holds_a_byte_of_data() -> None:
    """Whatever is wrong, message and report speak of places and kinds, never of content."""
    lines, heads = story(1)
    secret = record(heads[1], {"key": "tea-is-secret"})[0]
    for at in range(len(secret) - 1):
        scan = Scan(io.BytesIO(lines[0] + secret[:at] + b"\x00" + secret[at + 1 :]), name="log")
        with pytest.raises(CorruptLogError) as caught:
            list(scan)

        assert "tea" not in str(caught.value) + repr(caught.value) + str(scan.report)
        assert caught.value.__cause__ is None


def test_a_log_that_cannot_be_opened_is_no_empty_log(tmp_path: Path) -> None:
    """A missing file has no events; a folder or a link in its place is an error, never an empty history."""
    assert list(Scan(tmp_path / "none.jsonl")) == []
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "none.jsonl")
    for name in ("folder.jsonl", "link.jsonl"):
        with pytest.raises((OSError, CorruptLogError)):
            list(Scan(tmp_path / name))
