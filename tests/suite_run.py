"""Runs checks of a suite for pytest: in process, or as the grader does; what a check raises is its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

from grader.direct import direct_lab
from grader.grade import grade_handin
from grader.intake import take
from grader.lab import STUDENT_ERRORS
from grader.outcome import Finding
from grader.settings import load_settings
from grader.suites.check import Check, CheckFailed

DEADLINE_SECONDS = 60
"""So long may one check take in process: for the store that never answers, not for the slow machine."""


def in_process(check: Check, package: Path, folder: Path, seed: object) -> Exception | None:
    """Run one check on the lesson folder `package`; give what the rule or the student's code had to say."""

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await check.run(lab)

    folder.mkdir()
    with direct_lab(package, folder, Random(f"{seed} {check.id}"), faults=check.faults) as lab:
        try:
            asyncio.run(run())
        except (CheckFailed, *STUDENT_ERRORS) as error:
            return error
    return None


def over_the_pipe(submission: Path, checks: Sequence[Check], seed: str = "") -> dict[str, Finding]:
    """Run checks of lesson 22 on a submission as every verdict is made; give the findings by check."""
    _, outcome = grade_handin(take(submission, "22"), checks, load_settings(), seed=seed)
    return {test.check.id: test.finding for test in outcome.tests}
