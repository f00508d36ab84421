"""The gate: a suite, or a learner's own tests, is proved by failing every store that is known to be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import gate, own_tests
from grader.suites.check import Text
from grader.suites.mutants import Sample
from grader.suites.mutants.lesson_22 import MUTANTS
from tests.piped import KIT

RIGHT = Sample("right-after-all", Text("其实没错", "not wrong at all"), caught_by="22-03")


def run(*arguments: str):
    return CliRunner().invoke(gate.gate, arguments)


def test_every_mutant_is_stopped_by_its_own_check():
    """All eleven are failed by the check meant for each, and the JSON says which others failed them too."""
    done = run("--json")
    assert done.exit_code == 0, (done.exception, done.output)
    report = json.loads(done.stdout)

    assert [one["id"] for one in report["mutants"]] == [mutant.id for mutant in MUTANTS]
    assert len(report["mutants"]) == 11
    assert all(one["caught"] and one["caught_by"] in one["failed"] for one in report["mutants"])
    asked = {test["id"] for test in report["tests"]}
    assert all(set(one["failed"]) <= asked for one in report["mutants"])


def test_one_that_gets_through_is_named(monkeypatch):
    """A store that no check fails leaves the gate open: exit 1, and its row says so."""
    monkeypatch.setattr(gate, "mutants_of", lambda _lesson: (MUTANTS[0], RIGHT))
    done = run()

    assert done.exit_code == 1
    row = next(line for line in done.stdout.splitlines() if "right-after-all" in line)
    assert "GOT THROUGH" in row


def test_failing_another_check_is_not_enough(monkeypatch):
    """A mutant counts as stopped only when the very check meant for it failed it."""
    wrong_aim = Sample(
        MUTANTS[0].id, MUTANTS[0].idea, MUTANTS[0].edits, caught_by="22-05", base=MUTANTS[0].base
    )
    monkeypatch.setattr(gate, "mutants_of", lambda _lesson: (wrong_aim,))

    assert run().exit_code == 1


# --- A learner's own tests ---

GOOD = KIT / "tests" / "golden" / "own_tests_22.py"
WEAK = """
from lesson_22 import JsonlSessionStore

async def test_three_at_once(tmp_path):
    store = JsonlSessionStore(tmp_path / "task.jsonl")
    for result in reversed([store.append("note", n) for n in range(20)]):
        await result
    assert [event.data for event in await store.read()] == list(range(20))

async def test_nothing_much(tmp_path):
    assert await JsonlSessionStore(tmp_path / "task.jsonl").read() == []
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "test_mine.py"


def test_good_tests_of_a_learner_stop_all_eleven():
    """It can be done with what a learner has: none of eleven gets through, and each of the tests stops some."""
    done = run("--tests", str(GOOD), "--json")
    report = json.loads(done.stdout)

    assert done.exit_code == 0, done.stdout
    assert report["verdict"] == "all-killed"
    assert [one["id"] for one in report["mutants"]] == [mutant.id for mutant in MUTANTS]
    assert all(one["killed"] and one["killed_by"] for one in report["mutants"])
    assert [test["name"] for test in report["tests"] if not test["kills"]] == []


@pytest.mark.parametrize("language", ["zh", "en"])
def test_weak_tests_leave_survivors_that_are_named(mine, language):
    """What got through is named with its idea, so is a test that stops nothing, in the learner's language; exit 1."""
    mine.write_text(WEAK)
    done = run("--tests", str(mine), "--lang", language)
    shown = done.stdout.replace("\n", "")

    assert done.exit_code == 1, done.output
    caught = ("no-queue", "number-outside", "async-append")
    for mutant in MUTANTS:
        idea = f"{mutant.id}: {getattr(mutant.idea, language)}"
        assert (idea in shown) == (mutant.id not in caught)
    nothing = {"zh": "test_nothing_much  一个也没抓住", "en": "test_nothing_much  stops nothing"}
    assert nothing[language] in shown


@pytest.mark.parametrize(
    ("source", "exit_code", "verdict"),
    [
        ("def test_x():\n    assert False\n", 1, "wrong-tests"),
        ("def test_x(:\n", 2, "not-loaded"),
        ("", 2, "no-tests"),
    ],
)
def test_a_file_that_is_not_fit_is_told_so_as_data_and_as_text(mine, source, exit_code, verdict):
    """No mutant is tried; exit code, JSON and text say the same."""
    mine.write_text(source)
    data, text = run("--tests", str(mine), "--json"), run("--tests", str(mine), "--lang", "en")
    report = json.loads(data.stdout)

    assert (data.exit_code, text.exit_code) == (exit_code, exit_code)
    assert (report["verdict"], report["mutants"]) == (verdict, [])
    assert report["message"]["en"] in text.stdout.replace("\n", " ").replace("  ", " ")


@pytest.mark.parametrize("arguments", [(), ("--lesson", "04")])
def test_wrong_use_is_answered_before_anything_is_tried(tmp_path, arguments):
    """A file that is not there, or a lesson that has no stores to try tests on: exit 2 and one sentence."""
    done = run("--tests", str(tmp_path / "absent.py"), *arguments)

    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert "--tests" in done.output


def test_a_machine_that_starts_no_child_is_the_graders_fault(mine, monkeypatch):
    """Exit 3, and nothing is said about the learner's tests."""

    def refuse(*_arguments):
        raise OSError(11, "Resource temporarily unavailable")

    mine.write_text(WEAK)
    monkeypatch.setattr(own_tests, "open_box", refuse)
    done = run("--tests", str(mine))

    assert done.exit_code == 3
    assert "a store could not be started" in done.output
