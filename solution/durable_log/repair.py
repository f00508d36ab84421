"""Taking a torn tail off a log: the original is copied aside first, and an audit record tells of it (E11).

Only what an unfinished write leaves behind is ever cut, at the offset behind the last whole record. A damaged middle
is not touched, no event gets another number, and reading never comes here.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from .atomic_file import NO_FOLLOW, sync_folder, write_all
from .contract import Report
from .errors import RefusedError

AUDIT_NAME = "repairs.jsonl"
_COPY_BYTES = 1 << 20


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `repairs.jsonl`: what was cut, where, and where the whole original lies.

    `at` is UTC; `copy` is the name of the original's copy in the same folder and `sha256` that of its bytes; `bytes`
    is what was cut; `missing_newline` is set when nothing was cut and only the last record's newline was added.
    """

    v: int = 1
    at: str
    file: str
    offset: int
    bytes: int
    missing_newline: bool
    copy: str
    sha256: str
    last_sequence: int
    log_hash: str


def mend_tail(
    path: Path, report: Report, *, missing_newline: bool, now: Callable[[], float] = time.time
) -> Repair:
    """Cut the torn tail that `report` found in `path`, or add the newline that its last record lacks.

    For who holds the writer's lock. A crash at any step leaves the original in place, the copy, or both; mending again
    makes another copy.

    Raises: RefusedError when the report is of no torn tail, or the file is not what was reported; OSError.
    """
    if report.verdict == "corrupt" or not (report.torn_bytes or missing_newline):
        raise RefusedError(
            f"{path}: has no torn tail, so nothing may be cut; look at it with: statelab log inspect"
        )
    descriptor = os.open(path, os.O_RDWR | NO_FOLLOW)
    try:
        if os.fstat(descriptor).st_size != report.good_bytes + report.torn_bytes:
            raise RefusedError(f"{path}: changed since it was read; read it again before you repair it")
        copy, sha256 = _copy_aside(descriptor, path, report.good_bytes)
        repair = Repair(
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now())),
            file=path.name,
            offset=report.good_bytes,
            bytes=report.torn_bytes,
            missing_newline=missing_newline,
            copy=copy.name,
            sha256=sha256,
            last_sequence=report.last_sequence,
            log_hash=report.log_hash,
        )
        _tell(path.with_name(AUDIT_NAME), repair)
        if missing_newline:
            os.lseek(descriptor, 0, os.SEEK_END)
            write_all(descriptor, b"\n")
        else:
            os.ftruncate(descriptor, report.good_bytes)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return repair


def _copy_aside(descriptor: int, path: Path, offset: int) -> tuple[Path, str]:
    """Copy the whole file to a name that nobody has yet, durably. Returns the name and the SHA-256 of the bytes."""
    number, copy = 1, path.with_name(f"{path.name}.torn-{offset}")
    while True:
        try:
            target = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
            break
        except FileExistsError:
            number += 1
            copy = path.with_name(f"{path.name}.torn-{offset}-{number}")
    digest = hashlib.sha256()
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        while piece := os.read(descriptor, _COPY_BYTES):
            digest.update(piece)
            write_all(target, piece)
        os.fsync(target)
    except BaseException:
        copy.unlink()  # a full disk: nothing is cut yet, and half a copy would only mislead
        raise
    finally:
        os.close(target)
    sync_folder(path.parent)
    return copy, digest.hexdigest()


def _tell(path: Path, repair: Repair) -> None:
    """Append the audit record, durably; what an unfinished write left there before is ended, not glued to."""
    new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_FOLLOW, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        glued = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        write_all(descriptor, b"\n" * glued + msgspec.json.encode(repair) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if new:
        sync_folder(path.parent)
