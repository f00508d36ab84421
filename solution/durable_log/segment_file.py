"""One segment's file: its name, opening it plain or compressed, proving its bytes, compressing it."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import struct
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from .atomic_file import sync_folder, temporary_file
from .errors import CorruptLogError
from .manifest import Closed
from .reading import open_log
from .record import Head

NAME = re.compile(r"\d+\.jsonl(\.gz)?", re.ASCII)
_CHUNK_BYTES = 1 << 20
_GZIP_LEVEL = 6


def segment_name(first: int) -> str:
    """Return the name of the segment that begins with event `first`: 20 digits, so that names sort as numbers do."""
    return f"{first:020d}.jsonl"


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment as a reader meets it: `before` is the last event before it; `closed` is None for the active one.

    `path` is the name of the plain form; a closed segment may lie there compressed, with `.gz` behind that name.
    """

    path: Path
    before: Head
    closed: Closed | None

    @property
    def compressed_path(self) -> Path:
        """Where its compressed form lies, if it has one."""
        return self.path.with_name(self.path.name + ".gz")

    @property
    def index_path(self) -> Path:
        """Where the index of its events lies, once one was needed."""
        return self.path.with_suffix(".index")

    def open(self, *, prove: bool = False) -> IO[bytes]:
        """Open it for reading its bytes in large pieces, whatever the form.

        Reads raise CorruptLogError where the compressed form is damaged and, with `prove`, at the end, when bytes and
        SHA-256 are not those that were closed; what stands before that place they give.

        Raises: FileNotFoundError for an active segment without events; CorruptLogError for a closed segment that is
        missing, or no regular file; OSError.
        """
        raw, path = self._open_stored()
        return _reader(raw, path, self.closed if prove else None, compressed=path == self.compressed_path)

    def lines(self, *, prove: bool = False) -> Generator[bytes, None, None]:
        """Give its lines, each with its `0A`; the last may lack one. Raises: as `open`, and as its reads."""
        with io.BufferedReader(cast(io.RawIOBase, self.open(prove=prove)), _CHUNK_BYTES) as lines:
            yield from lines

    def _open_stored(self) -> tuple[IO[bytes], Path]:
        # Plain first: compressing removes the plain file only when the compressed one is there.
        for path in (self.path, self.compressed_path):
            try:
                return open_log(path), path
            except FileNotFoundError:
                continue
        if self.closed is None:
            raise FileNotFoundError(self.path)
        raise CorruptLogError(str(self.path), "a segment that the manifest lists is missing")

    def check_size(self) -> None:
        """Compare what the folder says about a closed segment with the manifest, without reading it.

        Raises: CorruptLogError when it is missing, no regular file, or of another size; OSError.
        """
        assert self.closed is not None
        raw, path = self._open_stored()
        with raw:
            size, expected = os.fstat(raw.fileno()).st_size, self.closed.bytes
            if path == self.compressed_path:  # a gzip file ends with the size of its content, modulo 2^32
                raw.seek(max(0, size - 4))
                size, expected = struct.unpack("<I", raw.read(4).rjust(4, b"\0"))[0], expected % (1 << 32)
        if size != expected:
            raise CorruptLogError(str(path), f"has {size} bytes, and the manifest says {expected}")

    def prove(self) -> None:
        """Read all of a closed segment and compare bytes and SHA-256. Raises: CorruptLogError, OSError."""
        with self.open(prove=True) as lines:
            _read_all(lines)

    def compress(self) -> None:
        """Store a closed segment compressed; the plain form goes when the other is synced and was read back.

        A crash leaves the plain form, both, or the compressed one, each whole; compressing again finishes the work.

        Raises: CorruptLogError when the segment is not what was closed: then nothing changed; OSError.
        """
        if not self.path.exists():
            return
        with temporary_file(self.compressed_path) as (descriptor, temporary):
            with (
                self.open(prove=True) as lines,
                os.fdopen(os.dup(descriptor), "wb") as target,
                gzip.GzipFile("", "wb", _GZIP_LEVEL, target, mtime=0) as packed,
            ):
                while piece := lines.read(_CHUNK_BYTES):
                    packed.write(piece)
            os.fsync(descriptor)
            os.lseek(descriptor, 0, os.SEEK_SET)
            with os.fdopen(os.dup(descriptor), "rb", buffering=0) as raw:
                _read_all(_reader(raw, temporary, self.closed, compressed=True))
            os.replace(temporary, self.compressed_path)  # noqa: PTH105 - the step's name in the field
        sync_folder(self.path.parent)
        self.path.unlink()
        sync_folder(self.path.parent)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes of the lines from byte `offset` on; in a compressed form, all before is unpacked first.

        Raises: as `open`, and as its reads.
        """
        with self.open() as lines:
            lines.seek(offset)
            pieces = []
            while size and (piece := lines.read(size)):
                pieces.append(piece)
                size -= len(piece)
        return b"".join(pieces)

    def remove(self) -> None:
        """Remove the file in either form, and its index; what is gone already is no error. Raises: OSError."""
        for path in (self.path, self.compressed_path, self.index_path):
            path.unlink(missing_ok=True)


def _reader(raw: IO[bytes], path: Path, closed: Closed | None, *, compressed: bool) -> IO[bytes]:
    source: Any = gzip.GzipFile(fileobj=raw, mode="rb") if compressed else raw
    return cast(IO[bytes], _Reader(source, raw, path, closed))


def _read_all(lines: IO[bytes]) -> None:
    while lines.read(_CHUNK_BYTES):
        pass


class _Reader(io.RawIOBase):
    """The lines of a segment, unpacked, counted and compared with what was closed (None: not compared)."""

    def __init__(self, source: Any, raw: IO[bytes], path: Path, closed: Closed | None) -> None:
        self._source = source
        self._raw = raw
        self.name = str(path)
        self._closed = closed
        self._bytes = 0
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._closed is None  # what is proved is read from end to end

    def readinto(self, buffer: Any) -> int:
        with self._compressed_damage():
            count: int = self._source.readinto(buffer)
        self._bytes += count
        if self._closed is not None:
            self._compare(self._closed, buffer[:count])
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with self._compressed_damage():
            self._bytes = self._source.seek(offset, whence)
        return self._bytes

    @contextmanager
    def _compressed_damage(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise CorruptLogError(
                self.name, f"its compressed form is damaged behind byte {self._bytes} of the lines"
            ) from None

    def _compare(self, closed: Closed, piece: Any) -> None:
        self._digest.update(piece)
        ended = not len(piece)
        if self._bytes > closed.bytes or (ended and self._bytes < closed.bytes):
            found = f"{self._bytes} bytes" if ended else "more bytes"
            raise CorruptLogError(self.name, f"is not what was closed: {found}, not {closed.bytes}")
        if ended and self._digest.hexdigest() != closed.sha256:
            raise CorruptLogError(self.name, "is not what was closed: its SHA-256 differs")

    def close(self) -> None:
        self._source.close()
        self._raw.close()  # a GzipFile leaves open what it was given
        super().close()
