"""`statelab report`: the reports of a class anew, from its `outcomes.json`; nobody's code is run.

0 written   2 no outcomes to read   3 cannot be written
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from grader.outcome import SCHEMA
from grader.report.class_report import write_reports
from grader.report.words import chosen_language

_NEEDED = {
    "submission",
    "student",
    "handed_in",
    "verdict",
    "problem",
    "notes",
    "isolation",
    "left_out",
    "notebooks",
    "lessons",
}


class CannotWrite(click.ClickException):
    """The reports could not be put where they were to go."""

    exit_code = 3


@click.command(epilog="Example: statelab report out/grade/outcomes.json --lang zh")
@click.argument("outcomes", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to. Default: the folder of OUTCOMES.")
@click.option("--lang", type=click.Choice(["zh", "en"]), help="Language. Default: LAB_LANG, or the system's.")
def report(*, outcomes: Path, out: Path | None, lang: str | None) -> None:
    """Write a class's reports anew from OUTCOMES, the outcomes.json that `statelab grade` left. Nothing is graded."""
    found = _read(outcomes)
    place = out or outcomes.parent
    try:
        page = write_reports(
            place, found["submissions"], found["calibration"], language=chosen_language(lang)
        )
    except OSError as error:
        raise CannotWrite(f"{place}: cannot be written ({error.strerror}); choose another --out") from None
    click.echo(page)


def _read(file: Path) -> dict[str, Any]:
    """Read what `grade` wrote; anything else is wrong use, told by the first thing that it lacks."""
    try:
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise _wrong(
            f"{file}: cannot be read ({error.strerror}); name the outcomes.json of a class"
        ) from None
    except (ValueError, RecursionError):
        raise _wrong(f"{file}: is not JSON; name the outcomes.json of a class") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise _wrong(f"{file}: does not hold outcomes of schema {SCHEMA}; grade the class anew")
    for kind in ("calibration", "submissions"):
        rows = found.get(kind)
        if not isinstance(rows, list) or not all(
            isinstance(row, dict) and row.keys() >= _NEEDED for row in rows
        ):
            raise _wrong(f"{file}: {kind}: not rows as `statelab grade` writes them; grade the class anew")
    return found


def _wrong(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="OUTCOMES")
