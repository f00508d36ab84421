"""One file that somebody else may have put there: links, pipes and huge files are not followed."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_NAMES = 10_000
_SAFE_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


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
