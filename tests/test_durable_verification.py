"""All of a session, proved across its segments: what the one report says, and of which file it speaks (E12)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from solution.durable_log.contract import GENESIS, Report
from solution.durable_log.errors import UnknownVersionError
from solution.durable_log.limits import Limits
from solution.durable_log.manifest import Manifest, read_manifest, write_manifest
from solution.durable_log.record import Head
from solution.durable_log.verification import verify_session
from tests.durable_session import SESSION, Session, closed_paths, three_segments

NO_JSON = "is not strict JSON (not json)"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Give a session of 20 events: two closed segments, of 7 and 8, and an active one of 5."""
    return three_segments(tmp_path)


def manifest(session: Session) -> Manifest:
    found = read_manifest(session.folder.manifest_path, SESSION)
    assert found is not None
    return found


def forge(session: Session, **changed: object) -> None:
    forged = msgspec.structs.replace(manifest(session), **changed)
    write_manifest(session.folder.manifest_path, forged)


def forge_closed(session: Session, index: int, **changed: object) -> None:
    closed = list(manifest(session).closed)
    closed[index] = msgspec.structs.replace(closed[index], **changed)
    forge(session, closed=tuple(closed))


def sound(session: Session, **changed: object) -> Report:
    report = Report(
        verdict="sound",
        file=str(session.segments.active),
        events=20,
        last_sequence=20,
        good_bytes=len(session.lines),
        log_hash=session.head.hash,
        schema_version=1,
    )
    return msgspec.structs.replace(report, **changed)


def test_a_sound_session_has_one_report(session: Session) -> None:
    """Events are those of all segments, the rest speaks of the active one."""
    assert verify_session(session.folder) == sound(session)


def test_a_session_without_an_active_segment_is_sound(session: Session, tmp_path: Path) -> None:
    """Before the first event, and behind a rotation, the active file is missing: nothing is wrong with that."""
    (tmp_path / "empty").mkdir(mode=0o700)
    empty = Session(tmp_path / "empty")
    active = str(empty.segments.active)

    assert verify_session(empty.folder) == Report(
        verdict="sound", file=active, events=0, last_sequence=0, good_bytes=0, log_hash=GENESIS
    )
    session.rotate()
    assert verify_session(session.folder) == sound(session, good_bytes=0, schema_version=0)


def test_a_torn_tail_is_told_with_the_events_before_it(session: Session) -> None:
    """An unfinished record at the active segment's end: torn, at its place in that file."""
    session.segments.active.write_bytes(session.lines + b'{"v"')

    assert verify_session(session.folder) == sound(
        session, verdict="torn", torn_bytes=4, line=6, offset=len(session.lines), reason=NO_JSON
    )


def test_damage_is_told_with_the_events_of_the_segments_before_it(session: Session) -> None:
    """A bad line in the active segment: corrupt, and what stands before it counts."""
    lines = session.lines.splitlines(keepends=True)
    session.segments.active.write_bytes(b"".join(lines[:2]) + b"x" + b"".join(lines[2:]))
    report = verify_session(session.folder)

    assert (report.verdict, report.reason) == ("corrupt", NO_JSON)
    assert (report.events, report.last_sequence) == (17, 17)
    assert (report.file, report.line) == (str(session.segments.active), 3)
    assert report.offset == report.good_bytes == len(b"".join(lines[:2]))


def test_a_closed_segment_is_held_to_its_bytes(session: Session) -> None:
    """Altered data, or another SHA-256 than was closed: corrupt, and later segments are not looked at."""
    (path, _second) = closed_paths(session)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'{"n":2}', b'{"n":3}'))
    report = verify_session(session.folder)

    assert (report.verdict, report.file, report.events) == ("corrupt", str(path), 1)
    assert report.reason == "event_hash is not the hash of its bytes"
    path.write_bytes(whole)
    forge_closed(session, 0, sha256="0" * 64)
    report = verify_session(session.folder)
    assert (report.verdict, report.file, report.events) == ("corrupt", str(path), 7)
    assert report.reason == "is not what was closed: its SHA-256 differs"


def test_a_closed_segment_ends_where_the_manifest_says(session: Session) -> None:
    """A manifest that promises another last event, by number or hash, than the file holds is found at that file."""
    (first, second) = closed_paths(session)
    short = b"".join(second.read_bytes().splitlines(keepends=True)[:-1])
    second.write_bytes(short)
    forge_closed(session, 1, bytes=len(short), sha256=hashlib.sha256(short).hexdigest())
    report = verify_session(session.folder)

    assert report.reason == "ends at event 14, and the manifest says 15"
    assert (report.verdict, report.file, report.events) == ("corrupt", str(second), 14)
    forge_closed(session, 0, head="1" * 64)
    report = verify_session(session.folder)
    assert report.reason == "ends at event 7, and the manifest says 7"
    assert (report.verdict, report.file, report.events) == ("corrupt", str(first), 7)


def test_what_the_manifest_recorded_has_to_be_there(session: Session) -> None:
    """The recorded head is looked for by number and hash, wherever it stands; a log that ends before it was cut."""
    lines = session.lines.splitlines(keepends=True)
    for sequence, line in zip(range(16, 21), lines, strict=True):
        digest = line[-67:-3].decode()
        forge(session, head=Head(sequence, digest))
        assert verify_session(session.folder) == sound(session)
        forge(session, head=Head(sequence, "1" * 64))
        assert verify_session(session.folder) == sound(
            session, verdict="corrupt", reason=f"event {sequence} is not the one that the manifest recorded"
        )
    forge(session, head=Head(21, "1" * 64))
    assert verify_session(session.folder) == sound(
        session, verdict="corrupt", reason="ends at event 20, and it reached event 21: its tail was cut"
    )


def test_a_missing_closed_segment_is_damage(session: Session) -> None:
    """A file that the manifest lists and the folder lacks: corrupt, named, and nothing else is said of it."""
    (_first, second) = closed_paths(session)
    second.unlink()
    report = verify_session(session.folder)

    assert (report.verdict, report.file) == ("corrupt", str(second))
    assert report.reason == "a segment that the manifest lists is missing"


def test_a_damaged_manifest_is_damage(session: Session) -> None:
    """Nothing was read: no events, and the manifest is the bad place."""
    path = session.folder.manifest_path
    path.write_bytes(b"{}")
    report = verify_session(session.folder)

    assert msgspec.structs.replace(report, reason="") == Report(
        verdict="corrupt", file=str(path), events=0, last_sequence=0, good_bytes=0
    )
    assert report.reason


def test_limits_versions_and_sessions_are_those_of_the_caller(session: Session) -> None:
    """A line over the limit is damage, a version over the newest known an error, another session's record damage."""
    limits = Limits(record_bytes=1, line_bytes=100)
    assert (
        verify_session(session.folder, limits=limits).reason
        == "is longer than 100 bytes, the limit of a line"
    )
    with pytest.raises(UnknownVersionError, match=f"^{closed_paths(session)[0]}:1: has version 1"):
        verify_session(session.folder, newest=0)
    assert verify_session(session.folder, newest=1) == sound(session)
    session.segments.active.write_bytes(session.lines.replace(SESSION.encode(), b"other-1", 1))
    assert verify_session(session.folder).reason == "belongs to another session"
