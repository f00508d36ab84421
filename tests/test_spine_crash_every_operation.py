"""P15: whatever a runner is doing when it dies or its disk fails, the next run completes or says truly why not.

Every operation that changes the disk is struck once: a kill before it, a kill in the middle of each write, and the same
with a full disk. What follows is judged from the files, by an oracle that knows the format page and not the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labkit.faults.round_sweep import MARK_CHANGES, Ended, Point, RoundRunner, fresh_copy, points, starts
from tests.spine_lab import TASK, Lab, environment, template

pytest_plugins = ["tests.spine_fixtures"]

KINDS = ("claim", "facts", "state", "result")
DONE = ("completed", "verified", None)


@pytest.fixture(scope="module")
def runner() -> Iterator[RoundRunner]:
    with RoundRunner(template(quick=True), environment()) as child:
        yield child


class Scene:
    """One kind of round, from a prepared lab: struck, then run again, in a place of its own."""

    def __init__(self, runner: RoundRunner, folder: Path, *, quick: bool = True, **order: Any) -> None:
        self.runner, self.order = runner, order
        self.begin, self.lab = folder / "begin", Lab(folder / "lab")
        self.ledger = folder / "ledger"
        fresh_copy(template(quick=quick), self.begin)

    def prepare(self, **order: Any) -> None:
        """Bring the lab that every strike begins with further, without a fault."""
        self.runner.run(self.begin, self.ledger, **order)

    def points(self, *ends: str) -> list[Point]:
        """Everywhere this round can be struck."""
        return list(points(self.again([MARK_CHANGES]).log, ends))

    def again(self, rules: list[dict[str, Any]]) -> Ended:
        """Run the round under `rules` in a fresh copy; the ledger begins anew."""
        fresh_copy(self.begin, self.lab.root)
        self.ledger.unlink(missing_ok=True)
        return self.runner.run(self.lab.root, self.ledger, rules, **self.order)

    def next_run(self, **order: Any) -> Ended:
        """Start again, as a learner would."""
        return self.runner.run(self.lab.root, self.ledger, **order)


def said(ended: Ended) -> tuple[Any, ...]:
    assert ended.answer is not None, ended
    return ended.answer["decision"], ended.answer["reason"], ended.answer.get("cause")


def truth(lab: Lab) -> tuple[str, str, str | None]:
    """What the next run has to say, from what is on disk (docs/formats-spine.md, order of writes)."""
    [place] = lab.places()
    kinds = [kind for kind in KINDS if lab.path(kind).exists()]
    state = lab.record("state") if "state" in kinds else None
    if state is None:
        return ("blocked", "claim_exists", min(kinds, key=KINDS.index)) if kinds else DONE
    if state["status"] == "active" and state["phase"] != "claimed":
        return "blocked", "unsafe_resume", f"phase_{state['phase']}"
    if state["status"] == "active":
        return ("blocked", "unsafe_resume", "events_disagree") if "agent_started" in lab.types() else DONE
    if state["status"] == "rejected":
        return "blocked", "needs_person", "rejected"
    if place == "processing":
        return "blocked", "finish_incomplete", "still_in_processing"
    return "idle", "inbox_empty", None


def check_files(lab: Lab) -> None:
    """The task is in one place; every JSON file is whole; the log is whole lines and at most one beginning."""
    assert len(lab.places()) == 1
    for path in (lab.root / ".loop").rglob("*.json"):
        if not path.name.startswith("."):
            assert isinstance(json.loads(path.read_bytes()), dict), path
    if lab.path("events").exists():
        assert [event["sequence"] for event in lab.events()] == list(range(1, len(lab.events()) + 1))


def check_order(lab: Lab, started: int) -> None:
    """What announces a thing is there before it: nothing on disk rests on a record that is missing."""
    there = {kind for kind in (*KINDS, "attempt") if lab.path(kind).exists()}
    state = lab.record("state") if "state" in there else {"status": None, "phase": None}
    types = lab.types() if lab.path("events").exists() else []
    needs = {"claim": {"facts"}, "state": {"claim"}, "result": {"attempt"}}
    assert all(needs.get(kind, set()) <= there for kind in there)
    assert not started or state["phase"] in ("agent_running", "agent_finished", "finished"), (
        "agent before its phase"
    )
    assert state["phase"] != "finished" or "result" in there, "state before its result"
    assert lab.places() != ["processing"] or state["phase"], "moved before it was recorded"
    assert lab.places() != ["done"] or state["status"] == "completed", "done before its state"
    events = {"claiming": 1, "claimed": 2, "agent_running": 3, "agent_finished": 4, "finished": 6}
    told = [kind for kind in types if kind not in ("controlled_interruption", "resumed")]
    assert len(told) >= events.get(state["phase"], 0), "the log is behind the state"


def check_finished(lab: Lab) -> None:
    """State, result, attempt, events and queue tell one story, and nothing half written is left beside them."""
    assert lab.record("state")["phase"] == "finished"
    assert lab.record("result")["decision"] == lab.record("state")["status"] == "completed"
    assert lab.record("attempt")["evidence"]["changes"]["files"] == ["src/search.mjs"]
    assert lab.places() == ["done"]
    assert lab.types().count("claim_started") == lab.types().count("agent_started") == 1
    assert not list((lab.root / ".loop").rglob(".*.tmp"))


def check_after(scene: Scene, where: object) -> str:
    """Judge what a strike left, run again, judge that; a task that stays blocked can be closed. Returns the reason."""
    lab = scene.lab
    check_files(lab)
    check_order(lab, starts(scene.ledger))
    expected, before = truth(lab), lab.snapshot()

    ended = scene.next_run()

    assert said(ended) == expected, where
    assert starts(scene.ledger) <= 1, f"{where}: the agent ran twice"
    check_files(lab)
    if expected == DONE:
        check_finished(lab)
        assert starts(scene.ledger) == 1
    else:
        assert lab.snapshot() == before, f"{where}: a refusal changed something"
    if expected[0] == "blocked" and expected[1] != "finish_incomplete":
        assert said(scene.next_run(do="close", id=TASK, text="after a crash"))[0] == "closed", where
        assert (lab.places(), said(scene.next_run())[0]) == (["closed"], "idle"), where
    return expected[1]


def sweep(scene: Scene, *ends: str) -> set[str]:
    """Strike everywhere, and return the reasons that the next runs gave."""
    reasons = set()
    for point in scene.points(*ends):
        ended = scene.again([point.rule])
        if point.do.endswith("kill"):
            assert ended.signal == 9, point
        reasons.add(check_after(scene, point))
    return reasons


def test_a_fresh_round_killed_anywhere(runner: RoundRunner, memory_path: Path) -> None:
    """From claim to done, 100 operations: the next run resumes, is idle, or names what was cut short."""
    scene = Scene(runner, memory_path)

    reasons = sweep(scene, "kill")

    assert reasons == {"verified", "claim_exists", "unsafe_resume", "finish_incomplete", "inbox_empty"}


@pytest.mark.proof
def test_a_round_with_the_lessons_own_commands_killed_anywhere(
    runner: RoundRunner, memory_path: Path
) -> None:
    """The same with Node, npm and three commands: what verifies does not change what a kill leaves."""
    scene = Scene(runner, memory_path, quick=False)

    reasons = sweep(scene, "kill")

    assert reasons == {"verified", "claim_exists", "unsafe_resume", "finish_incomplete", "inbox_empty"}


def test_a_resumed_round_killed_anywhere(runner: RoundRunner, memory_path: Path) -> None:
    """A second process dies at each step of going on: the third still goes on, until the agent may have begun."""
    scene = Scene(runner, memory_path)
    scene.prepare(interrupt=True)

    reasons = sweep(scene, "kill")

    assert reasons == {"verified", "unsafe_resume", "finish_incomplete", "inbox_empty"}


def test_a_rejected_round_killed_anywhere(runner: RoundRunner, memory_path: Path) -> None:
    """An agent that only claims to be done: no kill turns its round into a completed one."""
    scene = Scene(runner, memory_path, agent="boasting")
    scene.prepare(interrupt=True)

    for point in scene.points("kill"):
        scene.again([point.rule])
        check_files(scene.lab)
        check_order(scene.lab, starts(scene.ledger))
        expected = truth(scene.lab)
        if expected != DONE:  # not yet started: then a helpful agent may still do it
            assert said(scene.next_run()) == expected, point
            assert not (
                scene.lab.path("result").exists() and scene.lab.record("result")["decision"] == "completed"
            )


def test_an_interruption_killed_anywhere(runner: RoundRunner, memory_path: Path) -> None:
    """The controlled interruption can be killed like anything else, and changes no verdict."""
    scene = Scene(runner, memory_path, interrupt=True)

    reasons = sweep(scene, "kill")

    assert reasons == {"verified", "claim_exists", "unsafe_resume"}


def test_closing_killed_anywhere_goes_on_when_repeated(runner: RoundRunner, memory_path: Path) -> None:
    """A person's way out is never shut: closing again finishes what the killed closing began, and keeps the old result."""
    scene = Scene(runner, memory_path, do="close", id=TASK, text="first")
    scene.prepare(agent="boasting")

    for point in scene.points("kill"):
        scene.again([point.rule])
        check_files(scene.lab)
        closed_already = scene.lab.places() == ["closed"]

        ended = scene.next_run(do="close", id=TASK, text="second")

        assert said(ended)[:2] == (
            ("refused", "bad_usage") if closed_already else ("closed", "closed_by_person")
        ), point
        assert scene.lab.record("result")["before"]["decision"] == "rejected", point
        assert (scene.lab.places(), said(scene.next_run())[0]) == (["closed"], "idle"), point


def test_a_full_disk_anywhere_is_named_and_loses_nothing(runner: RoundRunner, memory_path: Path) -> None:
    """ENOSPC at each operation: the answer says so, and what follows is as after a kill."""
    scene = Scene(runner, memory_path)

    for point in scene.points("ENOSPC"):
        ended = scene.again([point.rule])

        if (
            point.op == "unlink"
        ):  # of a temporary file whose content is published: that it stays spoils nothing
            assert said(ended) == DONE, point
        else:
            assert (ended.exit_code, said(ended)) == (3, ("blocked", "environment", "disk_full")), point
            assert not list((scene.lab.root / ".loop").rglob(".*.tmp")), point
        check_after(scene, point)
