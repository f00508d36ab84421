"""Opens a submission of any kind, within bounds, and never raises for what it holds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from grader.intake import manifest as manifests
from grader.intake.checkouts import open_checkout, repository_of
from grader.intake.choice import choose, notebooks_of
from grader.intake.folders import OPEN_PLAIN, FolderSource
from grader.intake.handin import ARCHIVES, Handin, LeftOut, Opened, content_hash, kit_paths
from grader.intake.kit_files import KIT_FILES, MANIFEST
from grader.intake.manifest import Manifest, ManifestError
from grader.intake.names import in_utf8, is_tools_own
from grader.intake.reasons import UnreadableError, problem
from grader.intake.source import MAX_ARCHIVE_BYTES, MIB, Deadline, Source
from grader.intake.tars import TarSource, is_tar
from grader.intake.zips import open_zip
from grader.suites.check import Text

_SNIFFED_BYTES = 512
_MAGIC = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x1f\x8b": "gz",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"Rar!": "RAR",
    b"7z\xbc\xaf\x27\x1c": "7z",
}
_OTHER_ARCHIVES = ("Zstandard", "RAR", "7z")
_NO_REPOSITORY = Text(
    ".git 不是完整的仓库，或者指向别处；按磁盘上的文件来评",
    "its .git is no whole repository, or leads elsewhere; the files were read as they lie on disk",
)


class _Found(NamedTuple):
    """An open submission, its form, and what an instructor should know of it."""

    source: Source
    form: str
    notes: tuple[Text, ...] = ()


def is_submission(path: Path) -> bool:
    """Say whether a child of a class folder gets a row: everything does that is not hidden, nor a desktop's own.

    What is no submission after all (a list of names, a note) then says so in its row; nobody is passed over.
    """
    return not path.name.startswith(".") and not is_tools_own(path.name)


def open_submission(path: Path) -> Opened:
    """Open a submission: a folder, zip or tar as it stands, a Git repository at HEAD. Never raises for what it holds.

    Nothing of it is written, run or followed; time, memory and what is read are bounded. A link is not opened.
    """
    name = in_utf8(path.name)
    try:
        with _found(path, Deadline(), at_head=True) as found:
            return _taken(name, found)
    except UnreadableError as error:
        return Opened(name, problem=error.problem)
    except OSError as error:
        return Opened(name, problem=problem("system", why=error.strerror or "OSError"))
    except Exception as error:  # noqa: BLE001 - a parser that trips over hostile bytes costs this row, not the class
        return Opened(name, problem=problem("unexpected", why=type(error).__name__))


def take(submission: Path, lesson: str) -> Handin:
    """Take the files of one lesson, or the homework, from a folder or archive as it stands, a work tree included. Never raises."""
    try:
        with _found(submission, Deadline(), at_head=False) as found:
            return choose(found.source, lesson)
    except UnreadableError as error:
        return Handin(lesson, problem=error.problem)
    except OSError as error:
        return Handin(lesson, problem=problem("system", why=error.strerror or "OSError"))
    except Exception as error:  # noqa: BLE001 - as above
        return Handin(lesson, problem=problem("unexpected", why=type(error).__name__))


@contextmanager
def _found(path: Path, deadline: Deadline, *, at_head: bool) -> Iterator[_Found]:
    """Open whatever there is. Raises: UnreadableError, OSError, and what a parser trips over."""
    status = (
        path.lstat() if at_head else path.stat()
    )  # a class run follows no link; one's own folder may be one
    if not stat.S_ISDIR(status.st_mode):
        with _archive(path, deadline) as found:
            yield found
        return
    repository = repository_of(path)
    if repository and (at_head or repository == path):
        with open_checkout(repository, deadline) as source:
            yield _Found(source, "git", _uncommitted(path, source) if repository != path else ())
        return
    folder = FolderSource(path)
    inner = _only_archive(path, folder)
    if inner is None:
        is_odd = at_head and os.path.lexists(path / ".git")
        yield _Found(folder, "folder", (_NO_REPOSITORY,) if is_odd else ())
        return
    with _archive(inner, deadline) as found:
        yield found


@contextmanager
def _archive(path: Path, deadline: Deadline) -> Iterator[_Found]:
    """Open a file by what it holds, whatever its name says."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise UnreadableError("odd")
    descriptor = os.open(path, OPEN_PLAIN)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        size = os.fstat(descriptor).st_size
        kind = _kind(file.read(_SNIFFED_BYTES), path.name)
        if size > MAX_ARCHIVE_BYTES:
            raise UnreadableError("huge", most=MAX_ARCHIVE_BYTES // MIB)
        file.seek(0)
        if kind == "zip":
            with open_zip(os.dup(descriptor), deadline) as source:
                yield _Found(source, "zip")
        else:
            yield _Found(TarSource(file, kind, deadline), "tar")


def _kind(start: bytes, name: str) -> str:
    """Tell an archive by its first bytes: `zip`, the packing of a tar, or "" for a plain one. Raises: UnreadableError."""
    if not start:
        raise UnreadableError("empty-file")
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), "")
    if kind in _OTHER_ARCHIVES:
        raise UnreadableError("other-archive", kind=kind)
    if not kind and not is_tar(start):
        raise UnreadableError("damaged" if name.lower().endswith(ARCHIVES) else "not-an-archive")
    return kind


def _only_archive(path: Path, folder: FolderSource) -> Path | None:
    """Give the one archive in a folder with nothing to take: learning platforms export a folder around each upload."""
    archives = [
        entry.name for entry in folder.entries if not entry.why and entry.name.lower().endswith(ARCHIVES)
    ]
    if len(archives) != 1 or "/" in archives[0] or any(choose(folder, lesson).files for lesson in KIT_FILES):
        return None
    return path / archives[0]


def _taken(name: str, found: _Found) -> Opened:
    handins = {lesson: choose(found.source, lesson) for lesson in KIT_FILES}
    notebooks, passed_over = notebooks_of(found.source)
    left_out: dict[LeftOut, None] = dict.fromkeys(passed_over)
    for handin in handins.values():
        left_out.update(dict.fromkeys(handin.left_out))
    manifest, notes = _manifest(found.source, handins)
    return Opened(
        name,
        found.form,
        handins,
        notebooks,
        tuple(left_out),
        manifest,
        (*found.notes, *notes),
    )


def _manifest(source: Source, handins: dict[str, Handin]) -> tuple[Manifest | None, tuple[Text, ...]]:
    """Read the manifest at the root or one folder down, and say when it does not fit the files."""
    places = sorted(
        (
            entry
            for entry in source.entries
            if entry.name.rpartition("/")[2] == MANIFEST and entry.name.count("/") < 2
        ),
        key=lambda entry: (entry.name.count("/"), entry.name),
    )
    if not places:
        return None, ()
    raw = places[0].why or source.read(places[0].name, manifests.MAX_MANIFEST_BYTES)
    try:
        manifest = manifests.decode(raw) if isinstance(raw, bytes) else _refused(raw)
    except ManifestError as error:
        return None, (manifests.unusable(error),)
    if manifest.content == content_hash(kit_paths(handins)):
        return manifest, ()
    return manifest, (manifests.CHANGED,)


def _refused(why: str) -> Manifest:
    raise ManifestError(why)


def _uncommitted(path: Path, committed: Source) -> tuple[Text, ...]:
    """Say which of the named files differ on disk from HEAD: they are left out. Line ends do not count."""
    try:
        folder = FolderSource(path)
    except OSError:
        return ()
    at_head, on_disk = (
        {name: raw.replace(b"\r\n", b"\n") for name, raw in _all(source).items()}
        for source in (committed, folder)
    )
    names = sorted(name for name, raw in on_disk.items() if at_head.get(name) != raw)
    if not names:
        return ()
    listed = ", ".join(names)
    return (Text(f"未提交的改动没有评：{listed}", f"not committed, so not graded: changes in {listed}"),)


def _all(source: Source) -> dict[str, bytes]:
    return kit_paths({lesson: choose(source, lesson) for lesson in KIT_FILES})
