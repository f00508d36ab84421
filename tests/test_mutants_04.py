"""Lesson 04's suite can tell: each wrong spine fails by the check meant for it, right ones pass, no check is toothless."""

from __future__ import annotations

import pytest

from grader.grade import grade_handin
from grader.intake import take
from grader.settings import load_settings
from grader.suites import load_suite
from grader.suites.mutants.lesson_04 import MUTANTS, ROUND, VARIANTS, Sample
from tests.slips_lesson_04 import SLIPS

SUITE = load_suite("04")


def by_id(sample: Sample) -> str:
    return sample.id


@pytest.mark.parametrize("sample", [*MUTANTS, *SLIPS], ids=by_id)
def test_each_mistake_is_seen_by_its_own_check(sample, tmp_path):
    """The check meant for this mistake fails, as a rule that does not hold."""
    sample.lay_down(tmp_path)

    _, outcome = grade_handin(take(tmp_path, "04"), [SUITE.find(sample.caught_by)], load_settings())

    assert outcome.tests[0].finding.reason == "fail"


def test_every_check_can_fail():
    """For every check there is a spine that only has to make one mistake to fail it."""
    assert {sample.caught_by for sample in (*MUTANTS, *SLIPS)} == {check.id for check in SUITE.checks}


@pytest.mark.parametrize("sample", VARIANTS, ids=by_id)
def test_right_code_in_another_style_passes_everything(sample, tmp_path):
    """No check asks for one way of writing it."""
    sample.lay_down(tmp_path)

    _, outcome = grade_handin(take(tmp_path, "04"), SUITE.checks, load_settings())

    assert {test.check.id: test.finding for test in outcome.tests if not test.passed} == {}


def test_an_edit_that_no_longer_fits_is_named():
    """A mutant whose base has moved on says so, instead of being right by accident."""
    stale = Sample("stale", MUTANTS[0].idea, ((ROUND, "no such line\n", ""),))

    with pytest.raises(ValueError, match="stale: an edit fits its base 0 times"):
        stale.source(ROUND)
