"""A whole class: found, calibrated, graded by a crew, one row each, recorded as it comes (G6, G7, G8, G13)."""

from __future__ import annotations

import concurrent.futures
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from grader.fingerprint import content_of, content_of_notebooks, suite_of, together
from grader.intake import Opened, is_submission, open_submission
from grader.intake.names import showable
from grader.journal import Grading, Key
from grader.notebooks import LESSON as NOTEBOOKS
from grader.notebooks import NotebookTask, not_executed
from grader.outcome import Finding, Head, conclude, verdict_of
from grader.plain_text import printable
from grader.roster import claim_of, seat
from grader.suites import load_suite
from grader.suites.check import Text
from grader.worker import Task
from labkit.workspace import kit_root

if TYPE_CHECKING:
    from concurrent.futures import Future

    from grader.crew import Crew
    from grader.journal import ClassRecord
    from grader.roster import Roster
    from grader.settings import Settings

    Tell = Callable[[str, str], None]
    """Called with name and verdict of each row as it is complete."""

SAMPLE_CLASS = "assets/sample-class"
UNTOUCHED = "untouched-starter"


class CalibrationError(Exception):
    """The grader is wrong about code that it knows: nobody may be judged by it."""


class Submission(NamedTuple):
    """One row to be: its name, what was handed in, if anything, and whose it is. With a `problem`, nothing is graded."""

    name: str
    path: Path | None
    student: str = ""
    problem: Text | None = None
    notes: tuple[Text, ...] = ()


def find_submissions(folder: Path) -> list[Submission]:
    """List what is to be graded: every child of the folder that is not hidden, by name.

    Raises: OSError when the folder cannot be listed.
    """
    return [Submission(path.name, path) for path in sorted(folder.iterdir()) if is_submission(path)]


def seat_class(
    found: Sequence[Submission], roster: Roster | None, tell: Callable[[str], None]
) -> list[Submission]:
    """Look into every submission, and say whose it is and whether it counts; the roster's absent students follow.

    Nothing of what was read is kept. `tell` hears of each as it was looked at.
    """
    claims = []
    for submission in found:
        assert submission.path
        claims.append(claim_of(open_submission(submission.path)))
        tell(submission.name)
    seated = []
    for number, given in enumerate(seat(claims, roster)):
        name, path = found[number][:2] if number < len(found) else (given.name or given.student, None)
        seated.append(
            Submission(name, path, given.student, given.problem, (given.note,) if given.note else ())
        )
    return seated


class Rows(Sequence[dict[str, Any]]):
    """The rows of a class in the order of its submissions (`Head.row`), kept packed and made when asked for."""

    def __init__(self, rows: Sequence[tuple[Head, Mapping[str, Grading]]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Rows:
        """Make one row, or take some of them."""
        if isinstance(index, slice):
            return Rows(self._rows[index])
        head, gradings = self._rows[index]
        seconds = sum(grading.seconds for grading in gradings.values())
        lessons = {lesson: grading.outcome for lesson, grading in gradings.items()}
        notebooks = lessons.pop(NOTEBOOKS, {}).get("notebooks", ())
        return head.row(lessons, round(seconds, 3), notebooks)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Make one row after the other."""
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True, slots=True)
class ClassRun:
    """How a class is graded: which lessons, by which settings, on which rung, by whom; with `notebooks`, these too."""

    lessons: Sequence[str]
    settings: Settings
    rung: str
    crew: Crew
    notebooks: bool = False

    def suites(self) -> dict[str, str]:
        """Give what each lesson, and the notebooks, are judged by, as a hash."""
        names = [*self.lessons, *([NOTEBOOKS] if self.notebooks else [])]
        return {name: suite_of(name, self.settings, self.rung) for name in names}

    def tasks(self, opened: Opened, suites: Mapping[str, str]) -> dict[Key, Task | NotebookTask]:
        """Give what there is to do for one submission, by what its outcome is known by."""
        handins = [opened.handin(lesson) for lesson in self.lessons]
        tasks: dict[Key, Task | NotebookTask] = {}
        for handin in handins:
            suite = suites[handin.lesson]
            key = Key(handin.lesson, content_of(handin), suite)
            tasks[key] = Task(handin, self.settings, self.rung, suite)
        if self.notebooks and opened.notebooks:
            suite = suites[NOTEBOOKS]
            key = Key(NOTEBOOKS, content_of_notebooks(opened.notebooks, handins), suite)
            tasks[key] = NotebookTask(opened.notebooks, handins, self.settings, self.rung, suite)
        return tasks

    def calibrate(self, tell: Tell | None = None) -> Rows:
        """Grade the reference solution and the untouched starter first, in the same boxes, anew in every run (G13).

        Raises: CalibrationError when the first is not complete, or the second earns points or is told anything
        but "not implemented".
        """
        known = [
            Submission("solution", kit_root() / "solution"),
            Submission("starter", kit_root() / SAMPLE_CLASS / UNTOUCHED),
        ]
        solution, starter = rows = _Pass(self, tell).grade(known)
        for number, lesson in solution["lessons"].items():
            if wrong := [test for test in lesson["tests"] if test["status"] != "pass"]:
                why = f"the solution does not pass {wrong[0]['id']}"
                raise _uncalibrated(number, wrong[0], why)
        for number, lesson in starter["lessons"].items():
            if not _is_untouched(lesson):
                failed = next(test for test in lesson["tests"] if test["required"])
                raise _uncalibrated(number, failed, "the untouched starter is not simply unfinished")
        return rows

    def grade(
        self,
        submissions: Sequence[Submission],
        record: ClassRecord,
        recorded: Mapping[Key, Grading],
        tell: Tell | None = None,
    ) -> Rows:
        """Grade all; give one row each, in their order. What is `recorded` already is taken as it is.

        Equal contents are graded once. A fault of the grader is retried once, and never recorded as a grading.
        Raises: RecordError when the record cannot be written.
        """
        return _Pass(self, tell, record, recorded).grade(submissions)


def _uncalibrated(number: str, test: Mapping[str, Any], why: str) -> CalibrationError:
    """Say what is wrong; where the grader itself failed, that is the reason."""
    if test["status"] == "error":
        why = f"{test['id']}: {test['message']['en']}"
    return CalibrationError(f"calibration: lesson {number}: {why}; repair the kit before anyone is graded")


def _is_untouched(lesson: Mapping[str, Any]) -> bool:
    tests = [test for test in lesson["tests"] if test["required"] and not test["guard"]]
    return lesson["points"]["earned"] == 0 and {test["reason"] for test in tests} == {"not-implemented"}


class _Work(NamedTuple):
    """One task on its way, and whether it had been tried before."""

    key: Key
    task: Task | NotebookTask
    again: bool = False


@dataclass(slots=True)
class _Row:
    head: Head
    keys: tuple[Key, ...]
    due: set[Key]


@dataclass
class _Pass:
    """One pass over some submissions. Bytes of a submission are held only while it is on its way."""

    run: ClassRun
    tell: Tell | None = None
    record: ClassRecord | None = None
    known: Mapping[Key, Grading] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = dict(self.known)
        self._suites = self.run.suites()
        self._rows: list[_Row] = []
        self._waiting: dict[Key, list[_Row]] = defaultdict(list)
        self._running: dict[Future[bytes], _Work] = {}

    def grade(self, submissions: Sequence[Submission]) -> Rows:
        """Hand out what is not known yet, a few at a time, and put the rows together."""
        for submission in submissions:
            self._begin(submission)
            while len(self._running) >= 2 * self.run.crew.width():
                self._take_in()
        while self._running:
            self._take_in()
        return Rows([(row.head, {key.lesson: self._known[key] for key in row.keys}) for row in self._rows])

    def _begin(self, submission: Submission) -> None:
        opened = _open(submission)
        tasks = self.run.tasks(opened, self._suites)
        head = Head(
            submission.name,
            self.run.rung,
            opened.left_out,
            submission.student,
            opened.handed_in,
            submission.problem,
            (*submission.notes, *opened.notes),
            together(key.content for key in tasks),
            together(key.suite for key in tasks),
        )
        row = _Row(head, tuple(tasks), {key for key in tasks if key not in self._known})
        self._rows.append(row)
        for key in row.due:
            self._waiting[key].append(row)
            if len(self._waiting[key]) == 1:
                self._hand_out(_Work(key, tasks[key]))
        self._tell_if_complete(row)

    def _hand_out(self, work: _Work) -> None:
        self._note("grading-began", work.key)
        self._running[self.run.crew.submit(work.task)] = work

    def _take_in(self) -> None:
        """Wait for a grading; record it, or try once more what the grader failed at."""
        done, _ = concurrent.futures.wait(self._running, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            work = self._running.pop(future)
            grading, fault = _result(future, work)
            if not fault:
                if self.record:
                    self.record.graded(work.key, grading)
                self._complete(work.key, grading)
                continue
            self._note("grading-failed", work.key, fault=fault)
            if work.again:
                self._complete(work.key, grading)
            else:
                self._hand_out(work._replace(again=True))

    def _note(self, type_: str, key: Key, **more: str) -> None:
        if self.record:
            self.record.note(type_, **key._asdict(), **more)

    def _complete(self, key: Key, grading: Grading) -> None:
        self._known[key] = grading
        for row in self._waiting.pop(key):
            row.due.remove(key)
            self._tell_if_complete(row)

    def _tell_if_complete(self, row: _Row) -> None:
        if self.tell and not row.due:
            verdicts = {key.lesson: self._known[key].verdict for key in row.keys if key.lesson != NOTEBOOKS}
            self.tell(row.head.submission, verdict_of(verdicts))


def _open(submission: Submission) -> Opened:
    """Take the files of one submission; of one that has a problem, none."""
    if submission.path is None:
        return Opened("", problem=submission.problem)
    if submission.problem:
        return Opened(showable(submission.path.name), problem=submission.problem)
    return open_submission(submission.path)


def _result(future: Future[bytes], work: _Work) -> tuple[Grading, str]:
    """Read what came back: a grading, and the grader's fault at it, if there was one."""
    try:
        answer = _parsed(future.result())
        if "outcome" in answer:
            outcome = answer["outcome"]
            errors = [test for test in outcome["tests"] if test["status"] == "error"]
            fault = f"{errors[0]['id']}: {errors[0]['message']['en']}" if errors else ""
            return Grading.of(outcome, float(answer["seconds"])), fault
        fault = str(answer["fault"])
    except Exception as error:  # noqa: BLE001 - a lost process, a lost machine, half an answer: the grader's all
        fault = f"{type(error).__name__}: {error}"
    fault = printable(fault)
    return _no_grading(work, fault), fault


def _parsed(raw: bytes) -> Any:
    """Read one answer. Half of a character, as only an escape can hold, is replaced: neither record nor report takes it."""
    answer = json.loads(raw)
    if b"\\ud" in raw:
        answer = json.loads(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    return answer


def _no_grading(work: _Work, fault: str) -> Grading:
    """Stand in for a grading that the grader failed at twice: every test in error, at nobody's cost."""
    message = Text(
        f"评分器自身出错（{fault}），不扣分；用 --resume 再评一次。",
        f"The grader itself failed ({fault}); no marks are lost. Grade once more with --resume.",
    )
    if isinstance(work.task, NotebookTask):
        return Grading.of(not_executed(work.task, message.en), 0.0)
    checks = load_suite(work.key.lesson).checks
    findings = [Finding(check.id, "error", "grader-error", message) for check in checks]
    return Grading.of(conclude(work.key.lesson, "", checks, findings, work.task.settings).plain(), 0.0)
