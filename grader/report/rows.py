"""What every report asks of a row, which is `Outcome.plain()` or the same read back from `outcomes.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.report.words import SAID
from grader.suites.check import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]
"""One submission: `grader/outcome.py`, `Outcome.plain`."""
Lesson = dict[str, Any]
"""One lesson of a row."""
Test = dict[str, Any]
"""One test of a lesson."""


def who(row: Row) -> str:
    """Give the student's id where it is known, else the submission's name."""
    return str(row["student"] or row["submission"])


def problem(row: Row) -> Text | None:
    """Say why a row was never graded; None for one that was."""
    return both(row["problem"]) if row["problem"] else None


def points(row: Row) -> tuple[float, float]:
    """Give the points of all lessons together: earned, and to be had."""
    scores = [lesson["points"] for lesson in row["lessons"].values()]
    return sum(score["earned"] for score in scores), sum(score["worth"] for score in scores)


def lesson_verdict(lesson: Lesson) -> str:
    """Give the one word of a lesson: complete, ok, or the gravest reason among its required tests."""
    return "complete" if lesson["complete"] else str(lesson["verdict"])


def figure(value: float) -> str:
    """Write points without needless decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def missed(tests: Iterable[Test]) -> list[Test]:
    """Give the tests that did not pass; required ones first, and code that was written before code that was not."""
    return sorted(
        (test for test in tests if test["status"] != "pass"),
        key=lambda test: (test["reason"] == "not-implemented", not test["required"]),
    )


def alike(tests: Iterable[Test]) -> list[list[Test]]:
    """Put tests together that ended in the same words: code that does not load is told once, not forty times."""
    groups: dict[tuple[str, str], list[Test]] = {}
    for test in tests:
        said = test["message"]["en"] if test["message"] else test["id"]
        groups.setdefault((test["reason"], said), []).append(test)
    return list(groups.values())


def first_missed(lesson: Lesson) -> Test | None:
    """Give the test to look at first."""
    return next(iter(missed(lesson["tests"])), None)


def next_step(test: Test) -> Text | None:
    """Say what to do about a test that was missed; None where its message says that already."""
    if test["reason"] == "not-implemented":
        return SAID["write-next"]
    return both(test["hint"]) if test["reason"] == "fail" and test["hint"] else None


def both(said: dict[str, str]) -> Text:
    """Read a text of a row."""
    return Text(said["zh"], said["en"])
