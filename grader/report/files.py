"""The reports of one class run on disk, `outcomes.json` for other programs among them."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from grader.outcome import SCHEMA
from grader.report.class_report import write_reports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grader.report.words import Language

OUTCOMES = "outcomes.json"


def write_class(
    out: Path, calibration: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], language: Language
) -> Path:
    """Write every report of a class into `out`, all or none; give the path of `report.html`.

    Raises: OSError; the reports of an earlier run are still there then.
    """
    out.mkdir(parents=True, exist_ok=True)
    new = out / f".{OUTCOMES}.new"  # always this name: what a killed run left of it is written over
    try:
        with new.open("w", encoding="ascii") as file:
            write_outcomes(file, calibration, rows)
        page = write_reports(out, rows, calibration, language=language)
        new.replace(out / OUTCOMES)
    finally:
        new.unlink(missing_ok=True)
    return page


def write_outcomes(
    file: IO[str], calibration: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
) -> None:
    """Write a class run as JSON, row by row: one entry per submission, in the order in which they were found."""
    file.write(f'{{"schema": {SCHEMA}, "isolation": {json.dumps(calibration[0]["isolation"])}')
    for name, entries in (("calibration", calibration), ("submissions", rows)):
        file.write(f',\n"{name}": [')
        for number, row in enumerate(entries):
            file.write(f"{',' if number else ''}\n{json.dumps(row)}")
        file.write("\n]")
    file.write("}\n")
