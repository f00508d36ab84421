"""The suite can tell: wrong stores fail by the check meant for them, right ones pass, and no check is toothless.

All of it in process; that the pipe says the same is the subject of `test_transports_agree.py`.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from grader.suites import load_suite
from grader.suites.check import Check, CheckFailed
from grader.suites.mutants import Sample
from grader.suites.mutants.lesson_22 import MUTANTS, REFERENCE, VARIANTS
from labkit import generate
from labkit.workspace import kit_root
from tests.slips_lesson_22 import SLIPS
from tests.suite_run import in_process

SUITE = load_suite("22")
UNDONE = "实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery)"

pytestmark = [
    # A wrong store may leave coroutines and failures behind it: that is its mistake, not this test's.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def by_id(sample: Sample) -> str:
    return sample.id


def failed_in_process(sample: Sample, folder: Path, check_ids: list[str]) -> dict[str, str]:
    """Run these checks on a sample; give the failed ones with the English message."""
    package, seed = sample.lay_down(folder), secrets.token_hex(8)
    failed = {}
    for check_id in check_ids:
        error = in_process(SUITE.find(check_id), package, folder / check_id, seed)
        if error:
            failed[check_id] = f"{error} (seed {seed})"
    return failed


@pytest.mark.both_directions
@pytest.mark.parametrize("sample", [*MUTANTS, *SLIPS], ids=by_id)
def test_each_mistake_is_seen_by_its_own_check(sample: Sample, tmp_path: Path):
    """The check meant for this mistake fails, as a rule that does not hold."""
    package = sample.lay_down(tmp_path)

    error = in_process(SUITE.find(sample.caught_by), package, tmp_path / "work", secrets.token_hex(8))

    assert isinstance(error, CheckFailed)


def test_every_check_can_fail():
    """For every check there is a store that only has to make one mistake to fail it."""
    assert {sample.caught_by for sample in (*MUTANTS, *SLIPS)} == {check.id for check in SUITE.checks}


@pytest.mark.parametrize("sample", VARIANTS, ids=by_id)
def test_right_code_in_another_style_passes_everything(sample: Sample, tmp_path: Path):
    """No check asks for one way of writing it."""
    assert failed_in_process(sample, tmp_path, [check.id for check in SUITE.checks]) == {}


def test_the_lessons_own_store_is_ok_but_not_complete(tmp_path: Path):
    """It passes the five required tests, and fails in each of the rules S6, S7, S8 and S11."""
    core = [check for check in SUITE.checks if check.core]
    failed = failed_in_process(REFERENCE, tmp_path, [check.id for check in (*SUITE.required, *core)])

    assert not [check.id for check in SUITE.required if check.id in failed]
    assert {rule for check in core if check.id in failed for rule in check.rules} >= {"S6", "S7", "S8", "S11"}


@pytest.mark.both_directions
@pytest.mark.parametrize("check", SUITE.required, ids=lambda check: check.id)
def test_the_starter_is_not_done_yet(check: Check, tmp_path: Path):
    """Every required test of the starter as it is generated ends in "not implemented", which says what to do."""
    tree = next(tree for tree in generate.TREES if tree.target == "starter/lesson_22")
    for name, raw in generate.generated(kit_root(), tree).items():
        path = tmp_path / "lesson_22" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)

    error = in_process(check, tmp_path / "lesson_22", tmp_path / "work", 1)

    assert isinstance(error, NotImplementedError)
    assert UNDONE in str(error)


def test_an_edit_that_no_longer_fits_is_named():
    """A mutant whose base has moved on says so, instead of being right by accident."""
    stale = Sample("stale", MUTANTS[0].idea, (("no such line\n", ""),))

    with pytest.raises(ValueError, match="stale: an edit fits its base 0 times"):
        stale.source()
