"""The processes that grade here: what a task gives, what the loss of one costs, how all of them end."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys

import psutil
import pytest

from grader import worker
from grader.crew import LocalCrew, WorkerLostError
from grader.intake import Handin, take
from grader.worker import grade_task
from tests.class_of_many import ENDLESS, alive, task_of, workers
from tests.piped import KIT


def broken(text: str = "def scan(:\n") -> Handin:
    """Give a hand-in that is judged in a moment: it does not load."""
    return Handin("22", {"__init__.py": b"from .session_store import *\n", "session_store.py": text.encode()})


def wait_for_a_child() -> list[psutil.Process]:
    """Look until a student's code is being run; list everything of the crew then."""
    while True:
        with contextlib.suppress(psutil.Error):
            found = [each for worker in workers() for each in (worker, *worker.children(recursive=True))]
            if any("host.py" in " ".join(process.cmdline()) for process in found):
                return found


def test_a_task_gives_the_outcome_as_json():
    """The same shape as in `outcomes.json`, and the time it took."""
    answer = json.loads(grade_task(task_of(take(KIT / "solution", "22"))))
    assert answer["outcome"]["complete"]
    assert answer["seconds"] > 0


def test_what_is_missing_is_graded_without_a_child():
    """A submission that lacks a file is the student's matter: an outcome, no fault."""
    answer = json.loads(grade_task(task_of(take(KIT / "docs", "22"))))
    assert answer["outcome"]["verdict"] == "missing-file"


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"rung": "another"}, "another is asked for"),
        ({"suite": "0" * 64}, "another version"),
        ({"handin": Handin("99")}, "KeyError at fingerprint.py"),
    ],
)
def test_a_grader_that_may_not_judge_says_so(other, told):
    """Weaker isolation, another version of the kit, its own error: a fault of the grader, with the place and no trace."""
    fault = json.loads(grade_task(task_of(broken())._replace(**other)))["fault"]
    assert told in fault
    assert "\n" not in fault


def test_a_machine_without_room_says_what_the_system_said(monkeypatch):
    """A full disk is named, so that somebody can make room."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker, "grade_handin", full)
    assert "No space left on device" in json.loads(grade_task(task_of(broken())))["fault"]


def test_a_crew_does_what_it_is_given():
    """Tasks beyond the number of processes wait, each gets its own answer, and the processes are used again."""
    with LocalCrew(2) as crew:
        futures = [crew.submit(task_of(handin)) for handin in [broken(), take(KIT / "docs", "22")] * 3]
        verdicts = [json.loads(future.result())["outcome"]["verdict"] for future in futures]
        assert len(workers()) == 2
    assert verdicts == ["syntax-error", "missing-file"] * 3
    assert workers() == []


def test_a_process_that_is_lost_takes_one_task_with_it():
    """Killed in the middle, as for want of memory: its task is lost, its children are gone, the next task is done."""
    with LocalCrew(1) as crew:
        lost = crew.submit(task_of(broken(ENDLESS)))
        children = wait_for_a_child()
        children[0].kill()
        with pytest.raises(WorkerLostError, match="ended before"):
            lost.result()
        psutil.wait_procs(children[1:])
        assert json.loads(crew.submit(task_of(broken())).result())["outcome"]["verdict"] == "syntax-error"


def test_leaving_a_crew_stops_what_runs():
    """An endless loop is being graded: it ends, and with it every process; nobody waits for its limits."""
    with pytest.raises(KeyboardInterrupt), LocalCrew(2) as crew:
        running = [crew.submit(task_of(broken(f"{ENDLESS}# {number}\n"))) for number in range(5)]
        below = wait_for_a_child()
        raise KeyboardInterrupt
    assert workers() == alive(below) == []
    assert all(future.done() for future in running)


def test_a_process_ends_with_the_grader():
    """The line closes when the grader is killed: its process ends what it grades, which had ten minutes still, and itself."""
    program = (
        "from dataclasses import replace; from tests.class_of_many import SETTINGS\n"
        "from grader.crew import LocalCrew; from tests.test_grader_crew import *\n"
        "long = dict.fromkeys(('submission_seconds', 'start_seconds', 'call_seconds', 'cpu_seconds'), 600)\n"
        "settings = replace(SETTINGS, limits=replace(SETTINGS.limits, **long))\n"
        "crew = LocalCrew(1); crew.submit(task_of(broken(ENDLESS), settings))\n"
        "print(*[each.pid for each in wait_for_a_child()], flush=True)\n"
        "import signal; signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=KIT, stdout=subprocess.PIPE, text=True
    ) as grader:
        assert grader.stdout
        left = [psutil.Process(int(pid)) for pid in grader.stdout.readline().split()]
        grader.send_signal(signal.SIGKILL)
    assert len(left) > 1
    assert psutil.wait_procs(left, timeout=60)[1] == []
