"""One suite, two transports: both say the same of every sample and mutant that is safe to run in process (G11, law 4).

Lesson 04 has one transport only: each of its rounds is a process anyway.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from grader.sample_class import SAMPLES
from grader.suites import load_suite
from grader.suites.mutants.lesson_22 import MUTANTS, REFERENCE, VARIANTS
from tests.piped import KIT
from tests.slips_lesson_22 import SLIPS
from tests.suite_run import in_process, over_the_pipe

SUITE = load_suite("22")
CLASS = ["right", "untouched-starter", *SAMPLES["22"]]
EVERY = {sample.id: sample for sample in (*MUTANTS, *VARIANTS, REFERENCE, *SLIPS)}

pytestmark = [
    # A wrong store may leave coroutines and failures behind it: that is its mistake, not this test's.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def both(submission: Path, checks, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Give the reasons of these checks by both transports, on the same draws."""
    seed = secrets.token_hex(8)
    piped = {id_: found.reason for id_, found in over_the_pipe(submission, checks, seed).items()}
    package = submission / "lesson_22"
    direct = {check.id: _reason(in_process(check, package, folder / check.id, seed)) for check in checks}
    return piped, direct


def laid_down(name: str, folder: Path) -> Path:
    """Give the folder of a sample of the class, or lay a mutant down."""
    if name in CLASS:
        return KIT / "assets" / "sample-class" / name
    return EVERY[name].lay_down(folder / "submission").parent


@pytest.mark.parametrize("name", ["right", "untouched-starter"])
def test_both_transports_agree_on_the_ends(name, tmp_path):
    """The solution passes every check, the untouched starter is told "not implemented", both ways."""
    piped, direct = both(laid_down(name, tmp_path), SUITE.checks, tmp_path)

    assert piped == direct
    assert {piped[check.id] for check in SUITE.required} == {"" if name == "right" else "not-implemented"}


@pytest.mark.parametrize(
    "name", [*SAMPLES["22"], *(sample.id for sample in (*MUTANTS, *VARIANTS, REFERENCE))]
)
def test_both_transports_agree_on_required_checks_and_the_mistake(name, tmp_path):
    """What decides `ok`, and what was meant for this mistake, ends the same both ways."""
    meant = getattr(EVERY.get(name), "caught_by", None)
    checks = [check for check in SUITE.checks if check.required or check.id == meant]
    piped, direct = both(laid_down(name, tmp_path), checks, tmp_path)

    assert piped == direct


@pytest.mark.proof
@pytest.mark.parametrize("name", [*SAMPLES["22"], *EVERY])
def test_both_transports_agree_check_by_check(name, tmp_path):
    """Every check of the suite ends the same both ways, on every store known."""
    piped, direct = both(laid_down(name, tmp_path), SUITE.checks, tmp_path)

    assert piped == direct


def _reason(error: Exception | None) -> str:
    if error is None:
        return ""
    return "not-implemented" if isinstance(error, NotImplementedError) else "fail"
