"""The gate: a suite is proved by failing every store that is known to be wrong."""

from __future__ import annotations

import json

from click.testing import CliRunner

from grader import gate
from grader.suites.check import Text
from grader.suites.mutants import Sample
from grader.suites.mutants.lesson_22 import MUTANTS

RIGHT = Sample("right-after-all", Text("其实没错", "not wrong at all"), caught_by="22-03")


def run(*arguments: str):
    return CliRunner().invoke(gate.gate, arguments)


def test_every_mutant_is_stopped_by_its_own_check():
    """All eleven are failed by the check meant for each, and the JSON says which others failed them too."""
    done = run("--json")
    report = json.loads(done.stdout)

    assert done.exit_code == 0, done.stdout
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
