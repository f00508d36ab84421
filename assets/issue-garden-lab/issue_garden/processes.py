"""Runs one outside program: an argument list, a time limit, the end of its output, and the end of its whole tree."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

NO_SUCH_PROGRAM = 127
_PIPE_GRACE_SECONDS = 5.0
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


@dataclass(frozen=True)
class Finished:
    """How a program ended: exit code (negative: by that signal), the last bytes it printed, and how long it took."""

    argv: list[str]
    exit_code: int
    output: str
    dropped_bytes: int
    timed_out: bool
    seconds: float


class _Tail:
    """Keeps the last bytes of a stream, so that a flood fills neither memory nor disk."""

    def __init__(self, limit_bytes: int) -> None:
        self.kept, self.dropped_bytes, self._limit_bytes = bytearray(), 0, limit_bytes

    def drain(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed under our hands: the program is gone
            while piece := os.read(stream.fileno(), 65_536):
                self.kept += piece
                surplus = max(0, len(self.kept) - self._limit_bytes)
                del self.kept[:surplus]
                self.dropped_bytes += surplus


def run_program(
    argv: list[str],
    *,
    cwd: Path,
    seconds: float,
    output_bytes: int,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    inherit: tuple[int, ...] = (),
) -> Finished:
    """Run ``argv`` in ``cwd`` for at most ``seconds``; standard output and error are read as one stream.

    Whether it ends by itself or at the limit, nothing that it started is left running when this returns.
    ``inherit`` are descriptors that the program keeps open (not on Windows).
    """
    begun, tail = time.monotonic(), _Tail(output_bytes)
    said = [argument.encode("utf-8", "backslashreplace").decode() for argument in argv]
    program = find_program(argv[0], cwd, env or os.environ)
    if program is None:
        return Finished(said, NO_SUCH_PROGRAM, f"{said[0]}: 没有这个程序 (no such program)\n", 0, False, 0.0)
    start = {"args": [program, *argv[1:]], "cwd": cwd, "env": env, **_apart(inherit)}
    try:
        exit_code, timed_out = _run_to_end(start, stdin, seconds, tail)
    except OSError as error:  # found, and yet not startable
        return Finished(said, NO_SUCH_PROGRAM, f"{said[0]}: {error.strerror}\n", 0, False, 0.0)
    output = bytes(tail.kept).decode("utf-8", "replace")
    return Finished(
        said, exit_code, output, tail.dropped_bytes, timed_out, round(time.monotonic() - begun, 3)
    )


def find_program(name: str, cwd: Path, env: Mapping[str, str]) -> str | None:
    """Return the program that ``name`` means for someone working in ``cwd``, or None."""
    if os.path.dirname(name):
        return shutil.which(cwd / name)
    return shutil.which(name, path=env.get("PATH"))


def _run_to_end(start: dict[str, Any], stdin: bytes, seconds: float, tail: _Tail) -> tuple[int, bool]:
    """Start, feed, drain and wait; return the exit code, and whether the limit came first."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with _OrphanWatch() as orphans, subprocess.Popen(**start, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        threads = [
            threading.Thread(target=tail.drain, args=(process.stdout,), daemon=True),
            threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            process.wait(seconds)
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _end_group(process)
            orphans.end()
            for thread in threads:  # the pipe ends with its last holder
                thread.join(_PIPE_GRACE_SECONDS)
    return process.returncode, timed_out


def _feed(stream: IO[bytes], content: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):  # a program need not read what it is told
        stream.write(content)
    with contextlib.suppress(OSError):
        stream.close()


def _apart(inherit: tuple[int, ...]) -> dict[str, Any]:
    """Start a program in a session of its own, so that its whole group can be ended without ending us."""
    if os.name == "nt":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined,unused-ignore]
    return {"start_new_session": True, "pass_fds": inherit}


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that stayed in its group."""
    if os.name == "nt":
        _end_tree_windows(process)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_tree_windows(process: subprocess.Popen[bytes]) -> None:
    """Windows has no groups that can be killed, but knows who started whom. Not tried by us."""
    if process.poll() is None:
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False)
    process.wait()


class _OrphanWatch:
    """On Linux, adopts and ends what left the program's group: a daemon has a session of its own and no parent.

    Only processes that become our children in here are ended; those from before are none of our business.
    Elsewhere it does nothing: there, a program that wants to outlive its group can.
    """

    def __enter__(self) -> _OrphanWatch:
        self._was = ctypes.c_int()
        self._before: set[int] = set()
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None)
            self._libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(self._was), 0, 0, 0)
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            self._before = _children()
        return self

    def end(self) -> None:
        """End one generation after the other: the children of those that die come to us, until none come."""
        while sys.platform == "linux" and (adopted := _children() - self._before):
            for pid in adopted:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def __exit__(self, *_: object) -> None:
        if sys.platform == "linux":
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, self._was.value, 0, 0, 0)


def _children() -> set[int]:
    """Process ids of our own children, asked from the kernel: the parent is the second field behind the name."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{name}/stat", "rb") as status,
            ):  # or it has just ended
                if int(status.read().rpartition(b")")[2].split(None, 2)[1]) == os.getpid():
                    found.add(int(name))
    return found
