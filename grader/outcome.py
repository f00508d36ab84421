"""What was found out about one submission: frozen, and written as JSON of schema 1 (spec of `verify`, G6).

status    pass · fail · error; error is the grader's own fault, never the student's
reason    why not: fail, not-implemented, timeout, memory, crash, tamper, missing-file, syntax-error,
          import-error, grader-error; a pass has none
verdict   the one word of a submission's row: ok, or its gravest reason
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from grader.plain_text import encodable
from grader.suites.check import DIMENSIONS, Text
from labkit.workspace import HOMEWORK

if TYPE_CHECKING:
    from grader.intake import LeftOut
    from grader.settings import Settings
    from grader.suites.check import Check

SCHEMA = 1
Status = Literal["pass", "fail", "error"]

GRAVEST_FIRST = (
    "grader-error",
    "tamper",
    "missing-file",
    "syntax-error",
    "import-error",
    "timeout",
    "memory",
    "crash",
    "fail",
    "not-implemented",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """How one check ended: the evidence that an outcome is made of. `place` is the student's `file.py:line`."""

    check_id: str
    status: Status
    reason: str = ""
    message: Text | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """One check with its finding, and the points it is worth."""

    check: Check
    finding: Finding
    worth: float

    @property
    def passed(self) -> bool:
        """Whether there is positive evidence for this check."""
        return self.finding.status == "pass"

    @property
    def earned(self) -> float:
        """Points: a guard earns nothing, and costs when it breaks; a fault of the grader costs nothing."""
        if self.check.guard:
            return -self.worth if self.finding.status == "fail" else 0
        return self.worth if self.passed else 0

    def plain(self) -> dict[str, Any]:
        """Give the outcome as JSON."""
        check, finding = self.check, self.finding
        return {
            "id": check.id,
            "title": _both(check.title),
            "rules": list(check.rules),
            "dimension": check.dimension,
            "required": check.required,
            "core": check.core,
            "guard": check.guard,
            "status": finding.status,
            "reason": finding.reason,
            "message": finding.message and _both(finding.message),
            "hint": None if self.passed else _both(check.hint),
            "place": finding.place,
            "points": {"earned": self.earned, "worth": self.worth},
        }


@dataclass(frozen=True, slots=True)
class LessonOutcome:
    """All checks of one lesson, in the suite's order. `seed` is what this run drew its inputs from."""

    lesson: str
    seed: str
    tests: tuple[CheckOutcome, ...]

    @property
    def required(self) -> list[CheckOutcome]:
        """The checks that decide `ok`."""
        return [test for test in self.tests if test.check.required]

    @property
    def extended(self) -> list[CheckOutcome]:
        """The checks that are counted apart."""
        return [test for test in self.tests if not test.check.required]

    @property
    def first_failure(self) -> CheckOutcome | None:
        """Where to look first: at code that was written and fails, and only then at what is not written yet."""
        failed = [test for test in [*self.required, *self.extended] if not test.passed]
        written = (test for test in failed if test.finding.reason != "not-implemented")
        return next(written, failed[0] if failed else None)

    @property
    def ok(self) -> bool:
        """Whether every required check passed; a lesson without one is never ok."""
        return bool(self.required) and all(test.passed for test in self.required)

    @property
    def complete(self) -> bool:
        """Whether every required and every core check passed."""
        return self.ok and all(test.passed for test in self.tests if test.check.core)

    @property
    def verdict(self) -> str:
        """The one word of this lesson: ok, or the gravest reason among its required checks."""
        if self.ok:
            return "ok"
        reasons = {test.finding.reason for test in self.required}
        gravest = next((reason for reason in GRAVEST_FIRST if reason in reasons), "grader-error")
        return "fail" if gravest == "not-implemented" else gravest

    @property
    def points(self) -> float:
        """What was earned; broken guards cannot take more than that."""
        return max(0, sum(test.earned for test in self.tests))

    def plain(self) -> dict[str, Any]:
        """Give the outcome as JSON."""
        return {
            "verdict": self.verdict,
            "seed": self.seed,
            "ok": self.ok,
            "complete": self.complete,
            "points": {
                "earned": self.points,
                "worth": sum(test.worth for test in self.tests if not test.check.guard),
            },
            "required": count(self.required),
            "extended": count(self.extended),
            "rubric": {
                dimension: count([test for test in self.tests if test.check.dimension == dimension])
                for dimension in DIMENSIONS[self.lesson]
            },
            "tests": [test.plain() for test in self.tests],
        }


@dataclass(frozen=True, slots=True)
class Head:
    """What a row says beside its lessons.

    `submission` is the row's name, `handed_in` the file or folder that was found, `student` the id for grades ("" where
    it is not known). `problem` says why a submission was never graded, `notes` what an instructor should look at though
    it was. `content` and `suite` are SHA-256 of what was taken from it and of what it was judged by.
    """

    submission: str
    isolation: str
    left_out: tuple[LeftOut, ...] = ()
    student: str = ""
    handed_in: str = ""
    problem: Text | None = None
    notes: tuple[Text, ...] = ()
    content: str = ""
    suite: str = ""

    def row(
        self,
        lessons: Mapping[str, dict[str, Any]],
        seconds: float = 0.0,
        notebooks: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        """Give the whole row as JSON.

        `lessons` are as `LessonOutcome.plain`, `seconds` the wall clock spent on it, `notebooks` what those that were
        handed in showed when they were executed (`grader.notebooks`), which no mark is made of.
        """
        return {
            "schema": SCHEMA,
            "submission": self.submission,
            "student": self.student,
            "handed_in": self.handed_in,
            "verdict": verdict_of({number: lesson["verdict"] for number, lesson in lessons.items()}),
            "problem": self.problem and _both(self.problem),
            "notes": [_both(note) for note in self.notes],
            "isolation": self.isolation,
            "left_out": [entry._asdict() for entry in self.left_out],
            "content": self.content,
            "suite": self.suite,
            "seconds": seconds,
            "lessons": dict(lessons),
            "notebooks": list(notebooks),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """One submission: which rung it ran on, and what each lesson showed."""

    submission: str
    isolation: str
    lessons: Mapping[str, LessonOutcome]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def verdict(self) -> str:
        """The one word of this submission's row (G6)."""
        return verdict_of({number: lesson.verdict for number, lesson in self.lessons.items()})

    def plain(self) -> dict[str, Any]:
        """Give the outcome as JSON: the shape of a row (`Head`)."""
        lessons = {number: lesson.plain() for number, lesson in self.lessons.items()}
        return Head(self.submission, self.isolation, self.left_out).row(lessons)


def verdict_of(lessons: Mapping[str, str]) -> str:
    """Sum up a submission by the verdicts of its lessons.

    A homework that was not handed in fails nobody; it counts only where nothing else was asked for.
    """
    counted = {number: verdict for number, verdict in lessons.items() if number != HOMEWORK}
    handed_in = lessons.get(HOMEWORK, "missing-file") != "missing-file"
    return gravest((lessons if handed_in or not counted else counted).values())


def gravest(verdicts: Iterable[str]) -> str:
    """Sum up the verdicts of a submission's lessons in one word; without any, the grader has failed."""
    words = set(verdicts)
    return next((reason for reason in GRAVEST_FIRST if reason in words), "ok" if words else "grader-error")


def conclude(
    lesson: str, seed: str, checks: Sequence[Check], findings: Iterable[Finding], settings: Settings
) -> LessonOutcome:
    """Put the evidence together: each expected check exactly once, or it did not pass (G2)."""
    found = list(findings)
    times = Counter(finding.check_id for finding in found)
    by_id = {finding.check_id: finding for finding in found}
    tests = []
    for check in checks:
        finding = by_id[check.id] if times[check.id] == 1 else _no_evidence(check.id, times[check.id])
        tests.append(CheckOutcome(check, _recordable(finding), settings.worth(lesson, check)))
    return LessonOutcome(lesson, seed, tuple(tests))


def _recordable(finding: Finding) -> Finding:
    """Make sure that every record and report can hold what a submission chose: its file names may be any bytes."""
    message = finding.message and Text(encodable(finding.message.zh), encodable(finding.message.en))
    return replace(finding, message=message, place=encodable(finding.place))


def _no_evidence(check_id: str, times: int) -> Finding:
    return Finding(
        check_id,
        "error",
        "grader-error",
        Text(
            f"这项测试报告了 {times} 次结果，应当恰好一次。",
            f"This test reported {times} times, and once is due.",
        ),
    )


def count(tests: Sequence[CheckOutcome]) -> dict[str, int]:
    """Count what passed."""
    return {"passed": sum(test.passed for test in tests), "total": len(tests)}


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}
