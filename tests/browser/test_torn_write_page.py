"""The torn-write widget in a real browser: every claim is checked against the file on disk."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import KIT, NAMES

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.browser.lab import NotebookPage

CELL = """\
from labkit.widgets import torn_write
widget = torn_write({folder!r})
widget"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the widget of this test works."""
    return tmp_path / "torn"


def open_widget(notebook: NotebookPage, folder: Path, language: str = "en") -> Locator:
    """Open a notebook that holds the widget, run it, and return its byte view."""
    path = notebook.server.write_notebook(f"notebooks/{language}/torn.ipynb", CELL.format(folder=str(folder)))
    notebook.open(path, language)
    notebook.run_all()
    view = notebook.page.locator(".lab-bytes")
    expect(view).to_have_attribute("data-size", "844")
    return view


def slider(notebook: NotebookPage, language: str = "en") -> Locator:
    """Return the slider by the name a screen reader gives it."""
    return notebook.page.get_by_role("slider", name=NAMES[language]["cut"])


@pytest.mark.parametrize("language", ["zh", "en"])
def test_drag_append_and_read_the_bytes(notebook: NotebookPage, folder: Path, language: str) -> None:
    """Dragging cuts the file, appending writes behind the good records; both views show the bytes on disk."""
    view = open_widget(notebook, folder, language)
    wanted = notebook.drag(slider(notebook, language), 0.5)
    expect(view).to_have_attribute("data-size", str(wanted))
    assert (folder / "events.jsonl").stat().st_size == wanted
    expect(view.locator(".lab-hex .lab-torn")).not_to_have_count(0)

    notebook.press(NAMES[language]["yours"])
    expect(view.locator(".lab-hex .lab-changed")).not_to_have_count(0)
    raw = (folder / "events.jsonl").read_bytes()
    expect(view).to_have_attribute("data-size", str(len(raw)))
    assert raw.count(b"\n") == 8
    shown = "".join(view.locator(".lab-hex").all_inner_texts())
    assert raw.endswith(bytes.fromhex(shown)[-60:])

    for theme in ("light", "dark"):
        notebook.theme(theme)
        notebook.screenshot(f"torn-write-{language}-{theme}")
        assert notebook.violations() == []


def test_slider_works_by_keyboard(notebook: NotebookPage, folder: Path) -> None:
    """Arrow keys move the cut by one byte, Home to the start of the last record."""
    view = open_widget(notebook, folder)
    handle = slider(notebook)
    handle.focus()

    handle.press("ArrowLeft")
    expect(view).to_have_attribute("data-size", "843")
    handle.press("Home")
    expect(view).to_have_attribute("data-size", "709")
    assert (folder / "events.jsonl").stat().st_size == 709


def test_edit_from_outside_is_followed(notebook: NotebookPage, folder: Path) -> None:
    """A change made by another program shows by itself, and the verdict with it."""
    view = open_widget(notebook, folder)

    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'{"sequence":9')
    expect(view).to_have_attribute("data-size", "857")
    expect(notebook.page.locator(".lab-legend [data-mark=torn]")).to_contain_text("13 bytes torn")
    expect(notebook.page.get_by_role("status").first).to_contain_text("changed elsewhere")


def test_naive_append_glues(notebook: NotebookPage, folder: Path) -> None:
    """After the naive append the torn bytes and the new record are one damaged line, and both readers stop there."""
    view = open_widget(notebook, folder)
    slider(notebook).fill("800")
    expect(view).to_have_attribute("data-size", "800")

    notebook.press(NAMES["en"]["naive"])
    expect(notebook.page.locator(".lab-card").first).to_contain_text("stopped at line 8")
    expect(view.locator(".lab-hex .lab-damaged")).not_to_have_count(0)


def test_folder_may_vanish_and_come_back(notebook: NotebookPage, folder: Path) -> None:
    """A deleted folder is said to be gone, Restore makes the sample again; nothing breaks on the way."""
    view = open_widget(notebook, folder)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    expect(notebook.page.locator(".lab-card").first).to_contain_text("No file")

    notebook.press("Restore")
    expect(view).to_have_attribute("data-size", "844")
    assert notebook.errors() == []


REDRAWS = """async ([slider, view, positions]) => {
    const redrawn = wanted => new Promise(done => {
        const look = () => view.dataset.size === wanted && (watcher.disconnect(), done(performance.now()));
        const watcher = new MutationObserver(look);
        watcher.observe(view, {attributes: true});
    });
    const took = [];
    for (const position of positions) {
        slider.value = position;
        const drawn = redrawn(String(position));
        const began = performance.now();
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        took.push(await drawn - began);
        await new Promise(done => setTimeout(done, 20));
    }
    return took;
}"""

BIG = """\
import json
from pathlib import Path
from labkit.widgets import torn_write
folder = Path({folder!r})
widget = torn_write(folder)
await widget.settled()
lines = [
    {{"type": "todo_created", "data": {{"todo_id": "todo-1", "title": "measure"}}}},
    {{"type": "todo_started", "data": {{"todo_id": "todo-1", "expected_from": "pending"}}}},
]
while len(lines) < 5300:
    call = {{"todo_id": "todo-1", "call_id": f"call-{{len(lines)}}", "note": "水" * 40}}
    lines += [{{"type": "tool_called", "data": call}}, {{"type": "tool_result", "data": call}}]
lines = [
    json.dumps({{"sequence": at, **line}}, ensure_ascii=False).encode() + b"\\n"
    for at, line in enumerate(lines, start=1)
]
(folder / "original.jsonl").write_bytes(b"".join(lines))
widget.restore()
widget.scope.value = "everything"
await widget.settled()
widget"""


def test_redraw_of_a_large_log_is_measured(notebook: NotebookPage, folder: Path) -> None:
    """The time from the slider's step to the redrawn bytes of a 1 MB file is left for the benchmark to report."""
    path = notebook.server.write_notebook("notebooks/en/big.ipynb", BIG.format(folder=str(folder)))
    notebook.open(path, "en")
    notebook.run_all()
    size = (folder / "original.jsonl").stat().st_size
    view = notebook.page.locator(".lab-bytes")
    expect(view).to_have_attribute("data-size", str(size))
    positions = [size * step // 97 for step in range(96, 16, -1)]

    handles = [slider(notebook).element_handle(), view.element_handle(), positions]
    took = notebook.page.evaluate(REDRAWS, handles)
    assert (folder / "events.jsonl").stat().st_size == positions[-1]
    p95 = statistics.quantiles(took, n=20)[-1]
    figures = KIT / "out" / "browser" / "slider-redraw.json"
    figures.parent.mkdir(parents=True, exist_ok=True)
    figures.write_text(
        json.dumps({"p95_ms": round(p95, 1), "bytes": size, "median_ms": round(statistics.median(took), 1)})
    )


def test_it_works_in_notebook_7(notebook: NotebookPage, folder: Path) -> None:
    """No JupyterLab-only part is used: cut, append and follow do the same in Notebook 7."""
    path = notebook.server.write_notebook("notebooks/en/seven.ipynb", CELL.format(folder=str(folder)))
    notebook.open_in_notebook_7(path)
    notebook.page.locator(".jp-CodeCell .cm-content").first.click()
    notebook.page.keyboard.press("Shift+Enter")
    view = notebook.page.locator(".lab-bytes")
    expect(view).to_have_attribute("data-size", "844", timeout=30_000)

    wanted = notebook.drag(slider(notebook), 0.5)
    expect(view).to_have_attribute("data-size", str(wanted))
    notebook.press(NAMES["en"]["naive"])
    expect(notebook.page.locator(".lab-card").first).to_contain_text("stopped at line 8")
    (folder / "events.jsonl").write_bytes(b"")
    expect(view).to_have_attribute("data-size", "0")
    assert notebook.violations() == []
