"""The crash explorer without a browser: a click starts a real exploration, and what it wrote is what the traits hold."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from labkit import crash_actions, widgets, words
from labkit.crash_actions import Explored, Settings, Switches
from labkit.widgets.crash_explorer import CrashExplorer

KIT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _english():
    with words.speaking("en"):
        yield


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of this test's own."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def explorer(test: Callable[[CrashExplorer], Awaitable[None]], *args: Any, **chosen: Any) -> None:
    """Run a test on the widget; close it afterwards."""

    async def run() -> None:
        widget = widgets.crash_explorer(*args, **chosen)
        try:
            await test(widget)
        finally:
            widget.close()

    asyncio.run(run())


async def under_way(widget: CrashExplorer) -> None:
    """Wait until the figures move."""
    moved = asyncio.Event()
    widget.meter.observe(lambda _change: figures(widget)["explored"] != "0" and moved.set(), "view")
    async with asyncio.timeout(30):
        await moved.wait()


def figures(widget: CrashExplorer) -> dict[str, str]:
    return {name: value for name, _, value, _ in widget.meter.view["figures"]}


# --- What is shown is what is on disk ---


def test_nothing_is_shown_before_something_was_explored() -> None:
    """The figures are zero, the list is empty, Explore can be pressed and Stop cannot."""

    async def test(widget: CrashExplorer) -> None:
        assert figures(widget) == {"explored": "0", "tried": "–", "broken": "0"}
        assert widget.meter.view["note"] == "Not explored yet in this form."
        assert widget.findings.view["items"] == []
        assert (widget.start_button.disabled, widget.stop_button.disabled) == (False, True)

    explorer(test)


def test_figures_are_those_of_the_file_whoever_wrote_it() -> None:
    """The widget follows the file of what is chosen; an exploration that never ended is said to be unfinished."""

    async def test(widget: CrashExplorer) -> None:
        so_far = Explored(explored=1234, tried=2000, possible=3 * 10**20, kinds=2)
        crash_actions.say(widget.settings, so_far)
        await under_way(widget)

        assert figures(widget) == {"explored": "1,234", "tried": "2,000 of ≈ 3.0 × 10²⁰", "broken": "2"}
        assert "did not come to its end" in widget.meter.view["note"]

    explorer(test)


def test_every_choice_has_its_own_result() -> None:
    """Switching something off shows what was found without it, if anything ever was; switching it on, the other again."""

    async def test(widget: CrashExplorer) -> None:
        crash_actions.say(widget.settings, Explored(ended=True, explored=7, verdict="kept", complete=True))
        widget.look()
        widget.switches["fsync"].value = False
        assert figures(widget)["explored"] == "0"
        assert "files not synced" in widget.meter.view["caption"]

        widget.switches["fsync"].value = True
        assert figures(widget)["explored"] == "7"

    explorer(test)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 2}', '{"format": 1, "found": [], "unseen": ["child"]}']
)
def test_a_file_that_is_not_what_was_written_counts_for_nothing(content: str) -> None:
    """Half a file, another format, another program's file: not explored, and nothing breaks."""

    async def test(widget: CrashExplorer) -> None:
        (crash_actions.folder() / f"{widget.settings.name}.json").write_text(content)
        widget.look()

        assert widget.meter.view["note"] == "Not explored yet in this form."

    explorer(test)


@pytest.mark.parametrize(
    ("explored", "said"),
    [
        (Explored(ended=True, verdict="kept", complete=True), "No state breaks a promise."),
        (Explored(ended=True, verdict="kept", kinds=1, states=4), "promised nothing here, so this is no bug"),
        (Explored(ended=True, verdict="broken", kinds=1, states=1), "1 state breaks a promise of its own."),
        (
            Explored(ended=True, verdict="not-seen", unseen=(("child", "git"),)),
            "another process does (git)",
        ),
        (
            Explored(ended=True, verdict="not-seen", stopped="interrupted", states=2),
            "2 states broke something",
        ),
        (Explored(ended=True, verdict="not-seen", stopped="lost"), "Recovery gave no answer again and again"),
        (Explored(ended=True, verdict="kept"), "only some were tried"),
    ],
)
def test_the_figures_are_explained(explored: Explored, said: str) -> None:
    """Kept, lost without a promise, broken, not seen, sampled: each in a sentence."""

    async def test(widget: CrashExplorer) -> None:
        crash_actions.say(widget.settings, explored)
        widget.look()

        assert said in widget.meter.view["note"]

    explorer(test)


# --- A click, and what comes of it ---


def test_exploring_finds_counterexamples_that_can_be_opened(state: Path) -> None:
    """The naive log breaks under a kill; each find is a file, and opening one draws its steps and bytes."""

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        assert (widget.start_button.disabled, widget.stop_button.disabled) == (True, False)
        await widget.settled()

        kept = {path.stem for path in (state / "crash").glob("*.json")}
        items = widget.findings.view["items"]
        assert {item["id"] for item in items} == kept != set()
        assert int(figures(widget)["broken"]) == len(items)
        assert "kinds of break" in widget.status.text or "kind of break" in widget.status.text

        widget.findings.chosen = items[0]["id"]
        steps = widget.timeline.steps.view
        assert steps["lines"][0][1].startswith(f"broken promise: {items[0]['broken'][0]}")
        assert steps["lines"][-1][1] == f"In a terminal: statelab crash replay {items[0]['id']}"
        assert "session.jsonl" in steps["rows"][0][1]
        assert widget.timeline.bytes[0].view["size"] > 0

        widget.model.value = "ordered"
        assert widget.findings.chosen == ""
        assert widget.timeline.steps.view == {}

    explorer(test, "naive", "kill", 2)


def test_switching_fsync_off_changes_what_is_found() -> None:
    """The engineering log at level fsync loses nothing in the weakest model; without its syncs it does."""

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        await widget.settled()
        assert figures(widget)["broken"] == "0"
        assert widget.findings.view["sentence"] == "No counterexample."

        widget.switches["fsync"].value = False
        widget.start()
        await widget.settled()
        assert int(figures(widget)["broken"]) > 0

    explorer(test, "durable-fsync", "weak", 1, 100)


def test_a_second_start_is_refused_in_words() -> None:
    """One exploration at a time; the one that runs goes on."""

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        assert widget.start() is None
        assert widget.status.text.startswith("Still exploring: naive log")
        await widget.settled()
        assert "explored" in widget.status.text

    explorer(test, "naive", "kill", 1)


def test_stop_ends_with_what_was_found() -> None:
    """A long exploration that is stopped says how far it came, and that it was not all."""

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        await under_way(widget)
        widget.stop()
        await widget.settled()

        said = crash_actions.explored(widget.settings)
        assert said is not None
        assert (said.ended, said.complete, said.stopped) == (True, False, "interrupted")
        assert not crash_actions.is_asked_to_end(widget.settings)

    explorer(test, "naive", "weak", 10, 20_000)


def test_stop_again_ends_at_once() -> None:
    """Whoever does not want to wait ends the process; the last figures stay, as those of an unfinished exploration."""

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        await under_way(widget)
        widget.stop()
        widget.stop()
        await widget.settled()

        assert (widget.start_button.disabled, widget.stop_button.disabled) == (False, True)
        assert psutil.Process().children() == []

    explorer(test, "naive", "weak", 10, 20_000)


def test_closing_the_widget_ends_its_exploration() -> None:
    """A cell that is run again leaves nothing behind that computes."""

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        await under_way(widget)
        below = psutil.Process().children(recursive=True)
        assert below

        widget.close()
        _, alive = await asyncio.to_thread(psutil.wait_procs, below, 20)
        assert alive == []

    explorer(test, "naive", "weak", 10, 20_000)


def test_a_kernel_that_is_killed_takes_its_exploration_along(tmp_path: Path) -> None:
    """No orphan goes on computing, however the kernel ended."""
    program = textwrap.dedent(
        """
        import asyncio
        from labkit import widgets

        async def run():
            widget = widgets.crash_explorer("naive", "weak", 10, 20_000)
            widget.start()
            widget.meter.observe(lambda _change: print(widget.meter.view["figures"][0][2], flush=True), "view")
            await widget.settled()

        asyncio.run(run())
        """
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=KIT, stdout=subprocess.PIPE, text=True) as kernel:
        assert kernel.stdout is not None
        assert next(line for line in kernel.stdout if line != "0\n")
        below = psutil.Process(kernel.pid).children(recursive=True)
        assert len(below) >= 2
        kernel.kill()

    _, alive = psutil.wait_procs(below, timeout=20)
    assert alive == []


# --- What cannot be done ---


def test_what_is_not_there_is_refused() -> None:
    """A store, a model, a number of events and a switch that do not exist are errors that list what does."""
    with pytest.raises(ValueError, match="no 'nothing'; choose one of naive"):
        Settings("nothing", "kill")
    with pytest.raises(ValueError, match="no 'total'; choose one of kill, ordered, weak"):
        Settings("naive", "total")
    with pytest.raises(ValueError, match="0 events; choose from 1 to 40"):
        Settings("naive", "kill", 0)
    with pytest.raises(ValueError, match="0 states; choose from 1 to 20000"):
        Settings("naive", "kill", 1, 0)
    with pytest.raises(TypeError):
        Switches(everything=False)  # type: ignore[call-arg]


def test_an_exploration_that_cannot_begin_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that the learner has not written yet is named as such, and the widget can be used again."""
    monkeypatch.setenv("LAB_TARGET", "starter")

    async def test(widget: CrashExplorer) -> None:
        widget.start()
        await widget.settled()

        assert "not implemented yet" in widget.status.text
        assert not widget.start_button.disabled

    explorer(test, "starter", "kill", 1)


def test_a_counterexample_that_was_removed_is_not_listed(state: Path) -> None:
    """What is on the screen is in a file: without the file there is nothing to open."""

    async def test(widget: CrashExplorer) -> None:
        said = Explored(ended=True, kinds=1, found=("naive-kill-00000000",), verdict="broken")
        crash_actions.say(widget.settings, said)
        widget.look()

        assert widget.findings.view["items"] == []
        assert "naive-kill-00000000: no such counterexample" in widget.status.text
        assert (
            json.loads((state / "crash" / "explored" / f"{widget.settings.name}.json").read_text())["kinds"]
            == 1
        )

    explorer(test, "naive", "kill", 1)
