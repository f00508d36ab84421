"""Which event of a closed segment has an id, and where its line lies: derived, proved before use, made anew when lost.

    "SLINDEX1" · 32 bytes: the segment's SHA-256 · u32: CRC-32 of all that follows · u32: events
    u32 each: where the entries of a bucket begin, one bucket for each leading value of a fingerprint, then the end
    12 bytes each, sorted: fingerprint (8), ordinal of the event in the segment (u32)
    u64 each: offset of each line, in the order of the events, then the segment's size

Numbers are big-endian, so that an entry's bytes sort as its fingerprint does.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import re
import struct
import zlib
from bisect import bisect_left
from typing import Self

from .atomic_file import replace_file
from .errors import CorruptLogError
from .reading import open_log
from .record import UNHASHED_BYTES
from .segment_file import SegmentFile

_HEADER = struct.Struct(">8s32sII")
_MAGIC = b"SLINDEX1"
_ENTRY_BYTES = 12
_FINGERPRINT_BYTES = 8
_ENTRIES_A_BUCKET = 8


# A segment that was proved holds canonical records: their first keys stand where the format puts them.
_CARRIED_HASH = re.compile(rb',"event_hash":"([0-9a-f]{64})"\}\n\Z')
_STORED_ID = re.compile(rb'\{"v":\d+,"session":"[\w-]+","sequence":\d+,"event_id":("(?:[^"\\]|\\.)*"),')


def fingerprint(stored_id: bytes) -> bytes:
    """Return the first 8 bytes of the SHA-256 of an id as it is stored, quotes included."""
    return hashlib.sha256(stored_id).digest()[:_FINGERPRINT_BYTES]


def carried_hash(line: bytes) -> str | None:
    """Return the `event_hash` that a whole line carries; None when it carries none."""
    match = _CARRIED_HASH.search(line, max(0, len(line) - UNHASHED_BYTES - 1))
    return match[1].decode() if match else None


class SegmentIndex:
    """The index of one closed segment, `file`."""

    def __init__(self, file: SegmentFile, data: mmap.mmap) -> None:
        self.file = file
        self._data = data
        events = _count(file)
        self._shift = 64 - _bucket_bits(events)
        self._entries_at = _HEADER.size + 4 * ((1 << _bucket_bits(events)) + 1)
        self._offsets_at = self._entries_at + _ENTRY_BYTES * events

    @classmethod
    def load(cls, file: SegmentFile) -> Self:
        """Map the index of a closed segment, made anew when it is missing, damaged or of another segment.

        Raises: CorruptLogError when it has to be made and the segment is not what was closed; OSError.
        """
        data = _map(file)
        if data is None:
            replace_file(file.index_path, _build(file))
            data = _map(file)
        if data is None:
            raise OSError(
                errno.EIO, "the index just written reads otherwise; check the disk", str(file.index_path)
            )
        return cls(file, data)

    def close(self) -> None:
        """Give the mapped file back."""
        self._data.close()

    def ordinals(self, wanted: bytes) -> list[int]:
        """Return the ordinals, from 0, of the events whose ids have this fingerprint: none, one, rarely more."""
        bucket = int.from_bytes(wanted, "big") >> self._shift
        start, end = struct.unpack_from(">II", self._data, _HEADER.size + 4 * bucket)
        entries = self._data[self._entries_at + _ENTRY_BYTES * start : self._entries_at + _ENTRY_BYTES * end]
        if wanted not in entries:
            return []
        return [
            int.from_bytes(entries[at + _FINGERPRINT_BYTES : at + _ENTRY_BYTES], "big")
            for at in range(0, len(entries), _ENTRY_BYTES)
            if entries.startswith(wanted, at)
        ]

    def line(self, ordinal: int) -> bytes:
        """Read one line of the segment, `0A` included. Raises: as `SegmentFile.read_at`."""
        start, end = struct.unpack_from(">QQ", self._data, self._offsets_at + 8 * ordinal)
        return self.file.read_at(start, end - start)

    def stored_id(self, ordinal: int) -> bytes:
        """Read the id of one event from the segment itself. Raises: CorruptLogError with the line; OSError."""
        return _stored_id(self.line(ordinal), self.file, ordinal)


def _bucket_bits(events: int) -> int:
    return max(events // _ENTRIES_A_BUCKET, 1).bit_length() - 1


def _stored_id(line: bytes, file: SegmentFile, ordinal: int) -> bytes:
    match = _STORED_ID.match(line)
    if match is None:
        raise CorruptLogError(str(file.path), "is not a record", line=ordinal + 1)
    return match[1]


def _map(file: SegmentFile) -> mmap.mmap | None:
    """Map the index file; None when it is missing or not the whole and sound index of this segment."""
    assert file.closed is not None
    try:
        source = open_log(file.index_path)
    except FileNotFoundError:
        return None
    with source:
        if os.fstat(source.fileno()).st_size < _HEADER.size:
            return None
        data = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    magic, segment, check, events = _HEADER.unpack_from(data)
    with memoryview(data) as view:
        sound = check == zlib.crc32(view[_HEADER.size - 4 :])
    if sound and magic == _MAGIC and segment.hex() == file.closed.sha256 and events == _count(file):
        return data
    data.close()
    return None


def _count(file: SegmentFile) -> int:
    assert file.closed is not None
    return file.closed.last - file.closed.first + 1


def _build(file: SegmentFile) -> list[bytes]:
    """Read a closed segment, proving it, and return the bytes of its index. Raises: CorruptLogError, OSError."""
    assert file.closed is not None
    entries, offsets = [], [0]
    for ordinal, line in enumerate(file.lines(prove=True)):
        entries.append(fingerprint(_stored_id(line, file, ordinal)) + ordinal.to_bytes(4, "big"))
        offsets.append(offsets[-1] + len(line))
    if len(entries) != _count(file):
        raise CorruptLogError(
            str(file.path), f"holds {len(entries)} events, and the manifest says {_count(file)}"
        )
    entries.sort()
    buckets = range(1 << _bucket_bits(len(entries)))
    shift = 64 - _bucket_bits(len(entries))
    starts = [bisect_left(entries, (bucket << shift).to_bytes(8, "big")) for bucket in buckets]
    body = b"".join(
        [
            struct.pack(">I", len(entries)),
            struct.pack(f">{len(starts) + 1}I", *starts, len(entries)),
            *entries,
            struct.pack(f">{len(offsets)}Q", *offsets),
        ]
    )
    head = struct.pack(">8s32sI", _MAGIC, bytes.fromhex(file.closed.sha256), zlib.crc32(body))
    return [head, body]
