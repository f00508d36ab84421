"""The instructor's notebook, run from top to bottom in a real JupyterLab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from tests.browser.lab import NotebookPage


def test_an_instructor_takes_a_forger_apart(notebook: NotebookPage) -> None:
    """The class is graded, its matrix and the two verdicts of the forger stand there, readable in both themes."""
    page = notebook.page
    page.set_default_timeout(60_000)
    notebook.open("notebooks/zh/instructor.ipynb", "zh")
    notebook.run_all()
    expect(page.locator(".inst-matrix")).to_have_count(2, timeout=120_000)
    assert notebook.errors() == []
    expect(page.locator(".inst-matrix").first.locator("tbody th")).to_have_count(5)
    expect(page.get_by_role("cell", name="干扰评分", exact=True).first).to_be_visible()

    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.violations() == []
        page.locator(".inst-matrix").first.scroll_into_view_if_needed()
        notebook.screenshot(f"instructor-zh-{theme}")
