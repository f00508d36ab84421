"""All of a session, read and proved: manifest, each segment's bytes, the chain across them, the recorded head (E12)."""

from __future__ import annotations

import msgspec

from .contract import Report
from .errors import CorruptLogError
from .limits import Limits
from .reading import Scan
from .record import Head
from .segment_file import SegmentFile
from .segments import Segments
from .session_folder import SessionFolder


def verify_session(
    folder: SessionFolder,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    newest: int | None = None,
) -> Report:
    """Read everything and report; changes nothing, needs no lock, and sees what was committed when it began.

    `events` counts what is there, without what retention removed; `file`, `good_bytes`, `line` and `offset` are those of
    the bad place's file, else of the active segment. `newest` is the newest schema version that is understood; None
    for any.

    Raises: UnknownVersionError; OSError for files that cannot be read. Damage is an answer, no error.
    """
    report = Report(verdict="sound", file=str(folder.manifest_path), events=0, last_sequence=0, good_bytes=0)
    try:
        segments = Segments.look(folder)
        report = _verify_files(segments, limits, newest)
        if report.verdict == "corrupt" and Segments.look(folder).base != segments.base:
            return verify_session(folder, limits=limits, newest=newest)  # a retention beside us, not damage
    except CorruptLogError as damage:
        return msgspec.structs.replace(report, verdict="corrupt", file=damage.path, reason=damage.reason)
    return report


def _verify_files(segments: Segments, limits: Limits, newest: int | None) -> Report:
    recorded, events = segments.recorded_head(), 0
    report = Scan(segments.active).report
    for file in segments.files():
        report = _verify_file(file, segments.folder.session, recorded, limits, newest)
        events += report.events
        report = msgspec.structs.replace(report, events=events)
        if report.verdict == "corrupt":
            return report
    if report.last_sequence < recorded.sequence:
        reason = f"ends at event {report.last_sequence}, and it reached event {recorded.sequence}: its tail was cut"
        return msgspec.structs.replace(report, verdict="corrupt", reason=reason)
    return report


def _verify_file(
    file: SegmentFile, session: str, recorded: Head, limits: Limits, newest: int | None
) -> Report:
    try:
        lines = file.open(prove=file.closed is not None)
    except FileNotFoundError:  # the active segment, before its first event
        return Scan(file.path, before=file.before).report
    except CorruptLogError as damage:
        scan = Scan(file.path, before=file.before, name=damage.path)
        return _corrupt(scan, damage.reason)
    with lines:
        scan = Scan(lines, session=session, before=file.before, limits=limits, newest=newest, name=lines.name)
        try:
            for block in scan.blocks():
                place = recorded.sequence - block.events[0].sequence
                if 0 <= place < len(block.events) and block.events[place].event_hash != recorded.hash:
                    return _corrupt(
                        scan, f"event {recorded.sequence} is not the one that the manifest recorded"
                    )
        except CorruptLogError as damage:
            report = scan.report
            return report if report.verdict == "corrupt" else _corrupt(scan, damage.reason)
    if file.closed is not None and scan.head != Head(file.closed.last, file.closed.head):
        return _corrupt(scan, f"ends at event {scan.head.sequence}, and the manifest says {file.closed.last}")
    return scan.report


def _corrupt(scan: Scan, reason: str) -> Report:
    return msgspec.structs.replace(scan.report, verdict="corrupt", reason=reason)
