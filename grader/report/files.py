"""`outcomes.json`: everything that one class run found out, for other programs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from grader.outcome import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grader.outcome import Outcome


def class_report(calibration: Sequence[Outcome], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Give a class run as JSON: one entry per submission, in the order in which they were found."""
    return {
        "schema": SCHEMA,
        "isolation": calibration[0].isolation,
        "calibration": [outcome.plain() for outcome in calibration],
        "submissions": [outcome.plain() for outcome in outcomes],
    }


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write the report whole or not at all: an older one stays until the new one is complete.

    Raises: OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        new.write_text(json.dumps(report, indent=1) + "\n", encoding="ascii")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
