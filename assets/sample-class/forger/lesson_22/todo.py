"""The task that the log is about: its events, and the state that replaying them gives.

``replay`` is a pure function from history to snapshot: the same events give the same state, on any machine, after any
restart. Event types are stable codes; what a person reads comes from ``LABELS`` and never reaches the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .event_line import SessionEvent

LABELS: Mapping[str, Mapping[str, str]] = {
    "zh": {
        "todo_created": "建立任务",
        "todo_started": "开始执行",
        "tool_called": "调用工具",
        "tool_result": "工具返回",
        "todo_completed": "完成任务",
        "todo_blocked": "任务受阻",
        "pending": "待办",
        "in_progress": "进行中",
        "completed": "已完成",
        "blocked": "受阻",
    },
    "en": {
        "todo_created": "task created",
        "todo_started": "work started",
        "tool_called": "tool called",
        "tool_result": "tool answered",
        "todo_completed": "task completed",
        "todo_blocked": "task blocked",
        "pending": "to do",
        "in_progress": "in progress",
        "completed": "completed",
        "blocked": "blocked",
    },
}
"""Display words by language, for event types and statuses."""

_MOVES = {
    "todo_started": ({"pending", "blocked"}, "in_progress"),
    "todo_completed": ({"in_progress"}, "completed"),
    "todo_blocked": ({"in_progress"}, "blocked"),
}
"""Event type -> the statuses it may leave, and the one it reaches."""


class IllegalEventError(Exception):
    """An event that this history cannot contain. Replay stops; there is no snapshot.

    Attributes: ``sequence`` of the event (1-based), ``reason`` in words, never a value from its data.
    """

    def __init__(self, sequence: int, reason: str) -> None:
        super().__init__(sequence, reason)
        self.sequence, self.reason = sequence, reason

    def __str__(self) -> str:
        return (
            f"第 {self.sequence} 号事件 (event {self.sequence}): {self.reason}; "
            "请检查写入它的程序，不要猜测状态 (check the program that wrote it; do not guess the state)"
        )


@dataclass(frozen=True)
class Todo:
    """One task as the log leaves it.

    ``unknown_calls`` holds the ids of tool calls without a result: whether their side effect happened, the log cannot say.
    """

    todo_id: str
    title: str
    status: str = "pending"
    unknown_calls: tuple[str, ...] = ()

    @property
    def needs_resume(self) -> bool:
        """Work began and the log does not say how it ended."""
        return self.status == "in_progress"


@dataclass(frozen=True)
class Snapshot:
    """The state after a whole history: how many events it took, and every task by id, in order of creation."""

    last_sequence: int = 0
    todos: Mapping[str, Todo] = field(default_factory=dict)

    @property
    def needs_resume(self) -> bool:
        """Whether any task waits to be taken up again."""
        return any(todo.needs_resume for todo in self.todos.values())


def replay(events: Iterable[SessionEvent]) -> Snapshot:
    """Fold a history into the state it leaves. Raises: IllegalEventError at the first event that cannot be."""
    last = 0
    todos: dict[str, Todo] = {}
    for event in events:
        todo = _after(todos, event)
        last, todos[todo.todo_id] = event.sequence, todo
    return Snapshot(last, todos)


def apply(before: Snapshot, event: SessionEvent) -> Snapshot:
    """Return the snapshot after one more event; ``before`` stays as it was. Raises: IllegalEventError."""
    todo = _after(before.todos, event)
    return Snapshot(event.sequence, {**before.todos, todo.todo_id: todo})


def _after(todos: Mapping[str, Todo], event: SessionEvent) -> Todo:
    """Return the one task that this event concerns, as it leaves it."""
    data = event.data if isinstance(event.data, dict) else {}
    todo_id = data.get("todo_id")
    if not isinstance(todo_id, str) or not todo_id:
        raise IllegalEventError(event.sequence, "缺少 todo_id (todo_id is missing)")
    known = todos.get(todo_id)
    if event.type == "todo_created":
        return _create(event.sequence, known, todo_id, data)
    if known is None:
        raise IllegalEventError(event.sequence, "任务尚未建立 (the task was never created)")
    if event.type in _MOVES:
        return _move(event, known, data)
    if event.type in ("tool_called", "tool_result"):
        return _record_tool(event, known, data)
    raise IllegalEventError(event.sequence, "未知的事件类型 (unknown event type)")


def _create(sequence: int, known: Todo | None, todo_id: str, data: Mapping[str, Any]) -> Todo:
    if known is not None:
        raise IllegalEventError(sequence, "任务已存在 (the task exists already)")
    title = data.get("title")
    if not isinstance(title, str):
        raise IllegalEventError(sequence, "缺少标题 (the title is missing)")
    return Todo(todo_id, title)


def _move(event: SessionEvent, todo: Todo, data: Mapping[str, Any]) -> Todo:
    allowed, reached = _MOVES[event.type]
    if data.get("expected_from") != todo.status:
        raise IllegalEventError(
            event.sequence, f"expected_from 与当前状态 {todo.status} 不符 (does not match it)"
        )
    if todo.status not in allowed:
        raise IllegalEventError(event.sequence, f"状态 {todo.status} 不允许此转换 (does not allow this move)")
    return replace(todo, status=reached)


def _record_tool(event: SessionEvent, todo: Todo, data: Mapping[str, Any]) -> Todo:
    call_id = data.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise IllegalEventError(event.sequence, "缺少 call_id (call_id is missing)")
    if event.type == "tool_called":
        if todo.status != "in_progress" or call_id in todo.unknown_calls:
            raise IllegalEventError(event.sequence, "此时不能调用工具 (no tool may be called here)")
        return replace(todo, unknown_calls=(*todo.unknown_calls, call_id))
    if call_id not in todo.unknown_calls:
        raise IllegalEventError(event.sequence, "结果没有对应的调用 (a result without its call)")
    return replace(todo, unknown_calls=tuple(call for call in todo.unknown_calls if call != call_id))
