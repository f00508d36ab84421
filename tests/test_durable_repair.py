"""Taking a torn tail off: what is cut, what lies aside, what the audit tells, and what nobody may cut (E11)."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from solution.durable_log import repair
from solution.durable_log.contract import Report
from solution.durable_log.errors import LogLockedError, PlaceError, RefusedError
from solution.durable_log.inspection import LogReport
from solution.durable_log.lock import SessionLock
from solution.durable_log.log_repair import find_tail, mend
from solution.durable_log.reading import Scan
from solution.durable_log.record import BEGINNING
from solution.durable_log.repair import mend_tail
from tests.durable_session import Session, record

NOON = 1_796_040_000.0
FIRST, HEAD = record(BEGINNING)
TORN = b'{"v":1,"ses'


def torn_log(folder: Path, tail: bytes = TORN) -> Path:
    log = folder / "log.jsonl"
    log.write_bytes(FIRST + tail)
    return log


def read(log: Path) -> tuple[Report, bool]:
    scan = Scan(log)
    list(scan)
    return scan.report, scan.missing_newline


def audit(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "repairs.jsonl").read_bytes().splitlines() if line]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- One tail ---


def test_a_torn_tail_is_cut_and_told(tmp_path: Path) -> None:
    """Cut at the last whole record; the original lies aside, private, and the audit record says all of it."""
    log = torn_log(tmp_path)
    report, missing = read(log)
    done = mend_tail(log, report, missing_newline=missing, now=lambda: NOON)
    copy = tmp_path / f"log.jsonl.torn-{len(FIRST)}"

    assert log.read_bytes() == FIRST
    assert copy.read_bytes() == FIRST + TORN
    assert (mode(copy), mode(tmp_path / "repairs.jsonl")) == (0o600, 0o600)
    assert audit(tmp_path) == [
        {
            "v": 1,
            "at": "2026-11-30T12:00:00Z",
            "file": "log.jsonl",
            "offset": len(FIRST),
            "bytes": len(TORN),
            "missing_newline": False,
            "copy": copy.name,
            "sha256": hashlib.sha256(FIRST + TORN).hexdigest(),
            "last_sequence": 1,
            "log_hash": HEAD.hash,
        }
    ]
    assert msgspec.to_builtins(done) == audit(tmp_path)[0]


def test_a_missing_newline_is_added(tmp_path: Path) -> None:
    """A whole last record is only ended; the audit record says that nothing was cut."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(FIRST[:-1])
    report, missing = read(log)
    mend_tail(log, report, missing_newline=missing)

    assert log.read_bytes() == FIRST
    assert [(told["bytes"], told["missing_newline"]) for told in audit(tmp_path)] == [(0, True)]
    assert str(audit(tmp_path)[0]["at"]) > "2026"


def test_every_repair_has_a_copy_and_a_record_of_its_own(tmp_path: Path) -> None:
    """A second and a third tail at the same place lie beside the first; no copy and no record is written over."""
    tails = [TORN, b"x", b"\x00" * 9]
    for tail in tails:
        log = torn_log(tmp_path, tail)
        report, missing = read(log)
        mend_tail(log, report, missing_newline=missing)
    names = [f"log.jsonl.torn-{len(FIRST)}{more}" for more in ("", "-2", "-3")]

    assert [told["copy"] for told in audit(tmp_path)] == names
    assert [(tmp_path / name).read_bytes() for name in names] == [FIRST + tail for tail in tails]


def test_a_long_original_is_copied_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pieces it takes, copy and hash are those of the whole file."""
    monkeypatch.setattr(repair, "_COPY_BYTES", 7)
    log = torn_log(tmp_path)
    done = mend_tail(log, read(log)[0], missing_newline=False)

    assert (tmp_path / done.copy).read_bytes() == FIRST + TORN
    assert done.sha256 == hashlib.sha256(FIRST + TORN).hexdigest()


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b""), (b'{"v":1}\n', b'{"v":1}\n'), (b'{"v":1', b'{"v":1\n'), (b"x", b"x\n"), (b"\n", b"\n")],
)
def test_what_a_crash_left_in_the_audit_is_ended(tmp_path: Path, before: bytes, after: bytes) -> None:
    """A record cut short stays as it is, on a line of its own."""
    (tmp_path / "repairs.jsonl").write_bytes(before)
    log = torn_log(tmp_path)
    done = mend_tail(log, read(log)[0], missing_newline=False)

    assert (tmp_path / "repairs.jsonl").read_bytes() == after + msgspec.json.encode(done) + b"\n"


def test_new_names_are_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced behind every copy, and behind the audit's file when that is new."""
    synced: list[object] = []
    monkeypatch.setattr(repair, "sync_folder", synced.append)
    for folders in (2, 3):
        log = torn_log(tmp_path)
        mend_tail(log, read(log)[0], missing_newline=False)

        assert synced == [tmp_path] * folders


# --- What nobody may cut ---


def a_report(**changed: object) -> Report:
    known = {"verdict": "torn", "file": "log.jsonl", "events": 1, "last_sequence": 1}
    sizes = {"good_bytes": len(FIRST), "torn_bytes": len(TORN)}
    return msgspec.convert({**known, **sizes, **changed}, Report)


@pytest.mark.parametrize(
    ("report", "missing_newline"),
    [
        (a_report(verdict="corrupt"), False),
        (a_report(verdict="corrupt"), True),
        (a_report(verdict="sound", torn_bytes=0), False),
        (a_report(torn_bytes=0), False),
    ],
)
def test_without_a_torn_tail_nothing_is_cut(tmp_path: Path, report: Report, *, missing_newline: bool) -> None:
    """Damage, or a sound log, is refused before the file is opened; nothing lies aside."""
    log = torn_log(tmp_path)
    with pytest.raises(RefusedError) as caught:
        mend_tail(log, report, missing_newline=missing_newline)

    said = f"{log}: has no torn tail, so nothing may be cut; look at it with: statelab log inspect"
    assert str(caught.value) == said
    assert log.read_bytes() == FIRST + TORN
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_changed_since_is_refused(tmp_path: Path, change: int) -> None:
    """Another size than what was reported: somebody wrote meanwhile, and nothing is touched."""
    log = torn_log(tmp_path)
    with pytest.raises(RefusedError) as caught:
        mend_tail(log, a_report(torn_bytes=len(TORN) + change), missing_newline=False)

    assert str(caught.value) == f"{log}: changed since it was read; read it again before you repair it"
    assert list(tmp_path.iterdir()) == [log]
    assert log.read_bytes() == FIRST + TORN


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A link in the log's place, or in the audit's, is an error: what it leads to is not written."""
    log = torn_log(tmp_path)
    (tmp_path / "deep").mkdir()
    link = tmp_path / "deep/log.jsonl"
    link.symlink_to(log)
    with pytest.raises(OSError, match="symbolic link") as caught:
        mend_tail(link, a_report(), missing_newline=False)
    assert caught.value.errno == errno.ELOOP
    (tmp_path / "repairs.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        mend_tail(log, a_report(), missing_newline=False)

    assert log.read_bytes() == FIRST + TORN
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_leaves_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the copy cannot be made, half of it is removed, nothing is cut, and no descriptor stays open."""

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "full")

    log = torn_log(tmp_path)
    opened: set[int] = set()
    real_open = os.open

    def counted(*how: object, **more: object) -> int:
        opened.add(descriptor := real_open(*how, **more))  # type: ignore[call-overload]
        return descriptor

    monkeypatch.setattr(os, "open", counted)
    monkeypatch.setattr(repair, "write_all", full)
    with pytest.raises(OSError, match="full"):
        mend_tail(log, a_report(), missing_newline=False)
    for descriptor in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)

    assert opened
    assert list(tmp_path.iterdir()) == [log]
    assert log.read_bytes() == FIRST + TORN


# --- Any log, from the command ---


def torn_session(root: Path, tail: bytes = TORN) -> Session:
    root.mkdir(mode=0o700)
    session = Session(root)
    session.write(2)
    session.lines += tail
    session.segments.active.write_bytes(session.lines)
    return session


def test_a_plain_log_is_found_and_mended(tmp_path: Path) -> None:
    """A file is judged by its own form; its torn tail is cut, and the report says the same as the audit."""
    log = torn_log(tmp_path)
    found = find_tail(str(log), None)

    assert (found.path, found.session, found.report.format) == (log, None, "durable")
    assert (found.missing_newline, found.needs_mending) == (False, True)
    done = mend(found)
    assert (done.offset, done.bytes, done.log_hash) == (len(FIRST), len(TORN), HEAD.hash)
    assert log.read_bytes() == FIRST
    again = find_tail(str(log), None)
    assert (again.missing_newline, again.needs_mending) == (False, False)


def test_the_form_that_is_asked_for_is_the_one_that_is_read(tmp_path: Path) -> None:
    """The same file as foreign JSON lines: another report."""
    assert find_tail(str(torn_log(tmp_path)), "generic").report.format == "generic"


def test_a_record_without_its_newline_is_ended(tmp_path: Path) -> None:
    """Nothing is cut from a whole record; a second look finds nothing to do."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(FIRST[:-1])
    found = find_tail(str(log), None)

    assert (found.missing_newline, found.needs_mending, found.report.torn_bytes) == (True, True, 0)
    assert mend(found).missing_newline is True
    assert log.read_bytes() == FIRST
    assert find_tail(str(log), None).needs_mending is False


def test_a_session_is_mended_under_its_lock(tmp_path: Path) -> None:
    """While a writer has the session it is refused; afterwards its active segment is mended and the lock is free."""
    session = torn_session(tmp_path / "root")
    active = session.segments.active
    found = find_tail(str(session.folder.path), "generic")
    writer = SessionLock.take(session.folder.lock_path)
    with pytest.raises(LogLockedError):
        mend(found)
    writer.release()

    assert (found.path, found.session, found.report.format) == (active, session.folder, "durable")
    assert mend(found).last_sequence == 2
    assert active.read_bytes() == session.lines.removesuffix(TORN)
    SessionLock.take(session.folder.lock_path).release()


def test_the_lock_is_given_up_after_a_refusal(tmp_path: Path) -> None:
    """A file that changed since is refused, and the next writer gets in."""
    session = torn_session(tmp_path / "root")
    found = find_tail(str(session.folder.path), None)
    session.segments.active.write_bytes(session.lines + b"more")
    with pytest.raises(RefusedError):
        mend(found)

    SessionLock.take(session.folder.lock_path).release()


def test_a_session_without_a_segment_has_nothing_to_mend(tmp_path: Path) -> None:
    """Before the first event there is no file: sound, empty, and nothing to do."""
    (tmp_path / "root").mkdir(mode=0o700)
    session = Session(tmp_path / "root")
    found = find_tail(str(session.folder.path), None)

    assert (found.path, found.session) == (session.segments.active, session.folder)
    assert found.needs_mending is False
    nothing = dict.fromkeys(("events", "last_sequence", "good_bytes", "records", "size"), 0)
    assert found.report == LogReport(
        verdict="sound",
        file=str(session.segments.active),
        format="durable",
        findings=[],
        counts={},
        **nothing,  # type: ignore[arg-type]
    )


def test_what_has_no_tail_to_cut_is_refused_in_these_words(tmp_path: Path) -> None:
    """Standard input, a folder, a link, a piece of a session, a compressed file: each is told what to give instead."""
    session = torn_session(tmp_path / "root")
    log = torn_log(tmp_path)
    (tmp_path / "link").symlink_to(log)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(FIRST))
    said = {
        "-": "is no file; give one log, or a session's folder",
        str(tmp_path): "is no file; give one log, or a session's folder",
        str(tmp_path / "link"): "is a link; give the file that it leads to",
        str(session.segments.active): "is a piece of a session; give the session's folder",
        str(tmp_path / "packed.jsonl.gz"): (
            "is compressed, and only a plain file has a tail to cut; unpack it first"
        ),
    }
    for place, words in said.items():
        with pytest.raises(PlaceError) as caught:
            find_tail(place, None)

        assert str(caught.value) == f"{place}: {words}"
