"""The processes that grade on this machine. Each has one task at a time; one that is lost takes no other with it.

Processes and not threads: checks run in the grader's own Python, where threads would wait for each other, and a process
can be stopped in the middle of anything.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, Self

from grader.worker import STOP_SECONDS

if TYPE_CHECKING:
    from types import TracebackType

    from grader.notebooks import NotebookTask
    from grader.worker import Task

_SLACK_SECONDS = 30.0  # beyond a submission's own time: start, laying down, cleaning up


class WorkerLostError(Exception):
    """A process ended, or did not answer in time; its task may be done again."""


class Crew(Protocol):
    """Whoever grades: processes here (`LocalCrew`) or machines elsewhere (`grader/cluster.py`). Entered once."""

    def width(self) -> int:
        """Say how many tasks can be worked on at once, now."""
        ...

    def submit(self, task: Task | NotebookTask) -> Future[bytes]:
        """Have one task done; its result is what `grade_task` gives. Raises through the future: what lost the task."""
        ...

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End: what is still running is stopped within `STOP_SECONDS` and a moment."""
        ...


class LocalCrew:
    """As many processes as there are jobs, started when first needed and replaced when lost."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._threads = ThreadPoolExecutor(jobs)  # each waits for one process
        self._all = [_Process() for _ in range(jobs)]
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        for process in self._all:
            self._idle.put(process)

    def width(self) -> int:
        """Say how many processes there are."""
        return self._jobs

    def submit(self, task: Task | NotebookTask) -> Future[bytes]:
        """Have one task done by the next process that is free."""
        return self._threads.submit(self._hand_out, task)

    def _hand_out(self, task: Task | NotebookTask) -> bytes:
        process = self._idle.get()
        try:
            return process.grade(task)
        finally:
            self._idle.put(process)

    def __enter__(self) -> Self:
        """Begin; processes start with their first task."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every process, at once for all, and wait until they are gone."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._all:
            process.stop()
        deadline = time.monotonic() + STOP_SECONDS + 0.3
        for process in self._all:
            process.wait_until(deadline)
        self._threads.shutdown()


class _Process:
    """One process of the crew, and our end of its line."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._stopped = False
        self._starting = threading.Lock()

    def grade(self, task: Task | NotebookTask) -> bytes:
        """Hand the task over and wait for its answer. Raises: WorkerLostError, OSError when none can be started."""
        with self._starting:
            line = self._line or self._start()
        line.settimeout(task.seconds + _SLACK_SECONDS)
        why = "ended before it had an answer"
        try:
            line.sendall(pickle.dumps(task))
            with line.makefile("rb") as answers:
                answer = answers.readline()
        except TimeoutError:
            why, answer = "did not answer in time", b""
        except OSError:
            answer = b""
        if not answer.endswith(b"\n"):
            self._give_up()
            raise WorkerLostError(f"a grading process {why}")
        return answer

    def stop(self) -> None:
        """Let it know that nothing more is wanted."""
        with self._starting:
            self._stopped = True
        if line := self._line:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_WR)  # a thread may still be reading: closing would not wake it

    def wait_until(self, deadline: float) -> None:
        """Wait until it is gone; kill it after the deadline (of the monotonic clock)."""
        if running := self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(max(0.0, deadline - time.monotonic()))
            self._give_up()

    def _start(self) -> socket.socket:
        if self._stopped:
            raise WorkerLostError("the run is being stopped")
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._running = subprocess.Popen(
                    # -P: what lies in the folder that the grader was called in is nothing to import
                    [sys.executable, "-P", "-m", "grader.worker", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # Ctrl-C is the grader's to hear, who then stops all in order
                )
            except OSError:
                ours.close()
                raise
        self._line = ours
        return ours

    def _give_up(self) -> None:
        running, line, self._running, self._line = self._running, self._line, None, None
        if running:
            running.kill()
            running.wait()
        if line:
            line.close()


def cores() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
