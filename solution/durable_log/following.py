"""Following a log as it grows, as `tail -f` does: whole records only, through growth, rotation and replacement."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from .errors import PlaceError
from .foreign import AnyObject, NotARecordError
from .inspection import Entry, entry_of
from .log_source import Source, is_session, printable
from .physical_lines import MAX_LINE_BYTES, Block, Line
from .strict_json import NotStrictError

POLL_SECONDS = 0.2
_PIECE_BYTES = 1 << 16
_RECENT_BYTES = 8 << 20
_SEGMENT = re.compile(r"\d{20}\.jsonl(\.gz)?", re.ASCII)


class _Readable(Protocol):
    def read(self, most: int, /) -> bytes: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Follower:
    """One log's records, the last `recent` of them first, then each as it is completed.

    Their lines are not counted, since a long file is read from near its end. A line that is not whole yet waits. A line that is no record is skipped: `inspect` says what it is.
    `on_change` is told "replaced" or "shrunk" when the file is another one, or shorter, than before.
    """

    def __init__(self, place: Path, recent: int, on_change: Callable[[str], None]) -> None:
        self._place = place
        self._recent = recent
        self._on_change = on_change
        self._rules = AnyObject()
        self._file: _Readable | None = None
        self._path = place
        self._at_the_beginning = True
        self._offset, self._rest, self._too_long = 0, b"", False
        self._is_session = is_session(place)
        if self._is_session and not (segments := self._segments()):
            raise PlaceError(
                f"{printable(str(place))}: this session has no segment yet; append an event first"
            )
        self._go_to(segments[max(segments)] if self._is_session else place)

    def records(self) -> Iterator[Entry]:
        """Give the last records that are there."""
        last: deque[Entry] = deque(maxlen=self._recent)
        last.extend(self._new())
        yield from last

    def wait(self, sleep: Callable[[float], None] = time.sleep) -> list[Entry]:
        """Wait a moment and give the records that came meanwhile."""
        sleep(POLL_SECONDS)
        entries = list(self._new())
        while (later := self._goes_on_in()) is not None:
            entries += self._new()  # what came before the log went over to the other file
            self._go_to(later)
            entries += self._new()
        return entries

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    # --- Reading on ---

    def _new(self) -> Iterator[Entry]:
        while self._file is not None and (piece := self._file.read(_PIECE_BYTES)):
            yield from self._whole_lines(piece)

    def _whole_lines(self, piece: bytes) -> Iterator[Entry]:
        data = self._rest + piece
        end = data.rfind(b"\n") + 1
        self._rest = data[end:]
        for line in Block(1, self._offset, data[:end]).lines(data[:end].split(b"\n")[:-1]):
            self._offset = line.offset + line.size + 1
            skipped, self._too_long = self._too_long, False
            if not skipped and (entry := self._judge(line)) is not None:
                yield entry
        if len(self._rest) > MAX_LINE_BYTES:
            self._offset += len(self._rest)
            self._rest, self._too_long = b"", True

    def _judge(self, line: Line) -> Entry | None:
        try:
            value: Any = self._rules.record(line.raw or b"")[0]
        except (NotStrictError, NotARecordError):
            return None
        return entry_of(line, value)

    # --- Which file it is now ---

    def _segments(self) -> dict[int, Path]:
        """Give a session's segments by number; of a plain and a compressed one the plain."""
        names = sorted((path.name for path in self._place.iterdir()), reverse=True)
        return {_first(name): self._place / name for name in names if _SEGMENT.fullmatch(name)}

    def _go_to(self, path: Path) -> None:
        self.close()
        self._offset, self._rest, self._too_long = 0, b"", False
        source = Source.open(str(path))  # refuses what is no file
        if not source.compressed:
            source.close()
            self._file = path.open("rb", buffering=0)
            if self._at_the_beginning and (source.size or 0) > _RECENT_BYTES:
                self._offset = self._file.seek(-_RECENT_BYTES, os.SEEK_END)
                self._too_long = True  # the first line is the end of one that began before
        elif self._is_session:
            self._file = source
        else:
            source.close()
            raise PlaceError(
                f"{source.title}: is compressed and grows no more; look at it with: statelab log inspect"
            )
        self._path, self._at_the_beginning = path, False

    def _goes_on_in(self) -> Path | None:
        """Give the file that the log goes on in, if it is another one, or the same from its start; else None."""
        if self._is_session:
            number = _first(self._path.name)
            later = {first: path for first, path in self._segments().items() if first > number}
            return later[min(later)] if later else None
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return None  # between the two steps of somebody's rotation
        here = os.fstat(self._file.fileno()) if self._file else there
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            self._on_change("replaced")
        elif here.st_size < self._offset + len(self._rest):
            self._on_change("shrunk")
        else:
            return None
        return self._path


def _first(segment: str) -> int:
    return int(segment.partition(".")[0])
