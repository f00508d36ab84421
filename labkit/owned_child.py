"""Runs one command beside the kernel: its lines arrive as they are printed, and it never outlives whoever started it.

A thread a pipe and ``Popen``, not asyncio's own subprocesses: the kernel's event loop on Windows has none. The threads are
daemons, so that a kernel which ends does not wait for them; the guard between notices, and ends the command's whole tree.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

GUARD = Path(__file__).with_name("child_guard.py")
LINE_BYTES = 4096
"""A longer line is told in pieces."""
KEPT_LINES = 400
"""How many of the last lines are kept."""
KEPT_BYTES = 8 * 1024 * 1024
"""How much of standard output is kept, to be read as an answer; one that is longer is none."""
REST_SECONDS = 0.05
"""How long to rest between two tellings: the first line is told at once, a flood twenty times a second."""
_PIPE_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Spoken:
    """One line that a command printed. ``stream`` is ``out`` or ``err``."""

    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: by itself with an exit code, or by a signal; its standard output, and its last lines."""

    exit_code: int | None
    signal: int | None
    out: bytes
    lines: tuple[Spoken, ...]
    dropped_lines: int


class OwnedChild:
    """One command, begun at once; ``shown`` is how a person would type it, and the first line.

    ``heard`` is called on the event loop whenever there is something new in ``said()``.

    Raises: RuntimeError when no event loop is running; OSError when no process can be started.
    """

    def __init__(
        self,
        shown: str,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        heard: Callable[[], object],
    ) -> None:
        self._lines: deque[Spoken] = deque(maxlen=KEPT_LINES)
        self._spoken, self._one_at_a_time = 0, threading.Lock()
        self._out = bytearray()
        self._heard, self._telling = heard, threading.Event()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ended] = self._loop.create_future()
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(GUARD), shown, *argv],
            cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **_apart(),
        )  # fmt: skip
        self._readers = [
            self._thread(self._read, "out", self._process.stdout),
            self._thread(self._read, "err", self._process.stderr),
        ]
        self._thread(self._wait)

    def said(self) -> tuple[Spoken, ...]:
        """Return the last lines printed so far."""
        with self._one_at_a_time:
            return tuple(self._lines)

    @property
    def dropped_lines(self) -> int:
        """How many lines came before those that are kept."""
        return max(0, self._spoken - KEPT_LINES)

    async def ended(self) -> Ended:
        """Wait for the end, and say how it came."""
        return await asyncio.shield(self._ended)

    def stop(self) -> None:
        """End the command and everything that it started. May be called again, and after the end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def end(self) -> None:
        """End it, and wait until nothing of it is left. Blocks: not for the event loop's own thread."""
        self.stop()
        self._process.wait()

    def _thread(self, target: Callable[..., None], *args: Any) -> threading.Thread:
        made = threading.Thread(target=target, args=args, name="owned child", daemon=True)
        made.start()
        return made

    def _read(self, stream: str, pipe: IO[bytes]) -> None:
        with suppress(
            ValueError, OSError
        ):  # closed under our hands: it ended, and somebody else holds the pipe
            while line := pipe.readline(LINE_BYTES):
                if stream == "out" and len(self._out) <= KEPT_BYTES:
                    self._out += line
                with self._one_at_a_time:
                    self._lines.append(Spoken(stream, line.decode(errors="replace").rstrip("\r\n")))
                    self._spoken += 1
                if not self._telling.is_set():
                    self._telling.set()
                    self._call(self._tell)

    def _tell(self) -> None:
        told = self._spoken
        self._heard()
        self._loop.call_later(REST_SECONDS, self._rested, told)

    def _rested(self, told: int) -> None:
        self._telling.clear()
        if self._spoken != told and not self._ended.done():
            self._telling.set()
            self._tell()

    def _wait(self) -> None:
        code = self._process.wait()
        for reader, pipe in zip(self._readers, (self._process.stdout, self._process.stderr), strict=True):
            reader.join(_PIPE_GRACE_SECONDS)
            if pipe and not reader.is_alive():
                pipe.close()
        self.stop()
        self._call(self._end, code)

    def _end(self, code: int) -> None:
        if self._ended.done():  # whoever waited was cancelled
            return
        by_signal = code < 0
        self._ended.set_result(
            Ended(
                exit_code=None if by_signal else code,
                signal=-code if by_signal else None,
                out=bytes(self._out) if len(self._out) <= KEPT_BYTES else b"",
                lines=self.said(),
                dropped_lines=self.dropped_lines,
            )
        )

    def _call(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop ended before the command did: nobody is left to tell
            self._loop.call_soon_threadsafe(function, *args)


def _apart() -> dict[str, Any]:
    """Keep the child out of the kernel's own group: an interrupted kernel interrupts no command."""
    if os.name == "nt":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined,unused-ignore]
    return {"start_new_session": True}
