"""The control room in a real browser: what is pressed really runs, and what is shown is what the disk holds."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from playwright.sync_api import expect

from labkit.faults.round_sweep import fresh_copy
from tests.browser.lab import KIT, SCREENSHOTS
from tests.spine_lab import QUICK, Lab, template
from tests.test_control_room import ENDLESS, begun, slow

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


def test_everything_works_by_keyboard(notebook: NotebookPage, lab: Lab) -> None:
    """Without a mouse: tab to the button, press it, dial an operation, crash there, tamper, and choose a file."""
    lab.edit("loop.contract.json", verification=QUICK)
    lab.commit()
    room = open_room(notebook, lab.root)
    keyboard = notebook.page.keyboard
    expect(room.locator(".lab-dial-said")).to_contain_text("1 of 1", timeout=30_000)
    dial = room.get_by_role("slider", name="Crash at operation")

    room.get_by_role("button", name="Run with controlled interruption").focus()
    keyboard.press("Tab")
    keyboard.press("Tab")
    keyboard.press("Tab")
    expect(room.get_by_role("button", name="Reset (keep the old one)")).to_be_focused()
    keyboard.press("Tab")
    expect(dial).to_be_focused()
    for _ in range(39):
        keyboard.press("ArrowRight")
    expect(dial).to_have_attribute(
        "aria-valuetext", re.compile(r"^40 of \d+: rename tasks/inbox/issue-002.json")
    )
    tab_to(notebook, room.get_by_role("button", name="Crash here"))
    keyboard.press("Enter")
    expect(room.get_by_role("status").filter(has_text="died before operation 40")).to_be_visible()
    expect(lit(room)).to_have_text("claiming")
    assert lab.places() == ["inbox"]

    tab_to(notebook, room.get_by_role("combobox", name="What to change"))
    keyboard.type("delete the claim")
    tab_to(notebook, room.get_by_role("button", name="Tamper"))
    keyboard.press("Space")
    expect(room.locator(".lab-record-absent", has_text="claim")).to_be_visible()
    assert not lab.path("claim").exists()

    tab_to(notebook, room.get_by_role("button", name="facts.json"))
    keyboard.press("Enter")
    expect(room.locator(".lab-file")).to_contain_text('"recorded_at"')
    assert notebook.violations() == []


def tab_to(notebook: NotebookPage, wanted: Locator) -> None:
    """Press Tab until an element has the focus; it must come within one way round the room."""
    for _ in range(60):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        notebook.page.keyboard.press("Tab")
    raise AssertionError(f"{wanted}: not reached by Tab")


def test_a_missing_lab_is_made_from_the_page(notebook: NotebookPage, lab: Lab) -> None:
    """No lab yet: it is offered; pressed, it is there, and the offer is gone."""
    shutil.rmtree(lab.root)
    room = open_room(notebook, lab.root)
    make = room.get_by_role("button", name="Make the lab")
    expect(room.locator(".lab-heading").first).to_contain_text("Make the lab")
    assert notebook.violations() == []

    make.click()
    expect(room.locator(".lab-heading").first).to_contain_text("code: solution", timeout=30_000)
    expect(make).to_be_hidden()
    assert lab.places() == ["inbox"]


def test_corrupt_state_is_said_and_breaks_nothing(notebook: NotebookPage, lab: Lab) -> None:
    """Half, empty, NUL, huge, gone: each is named on the page, which goes on working."""
    lab.interrupt()
    room = open_room(notebook, lab.root)
    expect(lit(room)).to_have_text("claimed")
    state = lab.path("state")
    whole = state.read_bytes()
    sentence = room.locator(".lab-phase-sentence")

    for raw, said in (
        (whole[:60], "breaks off after 60"),
        (b"", "an empty file"),
        (b"\0" * 9, "9 NUL bytes"),
        (b" " * 400_000, "too large"),
    ):
        state.write_bytes(raw)
        expect(sentence).to_contain_text(said)
        expect(lit(room)).to_have_count(0)
        expect(room.locator(".lab-record-damaged", has_text="state")).to_be_visible()
    picture(room, "control-room-damaged")
    state.unlink()
    expect(sentence).to_contain_text("there is no state.json")
    state.write_bytes(whole)
    expect(lit(room)).to_have_text("claimed")
    assert notebook.errors() == []


def test_nothing_survives_a_restart_of_the_kernel(notebook: NotebookPage, lab: Lab) -> None:
    """A round is running and the kernel is restarted: its processes are gone, the disk says where it was."""
    room = open_room(notebook, slow(lab).root)
    press(notebook, "Run")
    family = begun(lab)
    assert any(ENDLESS in " ".join(one.cmdline()) for one in family)
    expect(lit(room)).to_have_text("agent_finished")
    expect(room.get_by_role("button", name="Stop")).to_be_visible()
    picture(room, "control-room-running")

    [session] = notebook.server.ask("api/sessions")
    notebook.server.ask(f"api/kernels/{session['kernel']['id']}/restart", "POST")
    assert psutil.wait_procs(family, timeout=30)[1] == []
    assert lab.record("state")["phase"] == "agent_finished"


# --- Figures for the benchmark ---

FIRST_LINE = """async ([button, log, runs]) => {
    const took = [];
    for (let at = 0; at < runs; at += 1) {
        const before = log.dataset.run;
        const line = new Promise(done => {
            const look = () => log.dataset.run !== before && log.children.length && (watcher.disconnect(), done(performance.now()));
            const watcher = new MutationObserver(look);
            watcher.observe(log, {attributes: true, childList: true});
        });
        const began = performance.now();
        button.click();
        took.push(await line - began);
        await new Promise(done => {
            const look = () => document.querySelector('.lab-card') ? done() : setTimeout(look, 20);
            look();
        });
        await new Promise(done => setTimeout(done, 200));
    }
    return took;
}"""


def test_time_to_the_first_line_is_measured(notebook: NotebookPage, lab: Lab) -> None:
    """From the click to the first line on the page; the figure is left for the benchmark to report."""
    (lab.root / "tasks/inbox/issue-002.json").rename(lab.root.parent / "issue-002.json")
    room = open_room(notebook, lab.root)
    expect(room.locator(".lab-dial-said")).not_to_contain_text("Counting", timeout=30_000)
    handles = [room.get_by_role("button", name="Run", exact=True), room.locator(".lab-transcript")]

    took = notebook.page.evaluate(FIRST_LINE, [*(one.element_handle() for one in handles), 12])
    expect(room.locator(".lab-card")).to_contain_text("inbox_empty")
    figures("first-line.json", took)


SHOWN = """name => new Promise(done => {
    const row = document.querySelector(`[data-path="${name}"]`);
    const looked = () => document.querySelector(`[data-path="${name}"] .lab-badge`);
    const watcher = new MutationObserver(() => looked() && (watcher.disconnect(), done(Date.now())));
    watcher.observe(row.closest('.lab-tree'), {subtree: true, childList: true, attributes: true});
})"""


def test_following_a_thousand_files_is_measured(notebook: NotebookPage, lab: Lab) -> None:
    """From the write of one file among a thousand, by another program, to its mark on the page."""
    names = [f".loop/tasks/many/{number:04d}.json" for number in range(1000)]
    (lab.root / ".loop/tasks/many").mkdir(parents=True)
    for name in names:
        (lab.root / name).write_text("{}")
    room = open_room(notebook, lab.root)
    expect(room.locator(f'[data-path="{names[-1]}"]')).to_be_attached()

    took = []
    for name in names[10::25]:
        notebook.page.evaluate(f"window.marked = ({SHOWN})({json.dumps(name)}); 0")
        began = time.time()
        (lab.root / name).write_text('{"changed": true}')
        took.append(notebook.page.evaluate("window.marked") - began * 1000)
    figures("thousand-files.json", took)


def figures(name: str, took: list[float]) -> None:
    """Leave the 95th percentile and the median, in milliseconds."""
    path = KIT / "out" / "browser" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    p95, median = statistics.quantiles(took, n=20)[-1], statistics.median(took)
    path.write_text(json.dumps({"p95_ms": round(p95, 1), "median_ms": round(median, 1), "runs": len(took)}))
