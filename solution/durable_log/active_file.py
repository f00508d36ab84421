"""The file that a log appends to: whole records or nothing, on an unbuffered descriptor."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from .atomic_file import NO_FOLLOW, sync_folder


class ChangedUnderneathError(OSError):
    """The file is not as this writer left it: somebody removed, cut or wrote it without the lock."""


class ActiveFile:
    """An open log of `size` bytes, all of them whole records. Every change goes through here.

    `broken` is set when what stands behind `size` is not known, or not known to be durable; nothing may follow then.
    """

    def __init__(self, path: Path, size: int) -> None:
        """Open the file, made with mode 0600 if need be; it and its name are durable then. Raises: OSError."""
        self.path = path
        self.size = size
        self.broken = False
        new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_FOLLOW, 0o600)
        try:
            # Also an old one: what a killed writer wrote and could not sync counts as there from now on.
            os.fsync(self._descriptor)
            if new:
                sync_folder(path.parent)
        except BaseException:
            self.close()
            raise

    def write(self, lines: bytes) -> None:
        """Write all of `lines`, or take back what was written of them. Raises: OSError; then look at `broken`."""
        before = self.size
        try:
            written = os.write(self._descriptor, lines)
            while written < len(lines):  # a short write is no error: a signal or a nearly full disk
                more = os.write(self._descriptor, memoryview(lines)[written:])
                if not more:
                    raise OSError(errno.EIO, "the disk takes no bytes")  # noqa: TRY301
                written += more
            self.size = before + len(lines)
        except BaseException:
            self._take_back(before)
            raise

    def _take_back(self, size: int) -> None:
        self.size = size
        try:
            os.ftruncate(self._descriptor, self.size)
        except OSError:
            self.broken = True

    def sync(self) -> None:
        """Make all that was written durable, as far as the drive tells the truth.

        Raises: OSError; the log is `broken` then: after a failed sync the kernel may call lost pages clean.
        """
        try:
            _sync(self._descriptor)
        except BaseException:
            self.broken = True
            raise

    def check(self) -> None:
        """Compare the file with what was left of it. Raises: ChangedUnderneathError, OSError."""
        status = os.fstat(self._descriptor)
        if status.st_size != self.size or not status.st_nlink:
            self.broken = True
            raise ChangedUnderneathError(errno.ESTALE, "was changed by something that does not hold the lock")

    def close(self) -> None:
        """Close the descriptor. Nothing is buffered, so nothing can be lost here. Twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _sync(descriptor: int) -> None:
    """Sync contents and size. fdatasync leaves out times alone; where it is missing (macOS, Windows), fsync does."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)
