"""Homework: three small parts of a log that outlives a power cut.

1. ``DurableLines``: what "acknowledged" promises, at three levels of durability (H1 to H5)
2. ``session_file``: from a session's id to a private file that cannot lie outside its root (H6, H7)
3. ``seal``, ``unseal``, ``read_sealed``: a checksum around every line, and a torn line told from a damaged one (H8 to H10)

docs/formats.md, "The homework of lesson 22", has the rules H1 to H10 and the bytes. This file stands alone: it imports
nothing of the lesson, and it is checked by itself.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

_BINARY = getattr(os, "O_BINARY", 0)  # Windows: without it the system writes \r\n for \n

# --- 1 · Durability: what was promised when a line was acknowledged ---

LEVELS = ("os", "fsync", "group")


class ClosedLogError(RuntimeError):
    """The log was closed: on purpose, or by a failure after which nobody knows what is on disk."""


class DurableLines:
    """Lines of bytes appended to one file. Each is numbered from 1 in the order of the calls, and acknowledged once.

    ``append``, ``sync`` and ``close`` return the numbers that they acknowledge, lowest first. The level says when:

        os      the operating system has the line: it outlives the process
        fsync   the line was synced, alone: it outlives a power cut
        group   as ``fsync``, but one sync serves ``group`` lines, and the early ones wait for the last
    """

    def __init__(self, path: str | os.PathLike[str], level: str, group: int = 8) -> None:
        if level not in LEVELS or group < 1:
            raise ValueError(f"level: 不认识的级别 (unknown level); 可选 (choose one of) {', '.join(LEVELS)}")
        self.path, self.level, self.group = Path(path), level, group
        self._written = 0  # lines of which every byte was handed over
        self._acknowledged = 0  # the first so many of them were acknowledged
        _refuse_torn_tail(self.path)
        self._descriptor: int | None = self._open()

    def _open(self) -> int:
        """Open the file for appending, made with mode 0600; at ``fsync`` and ``group`` sync its name, too (H1, H4).

        Returns the descriptor. Raises: OSError, with nothing left open.
        """
        # BEGIN SOLUTION: 实现打开文件 (implement opening the file) · 练习 1 (exercise 1)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _BINARY, 0o600)
        if self.level == "os":
            return descriptor
        try:
            # Also when the file was there: whoever made it may have crashed before syncing its name.
            sync_folder(self.path.parent)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor
        # END SOLUTION

    def append(self, line: bytes) -> list[int]:
        r"""Write one line, its ``\n`` included; return the numbers acknowledged now, none while a group fills (H1 to H3).

        Raises: ValueError for anything but one ended line; ClosedLogError; OSError when the disk fails, which closes
        the log and acknowledges nothing (H5).
        """
        if line.count(b"\n") != 1 or not line.endswith(b"\n"):
            raise ValueError("line: 应是以换行结束的一行 (must be one line that ends in a newline)")
        descriptor = self._usable()
        # BEGIN SOLUTION: 实现追加与确认 (implement appending and acknowledging) · 练习 1 (exercise 1)
        try:
            _write_whole(descriptor, line)
        except BaseException:
            # A full disk, or Ctrl-C: a piece of the line may be there, and nothing may be glued onto it.
            self._end()
            raise
        self._written += 1
        if self.level == "os":
            return self._acknowledge()
        if self.level == "fsync" or self._written - self._acknowledged >= self.group:
            return self.sync()
        return []
        # END SOLUTION

    def sync(self) -> list[int]:
        """Sync the file; return the numbers of the lines that waited for it (H2).

        Raises: ClosedLogError; OSError when the sync fails, which closes the log and acknowledges nothing (H5).
        """
        descriptor = self._usable()
        # BEGIN SOLUTION: 实现同步 (implement syncing) · 练习 1 (exercise 1)
        try:
            os.fsync(descriptor)
        except BaseException:
            # Never again on this file: the system may have dropped the bytes, and then a second sync "succeeds".
            self._end()
            raise
        return self._acknowledge()
        # END SOLUTION

    def close(self) -> list[int]:
        """Sync what waits, and close; return the numbers acknowledged. On a closed log it does nothing."""
        try:
            waits = self._descriptor is not None and self._acknowledged < self._written
            return self.sync() if waits else []
        finally:
            self._end()

    def _acknowledge(self) -> list[int]:
        """Return the numbers of all lines that were written and not acknowledged before."""
        numbers = list(range(self._acknowledged + 1, self._written + 1))
        self._acknowledged = self._written
        return numbers

    def _usable(self) -> int:
        if self._descriptor is None:
            raise ClosedLogError(
                f"{self.path}: 日志已关闭 (the log is closed); 重新打开，先看盘上有什么 (open it anew, and look at what is on disk)"
            )
        return self._descriptor

    def _end(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Windows cannot open folders, and needs no such call. Raises: OSError."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_whole(descriptor: int, line: bytes) -> None:
    """Hand over every byte: a short count is no error, the disk takes the rest or says why not (H1)."""
    # BEGIN SOLUTION: 实现完整写入 (implement writing every byte) · 练习 1 (exercise 1)
    while line:
        taken = os.write(descriptor, line)
        if not taken:
            raise OSError(errno.EIO, "磁盘一个字节也不收 (the disk takes no bytes)")
        line = line[taken:]
    # END SOLUTION


def _refuse_torn_tail(path: Path) -> None:
    """Stop before a file whose last line never ended: what is appended there would be glued onto it."""
    raw = path.read_bytes() if path.exists() else b""
    if raw and not raw.endswith(b"\n"):
        raise ValueError(f"{path}: 尾部撕裂 (the tail is torn); 先备份并截断 (keep a copy and cut it first)")


# --- 2 · Containment: a session's id is no path ---

SESSION_LOG = "events.jsonl"
MAX_ID = 80
DEVICE_NAMES = frozenset(
    ("CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10)))
)
"""Names that are devices on Windows, in any folder and in any case."""


def check_id(session_id: object) -> str:
    """Return the id if it is safe as a name: 1 to 80 ASCII letters, digits, ``_`` and ``-``, and no device (H6).

    Raises: ValueError, without the id in it: what a stranger sends does not belong into a message.
    """
    # BEGIN SOLUTION: 实现会话 ID 检查 (implement checking the session id) · 练习 2 (exercise 2)
    if not isinstance(session_id, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_ID}}}", session_id):
        raise ValueError(
            "session_id: 不安全 (is not safe); 用 1–80 个字母、数字、_、- (use 1 to 80 letters, digits, _ and -)"
        )
    if session_id.upper() in DEVICE_NAMES:
        raise ValueError("session_id: 是 Windows 的设备名 (is the name of a device); 换一个 (choose another)")
    return session_id
    # END SOLUTION


def session_file(root: str | os.PathLike[str], session_id: str) -> Path:
    """Return ``ROOT/ID/events.jsonl``, made if it is missing: folders 0700, the file empty and 0600 (H6, H7).

    A log that is there stays as it is. Raises: ValueError, before anything is made; OSError.
    """
    # BEGIN SOLUTION: 实现会话文件 (implement the session's file) · 练习 2 (exercise 2)
    folder = Path(root) / check_id(session_id)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / SESSION_LOG
    # The mode goes into the call that makes the file: with a chmod afterwards it is open to all for a moment.
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    return file
    # END SOLUTION


# --- 3 · Integrity: a checksum around every line ---


class CorruptLogError(Exception):
    """An ended line that is not what ``seal`` wrote: no crash leaves that behind.

    Attributes: ``line`` (1-based, physical), ``reason`` in words; never a byte of the line (H9).
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line, self.reason = line, reason

    def __str__(self) -> str:
        return f"第 {self.line} 行 (line {self.line}): {self.reason}; 先保留文件 (keep the file)"


@dataclass(frozen=True, slots=True)
class SealedLog:
    """What a sealed log holds: its payloads, the offset behind the last good line, and the torn bytes after it."""

    payloads: tuple[bytes, ...]
    good_bytes: int
    torn: bytes


def seal(payload: bytes) -> bytes:
    r"""Return the payload's line: its CRC-32 as eight digits 0-9a-f, a space, the payload as it is, ``\n`` (H8).

    Raises: ValueError when the payload holds a newline.
    """
    # BEGIN SOLUTION: 实现校验行 (implement the sealed line) · 练习 3 (exercise 3)
    if b"\n" in payload:
        raise ValueError(
            "payload: 含有换行 (holds a newline); 先编码成一行 JSON (encode it as one line of JSON)"
        )
    return b"%08x %b\n" % (zlib.crc32(payload), payload)
    # END SOLUTION


def unseal(line: bytes) -> bytes | None:
    """Return the payload of a line (without its newline), or None unless every byte is as ``seal`` writes it (H9)."""
    # BEGIN SOLUTION: 实现校验 (implement verifying a line) · 练习 3 (exercise 3)
    payload = line[9:]
    # Compared as a whole: int(digits, 16) would also take capitals, and so let flipped bits pass.
    return payload if line + b"\n" == seal(payload) else None
    # END SOLUTION


def read_sealed(raw: bytes) -> SealedLog:
    """Judge a whole log: payloads of the lines that ended, and what is torn behind the last newline (H10).

    Raises: CorruptLogError at the first ended line that does not verify (H9).
    """
    # BEGIN SOLUTION: 实现读取 (implement reading) · 练习 3 (exercise 3)
    *ended, torn = raw.split(b"\n")
    payloads = []
    for number, line in enumerate(ended, start=1):
        payload = unseal(line)
        if payload is None:
            raise CorruptLogError(number, "校验和不符 (the checksum does not match)")
        payloads.append(payload)
    # The newline is a line's last byte. Without it nobody was told that the line is there, and the crash may have it.
    return SealedLog(tuple(payloads), len(raw) - len(torn), torn)
    # END SOLUTION
