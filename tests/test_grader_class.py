"""A class graded by a crew that fails at times: who is tried again, what is recorded, what a row says then."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from grader.crew import LocalCrew, WorkerLostError
from grader.intake import take
from grader.journal import ClassRecord
from grader.pool import ClassRun, Submission, find_submissions
from grader.rungs import strongest_rung
from grader.worker import grade_task
from tests.class_of_many import SETTINGS, task_of, workers
from tests.piped import KIT

LOST = WorkerLostError("a grading process ended before it had an answer")
FULL = b'{"fault":"OSError (No space left on device) at sandbox.py:1"}\n'


class ScriptedCrew:
    """A crew of one that fails as told, in the order of its tasks; what it is not told about it grades, here."""

    def __init__(self, *script: Exception | bytes | None) -> None:
        self.script = list(script)
        self.tasks = 0
        self.futures: list[Future[bytes]] = []

    def width(self) -> int:
        return 1

    def submit(self, task):
        self.tasks += 1
        said = self.script.pop(0) if self.script else None
        future: Future[bytes] = Future()
        if isinstance(said, Exception):
            future.set_exception(said)
        else:
            future.set_result(said or grade_task(task))
        return future


def a_class(folder, count=1):
    """Make submissions that do not load: each is graded in a moment."""
    for number in range(count):
        lesson = folder / f"s{number}" / "lesson_22"
        lesson.mkdir(parents=True)
        (lesson / "__init__.py").write_text("from .session_store import *\n")
        (lesson / "session_store.py").write_text(f"def scan(: # {number}\n")
    return find_submissions(folder)


def graded(crew, submissions, folder):
    """Grade with this crew; give the rows, and the record's events of a grading."""
    run = ClassRun(["22"], SETTINGS, strongest_rung().name, crew)
    with ClassRecord(folder / "record") as record:
        rows = run.grade(submissions, record, {})
        lines = record.path.read_bytes().splitlines()
    return list(rows), [event["type"] for event in map(json.loads, lines)]


@pytest.mark.parametrize("fault", [FULL, LOST, b"{half an ans"], ids=["full disk", "lost", "half an answer"])
def test_a_fault_of_the_grader_is_tried_once_more(fault, tmp_path):
    """The second time it goes well: the row knows nothing of the fault, and the record tells of both."""
    rows, events = graded(ScriptedCrew(fault), a_class(tmp_path / "class"), tmp_path)
    assert [row["verdict"] for row in rows] == ["syntax-error"]
    assert events == ["grading-began", "grading-failed", "grading-began", "graded"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (FULL, "No space left on device"),
        (LOST, "ended before it had an answer"),
        (b"{half an ans", "JSONDecodeError"),
    ],
    ids=["full disk", "lost", "half an answer"],
)
def test_a_fault_that_stays_is_the_graders_and_a_later_run_grades(fault, told, tmp_path):
    """The row says grader-error with the reason: every test in error, none failed, nothing recorded; others have theirs."""
    submissions = a_class(tmp_path / "class", 2)
    rows, events = graded(ScriptedCrew(fault, None, fault), submissions, tmp_path)
    tests = rows[0]["lessons"]["22"]["tests"]
    assert [row["verdict"] for row in rows] == ["grader-error", "syntax-error"]
    assert {test["status"] for test in tests} == {"error"}
    assert told in tests[0]["message"]["en"]
    assert (events.count("grading-failed"), events.count("graded")) == (2, 1)
    with ClassRecord(tmp_path / "record") as record:
        run = ClassRun(["22"], SETTINGS, strongest_rung().name, crew := ScriptedCrew())
        again = run.grade(submissions, record, record.gradings(run.suites().values()))
        assert [row["verdict"] for row in again] == ["syntax-error", "syntax-error"]
    assert crew.tasks == 1


def test_an_outcome_with_a_test_in_error_is_no_grading(tmp_path):
    """One check that the grader failed at: tried once more as a whole, and not recorded unless it goes well."""
    submissions = a_class(tmp_path / "class")
    outcome = json.loads(grade_task(task_of(take(submissions[0].path, "22"))))["outcome"]
    outcome["tests"][0] |= {
        "status": "error",
        "reason": "grader-error",
        "message": {"en": "broke", "zh": "坏"},
    }
    half = json.dumps({"outcome": outcome | {"verdict": "grader-error"}, "seconds": 1}).encode()
    rows, events = graded(ScriptedCrew(half, half), submissions, tmp_path)
    assert rows[0]["verdict"] == "grader-error"
    assert events == ["grading-began", "grading-failed"] * 2


def test_half_a_character_stops_no_class(tmp_path):
    """A student's text may hold what no file can: it is replaced, in a fault as in an outcome, and whole ones stay."""
    submissions = a_class(tmp_path / "class")
    outcome = json.loads(grade_task(task_of(take(submissions[0].path, "22"))))["outcome"]
    outcome["tests"][0]["place"] = "\ud800 🧪"
    fault = json.dumps({"fault": "at \udce9"}).encode()
    answer = json.dumps({"outcome": outcome, "seconds": 1}).encode()
    rows, events = graded(ScriptedCrew(fault, answer), submissions, tmp_path)
    assert rows[0]["lessons"]["22"]["tests"][0]["place"] == "? 🧪"
    assert events == ["grading-began", "grading-failed", "grading-began", "graded"]


def test_a_grading_process_that_is_killed_costs_no_one_a_mark(tmp_path):
    """A real process, killed while it grades: its submission is graded by the next one."""
    submissions = [Submission("right", KIT / "assets/sample-class/right")]

    def kill_first() -> None:
        while not (found := workers()) or not found[0].children():
            pass
        found[0].kill()

    with LocalCrew(1) as crew:
        killer = threading.Thread(target=kill_first)
        killer.start()
        rows, events = graded(crew, submissions, tmp_path)
        killer.join()
    assert rows[0]["lessons"]["22"]["complete"]
    assert events == ["grading-began", "grading-failed", "grading-began", "graded"]


def test_equal_contents_are_handed_out_once(tmp_path):
    """Three rows of one content are one task, and three rows."""
    (first,) = a_class(tmp_path / "class")
    crew = ScriptedCrew()
    rows, events = graded(crew, [first, first._replace(name="b"), first._replace(name="c")], tmp_path)
    assert [row["submission"] for row in rows] == ["s0", "b", "c"]
    assert {row["verdict"] for row in rows} == {"syntax-error"}
    assert crew.tasks == 1
    assert events.count("graded") == 1


def test_rows_come_in_the_order_of_the_submissions(tmp_path):
    """Whoever is ready first, the table has the class's order; a slice of rows is rows."""
    submissions = a_class(tmp_path / "class", 4)
    run = ClassRun(["22"], SETTINGS, strongest_rung().name, ScriptedCrew(LOST, None, LOST))
    told: list[str] = []
    with ClassRecord(tmp_path / "record") as record:
        rows = run.grade(submissions, record, {}, lambda name, _: told.append(name))
    assert [row["submission"] for row in rows] == [each.name for each in submissions]
    assert [row["submission"] for row in rows[1:3]] == ["s1", "s2"]
    assert sorted(told) == ["s0", "s1", "s2", "s3"]


def test_few_submissions_are_on_their_way_at_a_time(tmp_path):
    """However large the class, only as many are open as the crew can soon begin: their bytes are not held."""
    on_their_way = []

    class Narrow(ScriptedCrew):
        def submit(self, task):
            on_their_way.append(sum(not future.done() for future in self.futures))
            self.futures.append(hand.submit(grade_task, task))
            return self.futures[-1]

    with ThreadPoolExecutor(1) as hand:
        rows, _ = graded(Narrow(), a_class(tmp_path / "class", 6), tmp_path)
    assert len(rows) == len(on_their_way) == 6
    assert max(on_their_way) == 1
