"""Whole files or none: written beside their place, synced, renamed; names made durable by syncing the folder."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate newlines without it
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | _BINARY
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def replace_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Put `pieces`, joined, in the place of `path`: a crash leaves the old file or the new one, both whole, mode 0600.

    Raises: OSError. Before the rename nothing has changed; if only the last step failed, syncing the folder, the new
    file stands there but a power cut may bring the old one back.
    """
    with temporary_file(path) as (descriptor, temporary):
        for piece in pieces:
            write_all(descriptor, piece)
        os.fsync(descriptor)
        os.replace(temporary, path)  # noqa: PTH105 - the name under which the field knows this step
    sync_folder(path.parent)


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[int, Path]]:
    """Make a file beside `path`, mode 0600, and give its descriptor and name; what was not renamed is removed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
    try:
        yield descriptor, temporary
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            temporary.unlink()
        raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte: a short write is no error, the rest follows. Raises: OSError."""
    left = memoryview(data)
    while left:
        taken = os.write(descriptor, left)
        if not taken:
            raise OSError(errno.EIO, "the disk takes no bytes; check it")
        left = left[taken:]


def sync_folder(folder: Path) -> None:
    """Make new, renamed and removed names in `folder` durable. Windows cannot open folders, and needs no such call."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the contents of `path` durable, whoever wrote them. Raises: OSError."""
    descriptor = os.open(path, os.O_RDWR | NO_FOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_temporary_files(folder: Path) -> None:
    """Remove what a killed `replace_file` left in `folder`. Only for who holds the writer's lock. Raises: OSError."""
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            path.unlink()
