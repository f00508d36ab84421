"""`statelab log repair`: find a torn tail in any log, and take it off by the same few steps as `DurableLog` does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .contract import Report
from .errors import PlaceError
from .foreign import Format
from .inspection import LogReport, inspect
from .lock import SessionLock
from .log_source import Source, is_session, printable
from .repair import Repair, mend_tail
from .segments import Segments
from .session_folder import SessionFolder


class FoundTail(NamedTuple):
    """A file, and what its end is."""

    path: Path
    report: LogReport
    session: SessionFolder | None

    @property
    def missing_newline(self) -> bool:
        """Whether the last record is whole and only not ended."""
        return not self.report.torn_bytes and bool(self.report.counts.get("missing-newline"))

    @property
    def needs_mending(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.report.torn_bytes) or self.missing_newline


def find_tail(place: str, format_: Format | None) -> FoundTail:
    """Read a log, or the active segment of a session, and say what its end is. Changes nothing.

    Raises: PlaceError for what cannot be repaired by itself; DurableLogError; OSError.
    """
    path, session = Path(place), None
    title = printable(place)
    if is_session(path):
        session = SessionFolder(path, path.name)
        path = Segments.look(session).active
    elif place == "-" or path.is_dir():
        raise PlaceError(f"{title}: is no file; give one log, or a session's folder")
    elif path.is_symlink():
        raise PlaceError(f"{title}: is a link; give the file that it leads to")
    elif is_session(path.parent):
        raise PlaceError(f"{title}: is a piece of a session; give the session's folder")
    if session and not path.exists():
        return FoundTail(path, _nothing(path), session)
    with Source.open(str(path)) as source:
        if source.compressed:
            raise PlaceError(
                f"{title}: is compressed, and only a plain file has a tail to cut; unpack it first"
            )
        return FoundTail(path, inspect(source, "durable" if session else format_), session)


def mend(found: FoundTail) -> Repair:
    """Copy the file aside, cut its torn tail or add the newline, and leave the audit record.

    Raises: LogLockedError while a writer has the session; RefusedError when the file changed; OSError.
    """
    lock = SessionLock.take(found.session.lock_path) if found.session else None
    try:
        report = Report(**{name: getattr(found.report, name) for name in Report.__struct_fields__})
        return mend_tail(found.path, report, missing_newline=found.missing_newline)
    finally:
        if lock:
            lock.release()


def _nothing(path: Path) -> LogReport:
    return LogReport(
        verdict="sound",
        file=str(path),
        events=0,
        last_sequence=0,
        good_bytes=0,
        format="durable",
        records=0,
        size=0,
        findings=[],
        counts={},
    )
