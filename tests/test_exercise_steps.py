"""The steps of lesson 22's exercise, in the order in which the notebook asks for them."""

from __future__ import annotations

import re
import shutil

import pytest

from grader.grade import grade_submission
from grader.settings import load_settings
from labkit.workspace import lesson_source

STORE = "session_store.py"
REGION = re.compile(r"^( +)# BEGIN SOLUTION: (.*\(step (\d):.*)\n(?:.*\n)*?\1# END SOLUTION$", re.MULTILINE)


def written_up_to(step, folder):
    """Lay the solution down with the bodies of all later steps taken out, as the generator does."""
    source = lesson_source("22", "solution")
    shutil.copytree(source, folder / "lesson_22", ignore=shutil.ignore_patterns("__pycache__"))
    text = (source / STORE).read_text("utf-8")
    rest = REGION.sub(
        lambda found: (
            found[0] if int(found[3]) <= step else f"{found[1]}raise NotImplementedError({found[2]!r})"
        ),
        text,
    )
    (folder / "lesson_22" / STORE).write_text(rest, "utf-8")
    return folder


def test_the_steps_stand_in_the_file_in_their_order():
    """Whoever writes from the top down writes them in the order of their numbers."""
    text = (lesson_source("22", "solution") / STORE).read_text("utf-8")
    assert [int(found[3]) for found in REGION.finditer(text)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("step", "next_step"), [(2, 3), (3, 4), (4, 5)])
def test_each_step_leads_to_the_next(tmp_path, step, next_step):
    """Only 22-05 can pass before the first append does, and what is missing is named by the step that is due."""
    outcome = grade_submission("mine", written_up_to(step, tmp_path), ("22",), load_settings())
    lesson = outcome.lessons["22"]
    assert [test.check.id for test in lesson.required if test.passed] == ["22-05"]
    assert sum(test.passed for test in lesson.extended) >= 10
    assert {test.finding.reason for test in lesson.tests if not test.passed} == {"not-implemented"}
    assert lesson.first_failure is not None
    assert f"step {next_step}:" in lesson.first_failure.finding.message.en
