"""One scanner for everybody: what it says about every cut, every flipped bit and every border of a piece (E2, E9, E10, E16)."""

from __future__ import annotations

import contextlib
import io
import os
import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from solution.durable_log import CorruptLogError, Event, Limits, Report, Scan, UnknownVersionError, reading
from solution.durable_log.reading import Block, open_log
from solution.durable_log.record import BEGINNING, Head, encode_event, hash_of
from tests.durable_session import SESSION, record

# The first two are decided by the fast pass over a whole block, the half of a surrogate pair by the slow judge alone.
DATA = ["plain", {"茶": [1, -2.5, None, True]}, {"m": "\ud83d half \u2028"}, [], {"x": 18446744073709551617}]
NL = b"\n"


@cache
def story(count: int, kinds: int = len(DATA)) -> tuple[tuple[bytes, ...], tuple[Head, ...]]:
    """Return the lines of a sound log, and the head before each of them and behind the last."""
    lines, heads = [], [BEGINNING]
    for number in range(count):
        line, head = record(heads[-1], DATA[number % kinds])
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


@pytest.mark.parametrize("kinds", [2, len(DATA)], ids=["fast pass", "slow judge"])
def test_a_flip_is_found_in_the_whole_log_too(kinds: int) -> None:
    """A flip anywhere in a whole log gives the events before it, its physical line and its offset."""
    lines, _heads = story(100, kinds)
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


# --- What exactly a reader says ---


def told(raw: bytes, before: Head = BEGINNING, **how: object) -> tuple[list[int], Report, str]:
    """Return the numbers of the events before a scan stopped, its report, and the words of its error."""
    scan = Scan(io.BytesIO(raw), before=before, name="log", **how)  # type: ignore[arg-type]
    numbers: list[int] = []
    try:
        numbers.extend(event.sequence for event in scan)
    except (CorruptLogError, UnknownVersionError) as error:
        return numbers, scan.report, str(error)
    return numbers, scan.report, ""


def forged(head: Head, **changed: object) -> bytes:
    """Return the line behind `head` with fields of another value, its own hash made to fit where it is not given."""
    event = msgspec.json.decode(record(head)[0], type=Event)
    event = msgspec.structs.replace(event, **changed)
    if "event_hash" not in changed:
        event = msgspec.structs.replace(event, event_hash=hash_of(encode_event(event)))
    return encode_event(event) + NL


def log_of(versions: Iterable[int], data: object = None) -> bytes:
    """Return a sound log of one event for each version."""
    lines, head = [], BEGINNING
    for version in versions:
        lines.append(forged(head, v=version, data=data))
        head = Head(head.sequence + 1, msgspec.json.decode(lines[-1], type=Event).event_hash)
    return b"".join(lines)


@pytest.mark.parametrize("skipped", [0, 3])
def test_the_whole_report_of_each_verdict(skipped: int) -> None:
    """Sound, torn and corrupt, from the beginning or from a later event: every field is as the contract says."""
    lines, heads = story(6)
    raw, before, last = b"".join(lines[skipped:]), heads[skipped], heads[6]
    sound = Report(
        verdict="sound",
        file="log",
        events=6 - skipped,
        last_sequence=6,
        good_bytes=len(raw),
        log_hash=last.hash,
        schema_version=1,
    )
    at = {"line": 7 - skipped, "offset": len(raw)}

    assert told(raw, before) == (list(range(skipped + 1, 7)), sound, "")
    torn = msgspec.structs.replace(
        sound, verdict="torn", torn_bytes=5, reason="is not strict JSON (not json)", **at
    )
    assert told(raw + b'{"v":', before)[1:] == (torn, "")
    corrupt = msgspec.structs.replace(sound, verdict="corrupt", reason="is not strict JSON (not json)", **at)
    words = f"log:{at['line']}: is not strict JSON (not json); keep the file, look at it with: statelab log inspect"
    assert told(raw + b'{"v":\n', before)[1:] == (corrupt, words)
    assert told(b"", before)[1] == msgspec.structs.replace(
        Report(verdict="sound", file="log", events=0, last_sequence=skipped, good_bytes=0),
        log_hash=before.hash,
    )


FIRST, HEAD = record(BEGINNING)
SOUND = record(HEAD)[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'"a\tb"', "is not strict JSON (control character)"),
        (b"{}", "is not a record of this format"),
        (b"1", "is not a record of this format"),
        (b'{"v":null}', "is not a record of this format"),
        (b'{"v":true}', "is not a record of this format"),
        (forged(HEAD, session="other-1")[:-1], "belongs to another session"),
        (forged(HEAD, v=0)[:-1], "v is below 1"),
        (forged(HEAD, v=-1)[:-1], "v is below 1"),
        (forged(HEAD, sequence=9)[:-1], "sequence: expected 2, found 9"),
        (forged(HEAD, sequence=1)[:-1], "sequence: expected 2, found 1"),
        (forged(HEAD, sequence=-3)[:-1], "sequence: expected 2, found -3"),
        (forged(HEAD, sequence=10**18 - 1)[:-1], "sequence: expected 2, found 999999999999999999"),
        (forged(HEAD, sequence=10**18)[:-1], "sequence: expected 2, found …"),
        (forged(HEAD, sequence=-(10**18))[:-1], "sequence: expected 2, found …"),
        (SOUND[:-1] + b"\r", "ends in CR LF: something rewrote the line ends"),
        (SOUND[:-1] + b" ", "is not its own serialisation: something wrote it anew"),
        (b" " + SOUND[:-1], "is not its own serialisation: something wrote it anew"),
        (forged(HEAD, previous_hash="1" * 64)[:-1], "previous_hash is not the hash of the event before"),
        (forged(HEAD, event_hash="1" * 64)[:-1], "event_hash is not the hash of its bytes"),
        (SOUND[:-1].replace(b"2026", b"2025"), "event_hash is not the hash of its bytes"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_bad_record_has_its_reason(line: bytes, reason: str) -> None:
    """Inside a log and at its end: the same words, at the same place; only broken JSON at the end may be torn."""
    for raw in (FIRST + line + NL, FIRST + line + NL + SOUND, FIRST + line):
        numbers, report, error = told(raw)
        torn = raw.endswith(line) and "strict" in reason

        assert (numbers, report.reason, report.line, report.offset) == ([1], reason, 2, len(FIRST))
        assert (report.verdict, bool(error)) == (("torn", False) if torn else ("corrupt", True))
        assert report.torn_bytes == (len(line) if torn else 0)


def test_hashes_alone_are_left_out_without_the_chain() -> None:
    """`verify_chain=False` accepts another hash, where the link to it fits, and nothing else."""
    wrong = forged(HEAD, event_hash="1" * 64)
    behind = forged(Head(2, "1" * 64))

    assert told(FIRST + wrong + behind, verify_chain=False)[0] == [1, 2, 3]
    assert told(FIRST + wrong[:-1], verify_chain=False)[1].verdict == "sound"
    assert told(FIRST + wrong + SOUND, verify_chain=False)[1].reason == "sequence: expected 3, found 2"
    unlinked = forged(HEAD, previous_hash="1" * 64)
    assert told(FIRST + unlinked, verify_chain=False)[0] == [1]


@pytest.mark.parametrize("end", [NL, b""])
@pytest.mark.parametrize(
    ("versions", "newest", "read", "met"),
    [
        ((1, 1), 1, 2, 1),
        ((1, 2), 2, 2, 2),
        ((2, 1), 2, 2, 2),
        ((3, 1, 7, 1), None, 4, 7),
        ((2,), 1, 0, 0),
        ((1, 2), 1, 1, 1),
        ((3, 2, 4), 3, 2, 3),
    ],
)
def test_versions_up_to_the_newest_known_are_read(
    versions: tuple[int, ...], newest: int | None, read: int, met: int, *, end: bytes
) -> None:
    """Mixed versions are read, the newest is reported; a newer one stops the reader, which names both."""
    raw = log_of(versions)
    numbers, report, error = told(raw[:-1] + end, newest=newest)

    assert (numbers, report.schema_version) == (list(range(1, read + 1)), met)
    if read == len(versions):
        assert (error, report.verdict) == ("", "sound")
    else:
        assert error == (
            f"log:{read + 1}: has version {versions[read]}, and the newest known here is {newest}; "
            "read it with the newer program or give its schemas"
        )
        assert (report.verdict, report.reason) == ("corrupt", "is of a newer version")


def test_a_newer_version_of_another_form_is_named_too() -> None:
    """A newer record with other keys is of a newer version; a flipped bit in `v` is damage."""
    newer = SOUND.replace(b'{"v":1,', b'{"v":99,"shape":[],')
    _numbers, report, error = told(FIRST + newer)

    assert error.startswith("log:2: has version 99, and the newest known here is 1;")
    assert report.reason == "is not a record of this format"
    assert told(FIRST + newer, newest=None)[2].startswith("log:2: is not a record of this format;")
    assert (
        told(FIRST + SOUND.replace(b'"v":1', b'"v":9'))[1].reason == "event_hash is not the hash of its bytes"
    )


@pytest.mark.parametrize("session", [None, SESSION, "other-1"])
@pytest.mark.parametrize("spoiled", [b"", b" "], ids=["fast", "slow"])
def test_the_session_is_the_one_asked_for_or_the_first_records(session: str | None, spoiled: bytes) -> None:
    """None takes the first record's session, and keeps it over the blocks that follow."""
    lines, heads = story(2)
    raw = lines[0] + lines[1] + forged(heads[2], session="other-1", data="x")[:-1] + spoiled + NL
    scan = Scan(io.BytesIO(raw), session=session)
    with pytest.raises(CorruptLogError) as caught:
        list(scan)

    assert caught.value.reason == "belongs to another session"
    assert scan.head.sequence == (0 if session == "other-1" else 2)
    assert scan.session == (session or SESSION)


def test_a_log_is_named_by_its_path_its_file_or_as_it_is_told(tmp_path: Path) -> None:
    """Name first, then the path, then the file's own name; bytes without any are `log`."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(SOUND)
    with path.open("rb") as file:
        assert Scan(file).report.file == str(path)
    assert Scan(path).report.file == str(path)
    assert Scan(path, name="b").report.file == "b"
    assert Scan(io.BytesIO()).report.file == "log"


@pytest.mark.parametrize("form", ["path", "file"])
def test_a_reader_begins_and_stops_where_it_is_told(tmp_path: Path, form: str) -> None:
    """`skip_to` passes over what is known, `until` stops at a record's end; both count bytes of the file."""
    lines, heads = story(9)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"not looked at"[:5].ljust(len(lines[0]) - 1) + NL + b"".join(lines[1:]))
    until = len(b"".join(lines[:6]))
    with path.open("rb") as file:
        scan = Scan(path if form == "path" else file, until=until)
        scan.skip_to(heads[1], len(lines[0]))
        blocks = list(scan.blocks())

    assert [event.sequence for block in blocks for event in block.events] == [2, 3, 4, 5, 6]
    assert (blocks[0].offset, scan.good_bytes, scan.head) == (len(lines[0]), until, heads[6])
    assert next(blocks[0].offsets()) == len(lines[0])


@pytest.mark.parametrize("form", ["path", "file"])
def test_a_follower_goes_on_from_where_it_is(tmp_path: Path, form: str) -> None:
    """A file that grows by halves of lines gives each event once, also up to an `until`; its end is no verdict."""
    lines, _heads = story(5)
    raw = b"".join(lines)
    path = tmp_path / "a.jsonl"
    path.touch()
    with path.open("rb") as file:
        scan = Scan(path if form == "path" else file, until=len(raw) - len(lines[-1]))
        numbers = []
        for at in range(0, len(raw), 100):
            with path.open("ab") as more:
                more.write(raw[at : at + 100])
            numbers += [event.sequence for block in scan.blocks(final=False) for event in block.events]

            assert (scan.report.verdict, scan.missing_newline) == ("sound", False)

    assert numbers == [1, 2, 3, 4]


def test_a_follower_in_the_middle_of_a_line_stops_at_its_end_too(tmp_path: Path) -> None:
    """What is left of a line counts towards `until`: nothing behind it is read."""
    lines, _heads = story(5)
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines[0] + lines[1][:-5])
    scan = Scan(path, until=len(lines[0] + lines[1]))
    first = [event.sequence for block in scan.blocks(final=False) for event in block.events]
    path.write_bytes(b"".join(lines))

    assert (first, [event.sequence for event in scan]) == ([1], [2])


def test_a_missing_newline_is_no_tear() -> None:
    """A whole last record counts, is given as a block at its place, and what it lacks is said."""
    lines, heads = story(3)
    scan = Scan(io.BytesIO(b"".join(lines)[:-1]))
    blocks = list(scan.blocks())

    assert (blocks[-1].offset, blocks[-1].lines) == (len(lines[0] + lines[1]), lines[2][:-1])
    assert [event.sequence for event in blocks[-1].events] == [3]
    assert (scan.missing_newline, scan.head, scan.good_bytes) == (True, heads[3], len(b"".join(lines)) - 1)
    assert (scan.report.verdict, scan.report.torn_bytes) == ("sound", 0)
    assert list(scan.blocks()) == []
    assert scan.report.verdict == "sound"


def test_the_longest_line_that_is_allowed_is_read() -> None:
    """A line of the limit's bytes, newline included, is read wherever pieces end; one byte more is refused."""
    lines, heads = story(8)
    longest = max(map(len, lines))
    for limit, index in ((longest, 8), (longest - 1, lines.index(max(lines, key=len)))):
        how = {"limits": Limits(record_bytes=1, line_bytes=limit)}
        for raw in (b"".join(lines), b"".join(lines) + b"x" * (limit - 1)):
            numbers, report, error = told(raw, **how)
            assert len(numbers) == index
            assert (report.verdict == "corrupt") == bool(error) == (index < 8)
            if index < 8:
                assert report.reason == f"is longer than {limit} bytes, the limit of a line"
                assert error.startswith(f"log:{index + 1}: is longer than")
    torn, over = (
        told(lines[0] + b"x" * size, limits=Limits(record_bytes=1, line_bytes=600))[1] for size in (600, 601)
    )
    assert (torn.verdict, torn.torn_bytes, over.verdict, over.line) == ("torn", 600, "corrupt", 2)
    assert heads[8].sequence == 8


def test_a_reader_asks_for_no_more_than_it_may_hold() -> None:
    """Pieces are of 256 KiB, of the longest line where that is less, and end with `until`."""
    asked: list[int] = []

    class Asked(io.BytesIO):
        def read(self, most: int | None = -1) -> bytes:
            asked.append(most or 0)
            return super().read(most)

    lines, _heads = story(4)
    raw = b"".join(lines)
    for how, sizes in (
        ({}, [256 << 10] * 2),
        ({"limits": Limits(record_bytes=1, line_bytes=1 << 20)}, [256 << 10] * 2),
        ({"limits": Limits(record_bytes=1, line_bytes=len(raw))}, [len(raw)] * 2),
        ({"until": len(lines[0])}, [len(lines[0]), 0]),
    ):
        asked.clear()
        list(Scan(Asked(raw), **how))  # type: ignore[arg-type]
        assert asked == sizes


def test_events_before_a_bad_line_come_as_one_block() -> None:
    """The slow pass gives the sound lines of a piece with their bytes and offset, then raises; without any, it raises."""
    lines, heads = story(6)
    found: list[Block] = []
    for before in (0, 2, 5):
        scan = Scan(io.BytesIO(b"".join(lines[before:5]) + b"{}\n" + lines[5]), before=heads[before])
        with pytest.raises(CorruptLogError) as caught:
            found.extend(scan.blocks())

        assert (caught.value.line, caught.value.offset) == (6 - before, len(b"".join(lines[before:5])))
        assert caught.value.path == "log"
    numbers = [[event.sequence for event in block.events] for block in found]

    assert numbers == [[1, 2, 3, 4, 5], [3, 4, 5]]
    assert [(block.offset, block.lines) for block in found] == [
        (0, b"".join(lines[:5])),
        (0, b"".join(lines[2:5])),
    ]


def test_a_line_that_only_the_exact_judge_reads_comes_with_its_block() -> None:
    """Half of a surrogate pair sends a piece to the slow pass: one block, all its bytes, each offset."""
    lines, _heads = story(5)
    (block,) = Scan(io.BytesIO(b"".join(lines))).blocks()

    assert (block.offset, block.lines, len(block.events)) == (0, b"".join(lines), 5)
    assert block.events[2].data == DATA[2]


@pytest.mark.parametrize("session", [None, SESSION])
@pytest.mark.parametrize(("version", "newest"), [(1, 1), (1, None), (3, 4), (4, 4)])
def test_an_ordinary_log_never_waits_for_the_slow_judge(
    monkeypatch: pytest.MonkeyPatch, session: str | None, version: int, newest: int | None
) -> None:
    """Sound records of one version are judged many at once, over the borders of pieces, by links and hashes."""
    monkeypatch.setattr(reading, "judge_exactly", None)
    monkeypatch.setattr(reading, "CHUNK_BYTES", 1500)
    raw = log_of([version] * 20, "tea, and milk")
    blocks = list(Scan(io.BytesIO(raw), session=session, newest=newest).blocks())

    assert [event.sequence for block in blocks for event in block.events] == list(range(1, 21))
    assert [block.offset for block in blocks] == [
        len(b"".join(block.lines for block in blocks[:index])) for index in range(len(blocks))
    ]
    assert b"".join(block.lines for block in blocks) == raw
    assert len(blocks) > 2


def test_what_only_has_a_logs_name_is_not_opened(tmp_path: Path) -> None:
    """A pipe or a folder is said to be no regular file, without waiting for a writer, and nothing stays open."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = len(list(Path("/dev/fd").iterdir()))
    for name in ("pipe", "folder"):
        with pytest.raises(CorruptLogError) as caught:
            open_log(tmp_path / name)

        said = (
            f"{tmp_path / name}: is not a regular file; keep the file, look at it with: statelab log inspect"
        )
        assert (str(caught.value), caught.value.line) == (said, None)
    assert len(list(Path("/dev/fd").iterdir())) == before
    (tmp_path / "log").write_bytes(SOUND)
    with open_log(tmp_path / "log") as file:
        assert (file.read(), file.mode) == (SOUND, "rb")
        assert isinstance(file, io.RawIOBase)
    (tmp_path / "link").symlink_to(tmp_path / "log")
    with pytest.raises(OSError, match="symbolic link"):
        open_log(tmp_path / "link")
