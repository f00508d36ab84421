"""The homework's crash lab: its tables are real explorations, and the store that a learner mends can be mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit import workspace
from labkit.experiments import homework
from labkit.experiments.homework.crash_lab import Crashes


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder and a workspace of this test's own."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(
        workspace, "scratch", lambda name: (tmp_path / name).mkdir(exist_ok=True) or tmp_path / name
    )


def test_each_model_is_a_row_and_each_row_has_its_counterexamples():
    """The naive log cannot go on after a kill; a row in which nothing was found has nothing to draw."""
    seen = homework.crashes("naive", "kill", events=1)

    assert seen["kill"]["promises"] == "goes-on"
    assert seen.counterexample("kill").broken == ("goes-on",)
    with pytest.raises(LookupError, match="kill: no counterexample was found"):
        Crashes(seen.rows, {"kill": ()}).counterexample("kill")


def test_a_loss_that_was_never_promised_away_has_a_verdict_of_its_own():
    """The lesson's log under a power cut: neither kept nor broken."""
    seen = homework.crashes("lesson", "weak", events=1, limit=40)

    assert seen["weak"]["verdict"] == "lost-unpromised"


def test_the_learners_store_is_laid_down_once():
    """What the learner wrote is left as it is."""
    path = homework.own_store()
    path.write_text("PROMISES = ()\n")

    assert homework.own_store().read_text() == "PROMISES = ()\n"


def test_the_learners_store_can_be_mended():
    """As it is given it is found empty after a power cut; with both syncs it keeps what it promises."""
    path = homework.own_store()
    assert "readable" in homework.crashes(path, "weak", events=1)["weak"]["promises"]

    file_synced = "        file.flush()\n        os.fsync(file.fileno())\n"
    folder_synced = (
        "    folder = os.open(path.parent, os.O_RDONLY)\n    os.fsync(folder)\n    os.close(folder)\n"
    )
    lines = path.read_text("utf-8").splitlines(keepends=True)
    inside, behind = (at for at, line in enumerate(lines) if line.lstrip().startswith("# "))
    lines[inside], lines[behind] = file_synced, folder_synced
    path.write_text("import os\n" + "".join(lines), "utf-8")
    mended = homework.crashes(path, "kill", "ordered", "weak", events=1)
    assert mended.column("promises") == ["none-broken"] * 3
