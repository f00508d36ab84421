"""The task state that a log's events replay to, as rows to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solution.lesson_22.todo import LABELS, IllegalEventError, replay

if TYPE_CHECKING:
    from collections.abc import Iterable

    from solution.lesson_22 import SessionEvent


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task: its status as the stable code, and the ids of calls whose side effect nobody knows."""

    todo_id: str
    title: str
    status: str
    needs_resume: bool
    unknown_calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskState:
    """Every task after ``last_sequence`` events; or no task, and the event at which replay stopped."""

    last_sequence: int
    tasks: tuple[TaskRow, ...]
    illegal_sequence: int | None = None
    illegal_reason: str = ""


def task_state(events: Iterable[SessionEvent]) -> TaskState:
    """Replay the events. An illegal one gives no tasks, only its number and the reason: nothing is guessed."""
    try:
        snapshot = replay(events)
    except IllegalEventError as error:
        return TaskState(0, (), error.sequence, error.reason)
    rows = (
        TaskRow(todo.todo_id, todo.title, todo.status, todo.needs_resume, tuple(todo.unknown_calls))
        for todo in snapshot.todos.values()
    )
    return TaskState(snapshot.last_sequence, tuple(rows))


def label(code: str, language: str) -> str:
    """Return the display word for an event type or a status; a code without one is shown as it is."""
    return LABELS[language].get(code, code)
