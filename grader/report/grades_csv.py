"""`grades.csv`: one row a submission, for a spreadsheet and for the import of a gradebook.

Columns (docs/instructor.md tells what each means):

    student submission handed_in verdict points points_possible
    <lesson>_verdict _ok _complete _points _points_possible _required _required_total _extended _extended_total
                     _first_missed _seed                                        once per lesson
    left_out isolation feedback problem notes

A column is never left out, so that two runs have the same ones; a lesson that was not graded leaves its own empty. The
homework alone has its columns only in a run that was asked for it.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from grader.report.rows import Lesson, Row, figure, first_missed, lesson_verdict, points, problem
from grader.report.student_text import cell
from grader.suites import LESSONS
from labkit.workspace import HOMEWORK

if TYPE_CHECKING:
    from collections.abc import Sequence

BOM = "\ufeff"
"""Without it Excel takes UTF-8 for the system's old code page, and every name that is not ASCII is garbage."""
_BEFORE = ("student", "submission", "handed_in", "verdict", "points", "points_possible")
_OF_A_LESSON = (
    *("verdict", "ok", "complete", "points", "points_possible", "required", "required_total"),
    *("extended", "extended_total", "first_missed", "seed"),
)
_AFTER = ("left_out", "isolation", "feedback", "problem", "notes")


def grades_csv(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Give the table, with the rows' file names, with its byte order mark; lines end as RFC 4180 has it, and every cell is quoted."""
    lines = io.StringIO()
    writer = csv.writer(lines, quoting=csv.QUOTE_ALL)
    homework = any(HOMEWORK in row["lessons"] for row in rows)
    writer.writerow(columns(homework=homework))
    for row, name in zip(rows, names, strict=True):
        writer.writerow(_cells(row, name, _lessons(homework=homework)))
    return BOM + lines.getvalue()


def columns(*, homework: bool = False) -> list[str]:
    """Give the heading of every column, in its order; those of the homework stand behind the lessons'."""
    lessons = _lessons(homework=homework)
    return [*_BEFORE, *(f"{lesson}_{column}" for lesson in lessons for column in _OF_A_LESSON), *_AFTER]


def _lessons(*, homework: bool) -> Sequence[str]:
    return (*LESSONS, HOMEWORK) if homework else LESSONS


def _cells(row: Row, name: str, lessons: Sequence[str]) -> list[str]:
    said = problem(row)
    shown = [cell(row[column]) for column in ("student", "submission", "handed_in")]
    cells = [*shown, row["verdict"], *map(figure, points(row))]
    for lesson in lessons:
        found = row["lessons"].get(lesson)
        cells += _cells_of(found) if found else [""] * len(_OF_A_LESSON)
    return [
        *cells,
        str(len(row["left_out"])),
        row["isolation"],
        cell(f"feedback/{name}.md"),
        cell(said.en if said else ""),
        cell("; ".join(note["en"] for note in row["notes"])),
    ]


def _cells_of(lesson: Lesson) -> list[str]:
    first = first_missed(lesson)
    return [
        lesson_verdict(lesson),
        _answer(true=lesson["ok"]),
        _answer(true=lesson["complete"]),
        *(figure(lesson["points"][end]) for end in ("earned", "worth")),
        *(str(lesson[group][end]) for group in ("required", "extended") for end in ("passed", "total")),
        first["id"] if first else "",
        lesson["seed"],
    ]


def _answer(*, true: bool) -> str:
    return "yes" if true else "no"
