"""One suite, two transports: both say the same of every sample and mutant that is safe to run in process (G11, law 4)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from grader.channel import ChildLost
from grader.intake import take
from grader.sample_class import ODD, SAMPLES
from grader.suites import load_suite
from grader.suites.check import Check
from grader.suites.mutants import lesson_04, lesson_22
from tests.piped import KIT
from tests.slips_lesson_04 import SLIPS as SLIPS_04
from tests.slips_lesson_22 import SLIPS as SLIPS_22
from tests.suite_run import in_process, over_the_pipe, spine_in_process

CLASS = KIT / "assets" / "sample-class"
ENDS = ("right", "untouched-starter")
SUITES = {lesson: load_suite(lesson) for lesson in SAMPLES}
KNOWN = {
    "22": (*lesson_22.MUTANTS, *lesson_22.VARIANTS, lesson_22.REFERENCE),
    "04": (*lesson_04.MUTANTS, *lesson_04.VARIANTS),
}
SLIPS = {"22": SLIPS_22, "04": SLIPS_04}
EVERY = {lesson: {sample.id: sample for sample in (*KNOWN[lesson], *SLIPS[lesson])} for lesson in SUITES}

pytestmark = [
    # Wrong code may leave coroutines and failures behind it: that is its mistake, not this test's.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def both(
    lesson: str, submission: Path, checks: Sequence[Check], folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Give the reasons of these checks by both transports, on the same draws."""
    seed = secrets.token_hex(8)
    piped = {id_: found.reason for id_, found in over_the_pipe(submission, lesson, checks, seed).items()}
    package = submission / f"lesson_{lesson}"
    if lesson == "04":
        return piped, {check.id: _reason(error) for check, error in spine_in_process(checks, package, seed)}
    return piped, {check.id: _reason(in_process(check, package, folder / check.id, seed)) for check in checks}


def laid_down(lesson: str, name: str, folder: Path) -> Path:
    """Give the folder of a sample of the class, or lay a mutant down."""
    if name in (*ENDS, *SAMPLES[lesson]):
        return CLASS / name
    return EVERY[lesson][name].lay_down(folder / "submission").parent


def names_of(samples: Mapping[str, Iterable[str]]) -> pytest.MarkDecorator:
    """Run a test once for each of these samples of each lesson."""
    return pytest.mark.parametrize(
        ("lesson", "name"), [(lesson, name) for lesson, names in samples.items() for name in names]
    )


@names_of(dict.fromkeys(SUITES, ENDS))
def test_both_transports_agree_on_the_ends(lesson, name, tmp_path):
    """The solution passes every check, the untouched starter is told "not implemented", both ways."""
    suite = SUITES[lesson]
    piped, direct = both(lesson, laid_down(lesson, name, tmp_path), suite.checks, tmp_path)

    assert piped == direct
    due = {"" if name == "right" else "not-implemented"}
    assert {piped[check.id] for check in suite.required if not check.guard} == due


@names_of(
    {lesson: dict.fromkeys([*SAMPLES[lesson], *(sample.id for sample in KNOWN[lesson])]) for lesson in SUITES}
)
def test_both_transports_agree_on_required_checks_and_the_mistake(lesson, name, tmp_path):
    """What decides `ok`, and what was meant for this mistake, ends the same both ways."""
    meant = getattr(EVERY[lesson].get(name), "caught_by", None)
    checks = [check for check in SUITES[lesson].checks if check.required or check.id == meant]
    piped, direct = both(lesson, laid_down(lesson, name, tmp_path), checks, tmp_path)

    assert piped == direct


@pytest.mark.parametrize("name", [*SAMPLES["22"], *ODD])
def test_what_is_wrong_in_lesson_22_alone_is_right_in_lesson_04(name):
    """These samples hold the right spine, byte for byte: what was compared for it holds for them."""
    assert take(CLASS / name, "04").files == take(CLASS / "right", "04").files


@pytest.mark.proof
@names_of({lesson: dict.fromkeys([*SAMPLES[lesson], *EVERY[lesson]]) for lesson in SUITES})
def test_both_transports_agree_check_by_check(lesson, name, tmp_path):
    """Every check of the suite ends the same both ways, on all code known."""
    piped, direct = both(lesson, laid_down(lesson, name, tmp_path), SUITES[lesson].checks, tmp_path)

    assert piped == direct


def _reason(error: Exception | None) -> str:
    if error is None:
        return ""
    if isinstance(error, ChildLost):
        return error.reason
    return "not-implemented" if isinstance(error, NotImplementedError) else "fail"
