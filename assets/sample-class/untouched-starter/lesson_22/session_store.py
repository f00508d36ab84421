# 由 solution/ 生成的练习：补全每处 NotImplementedError。重来：statelab workspace reset
# Generated from solution/ for you to edit: fill in each NotImplementedError. Start over: statelab workspace reset
"""The session's event log: appends in call order, contiguous numbers, a reader that forgives only a torn tail.

Read it from the top: what the reader says about a file (``scan``), then the store that appends
(``JsonlSessionStore``), then the few lines that touch the disk. docs/formats.md specifies the bytes; S1 to S18
name the rules kept.

The critical section, from looking at the disk to handing over the line, contains no ``await``. On one event loop
nothing can come between numbering and writing, and that is the whole lock. The queue in front of it fixes the
order at the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import weakref
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .event_line import (
    NotAnEventError,
    NotJsonError,
    SessionEvent,
    capture_data,
    capture_type,
    decode_line,
    encode_line,
)

# --- Reading: a verdict on bytes ---


class CorruptLogError(Exception):
    """A line that no interrupted append leaves behind: the history itself is damaged.

    Attributes: ``path`` of the log, ``line`` (1-based, physical), ``reason`` in words, never a byte of the line (S15).
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(path, line, reason)
        self.path, self.line, self.reason = path, line, reason

    def __str__(self) -> str:
        return (
            f"{self.path}: 第 {self.line} 行 (line {self.line}): {self.reason}; "
            "先保留文件并查看这一行，不要跳过它 (keep the file and look at that line; do not skip it)"
        )


@dataclass(frozen=True, slots=True)
class LogScan:
    """What the bytes of a log say: the events that count, and how the file ends.

    ``good_bytes`` is the offset behind the last event; ``torn`` holds the bytes after it, empty unless a write was
    cut short; ``missing_newline`` is true when the last event is whole but its newline never arrived.
    """

    events: tuple[SessionEvent, ...]
    good_bytes: int
    torn: bytes
    missing_newline: bool


def scan(raw: bytes, path: Path) -> LogScan:
    """Judge a whole log (S12, S14 to S16). Only the bytes after the last newline may be forgiven.

    Raises: CorruptLogError at the first line that is not the record that is due.
    """
    raise NotImplementedError("实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery) · 第 1 步：判读 (step 1: judge the bytes)")


def _wrong_number(path: Path, line: int, found: int) -> CorruptLogError:
    shown = str(found) if abs(found) < 10**18 else "…"
    return CorruptLogError(
        path, line, f"序号应为 {line}，实为 {shown} (sequence: expected {line}, found {shown})"
    )


# --- Appending: one queue, one critical section ---


class _Waiting(NamedTuple):
    """An append that was called and has not begun."""

    result: asyncio.Future[SessionEvent]
    type: str
    data: Any
    type_json: bytes
    data_json: bytes


class JsonlSessionStore:
    """One session's log. One instance owns one file, in one process, on one event loop at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[_Waiting] = deque()  # not empty exactly while one _write_next is scheduled
        self._file: _LogFile | None = None
        self._next_sequence = 1  # valid only while the file is as we left it

    async def read(self) -> list[SessionEvent]:
        """Return the committed history, oldest first. Takes no lock and never repairs (S17).

        Raises: CorruptLogError for a damaged history; OSError for a file that is there and cannot be read (S13).
        """
        raise NotImplementedError("实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery) · 第 2 步：读取 (step 2: read)")

    def append(self, type: str, data: object) -> asyncio.Future[SessionEvent]:  # noqa: A002
        """Queue one event and return its future result. Not ``async``: the call itself takes the place in line (S1).

        Cancelling the result before the write has begun drops the event; afterwards it is written whole (S8).
        Await it before its event loop closes: what has not begun by then is dropped.

        Raises: TypeError, ValueError at once for a type or data that cannot be stored (S3, S4); RuntimeError when
        another event loop is using this store (S8). Awaiting the result raises OSError or CorruptLogError for what
        the disk says (S6, S13).
        """
        raise NotImplementedError("实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery) · 第 3 步：排队 (step 3: queue the call)")

    def _enter_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop is loop:
            self._loop = loop
            return loop
        if self._loop.is_running() or (self._queue and not self._loop.is_closed()):
            raise RuntimeError(
                f"{self.path}: 另一个事件循环正在使用 (in use by another event loop); 每次只用一个 (use one at a time)"
            )
        self._report_never_begun(loop)
        self._loop = loop
        return loop

    def _report_never_begun(self, loop: asyncio.AbstractEventLoop) -> None:
        """Drop what a closed loop left waiting, and say so: only who cancels is silent (S8)."""
        while self._queue:
            if not self._queue.popleft().result.cancelled():
                what = "它的事件循环先关闭了，这次追加没有开始 (its event loop closed first: this append never began)"
                loop.call_exception_handler(
                    {"message": f"{self.path}: {what}; 关闭前先 await 它 (await it before the loop closes)"}
                )

    def _write_next(self) -> None:
        """Write the oldest waiting append, tell its caller, and let the loop breathe before the next."""
        waiting = self._queue[0]
        try:
            if not waiting.result.cancelled():
                waiting.result.set_result(self._write(waiting))
        except BaseException as error:
            # Whatever it was, it is this caller's, and the queue lives on (S7). Ctrl-C also stops the program, as ever.
            waiting.result.set_exception(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._queue.popleft()
            if self._queue and self._loop:
                self._loop.call_soon(self._write_next)

    def _write(self, waiting: _Waiting) -> SessionEvent:
        """Look at the disk, number, write: the critical section, in which no ``await`` may ever stand (S2).

        The first append opens the log, and every append asks it whether it is as we left it: if not, the number comes
        from what ``_mend`` finds (S10, S18). Raises: OSError, CorruptLogError; the number is then still free (S6).
        """
        raise NotImplementedError("实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery) · 第 4 步：编号并写入 (step 4: number and write)")


def _mend(file: _LogFile) -> LogScan:
    """Read the whole log and make its end fit to append to (S10, S11). Damaged history is refused, never mended."""
    raise NotImplementedError("实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery) · 第 5 步：修尾 (step 5: mend the tail)")


# --- The disk ---

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate newlines without it


class _LogFile:
    """The open log, unbuffered, and the size at which we last left it."""

    def __init__(self, path: Path) -> None:
        _make_private_folder(path.parent)
        _refuse_special_file(path)
        self.path, self._name = path, str(path)
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, 0o600)
        self.close = weakref.finalize(self, os.close, self._fd)  # closed with the store, at the latest
        self._identity = _identity(os.fstat(self._fd))
        self._size: int | None = None  # bytes; None: not known, look again

    def is_as_we_left_it(self) -> bool:
        """Compare the path's file with ours (S18). Raises: OSError when it vanished or is another file."""
        try:
            on_disk = os.stat(self._name)  # noqa: PTH116 — at every append, so the quick way
        except FileNotFoundError:
            raise _moved(errno.ENOENT, self.path, "日志不见了 (the log has vanished)") from None
        if _identity(on_disk) != self._identity:
            raise _moved(
                errno.ESTALE, self.path, "日志被换成了另一个文件 (the log was replaced by another file)"
            )
        return on_disk.st_size == self._size

    def forget(self) -> None:
        """Be sure of nothing any more, so that the next append reads the file again."""
        self._size = None

    def read(self) -> bytes:
        """Return every byte, and remember that this is the file we know."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        pieces = []
        while piece := os.read(self._fd, 1 << 20):
            pieces.append(piece)
        raw = b"".join(pieces)
        self._size = len(raw)
        return raw

    def append(self, line: bytes) -> None:
        """Hand the line over in one write; take it back whole if that fails (S6, S9)."""
        before = self._size or 0
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                _write_rest(self._fd, line[written:])
        except BaseException:
            self._take_back(line, before)
            raise
        self._size = before + len(line)

    def _take_back(self, line: bytes, before: int) -> None:
        # Forgives the full disk: only bytes proved to be the beginning of this very line are cut away. If even the
        # cut fails, a torn tail stays behind, and the next append mends it.
        with contextlib.suppress(OSError):
            os.lseek(self._fd, before, os.SEEK_SET)
            arrived = os.read(self._fd, len(line) + 1)
            if arrived and line.startswith(arrived):
                os.ftruncate(self._fd, before)

    def cut(self, size: int) -> None:
        """Cut the file to ``size`` bytes and sync it. Raises: OSError when the file has changed since it was read."""
        if os.fstat(self._fd).st_size != self._size:
            raise _moved(
                errno.EAGAIN, self.path, "日志正被别的程序改写 (another program is writing to the log)"
            )
        os.ftruncate(self._fd, size)
        os.fsync(self._fd)
        self._size = size


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _moved(code: int, path: Path, what: str) -> OSError:
    return OSError(
        code, f"{what}; 查明原因后用新的 store 打开 (find out why, then open it with a new store)", str(path)
    )


def _refuse_special_file(path: Path) -> None:
    """Stop before a pipe or a device, whose bytes may never come; a folder gets the system's own error."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(
            errno.EINVAL, "不是普通文件 (not a regular file); 换一个路径 (choose another path)", str(path)
        )


def _write_rest(fd: int, rest: bytes) -> None:
    """Go on after a short write, which is no error: the disk takes the rest, or says why not (S6)."""
    while rest:
        taken = os.write(fd, rest)
        if not taken:
            raise OSError(
                errno.EIO, "磁盘一个字节也不收 (the disk takes no bytes); 检查磁盘 (check the disk)"
            )
        rest = rest[taken:]


def _make_private_folder(folder: Path) -> None:
    """Make the folder and its missing parents, each for this user alone (S9)."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _keep_torn_bytes(path: Path, offset: int, torn: bytes) -> None:
    """Save the torn bytes beside the log, synced, before anything is cut (S11)."""
    name, attempt = path.with_name(f"{path.name}.torn-{offset}"), 1
    while True:
        try:
            copy = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            break
        except FileExistsError:
            attempt += 1
            name = path.with_name(f"{path.name}.torn-{offset}-{attempt}")
    try:
        with open(copy, "wb") as file:  # noqa: PTH123 — a descriptor, not a path
            file.write(torn)
            file.flush()
            os.fsync(copy)
        _sync_folder(path.parent)
    except BaseException:
        name.unlink()  # a full disk: nothing is cut yet, and half a copy would only mislead
        raise


def _sync_folder(folder: Path) -> None:
    """Make a new name durable. Windows cannot open folders, and needs no such call."""
    if os.name == "posix":
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
