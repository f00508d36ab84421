"""Outcomes on a terminal: one lesson in full for a learner, one row per submission for an instructor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Line

from grader.outcome import count
from grader.plain_text import printable
from grader.report.rows import first_missed
from grader.report.words import DIMENSIONS as DIMENSION_WORDS
from grader.report.words import TOPICS, VERDICTS, lesson_name, say
from grader.suites.check import DIMENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from grader.outcome import CheckOutcome, LessonOutcome, Outcome
    from grader.report.words import Language

__all__ = ["printable", "show_class", "show_outcome"]

_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "error": ("!", "yellow")}


def show_outcome(console: Console, outcome: Outcome, language: Language, *, every: bool = False) -> None:
    """Show one submission, lesson by lesson: required and extended apart, the first failure, the closing lines.

    Extended tests that passed, or that are simply not written yet, are only counted unless `every` is on.
    """
    for lesson in outcome.lessons.values():
        console.rule(Line(getattr(lesson_name(lesson.lesson), language)))
        _show_group(console, "required", lesson.required, language, shown=lesson.required)
        extended = lesson.extended if every else [test for test in lesson.extended if _is_telling(test)]
        _show_group(console, "extended", lesson.extended, language, shown=extended)
        _show_rubric(console, lesson, language)
        _show_first_failure(console, lesson, language)
        _show_closing(console, outcome, lesson, language)


def _is_telling(test: CheckOutcome) -> bool:
    return not test.passed and test.finding.reason != "not-implemented"


def _show_group(
    console: Console,
    name: str,
    tests: Sequence[CheckOutcome],
    language: Language,
    shown: Sequence[CheckOutcome],
) -> None:
    console.print(Line(say("score", language, title=say(name, language), **count(tests)), style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    for test in shown:
        mark, style = _MARKS[test.finding.status]
        verdict = "" if test.passed else getattr(VERDICTS[test.finding.reason], language)
        table.add_row(
            Line(mark, style=style), test.check.id, Line(getattr(test.check.title, language)), Line(verdict)
        )
    console.print(table)
    unwritten = [test for test in tests if test.finding.reason == "not-implemented" and test not in shown]
    if unwritten:
        console.print(Padding(Line(say("unwritten", language, count=len(unwritten))), (0, 1)))


def _show_rubric(console: Console, lesson: LessonOutcome, language: Language) -> None:
    parts = []
    for dimension in DIMENSIONS[lesson.lesson]:
        score = count([test for test in lesson.tests if test.check.dimension == dimension])
        parts.append(f"{getattr(DIMENSION_WORDS[dimension], language)} {score['passed']}/{score['total']}")
    console.print(Line(" · ".join(parts)))


def _show_first_failure(console: Console, lesson: LessonOutcome, language: Language) -> None:
    failed = lesson.first_failure
    if failed is None:
        return
    title = getattr(failed.check.title, language)
    lines = [Line(say("first", language, id=failed.check.id, title=title), style="bold")]
    if failed.finding.message:
        lines.append(Line(getattr(failed.finding.message, language)))
    if failed.finding.place:
        lines.append(Line(say("place", language, place=failed.finding.place)))
    if failed.finding.reason == "not-implemented":
        lines.append(Line(say("hint", language, hint=say("write-next", language))))
    elif failed.finding.reason == "fail":  # for code that does not load or end, the message has the next step
        lines.append(Line(say("hint", language, hint=getattr(failed.check.hint, language))))
    console.print()
    for line in lines:
        console.print(line)


def _show_closing(console: Console, outcome: Outcome, lesson: LessonOutcome, language: Language) -> None:
    answers = {True: say("yes", language), False: say("no", language)}
    points = lesson.plain()["points"]
    console.print()
    console.print(
        Line(say("standing", language, ok=answers[lesson.ok], complete=answers[lesson.complete], **points))
    )
    console.print(Line(say("isolation", language, rung=outcome.isolation, seed=lesson.seed), style="dim"))
    passed = count(lesson.required)["passed"]
    console.print(
        Line(f"{outcome.submission}: {passed} passed, {len(lesson.required) - passed} failed", style="bold")
    )
    topics = " · ".join(getattr(topic, language) for topic in TOPICS[lesson.lesson])
    console.print(Line(say("covered", language, topics=topics)))


def show_class(console: Console, rows: Iterable[Mapping[str, Any]], language: Language) -> None:
    """Show one row per lesson of a submission: verdict, scores, points, and where the student should look first.

    `rows` are plain, as `Head.row` gives them.
    """
    table = Table(box=SIMPLE_HEAD)
    for column in ("submission", "number", "verdict", "required", "extended", "points", "first-failure"):
        table.add_column(say(column, language), overflow="fold", no_wrap=column == "first-failure")
    for row in rows:
        for number, lesson in row["lessons"].items():
            table.add_row(*(Line(cell) for cell in _cells(row, number, lesson, language)))
    console.print(table)


def _cells(row: Mapping[str, Any], number: str, lesson: Mapping[str, Any], language: Language) -> list[str]:
    failed = first_missed(dict(lesson))
    verdict = "complete" if lesson["complete"] else lesson["verdict"]
    return [
        printable(row["submission"]),
        number,
        getattr(VERDICTS[verdict], language),
        "{passed}/{total}".format(**lesson["required"]),
        "{passed}/{total}".format(**lesson["extended"]),
        "{earned:g}/{worth:g}".format(**lesson["points"]),
        failed["id"] if failed else "",
    ]
