"""One lesson of one submission, graded where it is told to: here, in a process of the crew, or on another machine.

Run as a program, it is one process of `grader/crew.py`: `python -P -m grader.worker DESCRIPTOR`. Tasks come in pickled,
from the grader alone; what goes back is one line of JSON each, because it was near a student's code. When the line
closes, the grader has finished, was stopped, or is gone: the process ends what it started, then itself.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.fingerprint import suite_of
from grader.grade import grade_handin
from grader.notebooks import NotebookTask, execute
from grader.rungs import strongest_rung
from grader.sandbox import end_all
from grader.suites import load_suite

if TYPE_CHECKING:
    from grader.intake import Handin
    from grader.settings import Settings

STOP_SECONDS = 1.2
"""How long a grading that is stopped has to end its children and remove its files."""
_OTHER_KIT = "the kit here is another version; install the one that the run was started with"


class Task(NamedTuple):
    """One lesson of one submission, by bytes, and what it is judged by.

    `rung` names the isolation that is asked for; `suite` is the hash of all that judges (`grader/fingerprint.py`).
    """

    handin: Handin
    settings: Settings
    rung: str
    suite: str

    @property
    def lesson(self) -> str:
        """The lesson's number."""
        return self.handin.lesson

    @property
    def seconds(self) -> float:
        """The wall clock that it may take."""
        return self.settings.limits_of(self.lesson).submission_seconds


def grade_task(task: Task | NotebookTask) -> bytes:
    """Grade; give JSON: `{"outcome": LessonOutcome.plain(), "seconds": wall clock}`, or `{"fault": why}`.

    The outcome of notebooks is what `grader.notebooks.execute` gives. A fault is the grader's own, never the student's.
    Doing a task twice does no harm.
    """
    began = time.monotonic()
    try:
        rung = strongest_rung().name
        if rung != task.rung:
            return _line(fault=f"isolation: {rung} is the strongest here, and {task.rung} is asked for")
        if suite_of(task.lesson, task.settings, rung) != task.suite:
            return _line(fault=_OTHER_KIT)
        outcome = execute(task) if isinstance(task, NotebookTask) else _graded(task)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not the student's
        return _line(fault=_describe(error))
    return _line(outcome=outcome, seconds=round(time.monotonic() - began, 3))


def _graded(task: Task) -> dict[str, Any]:
    return grade_handin(task.handin, load_suite(task.lesson).checks, task.settings)[1].plain()


def _line(**answer: Any) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"


def _describe(error: Exception) -> str:
    """Name the error and where it was raised; its text only where the system wrote it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
    return f"{type(error).__name__}{text} at {Path(last.filename).name}:{last.lineno}"


def main() -> None:
    """Grade task after task until the line closes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio ends a grading in order on this signal
    line = socket.socket(fileno=int(sys.argv[1])).makefile("rwb")
    tasks: queue.SimpleQueue[Task | NotebookTask] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(line, tasks), daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        while True:
            line.write(grade_task(tasks.get()))
            line.flush()


def _listen(line: Any, tasks: queue.SimpleQueue[Task | NotebookTask]) -> None:
    """Take tasks. When the line closes, stop: in order if that is quick, else at once."""
    with contextlib.suppress(
        EOFError, OSError, pickle.UnpicklingError
    ):  # a grader that was killed wrote half a task
        while True:
            tasks.put(pickle.load(line))  # noqa: S301 - the grader's own
    logging.disable()  # asyncio would tell of every call that is cut short
    os.kill(os.getpid(), signal.SIGINT)
    end_all()
    time.sleep(STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
