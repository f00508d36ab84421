"""Mutants of the durable log: what counts as found, and that no survivor goes without a reason."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests import mutation
from tests.mutation import Mutant, Outcome

KNOWN = Mutant("record.seal", "return 1", "return 2")
NEW = Mutant("record.seal", "return 1", "return None")


@pytest.mark.parametrize(
    ("outcome", "code", "told"),
    [
        (Outcome(100, [KNOWN]), 0, "99.0 % of 100 mutants found, 1 survived, 0 of them without a reason"),
        (
            Outcome(100, [KNOWN, NEW]),
            1,
            "survives, and nobody says why: record.seal\n  - return 1\n  + return None",
        ),
        (Outcome(100, []), 1, "survives no longer: record.seal\n  - return 1\n  + return 2"),
        (Outcome(20, [KNOWN] * 3), 0, "85.0 % of 20 mutants found"),
        (Outcome(20, [KNOWN] * 4), 1, "mutation: below 85 %"),
    ],
)
def test_the_score_and_the_list_decide(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, code: int, told: str
) -> None:
    """85 % is enough where every survivor has its reason; a new one, or a reason for none, fails and is shown."""
    monkeypatch.setattr(mutation, "_mutmut", lambda *_words, **_how: "")
    monkeypatch.setattr(mutation, "told", lambda: outcome)
    monkeypatch.setattr(mutation, "known", lambda: {KNOWN: "the same"})
    ended = CliRunner().invoke(mutation.main, ["--keep"])

    assert ended.exit_code == code
    assert told in ended.output


def test_every_known_survivor_is_a_change_of_todays_code() -> None:
    """Each entry names lines that stand in its module, and gives a reason of some words."""
    for mutant, reason in mutation.known().items():
        module = mutation.ROOT / mutation.PACKAGE / f"{mutant.place.split('.')[0]}.py"
        lines = [line.strip() for line in module.read_text(encoding="utf-8").splitlines()]

        assert [line for line in mutant.was.splitlines() if line not in lines] == [], mutant.place
        assert mutant.was != mutant.became
        assert len(reason.split()) > 3


@pytest.mark.proof
def test_the_tests_notice_the_mutants() -> None:
    """Of a thousand small changes of record, chain, reader and repair, 85 % or more are found."""
    ended = CliRunner().invoke(mutation.main, [])

    assert ended.exit_code == 0, ended.output
