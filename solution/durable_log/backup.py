"""A session copied as it was at one moment, beside its writer, and put back (E12).

A log only grows at its end, so an old manifest with its closed segments and a whole-record beginning of its active one
is a state that the log once had. The manifest is written last, everything is proved, and only then does the copy get
its name. A plain `cp` of a living session gives no such moment: it may pair a new manifest with an old segment.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from .atomic_file import NO_FOLLOW, sync_folder, write_all
from .contract import Report
from .errors import CorruptLogError, PlaceError
from .manifest import MANIFEST_VERSION, MOST_BYTES, Manifest, new_manifest, write_manifest
from .reading import Scan, open_log
from .record import Head
from .sealed_json import read_sealed
from .segment_file import SegmentFile
from .segments import Segments
from .session_folder import SessionFolder, open_root, refuse_git
from .verification import verify_session

_CHUNK_BYTES = 1 << 20


def back_up(folder: SessionFolder, target: str | os.PathLike[str], *, hard_links: bool = False) -> Report:
    """Copy a session to the new folder `target` as it is at this moment; its writer may go on. Returns what was proved.

    With `hard_links`, closed segments and blobs on the same file system are linked: quick, no bytes, and no protection
    against a failing disk, as both names share them.

    Raises: PlaceError when `target` is there already or lies in a Git repository; CorruptLogError when the session or
    its copy is not sound; OSError. Then there is no `target`.
    """
    place = Path(target).expanduser().absolute()
    while True:
        segments = Segments.look(folder)
        try:
            return _copy(segments, place, hard_links=hard_links)
        except CorruptLogError:
            # A retention beside us may have removed what we were about to copy; only then is it no damage.
            if Segments.look(folder).base == segments.base:
                raise


def restore(backup: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> SessionFolder:
    """Put a backup back as the session that it is of, below `root` (None: `default_root()`), owned by this user.

    The backup is proved before, the session after; both stay.

    Raises: PlaceError when the session is there already, or the place is not acceptable; CorruptLogError when the
    backup is not sound; UnknownVersionError; OSError. Then there is no session.
    """
    source = Path(backup).expanduser().absolute()
    try:
        manifest = read_sealed(source / "manifest.json", Manifest, MANIFEST_VERSION, MOST_BYTES)
    except FileNotFoundError:
        raise PlaceError(f"{source}: is no backup: it holds no manifest.json; check the path") from None
    place = open_root(root, manifest.session)
    back_up(SessionFolder(source, manifest.session), place)
    return SessionFolder(place, manifest.session)


def _copy(segments: Segments, place: Path, *, hard_links: bool) -> Report:
    folder = segments.folder
    *closed, active = segments.files()
    with _new_folder(place) as copy:
        for file in closed:
            _take_segment(file, copy, hard_links=hard_links)
        head = _take_active(active, folder.session, copy)
        # Blobs last: whatever a copied event refers to was stored before it.
        _take_all(_blobs(folder), copy / "blobs", hard_links=hard_links)
        _take_all(_checkpoints(folder, head), copy / "checkpoints", hard_links=False)
        return _finish(segments, head, copy)


def _finish(segments: Segments, head: Head, copy: Path) -> Report:
    """Write the manifest, prove the copy. Raises: CorruptLogError when it is not sound."""
    session = segments.folder.session
    manifest = msgspec.structs.replace(
        new_manifest(session), base=segments.base, closed=segments.closed, head=head
    )
    write_manifest(copy / "manifest.json", manifest)
    report = verify_session(SessionFolder(copy, session))
    if report.verdict != "sound" or report.last_sequence < segments.recorded_head().sequence:
        raise CorruptLogError(
            report.file, report.reason or "does not reach the head that the manifest recorded"
        )
    return report


@contextmanager
def _new_folder(place: Path) -> Iterator[Path]:
    """Give a new folder to fill; it gets the name `place` when all went well, and is removed otherwise."""
    refuse_git(place)
    if os.path.lexists(place):
        raise PlaceError(f"{place}: is there already; choose a new name, nothing is ever copied over")
    copy = place.with_name(f".{place.name}.{secrets.token_hex(8)}.tmp")
    copy.mkdir(mode=0o700)
    try:
        yield copy
        for folder in (copy / "blobs", copy / "checkpoints", copy):
            if folder.is_dir():
                sync_folder(folder)
        copy.rename(place)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    sync_folder(place.parent)


def _take_segment(file: SegmentFile, copy: Path, *, hard_links: bool) -> None:
    for source in (file.path, file.compressed_path):
        try:
            _take(source, copy / source.name, hard_links=hard_links)
        except FileNotFoundError:
            continue  # it is compressed, perhaps since a moment ago
        return
    raise CorruptLogError(str(file.path), "a segment that the manifest lists is missing")


def _take_active(active: SegmentFile, session: str, copy: Path) -> Head:
    """Copy the whole records of the active segment, as many as there are now; return the last of them."""
    head = active.before
    try:
        source = active.open()
    except FileNotFoundError:
        return head
    with source, _new_file(copy / active.path.name) as target:
        scan = Scan(source, session=session, before=head, newest=None, name=str(active.path))
        for block in scan.blocks():
            if block.lines.endswith(b"\n"):  # without it, the append is still under way
                write_all(target.fileno(), block.lines)
                head = Head(block.events[-1].sequence, block.events[-1].event_hash)
    return head


def _take_all(sources: list[Path], into: Path, *, hard_links: bool) -> None:
    if sources:
        into.mkdir(mode=0o700)
    for source in sources:
        _take(source, into / source.name, hard_links=hard_links)


def _take(source: Path, target: Path, *, hard_links: bool) -> None:
    if hard_links:
        try:
            os.link(source, target, follow_symlinks=False)
        except FileNotFoundError:
            raise
        except OSError:
            pass  # another file system, or one without links: then a copy
        else:
            return
    with open_log(source) as lines, _new_file(target) as file:
        while piece := lines.read(_CHUNK_BYTES):
            write_all(file.fileno(), piece)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        yield file
        os.fsync(descriptor)


def _blobs(folder: SessionFolder) -> list[Path]:
    return sorted(folder.blobs_path.glob("[0-9a-f]" * 64))


def _checkpoints(folder: SessionFolder, head: Head) -> list[Path]:
    found = folder.checkpoints_path.glob("[0-9]" * 20 + ".json")
    return sorted(path for path in found if int(path.stem) <= head.sequence)
