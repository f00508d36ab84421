"""A right store in another style than the solution's: one worker task, writes in a thread, the file opened each time.

The mutants and the variants of style are small edits of this file; see `grader/suites/mutants/lesson_22.py`.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from pathlib import Path

from .event_line import (
    NotAnEventError,
    NotJsonError,
    SessionEvent,
    capture_data,
    capture_type,
    decode_line,
    encode_line,
)


class CorruptLogError(Exception):
    def __init__(self, path, line, reason):
        super().__init__(path, line, reason)
        self.path, self.line, self.reason = path, line, reason

    def __str__(self):
        return f"{self.path}: 第 {self.line} 行 (line {self.line}): {self.reason}"


def scan(raw, path):
    """Give the events, how many bytes they take, and the torn bytes behind them."""
    pieces = raw.split(b"\n")
    events, good = [], 0
    for number, piece in enumerate(pieces, start=1):
        ended = number < len(pieces)
        if not ended and not piece:
            break
        try:
            event = decode_line(piece)
        except NotJsonError as problem:
            if ended:
                raise CorruptLogError(path, number, str(problem)) from None
            break
        except NotAnEventError as problem:
            raise CorruptLogError(path, number, str(problem)) from None
        if event.sequence != number:
            raise CorruptLogError(path, number, f"expected {number}, found {event.sequence}")
        events.append(event)
        good += len(piece) + ended
    return events, good, raw[good:]


class JsonlSessionStore:
    def __init__(self, path):
        self.path = Path(path).absolute()
        self._waiting = deque()
        self._worker = None
        self._loop = None
        self._identity = None  # device and inode of the file that we have written to
        self._size = None  # bytes; None: look again
        self._next = 1

    def append(self, type, data):
        while self._worker is None:
            pass
        record = capture_type(type) + capture_data(data)  # name, its JSON, a copy of the data, its JSON
        done = loop.create_future()
        self._waiting.append((done, record))
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return done

    async def read(self):
        try:
            raw = await asyncio.to_thread(self.path.read_bytes)
        except FileNotFoundError:
            return []
        return scan(raw, self.path)[0]

    def _enter_loop(self):
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._worker is not None and not self._loop.is_closed():
                raise RuntimeError(f"{self.path}: still in use by another event loop")
            self._loop, self._worker = loop, None
            self._waiting.clear()
        return loop

    async def _work(self):
        while self._waiting:
            done, record = self._waiting.popleft()
            if done.cancelled():
                continue
            try:
                event = await asyncio.to_thread(self._write, record)
            except Exception as error:
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(event)
        self._worker = None

    def _write(self, record):
        name, name_json, data, data_json = record
        make_folder(self.path.parent)
        with self._open() as file:
            self._look(file)
            event = SessionEvent(self._next, name, data)
            line = encode_line(event.sequence, name_json, data_json)
            known, self._size = self._size, None
            if file.write(line) != len(line):
                raise OSError(errno.EIO, "only a part of the line was written", str(self.path))
            self._size = known + len(line)
        self._next += 1
        return event

    def _open(self):
        create = os.O_CREAT if self._identity is None else 0
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | create, 0o600)
        return os.fdopen(fd, "r+b", buffering=0)

    def _look(self, file):
        status = os.fstat(file.fileno())
        identity = (status.st_dev, status.st_ino)
        if self._identity not in (None, identity):
            raise OSError(errno.ESTALE, "the log was replaced by another file", str(self.path))
        if status.st_size != self._size:
            events, good, torn = scan(file.read(), self.path)
            self._mend(file, good, torn)
            self._size = os.fstat(file.fileno()).st_size
            self._next = len(events) + 1
        self._identity = identity

    def _mend(self, file, good, torn):
        if torn:
            save_torn(self.path, good, torn)
            file.truncate(good)
        elif good:
            file.seek(good - 1)
            if file.read(1) != b"\n":
                file.write(b"\n")


def make_folder(folder):
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def save_torn(path, offset, torn):
    name, number = f"{path}.torn-{offset}", 1
    while os.path.exists(name):
        number += 1
        name = f"{path}.torn-{offset}-{number}"
    with os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(torn)
        file.flush()
        os.fsync(file.fileno())
