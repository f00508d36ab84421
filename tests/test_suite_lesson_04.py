"""Every check of lesson 04 as one pytest test, on any folder: `--target starter|solution|DIR`, `--transport pipe`.

pytest tests/test_suite_lesson_04.py --target starter -k 04-p03 --pdb
"""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Callable, Iterator

import pytest

from grader.direct_spine import direct_spine
from grader.grade import grade_handin
from grader.intake import take
from grader.settings import load_settings
from grader.suites import load_suite
from grader.suites.check import Check, CheckFailed
from labkit.workspace import kit_root, lesson_source, target_folder
from tests.suite_run import answer_of, draw_of, over_the_pipe

SUITE = load_suite("04")
STARTER = kit_root() / "assets" / "sample-class" / "untouched-starter"
LOOP_TESTS = ("assets/issue-garden-lab/loop_tests", "assets/lesson-04-state/loop_tests")


@pytest.fixture(scope="module")
def seed(request: pytest.FixtureRequest) -> str:
    """What the inputs of this run are drawn from."""
    return request.config.getoption("--seed") or secrets.token_hex(8)


@pytest.fixture(scope="module")
def answer(request: pytest.FixtureRequest, seed: str) -> Iterator[Callable[[Check], Exception | str]]:
    """Give what says how a check ends, "" when it passes: the labs, or the box, are the same for all of them."""
    target = request.config.getoption("--target")
    if request.config.getoption("--transport") == "direct":
        with direct_spine(lesson_source("04", target)) as lab_of:
            yield lambda check: answer_of(check, lab_of(draw_of(check, seed))) or ""
        return
    items = [item for item in request.session.items if "answer" in item.fixturenames]
    found = over_the_pipe(
        target_folder(target), "04", [item.callspec.params["check"] for item in items], seed
    )
    yield lambda check: found[check.id].reason and f"{found[check.id]}"


@pytest.mark.both_directions
@pytest.mark.parametrize("check", SUITE.checks, ids=lambda check: check.id)
def test_check(check: Check, answer: Callable[[Check], Exception | str], seed: str):
    """The target keeps the rules that this check is about."""
    problem = answer(check)
    if isinstance(problem, Exception) and not isinstance(problem, CheckFailed):
        raise problem.__cause__ or problem  # where the code under test raised it: there a debugger is to stop
    told = "\n".join(problem.message) if isinstance(problem, CheckFailed) else problem

    assert not told, f"{check.title.en}\n{told}\n{check.hint.en}\n(--seed {seed})"


@pytest.mark.both_directions
def test_the_starter_passes_the_guards_and_nothing_else():
    """The eight guards pass; everything that needs a removed body says "not implemented"; no points are earned."""
    _, outcome = grade_handin(take(STARTER, "04"), SUITE.checks, load_settings())

    passed = [test.check for test in outcome.tests if test.passed]
    assert passed == [check for check in SUITE.checks if check.guard]
    assert {test.finding.reason for test in outcome.tests if not test.passed} == {"not-implemented"}
    assert outcome.points == 0


def test_the_ten_required_are_the_labs_own():
    """A learner knows them again: the titles are those that `unittest` prints, and each hint names its test."""
    titles = {}
    for folder in LOOP_TESTS:
        for path in sorted((kit_root() / folder).glob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    titles[ast.get_docstring(node)] = node.name

    assert {f"{check.title.zh} ({check.title.en})" for check in SUITE.required} == titles.keys()
    named = {f"{check.title.zh} ({check.title.en})": check.hint.en for check in SUITE.required if check.guard}
    assert all(titles[title] in hint for title, hint in named.items())
    assert [check.guard for check in SUITE.required] == [True] * 8 + [False] * 2


def test_every_rule_has_its_check():
    """P1 to P16, and what `complete` asks for: P2, P6, P7, P10, a live interrupt and resume."""
    extended = {rule for check in SUITE.extended for rule in check.rules}
    core = {check.id for check in SUITE.checks if check.core}

    assert extended >= {f"P{number}" for number in range(1, 17)}
    assert {re.sub(r"04-(p\d+|live).*", r"\1", check_id) for check_id in core} == {
        "p02",
        "p06",
        "p07",
        "p10",
        "live",
    }


def test_a_hand_in_is_the_two_files(tmp_path):
    """What the kit gives is laid down by the kit: a changed copy of it is left out and listed, an equal one is not."""
    for name in ("state_store.py", "stateful_round.py", "records.py", "closing.py"):
        source = kit_root() / "solution" / "lesson_04" / "issue_garden" / name
        target = tmp_path / "lesson_04" / "issue_garden" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes() + b"# mine\n" * (name == "records.py"))

    taken = take(tmp_path, "04")

    assert sorted(taken.files) == ["issue_garden/state_store.py", "issue_garden/stateful_round.py"]
    assert [entry.name for entry in taken.left_out] == ["lesson_04/issue_garden/records.py"]


def test_a_missing_file_is_named():
    """A submission of the other lesson alone has not handed this one in."""
    _, outcome = grade_handin(take(kit_root() / "tests", "04"), SUITE.checks, load_settings())

    assert {test.finding.reason for test in outcome.tests} == {"missing-file"}
    assert "issue_garden/state_store.py" in outcome.tests[0].finding.message.en
