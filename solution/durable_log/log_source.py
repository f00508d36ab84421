"""Where a log is read from: a regular file, compressed or not, or standard input. Read-only, and never a device."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from .errors import PlaceError
from .repair import AUDIT_NAME

HEAD_BYTES = 1 << 16
"""How much of a file is looked at to tell its format."""


class Source:
    """The bytes of one log, read once from the start to where it ended when it was opened.

    `title` is what messages call it, `size` its bytes on the disk (None for standard input). `damaged` becomes true
    when a compressed file breaks off or does not fit its own checksum: what came before was given.
    """

    def __init__(self, name: str, raw: IO[bytes], size: int | None, *, compressed: bool) -> None:
        self.name = name
        self.title = printable(name)
        self.size = size
        self.compressed = compressed
        self.damaged = False
        self.on_progress: Callable[[int], None] | None = None
        self._raw = raw
        self._left = size
        self._unpacked = gzip.GzipFile(fileobj=_Stored(self)) if compressed else None
        self._head = b""
        self._head = self.read(HEAD_BYTES)

    @classmethod
    def open(cls, place: str) -> Self:
        """Open a file by its path, or standard input by `-`.

        Raises: PlaceError for what is no regular file; OSError.
        """
        if place == "-":
            return cls("-", sys.stdin.buffer, None, compressed=False)
        # Without O_NONBLOCK the opening of a pipe would wait for somebody who writes to it.
        flags = (
            os.O_RDONLY
            | getattr(os, "O_NONBLOCK", 0)
            | getattr(os, "O_BINARY", 0)
            | getattr(os, "O_NOCTTY", 0)
        )
        descriptor = os.open(place, flags)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise PlaceError(
                f"{printable(place)}: is no regular file; give a file, a folder, or - for standard input"
            )
        raw = os.fdopen(descriptor, "rb", buffering=0)
        return cls(place, raw, status.st_size, compressed=place.endswith(".gz"))

    @property
    def head(self) -> bytes:
        """Its first bytes, as far as they are still to be read."""
        return self._head

    @property
    def grew(self) -> bool:
        """Say whether the file is longer now than when it was opened."""
        return self.size is not None and os.fstat(self._raw.fileno()).st_size > self.size

    def read(self, most: int = -1, /) -> bytes:
        """Give at most `most` bytes; b"" at the end."""
        if self._head:
            piece, self._head = self._head[:most], self._head[most:]
            return piece
        try:
            return self._unpacked.read(most) if self._unpacked else self._stored(most)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            self.damaged = True
            return b""

    def _stored(self, most: int) -> bytes:
        """Read on in the file itself, never past the end that it had."""
        wanted = most if self._left is None else min(most, self._left)
        piece = (self._raw.read(wanted) if wanted else b"") or b""
        if self._left is not None:
            self._left -= len(piece)
        if self.on_progress:
            self.on_progress(len(piece))
        return piece

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Give the descriptor of the file on the disk."""
        return self._raw.fileno()

    def close(self) -> None:
        """Give the file back; standard input stays open."""
        if self.name != "-":
            self._raw.close()


class _Stored(io.RawIOBase):
    """The stored bytes, as the file that is unpacked."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._source._stored(len(buffer))  # noqa: SLF001 - two halves of one reader
        buffer[: len(piece)] = piece
        return len(piece)


def printable(name: str) -> str:
    """Give a name as it may be shown: whatever could steer a terminal, or be no text at all, stands escaped."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)


def logs_in(place: str) -> list[str]:
    """Give the logs that a path stands for: itself, or all below a folder. A session's folder stands for itself.

    Raises: FileNotFoundError; PlaceError for a folder without logs.
    """
    path = Path(place)
    if place == "-" or not path.is_dir():
        if place != "-":
            path.lstat()
        return [place]
    if is_session(path):
        return [place]
    found: list[str] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        sessions = [name for name in folders if is_session(Path(folder, name))]
        folders[:] = [name for name in folders if name not in sessions]
        logs = [
            name for name in names if name.endswith((".jsonl", ".jsonl.gz", ".ndjson")) and name != AUDIT_NAME
        ]
        found += [str(Path(folder, name)) for name in sorted([*sessions, *logs])]
    if not found:
        raise PlaceError(f"{printable(place)}: holds no log; logs are called *.jsonl, *.jsonl.gz or *.ndjson")
    return found


def is_session(folder: Path) -> bool:
    """Say whether a folder is a session of durable_log: it has a manifest."""
    return (folder / "manifest.json").is_file()
