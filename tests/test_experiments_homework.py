"""The homework's experiments: what they measure is real, and what they show has its words."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import words
from labkit.experiments import homework
from labkit.experiments.homework import postgres_here
from labkit.experiments.homework.durability import readable
from labkit.experiments.homework.tables import Table, fresh_place


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch) -> Path:
    """The experiments leave their files in a state folder of the test's own."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_power_cut_takes_what_no_sync_covered(state):
    """The file that is left ends where the last sync ended: at level os it is empty."""
    seen = homework.survivors(events=3)

    assert {level: tuple(row.values()) for level, row in seen.rows.items()} == {
        "os": (3, 3, 0),
        "fsync": (3, 3, 3),
        "group": (3, 3, 3),
    }
    assert readable(next(state.glob("22-homework/survivors/os/after-power-cut.jsonl"))) == 0


def test_what_is_run_as_a_program_is_not_imported_as_well():
    """A module that an experiment starts with `-m` is not loaded by its own package: Python would warn the learner of it."""
    sources = Path(homework.__file__).parent.glob("*.py")
    started = set(re.findall(r'"-m", "(labkit[.\w]+)"', "".join(path.read_text("utf-8") for path in sources)))
    program = "import sys, labkit.experiments.homework; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert started
    assert started.isdisjoint(loaded.stdout.split())


def test_one_sync_serves_many_callers():
    """At level group, ten callers at once need fewer syncs than events; at level fsync, one each."""
    seen = asyncio.run(homework.price_of_a_sync(callers=10, each=2))

    assert (seen["os"]["syncs"], seen["fsync"]["syncs"]) == (0, 20)
    assert seen["group"]["syncs"] < 20


def test_every_byte_of_the_crash_proof_has_a_verdict():
    """As many verdicts as bytes, and one for the whole log, in both rows."""
    cut, flipped = asyncio.run(homework.cut_and_flip(events=3)).values()

    assert len(cut) == len(flipped)
    assert cut.count("whole") == 3 + 3 + 1  # before each record, before each newline, at the end
    assert (flipped.count("torn"), flipped.count("whole"), flipped.count("wrong")) == (1, 1, 0)


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_a_table_speaks_the_learners_language(language, monkeypatch):
    """Names of rows and columns come from the catalogue; a truth value is a sign."""
    monkeypatch.setattr(words, "_chosen", [language])
    html = Table({"fsync": {"killed": 20, "chain-holds": True}})._repr_html_()

    assert ("逐个同步" in html, "one by one" in html) == (language == "zh", language == "en")
    assert "✓" in html


def test_where_no_server_can_run_the_reason_is_a_word(monkeypatch):
    """Each reason for a missing server stands in the catalogue, in both languages."""
    monkeypatch.setattr(postgres_here.os, "geteuid", lambda: 0)
    server, why_not = postgres_here.start()

    assert server is None
    assert f"homework.{why_not}" in words.catalogue()


def test_a_place_is_private_and_empty(state):
    """What an experiment left is gone at the next run, and the folder is its user's alone."""
    (fresh_place("x") / "old").touch()
    place = fresh_place("x")

    assert list(place.iterdir()) == []
    assert place.stat().st_mode & 0o777 == 0o700
    assert place.is_relative_to(state)
