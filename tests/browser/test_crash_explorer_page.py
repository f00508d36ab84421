"""The crash explorer in a real browser: what it shows is what a real exploration wrote."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.browser.lab import NotebookPage

NAMES = {
    "en": {"explore": "Explore", "stop": "Stop", "fsync": "sync files (fsync)", "done": "explored"},
    "zh": {"explore": "探索", "stop": "停止", "fsync": "同步文件（fsync）", "done": "看过"},
}


@pytest.fixture(autouse=True)
def _nothing_explored(notebook: NotebookPage) -> None:
    """No test finds what another one explored."""
    shutil.rmtree(notebook.server.state / "crash", ignore_errors=True)


def open_explorer(notebook: NotebookPage, chosen: str, language: str = "en") -> None:
    """Open a notebook that holds the explorer, and run it."""
    cell = f"from labkit.widgets import crash_explorer\nwidget = crash_explorer({chosen})\nwidget"
    notebook.open(notebook.server.write_notebook(f"notebooks/{language}/crash.ipynb", cell), language)
    notebook.run_all()


def figure(notebook: NotebookPage, name: str) -> Locator:
    """Return one of the figures: explored, tried or broken."""
    return notebook.page.locator(f"[data-figure={name}] dd")


def explore(notebook: NotebookPage, language: str = "en") -> None:
    """Press Explore and wait until it has ended: it can be pressed again."""
    button = notebook.page.get_by_role("button", name=NAMES[language]["explore"], exact=True)
    button.click()
    expect(button).to_be_disabled()
    expect(button).to_be_enabled(timeout=60_000)
    expect(notebook.page.get_by_role("status")).to_contain_text(NAMES[language]["done"])


def kept(state: Path) -> dict[str, list[str]]:
    """Return the counterexamples on disk: id -> the promises that it breaks."""
    return {path.stem: json.loads(path.read_bytes())["broken"] for path in (state / "crash").glob("*.json")}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_without_fsync_something_is_lost(notebook: NotebookPage, language: str) -> None:
    """With its syncs nothing breaks; switched off, the count changes, and each find opens as steps and bytes."""
    page, words = notebook.page, NAMES[language]
    open_explorer(notebook, "'durable-fsync', 'weak', 1, 120", language)
    place = page.locator(".lab-found").bounding_box()
    explore(notebook, language)
    assert page.locator(".lab-found").bounding_box() == place
    expect(figure(notebook, "broken")).to_have_text("0")
    expect(page.locator(".lab-findings button")).to_have_count(0)

    page.get_by_role("checkbox", name=words["fsync"]).uncheck()
    expect(figure(notebook, "explored")).to_have_text("0")
    explore(notebook, language)
    expect(figure(notebook, "broken")).not_to_have_text("0")
    broken = kept(notebook.server.state)
    button = page.locator(".lab-findings button").first
    name = button.inner_text()
    button.click()
    expect(page.locator(".lab-crash .lab-is-bad").first).to_contain_text(broken[name][0])
    expect(page.locator(".lab-crash-here")).to_be_visible()
    expect(
        page.locator(".lab-fate-missing, .lab-fate-shortened, .lab-fate-zero-filled").first
    ).to_be_visible()
    expect(page.locator(".lab-crash svg[role=img]")).to_have_count(1)
    for theme in ("light", "dark"):
        notebook.theme(theme)
        notebook.screenshot(f"crash-explorer-{language}-{theme}")
        assert notebook.violations() == []

    page.get_by_role("checkbox", name=words["fsync"]).check()
    expect(figure(notebook, "broken")).to_have_text("0")
    assert notebook.errors() == []


def test_stop_ends_an_exploration_with_what_it_found(notebook: NotebookPage) -> None:
    """Stop is for the mouse and the hasty: figures stay, Explore can be pressed again, and the page says it was not all."""
    page = notebook.page
    open_explorer(notebook, "'naive', 'weak', 10, 20_000")
    notebook.press("Explore")
    expect(page.get_by_role("button", name="Explore", exact=True)).to_be_disabled()
    expect(figure(notebook, "explored")).not_to_have_text("0")

    notebook.press("Stop")
    expect(page.get_by_role("button", name="Explore", exact=True)).to_be_enabled()
    expect(page.locator(".lab-meter-note")).to_contain_text("Stopped on the way")
    explored = int(figure(notebook, "explored").inner_text().replace(",", ""))
    assert 0 < explored < 20_000
    expect(page.locator(".lab-findings button")).not_to_have_count(0)


def test_everything_is_reached_by_keyboard(notebook: NotebookPage) -> None:
    """Tab goes from store to switches to Explore; Space toggles, Enter explores, and Enter opens what was found."""
    page = notebook.page
    open_explorer(notebook, "'naive', 'kill', 2, 200")
    page.get_by_role("combobox", name="Who writes").focus()
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.closest('label, div')?.textContent.trim() || ''")
        )
        if reached[-1] == "sync files (fsync)":
            page.keyboard.press("Space")
    assert reached[2:6] == [
        reached[2],
        "sync files (fsync)",
        "sync folders",
        "replace as a whole (temporary file, rename)",
    ]
    expect(page.get_by_role("checkbox", name="sync files (fsync)")).not_to_be_checked()
    expect(page.locator(".lab-meter .lab-caption")).to_contain_text("files not synced")

    page.get_by_role("button", name="Explore", exact=True).focus()
    page.keyboard.press("Enter")
    expect(figure(notebook, "broken")).not_to_have_text("0")
    page.locator(".lab-findings button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".lab-crash-here")).to_be_visible()
    expect(page.locator(".lab-findings button").first).to_be_focused()
    expect(page.locator(".lab-findings button").first).to_have_attribute("aria-current", "true")
