"""A folder that a student's code may have filled, seen from outside: nothing in it is followed, and nothing waits.

Every step is taken from an open folder to a name in it, so that a symbolic link anywhere on the way, the start of the
path included, leads nowhere.
"""

from __future__ import annotations

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
_FOLDER = os.O_RDONLY | _NOT_FOLLOWED | getattr(os, "O_DIRECTORY", 0)
_FILE = os.O_RDONLY | _NOT_FOLLOWED | getattr(os, "O_NONBLOCK", 0)


class Entry(NamedTuple):
    """What one name stands for: `file` with its SHA-256, `link` with where it points, or `other`; mode in octal."""

    kind: str
    mode: int
    content: str


Tree = dict[str, Entry]
"""Relative POSIX name -> entry, for everything but folders."""


def look(root: Path, below: str) -> Tree:
    """List everything below the folder `below` of `root`; `root` itself is the grader's own.

    Raises: FileNotFoundError, or OddFileError for a way that is no way and for too much to look at.
    """
    found: Tree = {}
    with _opened(root, below) as top:
        for place, folders, names, here in os.fwalk(".", dir_fd=top, follow_symlinks=False):
            for name in (*names, *folders):
                if (entry := _entry(name, here)) is not None:
                    found[(PurePosixPath(place) / name).as_posix()] = entry
            if len(found) > MAX_NAMES:
                raise OddFileError(f"{below}: more than {MAX_NAMES} files")
    return found


def read(root: Path, name: str) -> bytes:
    """Read one plain file below `root`. Raises: FileNotFoundError, or OddFileError for anything but such a file."""
    path = PurePosixPath(name)
    with _opened(root, str(path.parent)) as folder:
        return _content(path.name, folder)


@contextmanager
def _opened(root: Path, below: str) -> Iterator[int]:
    """Open a folder step by step."""
    folder = os.open(root, _FOLDER)
    try:
        for step in PurePosixPath(below).parts:
            try:
                inner = os.open(step, _FOLDER, dir_fd=folder)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise OddFileError(f"{below}: {step} is no folder ({error.strerror})") from None
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _entry(name: str, folder: int) -> Entry | None:
    """Say what a name stands for; None for a folder, which says nothing by itself."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return None
        if stat.S_ISLNK(found.st_mode):
            return Entry("link", 0, os.readlink(name, dir_fd=folder))
        if stat.S_ISREG(found.st_mode):
            digest = hashlib.sha256(_content(name, folder)).hexdigest()
            return Entry("file", stat.S_IMODE(found.st_mode), digest)
    except FileNotFoundError:  # a process of the student's has just removed it
        return Entry("other", 0, "gone")
    return Entry("other", 0, stat.filemode(found.st_mode)[0])


def _content(name: str, folder: int) -> bytes:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OddFileError(f"{name}: cannot be opened as a plain file ({error.strerror})") from None
    return plain_content(descriptor, name, MAX_FILE_BYTES)
