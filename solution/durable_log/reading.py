"""Reading a log: one scanner for everybody, in bounded memory, exact about what is wrong and where (E9, E10).

A block of whole lines is decoded, encoded again and compared at once; what does not compare is looked at line by line,
and that slow judge has the last word.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from .atomic_file import NO_FOLLOW
from .contract import SCHEMA_VERSION, Event, Report
from .errors import CorruptLogError, UnknownVersionError
from .limits import Limits
from .record import BEGINNING, Head, as_event, encode_event, hash_of
from .strict_json import NotStrictError, judge_exactly

CHUNK_BYTES = 256 << 10
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for somebody who writes to it
_decode_lines = msgspec.json.Decoder(Event).decode_lines
_encode_lines = msgspec.json.Encoder().encode_lines


class Block(NamedTuple):
    """Some events that stand one behind the other: `lines` are their bytes, from `offset` in the file on."""

    offset: int
    lines: bytes
    events: list[Event]

    def offsets(self) -> Iterator[int]:
        """Give the offset of each event's line in the file."""
        at = self.offset
        for line in self.lines.split(b"\n")[: len(self.events)]:
            yield at
            at += len(line) + 1


class Bad(NamedTuple):
    """A place that is not the record that is due. `torn` when an unfinished write explains it, at a log's end."""

    reason: str
    torn: bool = False
    version: int | None = None


class Scan:
    """One file of a log, read from `before` on. Iterating gives events; `blocks` gives them many at once, faster.

    Damage raises CorruptLogError at its place, behind the events before it; a torn tail ends the iteration. `report`
    says what was found so far. Reading on later goes on where the last record ended, so that a follower calls
    `blocks(final=False)` again and again: the end of the file then means nothing.
    """

    def __init__(
        self,
        source: Path | IO[bytes],
        *,
        session: str | None = None,
        before: Head = BEGINNING,
        verify_chain: bool = True,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        newest: int | None = SCHEMA_VERSION,
        until: int | None = None,
        name: str = "",
    ) -> None:
        """Take a file by its path, or open for reading bytes and then named by `name`.

        Args:
            source: a missing path is a log without events.
            session: the id that every record must carry; None takes the first record's.
            before: the event before the file's first.
            verify_chain: compute every hash; without it only the numbers and the links are compared.
            newest: the newest schema version that the reader understands; None for any.
            until: offset in bytes at which to stop, the end of a record; None for the end of the file.
        """
        self.name = name or str(source if isinstance(source, Path) else getattr(source, "name", "log"))
        self.session = session
        self.head = before
        self.good_bytes = 0
        self.missing_newline = False
        self._source = source
        self._first = before.sequence
        self._verify = verify_chain
        self._limits = limits
        self._newest = newest
        self._until = until
        self._rest = b""
        self._version = 0
        self._bad: Bad | None = None

    def __iter__(self) -> Iterator[Event]:
        for block in self.blocks():
            yield from block.events

    @property
    def report(self) -> Report:
        """What was found up to here."""
        bad, torn = self._bad, self._bad is not None and self._bad.torn
        lines = self.head.sequence - self._first
        return Report(
            verdict="sound" if bad is None else "torn" if torn else "corrupt",
            file=self.name,
            events=lines,
            last_sequence=self.head.sequence,
            good_bytes=self.good_bytes,
            torn_bytes=len(self._rest) if torn else 0,
            line=None if bad is None else lines + 1,
            offset=None if bad is None else self.good_bytes,
            reason=bad.reason if bad else "",
            log_hash=self.head.hash,
            schema_version=self._version,
        )

    def skip_to(self, head: Head, offset: int) -> None:
        """Read on behind `head`, which ends at `offset`, without looking at what stands before. Only at the beginning."""
        self.head, self.good_bytes = head, offset
        if not isinstance(self._source, Path):
            self._source.seek(offset)

    def blocks(self, *, final: bool = True) -> Iterator[Block]:
        """Give the events that follow, in blocks. With `final`, judge what stands behind the last newline.

        Raises: CorruptLogError; UnknownVersionError; OSError.
        """
        for piece in self._pieces():
            data = self._rest + piece
            end = data.rfind(b"\n") + 1
            self._rest = data[end:]
            longest = max(data.find(b"\n") + 1, len(self._rest))
            if longest > self._limits.line_bytes:
                self._stop(Bad(f"is longer than {self._limits.line_bytes} bytes, the limit of a line"))
            if end:
                yield from self._whole_lines(data[:end])
        if final and self._rest:
            yield from self._last_line()

    def _pieces(self) -> Iterator[bytes]:
        size = min(CHUNK_BYTES, self._limits.line_bytes)
        if not isinstance(self._source, Path):
            yield from self._read_on(self._source, size)
            return
        try:
            file = open_log(self._source)
        except FileNotFoundError:
            return
        with file:
            file.seek(self.good_bytes + len(self._rest))
            yield from self._read_on(file, size)

    def _read_on(self, file: IO[bytes], size: int) -> Iterator[bytes]:
        at = self.good_bytes + len(self._rest)
        while piece := file.read(size if self._until is None else min(size, self._until - at)):
            at += len(piece)
            yield piece

    # --- Many lines at once ---

    def _whole_lines(self, lines: bytes) -> Iterator[Block]:
        try:
            events = _decode_lines(lines)
            sound = _encode_lines(events) == lines
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            sound = False
        if not sound or not self._fits(events) or (self._verify and not _hashes_fit(events, lines)):
            yield from self._one_by_one(lines)
            return
        block = Block(self.good_bytes, lines, events)
        self._take(events[-1], len(lines))
        yield block

    def _fits(self, events: list[Event]) -> bool:
        """Say whether these are the events that are due, by number, session, version and link."""
        due, previous = self.head.sequence, self.head.hash
        session = self.session = self.session or events[0].session
        version = self._version or events[0].v
        for event in events:
            due += 1
            if event.sequence != due or event.previous_hash != previous or event.session != session:
                return False
            if event.v != version:
                return False  # rare: then the slow judge looks at each
            previous = event.event_hash
        return version >= 1 and (self._newest is None or version <= self._newest)

    def _take(self, last: Event, length: int) -> None:
        self.head = Head(last.sequence, last.event_hash)
        self.good_bytes += length
        self._version = max(self._version, last.v)

    # --- One line at a time: slower, and exact ---

    def _one_by_one(self, lines: bytes) -> Iterator[Block]:
        offset, at = self.good_bytes, 0
        events: list[Event] = []
        while at < len(lines):
            end = lines.index(b"\n", at)
            judged = self._judge(lines[at:end])
            if isinstance(judged, Bad):
                if events:
                    yield Block(offset, lines[:at], events)
                self._stop(judged._replace(torn=False))
            else:
                events.append(judged)
                self._take(judged, end + 1 - at)
                at = end + 1
        yield Block(offset, lines, events)

    def _last_line(self) -> Iterator[Block]:
        """Judge what stands behind the last newline: the one place where an unfinished write is forgiven."""
        judged = self._judge(self._rest)
        if isinstance(judged, Event):
            block = Block(self.good_bytes, self._rest, [judged])
            self._take(judged, len(self._rest))
            self._rest, self.missing_newline = b"", True
            yield block
        elif judged.torn:
            self._bad = judged
        else:
            self._stop(judged)

    def _stop(self, bad: Bad) -> None:
        self._bad = bad
        if bad.version is not None:
            raise UnknownVersionError(
                f"{self.name}:{self.report.line}: has version {bad.version}, and the newest known here is "
                f"{self._newest}; read it with the newer program or give its schemas"
            )
        raise CorruptLogError(self.name, bad.reason, line=self.report.line, offset=self.good_bytes)

    def _judge(self, line: bytes) -> Event | Bad:
        """Judge one line without its newline."""
        try:
            value = judge_exactly(line).value
        except NotStrictError as problem:
            return Bad(f"is not strict JSON ({problem.kind.replace('-', ' ')})", torn=True)
        version = value.get("v") if isinstance(value, dict) else None
        newer = type(version) is int and self._newest is not None and version > self._newest
        try:
            event = as_event(value)
        except ValueError as problem:
            return Bad(str(problem), version=version if newer else None)
        if reason := self._wrong_with(event, line):
            return Bad(reason)  # also of a newer version: a flipped bit of `v` is no version
        return Bad("is of a newer version", version=version) if newer else event

    def _wrong_with(self, event: Event, line: bytes) -> str:
        """Say what keeps a record from being the one that is due; empty when nothing does."""
        self.session = self.session or event.session
        due = self.head.sequence + 1
        checks = (
            (event.session != self.session, "belongs to another session"),
            (event.v < 1, "v is below 1"),
            (event.sequence != due, f"sequence: expected {due}, found {_shown(event.sequence)}"),
            (line.endswith(b"\r"), "ends in CR LF: something rewrote the line ends"),
            (encode_event(event) != line, "is not its own serialisation: something wrote it anew"),
            (event.previous_hash != self.head.hash, "previous_hash is not the hash of the event before"),
            (self._verify and event.event_hash != hash_of(line), "event_hash is not the hash of its bytes"),
        )
        return next((reason for wrong, reason in checks if wrong), "")


def _hashes_fit(events: list[Event], lines: bytes) -> bool:
    return all(
        event.event_hash == hash_of(line) for event, line in zip(events, lines.split(b"\n"), strict=False)
    )


def _shown(number: int) -> str:
    return str(number) if abs(number) < 10**18 else "…"


def open_log(path: Path) -> IO[bytes]:
    """Open a log for reading, unbuffered, and nothing that only has a log's name: no link, no pipe, no device.

    Raises: FileNotFoundError; CorruptLogError for what is no regular file; OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | _NO_WAIT)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptLogError(str(path), "is not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)
