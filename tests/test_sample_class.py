"""The sample class: made by machine, one sample for each mistake, each failed by the check meant for it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from grader import sample_class
from grader.grade import grade_submission
from grader.intake import take
from grader.pool import SAMPLE_CLASS, find_submissions
from grader.settings import load_settings
from grader.suites.mutants import lesson_04, lesson_22
from tests.piped import KIT

MUTANTS = {"22": lesson_22.MUTANTS, "04": lesson_04.MUTANTS}
CAUGHT_BY = {(lesson, mutant.id): mutant.caught_by for lesson, found in MUTANTS.items() for mutant in found}
MADE = [(lesson, *made) for lesson, samples in sample_class.SAMPLES.items() for made in samples.items()]


def test_the_samples_are_what_they_are_made_from():
    """No sample was edited by hand, and none is missing."""
    assert sample_class.stale(KIT) == []


def test_a_stale_sample_is_named(tmp_path):
    """An edit, a missing file and a stray one are each said by name."""
    shutil.copytree(KIT / SAMPLE_CLASS, tmp_path / SAMPLE_CLASS)
    race = tmp_path / SAMPLE_CLASS / "race" / "lesson_22"
    (race / "todo.py").unlink()
    (race / "stray.py").touch()
    (race / "session_store.py").write_text("edited")
    names = {f"{SAMPLE_CLASS}/race/lesson_22/{name}" for name in ("session_store.py", "stray.py", "todo.py")}
    assert set(sample_class.stale(tmp_path)) - set(sample_class.stale(KIT)) == names


@pytest.mark.parametrize(("lesson", "sample", "mutant"), MADE)
def test_each_sample_fails_the_check_meant_for_it(lesson, sample, mutant):
    """An instructor who opens the class sees each mistake under its own check."""
    outcome = grade_submission(sample, KIT / SAMPLE_CLASS / sample, [lesson], load_settings())
    failed = {test.check.id: test.finding.reason for test in outcome.lessons[lesson].tests if not test.passed}
    assert failed[CAUGHT_BY[lesson, mutant]] == "fail"
    assert not outcome.lessons[lesson].complete


def test_the_class_has_the_samples_and_no_others():
    """Right, untouched, and those that are made."""
    names = {submission.name for submission in find_submissions(KIT / SAMPLE_CLASS)}
    assert names == {"right", "untouched-starter", *(sample for _, sample, _ in MADE), *ODD}


ODD = {
    "syntax-error": "syntax-error",
    "missing-file": "missing-file",
    "infinite-loop": "timeout",
    "forger": "tamper",
}


@pytest.mark.parametrize("sample", ODD)
def test_what_is_no_store_at_all_has_the_reason_for_its_row(sample):
    """No Python, no file, no end, no honesty: each is told by its own word, and its other lesson is judged all the same."""
    settings = load_settings()
    settings = replace(settings, limits=replace(settings.limits, call_seconds=0.5))
    outcome = grade_submission(sample, KIT / SAMPLE_CLASS / sample, ["22"], settings)
    assert outcome.verdict == ODD[sample]
    assert take(KIT / SAMPLE_CLASS / sample, "04").problem is None
