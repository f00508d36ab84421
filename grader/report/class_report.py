"""All reports of a class run, as files: `report.html`, `grades.csv`, and for each submission its own three.

Each is a pure function of rows in the shape of `Outcome.plain()`; this puts them together and places them.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from grader.report.feedback import feedback_md
from grader.report.grades_csv import grades_csv
from grader.report.gradescope import gradescope_json
from grader.report.junit import junit_xml
from grader.report.names import file_names
from grader.report.page import report_html
from grader.report.placing import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from grader.report.rows import Row
    from grader.report.words import Language

PAGE = "report.html"
FOLDERS = ("feedback", "gradescope", "junit")


def write_reports(out: Path, rows: Sequence[Row], calibration: Sequence[Row], *, language: Language) -> Path:
    """Write every report into `out` and give the path of `report.html`.

    All are written or none. Reports of an earlier run go; other files in `out`, also in the reports' own folders, and
    reports that somebody edited by hand, stay. Raises: OSError.
    """
    place(out, report_files(rows, calibration, language), FOLDERS)
    return out / PAGE


def report_files(
    rows: Sequence[Row], calibration: Sequence[Row], language: Language
) -> Iterator[tuple[str, str]]:
    """Give every report, one at a time: its path below the output folder, and its text."""
    isolation = next((row["isolation"] for row in chain(calibration, rows) if row["isolation"]), "")
    names = file_names(rows)
    yield PAGE, report_html(rows, names, calibration, isolation, language)
    yield "grades.csv", grades_csv(rows, names)
    for row, name in zip(rows, names, strict=True):
        yield f"feedback/{name}.md", feedback_md(row, language)
        yield f"gradescope/{name}.json", gradescope_json(row, language)
        yield f"junit/{name}.xml", junit_xml(row, language)
