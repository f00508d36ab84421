"""Every check of lesson 22 as one pytest test, on any folder: `--target starter|solution|DIR`, `--transport pipe`.

pytest tests/test_suite_lesson_22.py --target starter -k 22-04 --pdb
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from grader.suites import load_suite
from grader.suites.check import Check, CheckFailed
from labkit.workspace import lesson_source, target_folder
from tests.suite_run import in_process, over_the_pipe

SUITE = load_suite("22")


@pytest.mark.both_directions
@pytest.mark.parametrize("check", SUITE.checks, ids=lambda check: check.id)
def test_check(check: Check, request: pytest.FixtureRequest, tmp_path: Path):
    """The target keeps the rules that this check is about."""
    target = request.config.getoption("--target")
    seed = request.config.getoption("--seed") or secrets.token_hex(8)
    if request.config.getoption("--transport") == "pipe":
        found = over_the_pipe(target_folder(target), "22", [check], seed)[check.id]
        problem = found.reason and f"{found.reason}: {found.message}"
    else:
        error = in_process(check, lesson_source("22", target), tmp_path / "work", seed)
        if error and not isinstance(error, CheckFailed):
            raise error.__cause__ or error  # where the code under test raised it: there a debugger is to stop
        problem = error and "\n".join(error.message)

    assert not problem, f"{check.title.en}\n{problem}\n{check.hint.en}\n(--seed {seed})"
