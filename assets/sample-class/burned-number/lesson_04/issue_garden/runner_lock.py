"""One runner at a time (P2). Given.

The kernel decides: it gives the lock to one open file and takes it back when the last process that holds that file
open is gone, however it died. So no lock can be left behind, none needs to be broken, and neither age nor content of
the file means anything. Programs that a round starts inherit the open file: while an agent outlives its killed
runner, the lock is still held, and no second agent can come beside it. Local disks only: over a network file system
the kernel of another machine is not asked.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from issue_garden.answers import blocked
from issue_garden.records import now_utc


@contextmanager
def runner_lock(path: Path) -> Iterator[int]:
    """Hold the lock at ``path``, whose folder exists; gives the descriptor that programs may inherit.

    Held by another: ``blocked``/``runner_active``, and nothing was changed. No lock to be had on this file system:
    ``blocked``/``environment``; it never goes on without one.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _unusable(path, "不是普通文件 (is not a regular file)", "unsafe_path")
        _lock_or_stop(descriptor, path)
        _sign(descriptor)
        yield descriptor
    finally:
        # Closing, not unlocking: in a forked child this drops its own copy, and the parent still holds the lock.
        os.close(descriptor)


def _lock_or_stop(descriptor: int, path: Path) -> None:
    try:
        got_it = _try_lock(descriptor)
    except OSError as error:
        raise _unusable(path, f"无法加锁: {error.strerror} (cannot be locked)", "lock_unsupported") from None
    if not got_it:
        raise blocked(
            "runner_active",
            "lock_held",
            f"{path.name}: 另一个运行器，或它启动的 Agent，还没有结束；等它结束再运行 "
            "(another runner, or an agent that it started, has not ended; wait for it, then run again)",
        )


def _try_lock(descriptor: int) -> bool:
    """Ask the kernel once, without waiting. False: somebody else has it."""
    if os.name == "nt":
        return _try_lock_windows(descriptor)
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_lock_windows(descriptor: int) -> bool:
    """Windows locks ranges of bytes against reading too: one far behind the content. Not tried by us."""
    import msvcrt  # noqa: PLC0415 - on Windows only

    os.lseek(descriptor, 1 << 30, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except PermissionError:
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
    return True


def _sign(descriptor: int) -> None:
    """Write who holds the lock, for people. Whatever stood here before, empty or garbled, decides nothing."""
    os.ftruncate(descriptor, 0)
    os.write(descriptor, json.dumps({"pid": os.getpid(), "since": now_utc()}).encode() + b"\n")


def _unusable(path: Path, reason: str, cause: str) -> Exception:
    advice = "把实验放在本地磁盘上，再运行 (put the lab on a local disk, then run again)"
    return blocked("environment", cause, f"{path.name}: {reason}; {advice}")
