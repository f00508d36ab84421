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

    Raises: UnknownVersionError; PlaceError; OSError for files that cannot be read. Damage is an answer, no error.
    """
    report = Report(verdict="sound", file=str(folder.manifest_path), events=0, last_sequence=0, good_bytes=0)
    try:
        segments = Segments.look(folder)
        recorded = segments.recorded_head()
        for file in segments.files():
            with_events = report.events
            report = _verify_file(file, folder.session, recorded, limits, newest)
            report = msgspec.structs.replace(report, events=with_events + report.events)
            if report.verdict == "corrupt":
                return report
    except CorruptLogError as damage:
        return msgspec.structs.replace(report, verdict="corrupt", file=damage.path, reason=damage.reason)
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
