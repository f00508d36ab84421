"""Notebook 04 in a real browser: run from top to bottom, then interrupted, edited and resumed by hand."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.browser.lab import NotebookPage

NAMES = {
    "en": {"interrupt": "Run with controlled interruption", "resume": "Resume"},
    "zh": {"interrupt": "运行并受控中断", "resume": "恢复"},
}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_spine_is_walked_through(notebook: NotebookPage, language: str) -> None:
    """Run all; interrupt and see claimed; edit the state from outside and see that; resume and see the end."""
    lab = notebook.server.kit / "workspace/04-state-spine/control-room/issue-garden-lab"
    shutil.rmtree(lab, ignore_errors=True)  # what an earlier test played with
    notebook.open(f"notebooks/{language}/04-state-spine.ipynb", language)
    notebook.run_all()
    assert notebook.errors() == []

    interrupt = notebook.page.get_by_role("button", name=NAMES[language]["interrupt"], exact=True)
    # The first room is the one to play in, the second the learner's own.
    room = notebook.page.locator(".jp-OutputArea-output", has=interrupt).first
    lit = room.locator(".lab-phases [aria-current=step] .lab-phase-code")
    state = lab / ".loop/tasks/issue-002/state.json"
    room.get_by_role("button", name=NAMES[language]["interrupt"], exact=True).click()
    expect(lit).to_have_text("claimed")

    claimed = state.read_bytes()
    state.write_text(json.dumps(json.loads(claimed) | {"phase": "agent_running"}), "utf-8")
    expect(lit).to_have_text("agent_running")
    state.write_bytes(claimed)
    expect(lit).to_have_text("claimed")

    room.get_by_role("button", name=NAMES[language]["resume"], exact=True).click()
    expect(lit).to_have_text("finished")
    assert json.loads(state.read_bytes())["status"] == "completed"
    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.violations() == []
        room.scroll_into_view_if_needed()
        notebook.screenshot(f"04-state-spine-{language}-{theme}")
