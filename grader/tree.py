"""A folder that a student's code may have filled, seen and changed from outside: nothing in it is followed or waited for.

Every step is taken from an open folder to a name in it, so that a symbolic link anywhere below the root leads nowhere.
The root itself is the grader's own.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from grader.work_folder import MAX_NAMES, OddFileError, plain_content

MAX_FILE_BYTES = 8 * 1024 * 1024
_NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0)
_IS_FOLDER = getattr(os, "O_DIRECTORY", 0)
_FOLDER = os.O_RDONLY | _NOT_FOLLOWED | _IS_FOLDER
_FILE = os.O_RDONLY | _NOT_FOLLOWED | getattr(os, "O_NONBLOCK", 0)
_IN_THE_WAY = (errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED


class MissingFile(FileNotFoundError):  # noqa: N818 - a finding, which may be right or wrong
    """Below the root there is nothing of this name."""


class Entry(NamedTuple):
    """What one name stands for: `file` with its SHA-256, `link` with where it points, or `other`; mode in octal."""

    kind: str
    mode: int
    content: str


Tree = dict[str, Entry]
"""Relative POSIX name -> entry, for everything but folders."""


def look(root: Path, below: str) -> Tree:
    """List everything below the folder `below` of `root`.

    Raises: MissingFile, or OddFileError for a way that is no way and for too much to look at.
    """
    found: Tree = {}
    with _opened(root, below) as top:
        for place, folders, names, here in _walk(top, below):
            for name in (*names, *folders):
                if (entry := _entry(name, here)) is not None:
                    found[(PurePosixPath(place) / name).as_posix()] = entry
            if len(found) > MAX_NAMES:
                raise OddFileError(f"{below}: more than {MAX_NAMES} files")
    return found


def names(root: Path, below: str) -> list[str]:
    """List every entry below a folder that is no folder itself, as sorted relative POSIX names. Raises: as `look`."""
    found: list[str] = []
    with _opened(root, below) as top:
        for place, folders, files, here in _walk(top, below):
            links = [name for name in folders if stat.S_ISLNK(_status(name, here).st_mode)]
            found += [(PurePosixPath(place) / name).as_posix() for name in (*files, *links)]
            if len(found) > MAX_NAMES:
                raise OddFileError(f"{below}: more than {MAX_NAMES} files")
    return sorted(found)


def read(root: Path, name: str, most: int = MAX_FILE_BYTES) -> bytes:
    """Read one plain file of at most `most` bytes below `root`.

    Raises: MissingFile, or OddFileError for anything but such a file.
    """
    path = PurePosixPath(name)
    with _opened(root, str(path.parent)) as folder:
        return _content(path.name, folder, most)


def mode(root: Path, name: str) -> int:
    """Give the rights of a file or folder below `root`, as `chmod` takes them. Raises: as `read`."""
    path = PurePosixPath(name)
    with _opened(root, str(path.parent)) as folder:
        try:
            return stat.S_IMODE(_status(path.name, folder).st_mode)
        except FileNotFoundError:
            raise MissingFile(errno.ENOENT, "there is no such file", name) from None


def plant(root: Path, name: str, raw: bytes, user: int | None = None) -> None:
    """Put a file of these bytes in place of whatever has this name, and make the folders on the way.

    What is made belongs to `user`, if one is given. Raises: OddFileError where something is in the way, OSError.
    """
    path = PurePosixPath(name)
    with _opened(root, str(path.parent), make=True, user=user) as folder:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=folder)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            raise OddFileError(f"{path.name}: is in the way ({error.strerror})") from None
        with open(os.open(path.name, _NEW, 0o600, dir_fd=folder), "wb") as file:  # noqa: PTH123 - a descriptor
            if user is not None:
                os.fchown(file.fileno(), user, user)
            file.write(raw)


def make_folder(root: Path, name: str, user: int | None = None) -> None:
    """Make one folder right below `root` that only its owner may enter. Raises: OSError."""
    with _opened(root, ".") as top:
        _make(top, name, user, 0o700)


def is_larger(root: Path, most: int) -> bool:
    """Say whether what is below `root` takes up more than `most` bytes. What vanishes meanwhile does not count."""
    size = 0
    for _, folders, files, here in os.fwalk(root, follow_symlinks=False):
        for name in (*files, *folders):
            with contextlib.suppress(OSError):
                size += _status(name, here).st_blocks * 512
        if size > most:
            return True
    return False


@contextmanager
def _opened(root: Path, below: str, *, make: bool = False, user: int | None = None) -> Iterator[int]:
    """Open a folder step by step; with `make`, make those that are missing, for this user."""
    folder = os.open(root, os.O_RDONLY | _IS_FOLDER)
    try:
        for step in PurePosixPath(below).parts:
            try:
                if make:
                    _make(folder, step, user)
                inner = os.open(step, _FOLDER, dir_fd=folder)
            except FileNotFoundError:
                raise MissingFile(errno.ENOENT, "there is no such folder", step) from None
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                raise OddFileError(f"{below}: {step} is no folder ({error.strerror})") from None
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _walk(top: int, below: str) -> Iterator[tuple[str, list[str], list[str], int]]:
    """Walk through an open folder. Raises: OddFileError for folders in folders without an end."""
    try:
        yield from os.fwalk(".", dir_fd=top, follow_symlinks=False)
    except RecursionError:
        raise OddFileError(f"{below}: folders are nested too deep") from None


def _make(folder: int, name: str, user: int | None, mode: int = 0o777) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
        if user is not None:
            os.chown(name, user, user, dir_fd=folder, follow_symlinks=False)


def _status(name: str, folder: int) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _entry(name: str, folder: int) -> Entry | None:
    """Say what a name stands for; None for a folder, which says nothing by itself."""
    try:
        found = _status(name, folder)
        if stat.S_ISDIR(found.st_mode):
            return None
        if stat.S_ISLNK(found.st_mode):
            return Entry("link", 0, os.readlink(name, dir_fd=folder))
        if stat.S_ISREG(found.st_mode):
            digest = hashlib.sha256(_content(name, folder, MAX_FILE_BYTES)).hexdigest()
            return Entry("file", stat.S_IMODE(found.st_mode), digest)
    except FileNotFoundError:  # a process of the student's has just removed it
        return Entry("other", 0, "gone")
    return Entry("other", 0, stat.filemode(found.st_mode)[0])


def _content(name: str, folder: int, most: int) -> bytes:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise MissingFile(errno.ENOENT, "there is no such file", name) from None
    except OSError as error:
        raise OddFileError(f"{name}: cannot be opened as a plain file ({error.strerror})") from None
    return plain_content(descriptor, name, most)
