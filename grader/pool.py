"""Many submissions on this machine: found, calibrated, graded side by side, one outcome each (G6, G8, G13)."""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from grader.grade import grade_submission
from grader.intake import ARCHIVES
from labkit.workspace import kit_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from grader.outcome import LessonOutcome, Outcome
    from grader.settings import Settings

SAMPLE_CLASS = "assets/sample-class"
UNTOUCHED = "untouched-starter"


class CalibrationError(Exception):
    """The grader is wrong about code that it knows: nobody may be judged by it."""


class Submission(NamedTuple):
    """One thing to grade, under the name of its row."""

    name: str
    path: Path


def find_submissions(folder: Path) -> list[Submission]:
    """List what is to be graded: every child of the folder that is a folder or an archive, by name.

    Raises: OSError when the folder cannot be listed.
    """
    return [
        Submission(path.name, path)
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".") and (path.is_dir() or path.name.lower().endswith(ARCHIVES))
    ]


@dataclass(frozen=True, slots=True)
class ClassRun:
    """How a class is graded: which lessons, by which settings, how many submissions at a time."""

    lessons: Sequence[str]
    settings: Settings
    jobs: int

    def calibrate(self) -> list[Outcome]:
        """Grade the reference solution and the untouched starter first, in the same boxes (G13).

        Raises: CalibrationError when the first is not complete, or the second earns points or is told anything
        but "not implemented".
        """
        known = [
            Submission("solution", kit_root() / "solution"),
            Submission("starter", kit_root() / SAMPLE_CLASS / UNTOUCHED),
        ]
        solution, starter = outcomes = self.grade(known, lambda _: None)
        for number, lesson in solution.lessons.items():
            if wrong := [test for test in lesson.tests if not test.passed]:
                raise CalibrationError(
                    f"calibration: lesson {number}: the solution does not pass {wrong[0].check.id}; "
                    "repair the kit before anyone is graded"
                )
        for number, lesson in starter.lessons.items():
            if not _is_untouched(lesson):
                raise CalibrationError(
                    f"calibration: lesson {number}: the untouched starter is not simply unfinished; "
                    "repair the kit before anyone is graded"
                )
        return outcomes

    def grade(self, submissions: Sequence[Submission], tell: Callable[[Outcome], None]) -> list[Outcome]:
        """Grade all, a few at a time; give one outcome each, in their order. `tell` hears of each as it ends."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as threads:
            running = [
                threads.submit(grade_submission, *submission, self.lessons, self.settings)
                for submission in submissions
            ]
            try:
                for done in concurrent.futures.as_completed(running):
                    tell(done.result())
            except BaseException:
                for waiting in running:
                    waiting.cancel()
                raise
        return [done.result() for done in running]


def _is_untouched(lesson: LessonOutcome) -> bool:
    reasons = {test.finding.reason for test in lesson.required if not test.check.guard}
    return lesson.points == 0 and reasons == {"not-implemented"}
