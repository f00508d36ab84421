"""A submission that is a zip: its directory is read, and from its members those that are named. Nothing is extracted.

Bounds are absolute, so that no ratio need be guessed: the directory, one member, and how many are read. Entries that
overlap are refused whatever the Python version: no packing tool makes them.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from grader.intake.names import decoded, is_tools_own, tidy
from grader.intake.reasons import UnreadableError
from grader.intake.source import MAX_ENTRIES, Deadline, Entry, each_name_once

MAX_DIRECTORY_BYTES = 4 * 1024 * 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOCAL_HEADER_BYTES = 30
_UTF8_FLAG, _ENCRYPTED_FLAGS = 0x800, 0x1 | 0x40 | 0x2000
_UNIX = 3
_DAMAGE = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError)


class _Bounded(io.FileIO):
    """The archive's file. No single read is larger than its directory may be, whatever a header claims."""

    def read(self, size: int | None = -1) -> bytes:
        asked = -1 if size is None else size
        raw = super().read(MAX_DIRECTORY_BYTES + 1 if asked < 0 else min(asked, MAX_DIRECTORY_BYTES + 1))
        if raw is None or len(raw) > MAX_DIRECTORY_BYTES:
            raise UnreadableError("too-many", most=MAX_ENTRIES)
        return raw


class ZipSource:
    """The members of an open zip."""

    def __init__(self, archive: zipfile.ZipFile, deadline: Deadline) -> None:
        self._archive, self._deadline = archive, deadline
        self._members: dict[str, zipfile.ZipInfo] = {}
        found = []
        for info in archive.infolist():
            written = _name(info)
            name, why = tidy(written)
            if written.endswith("/") or not name or is_tools_own(name):
                continue
            found.append(Entry(name, why or _why_not(info)))
            self._members[name] = info
        self.entries = each_name_once(found)

    def read(self, name: str, most: int) -> bytes | str:
        """Unpack one member in memory."""
        self._deadline.check()
        info = self._members[name]
        if info.file_size > most:
            return "large"
        try:
            with self._archive.open(info) as member:
                raw = member.read(most + 1)
        except (*_DAMAGE, zlib.error, RuntimeError, OSError):
            return "damaged"
        return raw if len(raw) == info.file_size else "damaged"


@contextmanager
def open_zip(descriptor: int, deadline: Deadline) -> Iterator[ZipSource]:
    """Open a zip from a descriptor, which is closed at the end. Raises: UnreadableError."""
    with _Bounded(descriptor) as file:
        try:
            archive = zipfile.ZipFile(file)
        except _DAMAGE:
            raise UnreadableError("damaged") from None
        with archive:
            _refuse_overlap(archive)
            yield ZipSource(archive, deadline)


def _refuse_overlap(archive: zipfile.ZipFile) -> None:
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if len(members) > MAX_ENTRIES:
        raise UnreadableError("too-many", most=MAX_ENTRIES)
    for first, second in pairwise(members):
        if first.header_offset + _LOCAL_HEADER_BYTES + first.compress_size > second.header_offset:
            raise UnreadableError("overlap")


def _name(info: zipfile.ZipInfo) -> str:
    """Give a member's name with `/` between its parts; some tools of old Windows wrote backslashes."""
    name = info.orig_filename
    if not info.flag_bits & _UTF8_FLAG:
        name = decoded(name.encode("cp437"))
    return name.replace("\\", "/")


def _why_not(info: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    if stat.S_ISLNK(info.external_attr >> 16) or kind not in (0, stat.S_IFREG):
        return "odd"
    if info.flag_bits & _ENCRYPTED_FLAGS:
        return "encrypted"
    return "" if info.compress_type in _METHODS else "method"
