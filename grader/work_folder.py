"""One test's folder seen from outside; links, pipes and huge files left by a student are not followed."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_NAMES = 10_000
_SAFE_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_EXCLUSIVE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


class OddFileError(Exception):
    """Where a plain file of reasonable size should be, the student's code left something else."""


def read_plain_file(path: Path) -> bytes:
    """Read a regular file of at most `MAX_FILE_BYTES`; a missing one is `FileNotFoundError`.

    Raises `OddFileError` for a link, pipe, device, folder or larger file.
    """
    try:
        descriptor = os.open(path, _SAFE_READ)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OddFileError(f"{path.name}: cannot be opened as a plain file ({error.strerror})") from None
    return plain_content(descriptor, path.name, MAX_FILE_BYTES)


def plain_content(descriptor: int, name: str, most: int) -> bytes:
    """Read an open file and close it. Raises `OddFileError` for what is no regular file, or larger than `most` bytes."""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OddFileError(f"{name}: is not a plain file")
        if found.st_size > most:
            raise OddFileError(f"{name}: is larger than {most} bytes")
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.readall()[:most]
    finally:
        os.close(descriptor)


def plant_file(path: Path, raw: bytes) -> None:
    """Create a file with these bytes, in place of whatever had this name; nothing is followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, _EXCLUSIVE, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
        file.write(raw)


def names_below(folder: Path) -> list[str]:
    """List every entry below the folder that is no folder itself, as sorted relative POSIX names."""
    found: list[str] = []
    for root, _, files in os.walk(folder, followlinks=False):
        found.extend(os.path.relpath(os.path.join(root, name), folder) for name in files)  # noqa: PTH118
        if len(found) > MAX_NAMES:
            raise OddFileError(f"{folder.name}: more than {MAX_NAMES} files")
    return sorted(name.replace(os.sep, "/") for name in found)
