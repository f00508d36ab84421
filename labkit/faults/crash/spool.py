"""Where the recorder's child writes its trace, line by line, underneath the file layer. Standard library only."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from labkit.faults.crash.trace import Op, Start, Step, Unseen
from labkit.faults.crash.trace_file import line_of

MOST_BYTES = 256 << 20
"""A trace is held in memory: one that is longer is given up."""


def real(name: str) -> Callable[..., Any]:
    """Return a function of `os` as it is underneath the file layer."""
    function = getattr(os, name)
    return getattr(function, "real", function)  # type: ignore[no-any-return]


class Spool:
    """Where the lines of the trace go at once: whatever ends this process, they are there."""

    def __init__(self, path: str, full: Callable[[], object] = lambda: None) -> None:
        """`full` is called when there is too much to write down; it does not come back."""
        self._file = real("open")(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._left, self._full = MOST_BYTES, full
        self._write, self._one_at_a_time = real("write"), threading.RLock()
        self._steps = 0
        self._threads: dict[threading.Thread, int] = {}
        self._unseen: set[Unseen] = set()

    def line(self, value: dict[str, Any] | Start) -> None:
        """Write one line."""
        self._put(line_of(value))

    def step(self, op: Op, **fields: Any) -> None:
        """Write the next step, made by the calling thread."""
        with self._one_at_a_time:
            thread = self._threads.setdefault(threading.current_thread(), len(self._threads) + 1)
            line = line_of(Step(self._steps + 1, op, thread=thread, **fields))
            self._steps += 1
            self._put(line)

    def unseen(self, what: str, where: str) -> None:
        """Say, once, that something cannot be followed."""
        unseen = Unseen(what, where)
        with self._one_at_a_time:
            if unseen not in self._unseen:
                self._unseen.add(unseen)
                self._put(line_of(unseen))

    def stop(self) -> None:
        """Write nothing any more: this is a copy of the process."""
        self._put = lambda line: None  # type: ignore[method-assign]  # noqa: ARG005

    def room_for(self, size: int) -> None:
        """Give up where so many bytes more are too many."""
        if size > self._left:
            self.stop()
            self._full()

    def _put(self, line: bytes) -> None:
        self.room_for(len(line))
        self._left -= len(line)
        while line:
            line = line[self._write(self._file, line) :]
