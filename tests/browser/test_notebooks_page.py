"""The notebooks that a learner opens, in both languages, run from top to bottom in a real JupyterLab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import NAMES

if TYPE_CHECKING:
    from tests.browser.lab import NotebookPage


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", ["00-start-here", "22-task-state"])
def test_a_lesson_is_walked_through(notebook: NotebookPage, language: str, name: str) -> None:
    """Run all, drag, append, read the changed bytes; edit the log from outside and see the view follow."""
    notebook.open(f"notebooks/{language}/{name}.ipynb", language)
    notebook.run_all()
    assert notebook.errors() == []

    log = notebook.server.kit / "workspace" / "torn-write" / "events.jsonl"
    view = notebook.page.locator(".lab-bytes").filter(has_text="torn-write/events.jsonl")
    wanted = notebook.drag(notebook.page.get_by_role("slider", name=NAMES[language]["cut"]), 0.4)
    expect(view).to_have_attribute("data-size", str(wanted))
    assert log.stat().st_size == wanted

    notebook.press(NAMES[language]["yours"])
    expect(view.locator(".lab-hex .lab-changed")).not_to_have_count(0)
    raw = log.read_bytes()
    assert raw.count(b"\n") == 8
    changed = "".join(view.locator(".lab-hex .lab-changed").all_inner_texts())
    assert raw.endswith(bytes.fromhex(changed))

    log.write_bytes(raw[:300])
    expect(view).to_have_attribute("data-size", "300")

    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.violations() == []
        view.scroll_into_view_if_needed()
        notebook.screenshot(f"{name}-{language}-{theme}")
