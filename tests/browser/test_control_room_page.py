"""The control room in a real browser: what is pressed really runs, and what is shown is what the disk holds."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from labkit.faults.round_sweep import fresh_copy
from tests.browser.lab import KIT, SCREENSHOTS
from tests.spine_lab import Lab, template

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.browser.lab import NotebookPage

CELL = """\
from labkit.widgets import control_room
room = control_room({folder!r})
room"""
NAMES = {
    "en": {
        "interrupt": "Run with controlled interruption",
        "resume": "Resume",
        "says": "no agent was started",
    },
    "zh": {"interrupt": "运行并受控中断", "resume": "恢复", "says": "Agent 还没有启动"},
}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab with the lesson's own three commands, before its third step."""
    return Lab(fresh_copy(template(quick=False), tmp_path / "issue-garden-lab"))


def open_room(notebook: NotebookPage, folder: Path, language: str = "en") -> Locator:
    """Open a notebook that holds the room, run it, and return the output."""
    path = notebook.server.write_notebook(f"notebooks/{language}/room.ipynb", CELL.format(folder=str(folder)))
    notebook.open(path, language)
    notebook.run_all()
    return notebook.page.locator(".jp-OutputArea-output", has=notebook.page.locator(".lab-phases"))


def press(notebook: NotebookPage, label: str) -> None:
    """Press a button by its name."""
    notebook.page.get_by_role("button", name=label, exact=True).click()


def lit(room: Locator) -> Locator:
    """Return the phase that is lit."""
    return room.locator(".lab-phases [aria-current=step] .lab-phase-code")


def picture(room: Locator, name: str) -> None:
    """Keep a picture of the whole room for whoever looks at the artefacts."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    room.page.set_viewport_size({"width": 1280, "height": 2000})
    room.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")
    room.page.set_viewport_size({"width": 1280, "height": 1000})


@pytest.mark.parametrize("language", ["zh", "en"])
def test_interrupt_edit_and_resume(notebook: NotebookPage, lab: Lab, language: str) -> None:
    """Interrupted, the task stands at claimed; an edit made elsewhere shows by itself; resumed, it comes to its end."""
    words = NAMES[language]
    room = open_room(notebook, lab.root, language)
    press(notebook, words["interrupt"])
    expect(lit(room)).to_have_text("claimed")
    expect(room.get_by_role("status").filter(has_text=words["says"])).to_be_visible()
    expect(room.locator(".lab-card")).to_contain_text("75")
    expect(room.locator(".lab-dial-said")).to_contain_text("mkdir .loop", timeout=30_000)
    for theme in ("light", "dark"):
        notebook.theme(theme)
        picture(room, f"control-room-{language}-{theme}")
        assert notebook.violations() == []
    state = lab.path("state").read_bytes()

    lab.edit(lab.path("state"), phase="agent_running")
    expect(lit(room)).to_have_text("agent_running")
    lab.path("state").write_bytes(state)
    expect(lit(room)).to_have_text("claimed")

    press(notebook, words["resume"])
    expect(lit(room)).to_have_text("finished")
    expect(room.locator(".lab-headline")).to_contain_text("verified")
    picture(room, f"control-room-finished-{language}")
    assert lab.record("state")["phase"] == "finished"
    assert lab.types().count("claim_started") == 1
    assert notebook.errors() == []
