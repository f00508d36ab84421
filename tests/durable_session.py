"""A session made of real records, without the writer: for tests of what stands beneath it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from solution.durable_log.contract import Event
from solution.durable_log.reading import Scan
from solution.durable_log.record import Head, encode_event, hash_of
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import SessionFolder, open_session_folder
from solution.durable_log.verification import verify_session

SESSION = "build-7"


def record(head: Head, data: Any = None, type_: str = "noted", event_id: str = "") -> tuple[bytes, Head]:
    """Return the line that follows `head`, and the head behind it."""
    sequence = head.sequence + 1
    event = Event(
        v=1,
        session=SESSION,
        sequence=sequence,
        event_id=event_id or f"id-{sequence}",
        type=type_,
        data={"n": sequence} if data is None else data,
        occurred_at="2026-11-30T16:00:00.000000Z",
        causation_id=None,
        correlation_id=None,
        previous_hash=head.hash,
        event_hash="0" * 64,
    )
    digest = hash_of(encode_event(event))
    return encode_event(msgspec.structs.replace(event, event_hash=digest)) + b"\n", Head(sequence, digest)


class Session:
    """One session under construction; also a store to replay from, as far as a replay needs one."""

    session = SESSION

    def __init__(self, root: Path, segments: Segments | None = None) -> None:
        self.folder = open_session_folder(root, SESSION)
        self.segments = segments or Segments.open(self.folder)
        self.head = self.segments.before
        self.lines = b""
        if self.segments.active.exists():
            self.lines = self.segments.active.read_bytes()
            scan = Scan(self.segments.active, before=self.head)
            list(scan)
            self.head = scan.head

    def write(self, count: int = 1, **fields: Any) -> None:
        """Append some events."""
        for _ in range(count):
            line, self.head = record(self.head, **fields)
            self.lines += line
        self.segments.active.write_bytes(self.lines)
        self.segments.active.chmod(0o600)

    def rotate(self, *, named: bool = True) -> None:
        """Close the active segment."""
        digest = hashlib.sha256(self.lines).hexdigest()
        self.segments.rotate(self.head, len(self.lines), digest, named=named)
        self.lines = b""

    async def append(self, type: str, data: Any, *, event_id: str = "") -> Event:  # noqa: A002
        self.write(type_=type, data=data, event_id=event_id)
        return msgspec.json.decode(self.lines.splitlines()[-1], type=Event)

    async def stream(self, *, after: int = 0) -> AsyncIterator[Event]:
        for file in self.segments.files(after):
            try:
                source = file.open()
            except FileNotFoundError:
                return
            with source:
                for event in Scan(source, session=SESSION, before=file.before, name=str(file.path)):
                    if event.sequence > after:
                        yield event


def three_segments(root: Path) -> Session:
    """Make a session of 20 events: two closed segments, of 7 and 8, and an active one of 5."""
    session = Session(root)
    for count in (7, 8):
        session.write(count)
        session.rotate()
    session.write(5)
    return session


def closed_paths(session: Session) -> list[Path]:
    """List the files of the closed segments, oldest first."""
    return [file.path for file in session.segments.files()[:-1]]


def verdict(folder: SessionFolder) -> tuple[str, str, str]:
    """Verify a session; return the verdict, the name of the file that is meant, and the reason."""
    report = verify_session(folder)
    return report.verdict, Path(report.file).name, report.reason
