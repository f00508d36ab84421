"""The control room without a browser: each action really runs in a lab, and what is shown is what the disk holds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from labkit import lab_actions, lab_folder, widgets, words, workspace
from labkit.faults.round_sweep import fresh_copy
from labkit.widgets.control_room import ControlRoom
from tests.spine_lab import Lab
from tests.test_widgets import shown

pytest_plugins = ["tests.spine_fixtures"]

# Says into a pipe beside the lab that it has begun, then never ends; its argument tells it from every other sleep.
ENDLESS = "sleep 86399"
BEGUN_THEN_ENDLESS = ["sh", "-c", f"echo > ../begun; exec {ENDLESS}"]
BLOCKS = {
    "task": "task_changed",
    "task-name": "file_name_changed",
    "contract": "contract_changed",
    "head": "head_moved",
    "tree": "dirty_tree",
    "phase-claiming": "phase_claiming",
    "phase-agent_running": "phase_agent_running",
    "phase-agent_finished": "phase_agent_finished",
    "delete-claim": "claim_missing",
    "delete-facts": "facts_missing",
    "delete-state": "state_missing",
    "half-state": "state_invalid",
    "event-type": "events_disagree",
    "back-to-inbox": "claim",
}
PASSES = ("task-spacing", "event-time")

Test = Callable[[ControlRoom], Awaitable[None]]


@pytest.fixture(autouse=True)
def _english():
    words.use("en")


def within(lab: Path, test: Test, code: str | None = "solution") -> None:
    """Run a test in a control room of a lab, and close it afterwards."""

    async def go() -> None:
        room = widgets.control_room(lab, code)
        try:
            await room.settled()
            await test(room)
        finally:
            room.close()

    asyncio.run(go())


def lit(room: ControlRoom) -> str:
    return str(room.board.diagram.view["lit"])


def events(room: ControlRoom) -> list[tuple[str, bool]]:
    return [(row["type"], row["is_new"]) for row in room.board.timeline.view["rows"]]


def card(room: ControlRoom) -> dict[str, Any]:
    [only] = room.console.answer.view["cards"]
    return dict(only)


def slow(lab: Lab) -> Lab:
    """Let verification never end; `begun` waits until it has begun."""
    os.mkfifo(lab.root.parent / "begun")
    lab.edit(
        "loop.contract.json", verification=[{"name": "slow", "argv": BEGUN_THEN_ENDLESS, "min_tests": 0}]
    )
    lab.commit()
    return lab


def begun(lab: Lab) -> list[psutil.Process]:
    """Wait until verification has begun, and return what works in the lab then."""
    (lab.root.parent / "begun").read_text()
    return at_work(lab)


def at_work(lab: Lab) -> list[psutil.Process]:
    """Return the processes whose folder is the lab."""
    return [one for one in psutil.process_iter(["cwd"]) if one.info["cwd"] == str(lab.root)]


# --- Running ---


def test_interrupt_then_resume(lab: Lab) -> None:
    """The lesson's two commands, by the buttons' own way: exit codes, JSON, phases, and what is new each time."""

    async def test(room: ControlRoom) -> None:
        first = await room.interrupt()
        assert (first.exit_code, first.json["checkpoint"]) == (75, ".loop/tasks/issue-002/state.json")
        assert lit(room) == "claimed"
        assert (card(room)["who"], card(room)["headline"]) == (
            "exit code 75",
            "interrupted / controlled_after_claim",
        )
        assert room.console.status.text.startswith("Run with controlled interruption: exit code 75, after ")

        second = await room.resume()
        assert second.said == ("completed", "verified", None)
        assert second.json["resumed"] is True
        assert lit(room) == "finished"
        assert [new for _, new in events(room)] == [False] * 3 + [True] * 5
        assert (await room.run()).said == ("idle", "inbox_empty", None)

    within(lab.root, test)


def test_the_printed_lines_are_shown_as_they_are(lab: Lab) -> None:
    """First the command as a person types it, then the object that the command printed, line by line."""

    async def test(room: ControlRoom) -> None:
        answer = await room.interrupt()
        lines = room.console.transcript.view["lines"]
        assert lines[0] == ["err", "$ python tools/run_once.py --simulate-interruption-after-claim"]
        assert json.loads("\n".join(text for stream, text in lines if stream == "out")) == answer.json

    within(lab.root, test)


def test_a_button_does_what_its_awaitable_does(lab: Lab) -> None:
    """Clicked without a browser, and awaited by `settled`, as a notebook under test does it."""

    async def test(room: ControlRoom) -> None:
        buttons = {
            one.description: one
            for one in walk(room)
            if hasattr(one, "description") and hasattr(one, "click")
        }
        buttons["Run with controlled interruption"].click()
        await room.settled()
        assert (lit(room), lab.record("state")["phase"]) == ("claimed", "claimed")

    within(lab.root, test)


def walk(widget: Any) -> list[Any]:
    return [widget, *(below for child in getattr(widget, "children", ()) for below in walk(child))]


def test_a_second_click_is_refused_in_words_and_does_nothing(lab: Lab) -> None:
    """While one runs, another is not queued, not started, and not silently lost."""

    async def test(room: ControlRoom) -> None:
        first = room.interrupt()
        second = await room.reset()
        assert "“Run with controlled interruption” has not ended" in second.refused
        assert room.console.status.text == second.refused
        assert (await first).exit_code == 75
        assert lab.types().count("claim_started") == 1

    within(lab.root, test)


def test_stop_ends_the_whole_tree_and_the_next_run_says_what_is_known(lab: Lab) -> None:
    """Stopped during verification: no process is left, the phase stays, nothing is replayed."""

    async def test(room: ControlRoom) -> None:
        assert room.console.stop_button.layout.display == "none"
        running = asyncio.ensure_future(room.run())
        working = await asyncio.to_thread(begun, lab)
        assert any(ENDLESS in " ".join(one.cmdline()) for one in working)
        assert room.console.stop_button.layout.display is None
        room.stop()
        assert (await running).signal == signal.SIGKILL
        assert at_work(lab) == []
        assert "stopped as you asked" in room.console.status.text
        assert (await room.resume()).said == ("blocked", "unsafe_resume", "phase_agent_finished")

    within(slow(lab).root, test)


def test_stop_pressed_at_once_is_not_lost(lab: Lab) -> None:
    """Between the click and the process there is a moment; a stop in it counts."""

    async def test(room: ControlRoom) -> None:
        running = room.run()
        room.stop()
        assert (await running).signal == signal.SIGKILL
        assert "stopped as you asked" in room.console.status.text
        assert lab.places() == ["inbox"]

    within(lab.root, test)


def test_closing_the_room_ends_what_it_started(lab: Lab) -> None:
    """A widget that goes takes its command along."""

    async def test(room: ControlRoom) -> None:
        running = asyncio.ensure_future(room.run())
        working = await asyncio.to_thread(begun, lab)
        room.close()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert psutil.wait_procs(working, timeout=30)[1] == []

    within(slow(lab).root, test)


def test_the_kernel_stays_free_while_a_command_runs(lab: Lab) -> None:
    """Other work goes on between the beginning and the end of a round."""

    async def test(room: ControlRoom) -> None:
        running, turns = asyncio.ensure_future(room.interrupt()), 0
        while not running.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 100

    within(lab.root, test)


# --- Crashing ---


def test_crash_at_every_kind_of_place(lab: Lab) -> None:
    """Before the state is replaced there is none; halfway through an event its tail is torn; both are said by the board."""

    async def test(room: ControlRoom) -> None:
        operations = await room.operations()
        assert lab.places() == ["inbox"]
        assert not lab.path("claim").exists()
        state, event = (
            next(number for number, one in enumerate(operations, start=1) if what(one))
            for what in (
                lambda one: str(one["to"]).endswith("/state.json"),
                lambda one: one["op"] == "write" and one["path"].endswith("events.jsonl"),
            )
        )
        begin = fresh_copy(lab.root, lab.root.with_name("begin"))

        died = await room.crash_at(state)
        assert (died.signal, died.exit_code, died.json) == (signal.SIGKILL, None, {})
        assert died.struck is not None
        assert died.struck["op"] == "replace"
        assert f"died before operation {state}: replace" in room.console.status.text
        assert "there is no state.json" in room.board.diagram.view["sentence"]
        assert (await room.run()).said == ("blocked", "claim_exists", "claim")

        fresh_copy(begin, lab.root)
        await room.crash_at(event, halfway=True)
        assert f"in the middle of operation {event}" in room.console.status.text
        [note] = room.board.timeline.view["notes"]
        assert "cut short" in note["text"]

    within(lab.root, test)


def test_an_operation_that_never_comes_lets_the_round_end(lab: Lab) -> None:
    """A number beyond the round kills nothing, and that is said."""

    async def test(room: ControlRoom) -> None:
        answer = await room.crash_at(999)
        assert (answer.decision, answer.struck) == ("completed", None)
        assert "never came to operation 999" in room.console.status.text
        with pytest.raises(ValueError, match="counted from 1"):
            room.crash_at(0)

    within(lab.root, test)


def test_the_dial_counts_when_it_is_seen(lab: Lab) -> None:
    """Nobody looks: no rehearsal. A page shows it: every operation of the next round has its words, and its phase."""

    async def test(room: ControlRoom) -> None:
        assert room.dial.high == 0
        room.dial.seen = True
        await room.settled()
        view = room.dial.view
        assert room.dial.high == len(view["operations"]) > 90
        assert [zone["text"] for zone in view["zones"]] == [
            "·", "claiming", "claimed", "agent_running", "agent_finished", "finished",
        ]  # fmt: skip
        await room.interrupt()
        await room.settled()
        assert room.dial.view["zones"][0]["text"] == "claimed"

    within(lab.root, test)


def test_a_rehearsal_leaves_lab_and_temporary_folder_as_they_were(
    lab: Lab, tmp_path: Path, monkeypatch
) -> None:
    """It runs on a copy; the copy goes with it, also when an action comes in between."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))

    async def test(room: ControlRoom) -> None:
        before = lab.snapshot()
        await room.operations()
        assert lab.snapshot() == before
        room.dial.seen = True
        await asyncio.sleep(0)
        assert room.dial.view["sentence"].startswith("Counting")
        acting = room.interrupt()
        await shown(room.dial, "view", lambda view: view["sentence"] == "")
        await acting
        await room.settled()

    within(lab.root, test)
    assert list((tmp_path / "tmp").iterdir()) == []


# --- Tampering ---


def test_every_kind_has_a_name_and_a_place_in_the_list() -> None:
    """What can be tampered with, what the list offers, and what this file expects are the same."""
    assert set(lab_actions.TAMPERINGS) == set(ControlRoom.kinds) == {*BLOCKS, *PASSES}
    assert all(f"tamper.{kind}" in words.catalogue() for kind in ControlRoom.kinds)
    assert all(f"tamper.group-{name}" in words.catalogue() for name, _ in ControlRoom.GROUPS)


@pytest.mark.parametrize("kind", BLOCKS)
def test_tampering_is_refused_by_the_runner_and_can_be_undone(claimed: Lab, kind: str) -> None:
    """Each change has its own cause, nothing is started, and put back, the lab is as it was to the byte."""
    before, head = claimed.snapshot(), claimed.git("rev-parse", "HEAD")

    async def test(room: ControlRoom) -> None:
        touched = await room.tamper(kind)
        assert touched.paths
        answer = await room.resume()
        assert (answer.exit_code, answer.cause) == (3, BLOCKS[kind])
        await room.put_back()
        assert (claimed.snapshot(), claimed.git("rev-parse", "HEAD")) == (before, head)
        assert (await room.resume()).decision == "completed"

    within(claimed.root, test)


@pytest.mark.parametrize("kind", PASSES)
def test_some_tampering_is_not_seen(claimed: Lab, kind: str) -> None:
    """Reformatting is no change; a log that its owner can edit is no audit."""

    async def test(room: ControlRoom) -> None:
        await room.tamper(kind)
        assert (await room.resume()).decision == "completed"

    within(claimed.root, test)


def test_what_has_changed_since_is_not_put_back(claimed: Lab) -> None:
    """Undoing would put a second task beside the one that moved on; so it is refused, and nothing is touched."""

    async def test(room: ControlRoom) -> None:
        await room.tamper("task-spacing")
        await room.resume()
        before = claimed.snapshot()
        answer = await room.put_back()
        assert "issue-002.json: has changed since; reset the lab instead" in answer.refused
        assert claimed.snapshot() == before

    within(claimed.root, test)


def test_tampering_with_what_is_not_there_says_so(lab: Lab) -> None:
    """No state yet: a sentence names it, and the lab stays as it is."""
    before = lab.snapshot()

    async def test(room: ControlRoom) -> None:
        answer = await room.tamper("phase-claiming")
        assert ".loop/tasks/issue-002/state.json; interrupt a round first" in answer.refused
        assert (await room.put_back()).refused == "There is nothing to put back."
        with pytest.raises(LookupError, match="choose one of task, task-name"):
            room.tamper("everything")

    within(lab.root, test)
    assert lab.snapshot() == before


# --- The lab itself ---


def test_a_missing_lab_is_offered_and_made(tmp_path: Path) -> None:
    """There is no folder: that is said, a button appears, and afterwards the code is named."""

    async def test(room: ControlRoom) -> None:
        assert "Press “Make the lab”" in room.notice.text
        assert room.make_button.layout.display is None
        assert (await room.interrupt()).refused == room.notice.text == room.console.status.text
        made = await room.make()
        assert made.exit_code == 0
        assert room.notice.text.endswith("code: solution (the reference)")
        assert room.make_button.layout.display == "none"
        assert (await room.make()).json["error"] == "exists"

    within(tmp_path / "lab", test)


def test_reset_keeps_the_old_lab_and_its_code(tmp_path: Path) -> None:
    """A fresh lab of the same code; the old one stands beside it under its time, byte for byte."""
    lab = Lab(tmp_path / "lab")
    lab_folder.new(lab.root, "starter", ready=True)
    (lab.root / "mine.txt").write_text("kept")

    async def test(room: ControlRoom) -> None:
        answer = await room.reset()
        assert (Path(answer.json["kept"]["lab"]) / "mine.txt").read_text() == "kept"
        assert not (lab.root / "mine.txt").exists()
        assert "code: starter" in room.notice.text

    within(lab.root, test, code=None)


def test_the_starter_answers_that_it_is_not_written_yet(tmp_path: Path) -> None:
    """An untouched starter is no error of the room's: the answer says which step is missing."""
    lab_folder.new(tmp_path / "lab", "starter", ready=True)

    async def test(room: ControlRoom) -> None:
        answer = await room.interrupt()
        assert answer.reason == "not_implemented"
        assert answer.message in card(room)["details"]

    within(tmp_path / "lab", test, code=None)


def test_an_edited_lab_is_named_so(lab: Lab) -> None:
    """One changed letter, and it is no longer the reference that runs."""
    spine = lab.root / "issue_garden" / "state_store.py"
    spine.write_text(spine.read_text("utf-8") + "# mine\n", "utf-8")

    async def test(room: ControlRoom) -> None:
        assert room.notice.text.endswith("code: edited (made from solution)")

    within(lab.root, test)


def test_the_overlay_is_laid_down_by_a_button(tmp_path: Path) -> None:
    """A lab as the lesson finds it lacks the spine; the button copies what `cp -R` would, and commits nothing."""
    lab = Lab(tmp_path / "lab")
    lab_folder.new(lab.root, "solution")

    async def test(room: ControlRoom) -> None:
        assert "does not hold lesson 04's files yet" in room.notice.text
        assert room.overlay_button.layout.display is None
        await room.lay_overlay()
        assert room.overlay_button.layout.display == "none"
        assert "?? issue_garden/state_store.py" in lab.git("status", "--short")

    within(lab.root, test)


def test_a_lab_without_its_own_repository_is_said_to_be_one(lab: Lab) -> None:
    """Inside another repository Git would answer for that one; the room says it, and so does the runner."""
    shutil.rmtree(lab.root / ".git")

    async def test(room: ControlRoom) -> None:
        assert "has no .git of its own" in room.notice.text
        assert (await room.run()).cause == "repository_missing"

    within(lab.root, test)


# --- Following the disk ---


def test_a_change_made_elsewhere_is_followed(claimed: Lab) -> None:
    """Edited in an editor, run in a terminal, deleted: the board follows by itself."""

    async def test(room: ControlRoom) -> None:
        claimed.edit(claimed.path("state"), phase="agent_running")
        await shown(room.board.diagram, "view", lambda view: view["lit"] == "agent_running")
        claimed.path("state").write_bytes(b"\0" * 50)
        await shown(room.board.diagram, "view", lambda view: "50 NUL bytes" in view["sentence"])
        shutil.rmtree(claimed.root / ".loop")
        await shown(room.board.diagram, "view", lambda view: "nobody has claimed it" in view["sentence"])
        assert room.board.head.view["records"] == [[name, "absent", "absent"] for name in
            ("claim", "facts", "state", "events", "attempt", "result")]  # fmt: skip

    within(claimed.root, test)


def test_a_lab_that_vanishes_and_comes_back(claimed: Lab) -> None:
    """The whole folder goes: the offer to make one appears. It comes back: so does its state."""
    beside = claimed.root.with_name("beside")

    async def test(room: ControlRoom) -> None:
        claimed.root.rename(beside)
        await shown(room.notice, "text", lambda text: "Make the lab" in text)
        assert room.board.diagram.view["sentence"] == "There is no lab yet."
        beside.rename(claimed.root)
        await shown(room.notice, "text", lambda text: "code: solution" in text)
        assert lit(room) == "claimed"

    within(claimed.root, test)


def test_two_rooms_agree(lab: Lab) -> None:
    """What one room does, the other shows, without being told."""

    async def test(room: ControlRoom) -> None:
        other = widgets.control_room(lab.root)
        try:
            await room.interrupt()
            await shown(other.board.diagram, "view", lambda view: view["lit"] == "claimed")
            assert events(other) == events(room)
        finally:
            other.close()

    within(lab.root, test)


def test_files_of_the_lab_are_shown_below_tasks_and_loop_only(claimed: Lab) -> None:
    """Source and Git's own files are not the state; a placeholder of Git's is not shown either."""

    async def test(room: ControlRoom) -> None:
        paths = [entry["path"] for entry in room.board.files.files.view["entries"]]
        assert {path.split("/")[0] for path in paths} == {".loop", "tasks"}
        assert not [path for path in paths if path.endswith(".gitkeep")]
        assert ".loop/tasks/issue-002/state.json" in paths

    within(claimed.root, test)


def test_a_task_can_be_turned_to(claimed: Lab) -> None:
    """Choosing another task shows its queue and that it has no state."""

    async def test(room: ControlRoom) -> None:
        room.board.head.chosen = "issue-001"
        assert room.board.head.view["places"] == "done"
        assert lit(room) == ""

    within(claimed.root, test)


def test_the_default_lab_is_the_learners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a folder it is workspace/issue-garden-lab, and the code that the learner is on."""
    monkeypatch.setattr(workspace, "kit_root", lambda: tmp_path)
    monkeypatch.setenv("LAB_TARGET", "solution")

    async def go() -> None:
        room = widgets.control_room()
        assert room.lab == lab_folder.default_folder() == tmp_path / "workspace" / "issue-garden-lab"
        room.close()

    asyncio.run(go())
    assert lab_actions.code_to_lay(tmp_path / "none") == "solution"
