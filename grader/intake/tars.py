"""A submission that is a tar, packed or not: read forward once, keeping the bytes of what may be named.

`tarfile` trusts what a header says. Here each header is looked at before it does: a negative size, or a long name or
PAX record without measure, would make it loop or fill the memory.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from typing import BinaryIO, Protocol, Self, cast

from grader.intake.kit_files import may_be_taken, most_bytes
from grader.intake.names import decoded, is_tools_own, tidy
from grader.intake.reasons import UnreadableError
from grader.intake.source import (
    MAX_ENTRIES,
    MAX_UNPACKED_BYTES,
    MIB,
    Deadline,
    Entry,
    each_name_once,
)

MAX_KEPT_BYTES = 32 * MIB
MAX_EXTRA_HEADER_BYTES = 16 * 1024
MAX_XZ_MEMORY_BYTES = 96 * MIB  # xz -9 needs 65 MiB
_PACKED_CHUNK = 64 * 1024
_EXTRA_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Xz:
    """What an xz file unpacks to. Unlike `lzma.LZMAFile`, it bounds the memory that a header may ask for."""

    def __init__(self, file: _Readable) -> None:
        self._file = file
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY_BYTES)

    def read(self, size: int = -1, /) -> bytes:
        while not self._unpacker.eof:
            packed = self._file.read(_PACKED_CHUNK) if self._unpacker.needs_input else b""
            if self._unpacker.needs_input and not packed:
                raise EOFError
            if raw := self._unpacker.decompress(packed, size):
                return raw
        return b""


class _Packed:
    """The file as it is packed. Endless headers and empty parts unpack to nothing, and still cost time."""

    def __init__(self, file: BinaryIO, deadline: Deadline) -> None:
        self._file, self._deadline = file, deadline

    def read(self, size: int = -1, /) -> bytes:
        self._deadline.check()
        return self._file.read(size)


class _Forward:
    """The unpacked tar, read forward within bounds."""

    def __init__(self, inner: _Readable, deadline: Deadline) -> None:
        self._inner, self._deadline = inner, deadline
        self._total = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        self._deadline.check()
        raw = self._inner.read(size)
        if not raw and self._ended:  # tarfile would go on asking for as many blocks as a header claims
            raise UnreadableError("damaged")
        self._ended = not raw
        self._total += len(raw)
        if self._total > MAX_UNPACKED_BYTES:
            raise UnreadableError("bomb", most=MAX_UNPACKED_BYTES // MIB)
        return raw


class TarSource:
    """The members of a tar, those that may be named already in memory."""

    def __init__(self, file: BinaryIO, packing: str, deadline: Deadline) -> None:
        """Read the archive to its end. Raises: UnreadableError."""
        self._kept: dict[str, bytes | str] = {}
        self._room = MAX_KEPT_BYTES
        header = _header_class()
        try:
            forward = _Forward(_unpacked(_Packed(file, deadline), packing), deadline)
            with tarfile.open(
                fileobj=cast("BinaryIO", forward),  # a stream is only read
                mode="r|",
                tarinfo=header,
                encoding="utf-8",
                errors="surrogateescape",
            ) as archive:
                found = [self._look(archive, member, number) for number, member in enumerate(archive)]
            while forward.read(_PACKED_CHUNK):  # the checksum stands at the very end
                pass
        except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, RecursionError, ValueError, OSError):
            raise UnreadableError("damaged") from None
        if not header.ended:
            raise UnreadableError("damaged")
        self.entries = each_name_once(entry for entry in found if entry)

    def read(self, name: str, most: int) -> bytes | str:
        """Give what was kept of a member."""
        raw = self._kept[name]
        return raw if isinstance(raw, str) or len(raw) <= most else "large"

    def _look(self, archive: tarfile.TarFile, member: tarfile.TarInfo, number: int) -> Entry | None:
        if number >= MAX_ENTRIES:
            raise UnreadableError("too-many", most=MAX_ENTRIES)
        name, why = tidy(decoded(member.name.encode("utf-8", "surrogateescape")))
        if member.isdir() or not name or is_tools_own(name):
            return None
        if not why and (not member.isreg() or member.issparse()):
            why = "odd"
        if not why and may_be_taken(name):
            self._kept[name] = self._bytes_of(archive, member, most_bytes(name))
        return Entry(name, why)

    def _bytes_of(self, archive: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes | str:
        if member.size > min(most, self._room):
            return "large"
        file = archive.extractfile(member)
        raw = file.read() if file else b""
        self._room -= len(raw)
        return raw


def _unpacked(file: _Packed, packing: str) -> _Readable:
    if packing == "gz":
        return gzip.GzipFile(fileobj=cast("BinaryIO", file))
    if packing == "bz2":
        return bz2.BZ2File(cast("BinaryIO", file))
    return _Xz(file) if packing == "xz" else file


def is_tar(block: bytes) -> bool:
    """Say whether a file that begins with this block (512 bytes) is a tar: its first header's checksum is right."""
    try:
        tarfile.TarInfo.frombuf(block[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # no name of this module's stub
        return len(block) >= tarfile.BLOCKSIZE
    except (tarfile.TarError, ValueError):
        return False
    return True


class _Header(tarfile.TarInfo):
    ended = False


def _header_class() -> type[_Header]:
    """Make a class of headers for one archive, which remembers whether the end was marked."""

    class Header(_Header):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                cls.ended = True
            header = super().frombuf(buf, encoding, errors)
            if header.size < 0 or (header.type in _EXTRA_HEADERS and header.size > MAX_EXTRA_HEADER_BYTES):
                raise UnreadableError("damaged")
            return header

    return Header
