"""Every widget drawn once in a real browser: state files, check, prediction, zoo and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.lab import NotebookPage

CELLS = (
    "from labkit import actions, naive\nfrom labkit.widgets import *\nfrom pathlib import Path",
    'question = predict("How many?", ["1, 2, 3", "1, 1, 1"])\nquestion',
    "lanes(await actions.race(naive.UnsafeStore(Path({folder!r}) / 'race.jsonl')))",
    "log = Path({folder!r}) / 'sample.jsonl'\nawait actions.make_sample_log(log)",
    "heatmap({{'kit': await actions.cut_everywhere(log, actions.solution_store)}})",
    "state_files({folder!r})",
    "zoo()",
    "check()",
    "gate()",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the state-file view shows."""
    made = tmp_path / "state"
    made.mkdir()
    return made


def test_every_widget_draws_and_answers(notebook: NotebookPage, folder: Path) -> None:
    """Each is drawn from what is there, works by its controls, and passes the accessibility rules in both themes."""
    page = notebook.page
    cells = [cell.format(folder=str(folder)) for cell in CELLS]
    notebook.open(notebook.server.write_notebook("notebooks/en/all.ipynb", *cells), "en")
    notebook.run_all()
    assert notebook.errors() == []

    page.get_by_role("radio", name="1, 1, 1").check()
    expect(page.locator(".lab-prediction [role=status]")).to_contain_text("Noted")
    expect(page.locator(".lab-bar.lab-write")).to_have_count(3)
    expect(page.locator(".lab-strip .lab-heat-torn")).to_have_count(8)

    files = page.locator(".lab-files")
    (folder / "claim.json").write_text('{"task": "issue-002"}\n')
    expect(files.locator("[data-path='claim.json'] .lab-badge")).to_have_text("new")
    expect(files.locator(".lab-content")).to_have_text('{"task": "issue-002"}')
    files.get_by_role("button", name="sample.jsonl").click()
    expect(files.locator(".lab-content").first).to_contain_text("todo_created")
    (folder / "claim.json").unlink()
    expect(files.locator("[data-path='claim.json']")).to_have_count(0)

    page.get_by_label("Choose one of").select_option("bad-line-three.jsonl")
    expect(page.locator(".lab-card").first).to_contain_text("stopped at line 3")

    page.get_by_role("button", name="Check my code").click()
    expect(page.get_by_text("required 5/5")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Try my tests").click()
    grid = page.locator(".lab-gate")
    expect(grid.get_by_role("row")).to_have_count(12, timeout=60_000)
    expect(grid.get_by_text("The first that got through")).to_have_count(1)
    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.violations() == []
        notebook.screenshot(f"widgets-{theme}")


def test_a_prediction_survives_a_kernel_restart(notebook: NotebookPage) -> None:
    """The answer is on disk: a new kernel, the same cell, and it is chosen again."""
    path = notebook.server.write_notebook(
        "notebooks/en/restart.ipynb",
        'from labkit.widgets import predict\npredict("Survives?", ["yes", "no"])',
    )
    notebook.open(path, "en")
    notebook.run_all()
    notebook.page.get_by_role("radio", name="yes").check()
    expect(notebook.page.locator(".lab-prediction [role=status]")).to_contain_text("Noted")

    notebook.restart_kernel()
    notebook.run_all()
    expect(notebook.page.get_by_role("radio", name="yes")).to_be_checked()
    assert notebook.errors() == []
