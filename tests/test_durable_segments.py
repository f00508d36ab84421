"""Segments and their manifest (E12): rotation, compression, finding an event, and every way in which files may not fit.

What a crash leaves is in test_durable_segments_crash.py.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solution.durable_log import segment_file
from solution.durable_log.checkpoint import Checkpoints, Replayed
from solution.durable_log.errors import (
    CorruptLogError,
    EventsRemovedError,
    PlaceError,
    RetentionError,
    UnknownVersionError,
)
from solution.durable_log.manifest import Manifest, read_manifest, write_manifest
from solution.durable_log.record import BEGINNING, Head
from solution.durable_log.retention import remove_before
from solution.durable_log.sealed_json import write_sealed
from solution.durable_log.segment_file import SegmentFile
from solution.durable_log.segment_index import fingerprint
from solution.durable_log.segments import Segments
from solution.durable_log.verification import verify_session
from tests.child_process import KIT, answer_of, run_child
from tests.durable_session import SESSION, Session, closed_paths, three_segments, verdict

FIRST, SECOND, ACTIVE = (f"{first:020d}.jsonl" for first in (1, 8, 16))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """20 events: two closed segments, of 7 and 8, and an active one of 5."""
    return three_segments(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def flip(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


# --- What there is ---


def test_a_rotation_begins_a_segment_behind_the_last_event(session: Session) -> None:
    """Names tell the first event, the manifest the rest; reopening finds the same."""
    again = Segments.open(session.folder)

    assert [(closed.first, closed.last) for closed in again.closed] == [(1, 7), (8, 15)]
    assert [file.path.name for file in again.files()] == [FIRST, SECOND, ACTIVE]
    assert again.before == session.segments.before
    assert again.recorded_head() == Head(15, again.closed[-1].head)
    assert again.base == BEGINNING
    assert verdict(session.folder) == ("sound", ACTIVE, "")


def test_a_rotation_without_events_changes_nothing(session: Session) -> None:
    """Two in a row are one."""
    session.rotate()
    before = contents(session.folder.path)

    session.rotate()

    assert contents(session.folder.path) == before


def test_a_rotation_refuses_a_file_that_somebody_else_wrote_to(session: Session) -> None:
    """The writer knows how many bytes it wrote; others are damage, and nothing is recorded."""
    with session.segments.active.open("ab") as file:
        file.write(b"x")
    before = contents(session.folder.path)

    with pytest.raises(CorruptLogError, match=ACTIVE):
        session.rotate()

    assert contents(session.folder.path) == before


@pytest.mark.parametrize(("after", "names"), [(0, 3), (6, 3), (7, 2), (14, 2), (15, 1), (20, 1), (99, 1)])
def test_a_reader_gets_the_segments_behind_a_sequence(session: Session, after: int, names: int) -> None:
    """What lies wholly before it is not opened; the active one is always the last."""
    files = session.segments.files(after)

    assert [file.path.name for file in files] == [FIRST, SECOND, ACTIVE][-names:]
    assert files[0].before.sequence <= max(after, 15)


def test_opening_reads_no_segment(session: Session) -> None:
    """A log of ten million events opens by names and sizes: watched from underneath, no byte of a segment is read."""
    source = f"""
from solution.durable_log.segments import Segments
from solution.durable_log.verification import verify_session
from solution.durable_log.session_folder import open_session_folder
place = open_session_folder(folder, {SESSION!r})
layer.arm([], folder)
Segments.open(place)
answer([entry["path"] for entry in layer.log() if entry["op"].endswith("read")])
"""
    read = answer_of(run_child(source, session.folder.path.parent, imports=(KIT,)))

    assert set(read) == {f"{SESSION}/manifest.json"}


def steps_of(session: Session, change: str) -> list[tuple[str, str]]:
    """Make a change under the file layer; return its syncs, renames and removals with the names that they are of."""
    source = f"""
from tests.durable_changes import CHANGES
act = CHANGES[{change!r}](folder)
layer.arm([], folder)
act()
answer([(entry["op"], entry["path"].rpartition("/")[2]) for entry in layer.log()])
"""
    seen = answer_of(run_child(source, session.folder.path.parent, imports=(KIT,)))
    temporary = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")
    return [
        (op, temporary.sub(r"new \1", name))
        for op, name in seen
        if op in ("fsync", "replace", "unlink") and not (op == "unlink" and name.endswith(".index"))
    ]


MANIFEST = [("fsync", "new manifest.json"), ("replace", "new manifest.json"), ("fsync", SESSION)]


def test_a_rotation_syncs_the_lines_then_the_manifest_then_its_name(session: Session) -> None:
    """The order that a power cut asks for: the manifest never promises an event that it could take."""
    assert steps_of(session, "rotate") == [("fsync", ACTIVE), *MANIFEST]


def test_a_recorded_head_is_synced_first(session: Session) -> None:
    """The same at a close or a checkpoint."""
    assert steps_of(session, "head") == [("fsync", ACTIVE), *MANIFEST]


def test_a_plain_segment_goes_when_the_compressed_one_is_durable(session: Session) -> None:
    """Content, then name, and only then the other file."""
    assert steps_of(session, "compress")[:5] == [
        ("fsync", f"new {FIRST}.gz"),
        ("replace", f"new {FIRST}.gz"),
        ("fsync", SESSION),
        ("unlink", FIRST),
        ("fsync", SESSION),
    ]


def test_a_removed_segment_goes_when_the_manifest_is_durable(session: Session) -> None:
    """A power cut finds files that nobody lists any more as going, never a list of files that are gone."""
    steps = steps_of(covered(session), "remove")

    assert steps[:3] == MANIFEST
    assert steps[-4:] == [("fsync", SESSION), *MANIFEST]
    assert {name for op, name in steps[3:-4] if op == "unlink"} >= {FIRST, SECOND}


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_every_file_of_a_session_is_private(tmp_path: Path, mask: int) -> None:
    """Manifest, compressed segment, index, checkpoint: 0600, and folders 0700, under any umask."""
    before = os.umask(mask)
    try:
        session = three_segments(tmp_path)
        session.segments.compress()
        session.segments.index()
        Checkpoints(session.folder).save(Replayed(state=1, head=session.head))
    finally:
        os.umask(before)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in session.folder.path.rglob("*")}
    assert modes.pop("checkpoints") == 0o700
    assert set(modes.values()) == {0o600}
    assert len(modes) == 7


# --- Compression ---


def test_a_compressed_segment_holds_the_same_lines(session: Session) -> None:
    """Its hash is over the lines, so it proves them in both forms."""
    plain = [path.read_bytes() for path in closed_paths(session)]

    assert session.segments.compress() == 2

    assert [
        gzip.decompress(file.compressed_path.read_bytes()) for file in session.segments.files()[:-1]
    ] == plain
    assert not any(path.exists() for path in closed_paths(session))
    assert verdict(session.folder) == ("sound", ACTIVE, "")
    assert session.segments.compress() == 0


def test_compressing_gives_the_same_bytes_every_time(tmp_path: Path) -> None:
    """No time, no name inside: two copies of a session can be compared."""
    sessions = [three_segments(tmp_path / name) for name in "ab"]
    for session in sessions:
        session.segments.compress()

    first, second = (contents(session.folder.path) for session in sessions)

    assert first[f"{FIRST}.gz"] == second[f"{FIRST}.gz"]
    assert first[f"{FIRST}.gz"][4:8] == bytes(4), "a time stands in it"


def test_a_segment_that_is_not_what_was_closed_is_not_compressed(session: Session) -> None:
    """Damage is not packed away: the file stays as it is, and is named."""
    flip(session.folder.path / SECOND, 100)
    before = (session.folder.path / SECOND).read_bytes()

    with pytest.raises(CorruptLogError, match=SECOND):
        session.segments.compress()

    assert (session.folder.path / SECOND).read_bytes() == before
    assert sorted(contents(session.folder.path)) == [f"{FIRST}.gz", SECOND, ACTIVE, "manifest.json"]


def test_a_compressed_form_that_reads_back_otherwise_never_replaces_the_plain_one(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk or a library that spoils what it was given is found while the original is still there."""
    real = gzip.GzipFile.write
    monkeypatch.setattr(
        gzip.GzipFile, "write", lambda packed, data: real(packed, bytes(data).replace(b"1", b"2"))
    )
    before = contents(session.folder.path)

    with pytest.raises(CorruptLogError, match="SHA-256"):
        session.segments.compress()

    assert contents(session.folder.path) == before


def test_a_reader_that_looked_before_a_compression_reads_on(session: Session) -> None:
    """Its list of files is old, and what it names is still found."""
    files = Segments.look(session.folder).files()
    session.segments.compress()

    for file in files[:-1]:
        file.prove()


def test_a_reader_that_is_overtaken_by_a_compression_finds_one_form_or_the_other(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look for one form and for the other, the segment changes from plain to compressed."""
    real, overtaken = segment_file.open_log, []

    def open_then_compress(path: Path) -> IO[bytes]:
        try:
            return real(path)
        finally:
            if not overtaken:
                overtaken.append(path)
                session.segments.compress()

    file = session.segments.files()[0]
    monkeypatch.setattr(segment_file, "open_log", open_then_compress)

    file.prove()

    assert overtaken
    assert file.compressed_path.exists()


# --- One event ---


@pytest.mark.parametrize("compressed", [False, True])
def test_an_event_of_a_closed_segment_is_found_by_its_id(session: Session, compressed: bool) -> None:
    """Every one of them, and none that is not there; ids of the active segment are the writer's own matter."""
    if compressed:
        session.segments.compress()

    found = [session.segments.find(f"id-{number}") for number in range(22)]

    assert found == [None, *range(1, 16), *[None] * 6]


@pytest.mark.parametrize("compressed", [False, True])
def test_an_event_s_line_is_read_alone(session: Session, compressed: bool) -> None:
    """At its offset, in either form."""
    lines = b"".join(path.read_bytes() for path in closed_paths(session)).splitlines(keepends=True)
    if compressed:
        session.segments.compress()

    assert [session.segments.line(number) for number in range(1, 16)] == lines
    for absent in (0, 16, 21):
        with pytest.raises(LookupError):
            session.segments.line(absent)


def test_a_segment_without_callers_ids_needs_no_index(tmp_path: Path) -> None:
    """A writer's own ids tell their sequence: ten million such events cost nothing to look through."""
    session = Session(tmp_path)
    session.write(3)
    session.rotate(named=False)

    assert session.segments.find("id-1") is None
    assert not list(session.folder.path.glob("*.index"))


IDS = ("é", "e\u0301", 'a"b', "a\\", "\n", "\u2028", "\x00", "😀", "\ud83d", "a,b", '","event_id":"x"', " ")


def test_ids_of_every_kind_are_found(tmp_path: Path) -> None:
    """Quotes, backslashes, control characters, halves of pairs: an id is compared as it is stored."""
    session = Session(tmp_path)
    for event_id in IDS:
        session.write(event_id=event_id)
    session.rotate()

    assert [session.segments.find(event_id) for event_id in IDS] == [*range(1, len(IDS) + 1)]


def test_two_ids_with_one_fingerprint_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fingerprint only says where to look: here all have the same."""
    for module in ("segment_index", "segments"):
        monkeypatch.setattr(f"solution.durable_log.{module}.fingerprint", lambda _id: b"\xff" * 8)
    session = three_segments(tmp_path)

    assert [session.segments.find(f"id-{number}") for number in (1, 7, 15)] == [1, 7, 15]
    assert session.segments.find("nobody") is None


@pytest.mark.parametrize("events", [1, 2, 15, 16, 17, 1000])
def test_an_index_of_any_size_finds_first_and_last(tmp_path: Path, events: int) -> None:
    """One bucket, several, half-filled ones."""
    session = Session(tmp_path)
    session.write(events)
    session.rotate()

    assert [session.segments.find(f"id-{number}") for number in (1, events, events + 1)] == [1, events, None]
    assert len(fingerprint(b"x")) == 8


INDEX_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "missing": lambda _raw: b"",
    "cut": lambda raw: raw[:-1],
    "only its beginning": lambda raw: raw[:20],
    "NUL": lambda raw: bytes(len(raw)),
    "longer": lambda raw: raw + b"x",
    "flipped magic": lambda raw: b"X" + raw[1:],
    "flipped entry": lambda raw: raw[:60] + bytes([raw[60] ^ 1]) + raw[61:],
    "flipped offset": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGE)
def test_a_damaged_index_is_made_anew(session: Session, damage: str) -> None:
    """It is derived: nothing is lost, and no wrong answer is given."""
    session.segments.index()
    path = session.folder.path / SECOND.replace(".jsonl", ".index")
    whole = path.read_bytes()
    path.write_bytes(INDEX_DAMAGE[damage](whole))
    if damage == "missing":
        path.unlink()

    assert Segments.open(session.folder).find("id-9") == 9
    assert path.read_bytes() == whole


def test_an_index_of_another_segment_is_made_anew(tmp_path: Path) -> None:
    """It names the content that it is of; here all else fits."""
    session = Session(tmp_path)
    for _ in range(2):
        session.write(4)
        session.rotate()
    session.segments.index()
    first, second = (file.index_path for file in session.segments.files()[:-1])
    shutil.copyfile(first, second)

    assert Segments.open(session.folder).find("id-7") == 7


def test_an_index_is_not_made_of_a_damaged_segment(session: Session) -> None:
    """An id that damage hides would be stored twice."""
    flip(session.folder.path / SECOND, 100)

    with pytest.raises(CorruptLogError, match=SECOND):
        session.segments.find("id-9")

    assert not (session.folder.path / SECOND.replace(".jsonl", ".index")).exists()


def test_many_segments_need_few_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are mapped, but no more than a process may hold."""
    monkeypatch.setattr("solution.durable_log.segments._MOST_OPEN_INDEXES", 3)
    session = Session(tmp_path)
    for _ in range(8):
        session.write(2)
        session.rotate()

    assert [session.segments.find(f"id-{number}") for number in range(1, 17)] == [*range(1, 17)]
    assert len(session.segments._indexes) == 3


# --- Files that do not fit ---


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _move(name: str, to: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).rename(folder / to) and None


def _copy(name: str, to: str) -> Callable[[Path], None]:
    return lambda folder: shutil.copyfile(folder / name, folder / to) and None


def _swap(folder: Path) -> None:
    (folder / FIRST).rename(folder / "aside")
    (folder / SECOND).rename(folder / FIRST)
    (folder / "aside").rename(folder / SECOND)


def _link(folder: Path) -> None:
    (folder / FIRST).rename(folder / "elsewhere")
    (folder / FIRST).symlink_to(folder / "elsewhere")


def _folder_instead(folder: Path) -> None:
    (folder / FIRST).unlink()
    (folder / FIRST).mkdir()


def _grow(folder: Path) -> None:
    with (folder / FIRST).open("ab") as file:
        file.write(b"x")


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "first missing": (_remove(FIRST), FIRST),
    "second missing": (_remove(SECOND), SECOND),
    "renamed": (_move(SECOND, f"{9:020d}.jsonl"), f"{9:020d}.jsonl"),
    "renamed, shorter digits": (_move(SECOND, "8.jsonl"), "8.jsonl"),
    "swapped": (_swap, FIRST),
    "doubled under another number": (_copy(FIRST, f"{21:020d}.jsonl"), f"{21:020d}.jsonl"),
    "foreign": (lambda folder: (folder / "1.jsonl").write_bytes(b"x") and None, "1.jsonl"),
    "foreign, compressed": (lambda folder: (folder / "7.jsonl.gz").touch(), "7.jsonl.gz"),
    "the active one compressed": (lambda folder: (folder / f"{ACTIVE}.gz").touch(), f"{ACTIVE}.gz"),
    "emptied": (lambda folder: (folder / FIRST).write_bytes(b"") and None, FIRST),
    "cut": (lambda folder: os.truncate(folder / FIRST, 200), FIRST),
    "grown": (_grow, FIRST),
    "a folder": (_folder_instead, FIRST),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_segments_that_do_not_fit_the_manifest_are_named_and_left_alone(session: Session, kind: str) -> None:
    """Missing, foreign, renamed, swapped, doubled, of another size: opening refuses at that file and changes nothing."""
    do, name = DAMAGE[kind]
    do(session.folder.path)
    before = contents(session.folder.path)

    with pytest.raises(CorruptLogError) as refused:
        Segments.open(session.folder)

    assert Path(refused.value.path).name == name
    assert contents(session.folder.path) == before
    assert verdict(session.folder)[:2] == ("corrupt", name)


def test_a_segment_that_is_a_link_is_refused(session: Session) -> None:
    """The system's own error: it does not follow it."""
    _link(session.folder.path)

    with pytest.raises(OSError, match=FIRST):
        Segments.open(session.folder)


def test_segments_of_equal_size_swapped_are_found_by_verify(tmp_path: Path) -> None:
    """Names and sizes fit; the hash does not, and says where."""
    session = Session(tmp_path)
    for _ in range(2):
        session.write(4)
        session.rotate()
    first, second = closed_paths(session)
    assert first.stat().st_size == second.stat().st_size
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)

    assert verdict(session.folder)[:2] == ("corrupt", first.name)


def test_every_flipped_byte_of_a_closed_segment_is_found_by_verify(tmp_path: Path) -> None:
    """One bit in each byte, of the first segment and the last alike; the file is named."""
    session = Session(tmp_path)
    for _ in range(2):
        session.write(2)
        session.rotate()
    for path in closed_paths(session):
        whole = path.read_bytes()
        for at in range(len(whole)):
            flip(path, at)
            assert verdict(session.folder)[:2] == ("corrupt", path.name), at
            path.write_bytes(whole)


def test_verify_counts_across_segments_and_says_where_it_stopped(session: Session) -> None:
    """The line is the physical one of its file, the events those before it in the whole log."""
    path = session.folder.path / SECOND
    lines = path.read_bytes().splitlines(keepends=True)
    flip(path, sum(map(len, lines[:3])) + 120)

    report = verify_session(session.folder)

    assert (report.verdict, Path(report.file).name, report.line) == ("corrupt", SECOND, 4)
    assert (report.events, report.last_sequence) == (10, 10)
    assert report.good_bytes == report.offset == sum(map(len, lines[:3]))


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 40, 200, "all but one"])
def test_a_cut_compressed_segment_is_found(session: Session, cut: int | str) -> None:
    """The last bytes tell the size at opening; verify reads all and names the file."""
    session.segments.compress()
    path = session.folder.path / f"{SECOND}.gz"
    size = path.stat().st_size
    os.truncate(path, 1 if cut == "all but one" else size - int(cut))

    with pytest.raises(CorruptLogError, match=f"{SECOND}.gz"):
        Segments.open(session.folder)
    assert verdict(session.folder)[:2] == ("corrupt", f"{SECOND}.gz")


def test_a_cut_that_opening_cannot_see_is_found_by_verify(session: Session) -> None:
    """A compressed file cut in the middle and given the right last bytes."""
    session.segments.compress()
    path = session.folder.path / f"{SECOND}.gz"
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] + raw[-4:])

    Segments.open(session.folder)

    assert verdict(session.folder)[:2] == ("corrupt", f"{SECOND}.gz")


def test_a_compressed_segment_that_unpacks_without_end_is_given_up_early(session: Session) -> None:
    """Small on the disk, huge in memory: what is longer than what was closed is not read on."""
    session.segments.compress()
    file = session.segments.files()[1]
    assert file.closed is not None
    bomb = gzip.compress(bytes(64 << 20))
    file.compressed_path.write_bytes(bomb[:-4] + struct.pack("<I", file.closed.bytes))
    Segments.open(session.folder)

    with pytest.raises(CorruptLogError, match=f"more bytes, not {file.closed.bytes}"):
        file.prove()


def test_flipped_bytes_of_a_compressed_segment_never_give_other_lines(session: Session) -> None:
    """Each is found, or is in gzip's own header and changes no line."""
    session.segments.compress()
    path = session.folder.path / f"{SECOND}.gz"
    whole, harmless = path.read_bytes(), []
    for at in range(len(whole)):
        flip(path, at)
        if verdict(session.folder)[0] == "sound":
            harmless.append(at)
        path.write_bytes(whole)

    assert set(harmless) <= set(range(3, 10))


@pytest.mark.parametrize("lost", [1, 4, 5])
def test_a_cut_tail_is_seen_by_the_recorded_head(session: Session, lost: int) -> None:
    """The chain alone still fits: it is the manifest that knows how far the log reached."""
    session.segments.record_head(session.head)
    lines = session.lines.splitlines(keepends=True)
    session.segments.active.write_bytes(b"".join(lines[: 5 - lost]))

    outcome, name, reason = verdict(session.folder)

    assert (outcome, name) == ("corrupt", ACTIVE)
    assert "cut" in reason


@pytest.mark.parametrize("more", [0, 3])
def test_a_tail_that_was_written_anew_is_seen_by_the_recorded_head(session: Session, more: int) -> None:
    """Every hash in it fits, and it may be longer than before: it is not the event that the manifest saw (C22-32)."""
    session.segments.record_head(session.head)
    session.head, session.lines = session.segments.before, b""
    session.write(5 + more, data="forged")

    outcome, name, reason = verdict(session.folder)

    assert (outcome, name) == ("corrupt", ACTIVE)
    assert "event 20 is not the one that the manifest recorded" in reason


# --- The manifest ---

MANIFEST_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _raw: b"",
    "NUL": lambda raw: bytes(len(raw)),
    "one NUL": lambda _raw: b"\0",
    "no JSON": lambda _raw: b"not-json\n",
    "another file's JSON": lambda _raw: b'{"a":1}\n',
    "a list": lambda _raw: b"[1]\n",
    "newline missing": lambda raw: raw[:-1],
    "longer": lambda raw: raw + b"\n",
    "twice": lambda raw: raw + raw,
    "byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "key added": lambda raw: b'{"x":1,' + raw[1:],
    "CR LF": lambda raw: raw.replace(b"\n", b"\r\n"),
    "deeply nested": lambda _raw: b"[" * 100_000,
}


@pytest.mark.parametrize("kind", MANIFEST_DAMAGE)
def test_a_damaged_manifest_is_refused_and_never_made_anew(session: Session, kind: str) -> None:
    """Reader and writer stop at it, and every byte in the folder stays."""
    path = session.folder.manifest_path
    path.write_bytes(MANIFEST_DAMAGE[kind](path.read_bytes()))
    before = contents(session.folder.path)

    for look in (Segments.open, Segments.look):
        with pytest.raises(CorruptLogError) as refused:
            look(session.folder)
        assert refused.value.path == str(path)

    assert contents(session.folder.path) == before
    assert verdict(session.folder)[:2] == ("corrupt", "manifest.json")


def test_every_flipped_byte_and_every_cut_of_a_manifest_is_refused(session: Session) -> None:
    """It carries the hash of its own bytes."""
    path = session.folder.manifest_path
    whole = path.read_bytes()
    spoiled = [whole[:end] for end in range(len(whole))]
    spoiled += [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in range(len(whole))]
    for raw in spoiled:
        path.write_bytes(raw)
        with pytest.raises((CorruptLogError, UnknownVersionError)):
            read_manifest(path, SESSION)


PIECES = (
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b'"v":', b"1", b"99", b"-", b"null", b"NaN", b"1e999"),
    *(b'"\\ud800"', b"\xff", b"\0", b"9" * 5000, b',"file_hash":"', b"a" * 64, b'"}\n'),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.integers(0, 700),
    gone=st.integers(0, 60),
    put=st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)),
    alone=st.booleans(),
)
def test_no_bytes_make_a_manifest_crash_its_reader(
    session: Session, at: int, gone: int, put: bytes, alone: bool
) -> None:
    """Anything, alone or put into a sound one: refused in a word of ours, or the sound one itself."""
    manifest = read_manifest(session.folder.manifest_path, SESSION)
    whole = session.folder.manifest_path.read_bytes()
    spoiled = session.folder.path / "spoiled"
    spoiled.write_bytes(put if alone else whole[:at] + put + whole[at + gone :])

    try:
        found = read_manifest(spoiled, SESSION)
    except (CorruptLogError, UnknownVersionError):
        return

    assert found == manifest


def test_a_missing_manifest_beside_segments_is_damage(session: Session) -> None:
    """Only a folder without segments is a new session."""
    session.folder.manifest_path.unlink()
    before = contents(session.folder.path)

    with pytest.raises(CorruptLogError, match="does not know"):
        Segments.open(session.folder)

    assert contents(session.folder.path) == before


def test_an_older_manifest_put_back_is_refused(session: Session) -> None:
    """It does not know the segments that came after it."""
    old = session.folder.manifest_path.read_bytes()
    session.rotate()
    session.write(1)
    session.folder.manifest_path.write_bytes(old)

    with pytest.raises(CorruptLogError, match=f"{21:020d}.jsonl"):
        Segments.open(session.folder)


def test_another_session_s_manifest_is_refused(tmp_path: Path, session: Session) -> None:
    """It names the session that it is of."""
    manifest = read_manifest(session.folder.manifest_path, SESSION)
    assert manifest is not None
    write_manifest(session.folder.manifest_path, msgspec.structs.replace(manifest, session="other"))

    with pytest.raises(CorruptLogError, match="another session"):
        Segments.open(session.folder)


@pytest.mark.skipif(os.name != "posix", reason="owners have numbers on POSIX")
def test_another_user_s_manifest_is_refused(session: Session) -> None:
    """A folder that was copied with its owner's manifest: a backup is the way."""
    manifest = read_manifest(session.folder.manifest_path, SESSION)
    assert manifest is not None
    write_manifest(session.folder.manifest_path, msgspec.structs.replace(manifest, owner=os.geteuid() + 1))

    with pytest.raises(PlaceError, match="belongs to user"):
        Segments.open(session.folder)


CONTRADICTIONS: dict[str, Callable[[Manifest], dict[str, object]]] = {
    "gap": lambda manifest: {
        "closed": (msgspec.structs.replace(manifest.closed[0], last=6), manifest.closed[1])
    },
    "overlap": lambda manifest: {"closed": (manifest.closed[0], manifest.closed[0])},
    "order": lambda manifest: {"closed": manifest.closed[::-1]},
    "backwards": lambda manifest: {"closed": (msgspec.structs.replace(manifest.closed[0], last=0),)},
    "no bytes": lambda manifest: {"closed": (msgspec.structs.replace(manifest.closed[0], bytes=0),)},
    "head before the end": lambda _manifest: {"head": Head(3, "0" * 64)},
    "head of another hash": lambda manifest: {"head": Head(manifest.head.sequence, "0" * 64)},
    "base not zero": lambda _manifest: {"base": Head(3, "0" * 64)},
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_a_manifest_that_contradicts_itself_is_refused(session: Session, kind: str) -> None:
    """Well sealed and still impossible."""
    path = session.folder.manifest_path
    manifest = read_manifest(path, SESSION)
    assert manifest is not None
    write_manifest(path, msgspec.structs.replace(manifest, **CONTRADICTIONS[kind](manifest)))

    with pytest.raises(CorruptLogError, match=r"manifest\.json"):
        Segments.open(session.folder)


def test_a_manifest_that_tells_another_end_of_a_segment_is_found_by_verify(tmp_path: Path) -> None:
    """Well sealed, with the right bytes and hash, and no event behind that would miss its link."""
    session = Session(tmp_path)
    session.write(3)
    session.rotate()
    manifest = read_manifest(session.folder.manifest_path, SESSION)
    assert manifest is not None
    other = msgspec.structs.replace(manifest.closed[0], head="a" * 64)
    changed = msgspec.structs.replace(manifest, closed=(other,), head=Head(3, "a" * 64))
    write_manifest(session.folder.manifest_path, changed)

    outcome, name, _reason = verdict(session.folder)

    assert (outcome, name) == ("corrupt", FIRST)


def test_a_newer_manifest_is_refused_untouched_with_both_versions(session: Session) -> None:
    """It may mean things that this code does not know; whatever else stands in it."""

    class Newer(msgspec.Struct):
        v: int = 99
        anything: str = "x"

    write_sealed(session.folder.manifest_path, Newer())
    before = contents(session.folder.path)

    with pytest.raises(UnknownVersionError, match=r"version 99.*version 1"):
        Segments.open(session.folder)

    assert contents(session.folder.path) == before


def test_a_reader_never_changes_a_byte(session: Session) -> None:
    """Not even what a crash left to be swept."""
    (session.folder.path / ".manifest.json.0123456789abcdef.tmp").write_bytes(b"half")
    before = contents(session.folder.path)

    Segments.look(session.folder)

    assert contents(session.folder.path) == before
    Segments.open(session.folder)
    assert ".manifest.json.0123456789abcdef.tmp" not in contents(session.folder.path)


def test_files_of_other_names_are_left_alone(session: Session) -> None:
    """A note beside the log is nobody's damage, and no sweep takes it."""
    for name in ("note.txt", ".note.tmp", "00000000000000000001.jsonl.aside", "x.jsonl", "manifest.json.bak"):
        (session.folder.path / name).write_bytes(b"mine")

    Segments.open(session.folder)

    assert list(contents(session.folder.path).values()).count(b"mine") == 5


def test_a_reader_beside_a_rotation_looks_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest read just before a rotation meets the files of just after: that is no damage."""
    real, done = os.listdir, []

    def rotate_first(path: Path) -> list[str]:
        if not done:
            done.append(True)
            session.rotate()
            session.write(1)
        return real(path)

    monkeypatch.setattr("solution.durable_log.segments.os.listdir", rotate_first)

    assert len(Segments.look(session.folder).closed) == 3


# --- Retention ---


def covered(session: Session) -> Session:
    Checkpoints(session.folder).save(Replayed(state="all", head=session.head))
    return session


def test_old_segments_go_when_a_checkpoint_covers_them_and_somebody_confirmed(session: Session) -> None:
    """Whole segments before the sequence; what is left still verifies, from its new beginning."""
    session.segments.index()

    removed = remove_before(covered(session).segments, 15, confirmed=True)

    assert [closed.first for closed in removed] == [1]
    assert not [name for name in contents(session.folder.path) if name.startswith(FIRST[:20])]
    assert Segments.open(session.folder).base == Head(7, removed[0].head)
    assert verdict(session.folder) == ("sound", ACTIVE, "")
    assert (session.segments.find("id-1"), session.segments.find("id-8")) == (None, 8)


def test_the_active_segment_never_goes(session: Session) -> None:
    """However large the sequence."""
    remove_before(covered(session).segments, 10**9, confirmed=True)

    assert [file.path.name for file in session.segments.files()] == [ACTIVE]
    assert verdict(session.folder) == ("sound", ACTIVE, "")


def test_a_read_of_removed_events_is_an_error(session: Session) -> None:
    """A shorter history would be a wrong one."""
    remove_before(covered(session).segments, 10, confirmed=True)

    for after in (0, 6):
        with pytest.raises(EventsRemovedError, match="up to 7"):
            session.segments.files(after)
    assert [file.path.name for file in session.segments.files(7)] == [SECOND, ACTIVE]


def _no_checkpoint(session: Session) -> None:
    shutil.rmtree(session.folder.checkpoints_path)


def _damaged_checkpoint(session: Session) -> None:
    flip(next(session.folder.checkpoints_path.iterdir()), 50)


def _early_checkpoint(session: Session) -> None:
    _no_checkpoint(session)
    head = Head(7, session.segments.closed[0].head)
    Checkpoints(session.folder).save(Replayed(state="early", head=head))


def _checkpoint_of_another_log(session: Session) -> None:
    _no_checkpoint(session)
    Checkpoints(session.folder).save(Replayed(state="forged", head=Head(20, "a" * 64)))


def _checkpoint_ahead_of_the_log(session: Session) -> None:
    _no_checkpoint(session)
    Checkpoints(session.folder).save(Replayed(state="ahead", head=Head(21, "a" * 64)))


@pytest.mark.parametrize(
    "spoil",
    [
        _no_checkpoint,
        _damaged_checkpoint,
        _early_checkpoint,
        _checkpoint_of_another_log,
        _checkpoint_ahead_of_the_log,
    ],
    ids=lambda spoil: spoil.__name__,
)
def test_nothing_goes_without_a_checkpoint_that_covers_it(
    session: Session, spoil: Callable[[Session], None]
) -> None:
    """It is read from the disk at that moment, and compared with the log."""
    spoil(covered(session))
    before = contents(session.folder.path)

    with pytest.raises(RetentionError, match="no sound checkpoint covers event 15"):
        remove_before(session.segments, 16, confirmed=True)

    assert contents(session.folder.path) == before


@pytest.mark.parametrize("confirmed", [False, None, 1, "yes"])
def test_nothing_goes_without_a_plain_yes(session: Session, confirmed: object) -> None:
    """Only True confirms; the message says what would be lost."""
    before = contents(covered(session).folder.path)

    with pytest.raises(RetentionError, match="events 1 to 15 would be gone for good"):
        remove_before(session.segments, 16, confirmed=confirmed)  # type: ignore[arg-type]

    assert contents(session.folder.path) == before


def test_a_verification_that_a_removal_overtakes_begins_again(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that go on purpose while it is on its way to them are no damage."""
    covered(session)
    real, removed = SegmentFile.open, []

    def remove_first(file: SegmentFile, *, prove: bool = False) -> IO[bytes]:
        if not removed:
            removed.append(True)
            remove_before(session.segments, 16, confirmed=True)
        return real(file, prove=prove)

    monkeypatch.setattr(SegmentFile, "open", remove_first)

    report = verify_session(session.folder)

    assert (report.verdict, report.events, report.last_sequence) == ("sound", 5, 20)


@pytest.mark.parametrize("sequence", [-1, 0, 1, 7])
def test_segments_that_reach_to_the_sequence_stay(session: Session, sequence: int) -> None:
    """Event 7 is the first segment's last: it goes only with a sequence behind it."""
    assert remove_before(session.segments, sequence, confirmed=True) == ()


def test_a_removal_that_fails_is_finished_with_the_next(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first could not remove is still known to be going, also to a second removal before any reopening."""
    covered(session)
    with monkeypatch.context() as patch:
        patch.setattr("solution.durable_log.segment_file.SegmentFile.remove", _disk_error)
        with pytest.raises(OSError, match="disk"):
            remove_before(session.segments, 8, confirmed=True)

    remove_before(session.segments, 16, confirmed=True)

    assert sorted(contents(session.folder.path)) == [ACTIVE, "manifest.json"]
    Segments.open(session.folder)


def _disk_error(_file: object) -> None:
    raise OSError(5, "disk error")


def test_an_old_segment_put_back_after_its_removal_is_refused(session: Session) -> None:
    """It is not removed a second time: somebody put it there for a reason."""
    copy = (session.folder.path / FIRST).read_bytes()
    remove_before(covered(session).segments, 10, confirmed=True)
    (session.folder.path / FIRST).write_bytes(copy)

    with pytest.raises(CorruptLogError, match=FIRST):
        Segments.open(session.folder)

    assert (session.folder.path / FIRST).read_bytes() == copy
