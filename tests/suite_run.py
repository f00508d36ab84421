"""Runs checks of a suite for pytest: in process, or as the grader does; what a check raises is its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from grader.channel import ChildLost
from grader.direct import direct_lab
from grader.direct_spine import direct_spine
from grader.grade import grade_handin
from grader.intake import take
from grader.lab import STUDENT_ERRORS
from grader.outcome import Finding
from grader.settings import load_settings
from grader.suites.check import Check, CheckFailed
from grader.tree import MissingFile
from grader.work_folder import OddFileError

DEADLINE_SECONDS = 60
"""So long may one check take in process: for the store that never answers, not for the slow machine."""


def in_process(check: Check, package: Path, folder: Path, seed: object) -> Exception | None:
    """Run one check on the lesson folder `package`; give what the rule or the student's code had to say."""
    folder.mkdir()
    with direct_lab(package, folder, draw_of(check, seed), faults=check.faults) as lab:
        return answer_of(check, lab)


def spine_in_process(
    checks: Sequence[Check], package: Path, seed: object
) -> Iterator[tuple[Check, Exception | None]]:
    """Run checks of lesson 04 on the folder `package`; give each with what it had to say, as it comes."""
    with direct_spine(package) as lab_of:
        for check in checks:
            yield check, answer_of(check, lab_of(draw_of(check, seed)))


def over_the_pipe(
    submission: Path, lesson: str, checks: Sequence[Check], seed: str = ""
) -> dict[str, Finding]:
    """Run checks on a submission as every verdict is made; give the findings by check."""
    _, outcome = grade_handin(take(submission, lesson), checks, load_settings(), seed=seed)
    return {test.check.id: test.finding for test in outcome.tests}


def draw_of(check: Check, seed: object) -> Random:
    """Give the draw that the grader has for this seed."""
    return Random(f"{seed} {check.id}")


def answer_of(check: Check, lab: Any) -> Exception | None:
    """Run one check in this process; give what the rule or the student's code had to say."""

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await check.run(lab)

    try:
        asyncio.run(run())
    except (CheckFailed, ChildLost, OddFileError, MissingFile, *STUDENT_ERRORS) as error:
        return error
    return None
