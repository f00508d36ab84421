"""One process writes a session: a lock of the operating system's, which dies with its owner (E5).

The kernel decides; what stands in the lock file only tells people who holds it. The file stays when the lock goes, so
that nobody can lock a file that another has just removed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

from .errors import LockingUnsupportedError, LogLockedError

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_LONGEST_NOTE_BYTES = 500

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        os.lseek(descriptor, _LONGEST_NOTE_BYTES * 2, os.SEEK_SET)  # behind the note, which others may read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        # flock, not lockf: it belongs to the open file, so a second log in this process is refused too, and closing
        # some other descriptor of the lock file does not lose it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_held_here: weakref.WeakSet[SessionLock] = weakref.WeakSet()


class SessionLock:
    """The right to write one session, until `release` or the end of this process, however it comes."""

    def __init__(self, descriptor: int, folder: int | None) -> None:
        self._descriptors = [descriptor] if folder is None else [descriptor, folder]
        self.in_child: Callable[[], None] = lambda: None
        """Called in a forked child, which does not hold what its parent holds."""
        _held_here.add(self)

    @classmethod
    def take(cls, path: Path) -> SessionLock:
        """Lock the file at `path`, made with mode 0600 if need be, at once or not at all.

        Raises:
            LogLockedError: somebody has it; the message says who, as far as the file tells.
            LockingUnsupportedError: the file system cannot lock, so nothing keeps a second writer out.
            OSError: the file cannot be made or opened.
        """
        while True:
            descriptor = os.open(
                path,
                os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0),
                0o600,
            )
            try:
                _lock(descriptor, path)
                if _is_at(descriptor, path):
                    folder = _lock_folder(path.parent)
                    _leave_note(descriptor)
                    return cls(descriptor, folder)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(
                descriptor
            )  # somebody removed the file before it was locked: lock the one that is there now

    def release(self) -> None:
        """Give the lock up. Twice is harmless."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def forget_in_child(self) -> None:
        """Close the inherited descriptor: otherwise the lock would live as long as the child does."""
        self.release()
        self.in_child()


def _lock(descriptor: int, path: Path) -> None:
    try:
        _try_lock(descriptor)
    except OSError as problem:
        if problem.errno in _HELD:
            raise LogLockedError(
                f"{path.parent}: {_note(descriptor)} writes it; wait for its end, or open with when_locked='wait'"
            ) from None
        raise LockingUnsupportedError(
            f"{path.parent}: its file system cannot lock ({os.strerror(problem.errno or 0)}); use a folder on a local disk"
        ) from problem


def _lock_folder(folder: Path) -> int | None:
    """Lock the folder as well, which nobody can remove: then removing the lock file lets no second writer in.

    None where folders cannot be locked (Windows, some network file systems): there the file alone is the lock.

    Raises: LogLockedError.
    """
    if sys.platform == "win32":
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _try_lock(descriptor)
    except OSError as problem:
        os.close(descriptor)
        if problem.errno in _HELD:
            raise LogLockedError(
                f"{folder}: another process writes it; wait for its end, or open with when_locked='wait'"
            ) from None
        return None
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _leave_note(descriptor: int) -> None:
    note = json.dumps({"pid": os.getpid(), "host": platform.node()[:200]}).encode()
    with contextlib.suppress(OSError):  # a full disk: the lock holds without it
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, note)


def _note(descriptor: int) -> str:
    """Say who holds the lock, in words. The file may hold anything, and only a number and a name are taken from it."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        note = json.loads(os.read(descriptor, _LONGEST_NOTE_BYTES))
        pid, host = int(note["pid"]), str(note["host"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "another process"
    if pid == os.getpid():
        return "this process, through another log,"
    return f"process {pid} on {host}" if host.isascii() and host.isprintable() else f"process {pid}"


def _forget_all_in_child() -> None:
    for lock in list(_held_here):
        lock.forget_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all_in_child)
