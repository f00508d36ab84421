"""The reducer: the same history gives the same state, and an impossible event stops it."""

from __future__ import annotations

import pytest

from solution.lesson_22 import SessionEvent
from solution.lesson_22.todo import LABELS, IllegalEventError, replay

STEPS: list[tuple[str, dict[str, object]]] = [
    ("todo_created", {"todo_id": "t1", "title": "修复搜索 fix search"}),
    ("todo_started", {"todo_id": "t1", "expected_from": "pending"}),
    ("tool_called", {"todo_id": "t1", "call_id": "c1", "tool": "edit"}),
    ("tool_result", {"todo_id": "t1", "call_id": "c1", "ok": True}),
    ("todo_completed", {"todo_id": "t1", "expected_from": "in_progress"}),
]


def history(*steps: tuple[str, object]) -> list[SessionEvent]:
    """Number the steps from 1."""
    return [SessionEvent(number, type_, data) for number, (type_, data) in enumerate(steps, start=1)]


def test_statuses_follow_the_state_machine_step_by_step() -> None:
    """Each prefix of the history has its own status."""
    seen = [replay(history(*STEPS[:n])).todos["t1"].status for n in range(1, 6)]

    assert seen == ["pending", "in_progress", "in_progress", "in_progress", "completed"]


def test_replay_is_pure() -> None:
    """The same events give an equal snapshot, and are not changed by it."""
    events = history(*STEPS)

    assert replay(events) == replay(events)
    assert events == history(*STEPS)


def test_a_lost_completion_needs_resume() -> None:
    """Without the last event the task is in progress and asks to be resumed."""
    snapshot = replay(history(*STEPS[:-1]))

    assert snapshot.todos["t1"].status == "in_progress"
    assert snapshot.needs_resume


def test_a_completed_task_needs_no_resume() -> None:
    """With the whole history nothing waits."""
    assert not replay(history(*STEPS)).needs_resume


def test_a_call_without_result_is_unknown() -> None:
    """The call stays listed until its result arrives."""
    assert replay(history(*STEPS[:3])).todos["t1"].unknown_calls == ("c1",)
    assert replay(history(*STEPS[:4])).todos["t1"].unknown_calls == ()


def test_a_blocked_task_can_be_taken_up_again() -> None:
    """blocked -> in_progress is a legal move."""
    blocked = ("todo_blocked", {"todo_id": "t1", "expected_from": "in_progress"})
    again = ("todo_started", {"todo_id": "t1", "expected_from": "blocked"})

    assert replay(history(*STEPS[:2], blocked, again)).todos["t1"].status == "in_progress"


@pytest.mark.parametrize(
    ("steps", "sequence"),
    [
        ([("todo_teleported", {"todo_id": "t1"})], 1),
        ([STEPS[0], ("todo_teleported", {"todo_id": "t1"})], 2),
        ([STEPS[0], STEPS[4]], 2),
        ([STEPS[0], STEPS[0]], 2),
        ([STEPS[1]], 1),
        ([STEPS[0], ("todo_started", {"todo_id": "t1", "expected_from": "blocked"})], 2),
        ([STEPS[0], ("todo_started", {"todo_id": "t1"})], 2),
        ([STEPS[0], STEPS[2]], 2),
        ([STEPS[0], STEPS[1], STEPS[2], STEPS[2]], 4),
        ([STEPS[0], STEPS[1], STEPS[3]], 3),
        ([("todo_created", ["t1"])], 1),
        ([("todo_created", {"todo_id": 1, "title": ""})], 1),
        ([("todo_created", {"todo_id": "t1"})], 1),
        ([*STEPS, ("todo_started", {"todo_id": "t1", "expected_from": "completed"})], 6),
    ],
)
def test_an_impossible_event_stops_replay_at_its_sequence(
    steps: list[tuple[str, object]], sequence: int
) -> None:
    """Unknown types, illegal moves, wrong expectations and missing fields name the event that cannot be."""
    with pytest.raises(IllegalEventError) as stopped:
        replay(history(*steps))

    assert stopped.value.sequence == sequence


def test_an_illegal_event_is_reported_without_its_data() -> None:
    """The message names the event, never a value from it."""
    with pytest.raises(IllegalEventError) as stopped:
        replay(history(("todo_created", {"todo_id": "t1", "title": 7, "token": "s3cret"})))

    assert "s3cret" not in str(stopped.value)


def test_every_event_type_and_status_has_words_in_both_languages() -> None:
    """The two label tables cover the same codes."""
    assert LABELS["zh"].keys() == LABELS["en"].keys()
