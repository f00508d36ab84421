"""The gates: their steps exist, the first failure stops them, and a failed step can be run again alone."""

from __future__ import annotations

import importlib.util

import pytest
from click.testing import CliRunner

from labkit import devgate

PASSES = devgate.Step("passes", ("compileall", "-q", "labkit/__init__.py"))
FAILS = devgate.Step("fails", ("this_module_is_missing",), {"LAB_TARGET": "starter"})


def ran(monkeypatch: pytest.MonkeyPatch, *steps: devgate.Step) -> tuple[int, str]:
    """Run a gate of these steps; its exit code and what it told."""
    monkeypatch.setitem(devgate.GATES, "check", steps)
    told = CliRunner().invoke(devgate.main, ["check"])
    return told.exit_code, told.output


def test_every_step_passed_is_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps are told, each with its time."""
    code, told = ran(monkeypatch, PASSES, PASSES)

    assert code == 0
    assert told.startswith("[1/2] passes\n      passed, ")
    assert "[2/2] passes\n      passed, " in told


def test_the_first_failure_stops_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after a failed step is not run; the last line repeats that step in a shell."""
    code, told = ran(monkeypatch, FAILS, PASSES)

    assert code == 1
    assert "[2/2]" not in told
    assert told.endswith(
        "check: stopped at: fails; again alone: LAB_TARGET=starter .venv/bin/python -m this_module_is_missing\n"
    )


@pytest.mark.parametrize("gate", devgate.GATES)
def test_every_step_starts_something_that_exists(gate: str) -> None:
    """Modules can be found, and files named in a step are there."""
    for step in devgate.GATES[gate]:
        assert importlib.util.find_spec(step.words[0]), step.title
        assert [
            word for word in step.words if word.endswith(".py") and not (devgate.ROOT / word).exists()
        ] == []


def test_the_test_gate_ends_with_the_kits_tests() -> None:
    """pytest's own closing line is the last that a log shows."""
    assert devgate.GATES["test"][-1].words[0] == "pytest"
