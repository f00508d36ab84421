"""From events to the state of a task, and back after a restart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from labkit import actions
from labkit.experiments.bench import LOG, Bench, Seen, compare, fresh_folder
from labkit.naive import SkippingStore
from solution.lesson_22 import SessionEvent
from solution.lesson_22.todo import LABELS, replay

WHOLE_TASK: tuple[tuple[str, dict[str, object]], ...] = (
    ("todo_created", {"todo_id": "todo-1", "title": "报告 report"}),
    ("todo_started", {"todo_id": "todo-1", "expected_from": "pending"}),
    ("tool_called", {"todo_id": "todo-1", "call_id": "call-1", "tool": "write_file"}),
    ("tool_result", {"todo_id": "todo-1", "call_id": "call-1", "ok": True}),
    ("todo_completed", {"todo_id": "todo-1", "expected_from": "in_progress"}),
)
"""Five events that take one task from its making to its end."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The state after each event: ``rows`` of sequence, event type, and status by task id."""

    rows: tuple[tuple[int, str, dict[str, str]], ...]

    def of(self, todo_id: str) -> list[str]:
        """Return the status of one task after each event, from the event that made it on."""
        return [statuses[todo_id] for _, _, statuses in self.rows if todo_id in statuses]

    def _repr_html_(self) -> str:
        from labkit.experiments.cards import replay_table  # noqa: PLC0415 — as in Seen

        return replay_table(self.rows)


async def step_by_step() -> Replayed:
    """Write the sample task, then replay its first event, its first two, and so on (C22-03)."""
    path = fresh_folder("step-by-step") / LOG
    await actions.make_sample_log(path)
    events = await actions.solution_store(path).read()
    rows = []
    for count, event in enumerate(events, start=1):
        todos = replay(events[:count]).todos
        rows.append((event.sequence, event.type, {name: todo.status for name, todo in todos.items()}))
    return Replayed(tuple(rows))


def _status(events: list[SessionEvent]) -> str:
    todo = replay(events).todos["todo-1"]
    return f"{todo.status}, needs_resume={todo.needs_resume}"


async def _replayed(bench: Bench, shown: str = "replay(read())") -> None:
    async def status() -> str:
        return _status(await bench.store.read())

    await bench.call(shown, status)


async def lost_completion() -> Seen:
    """Damage the line of a ``todo_completed`` in the middle of a log, and replay what each reader returns (C22-08)."""
    later: tuple[str, dict[str, object]] = ("todo_created", {"todo_id": "todo-2", "title": "next"})

    async def script(bench: Bench) -> None:
        actions.write_events(bench.path, *WHOLE_TASK, later)
        actions.damage_line(bench.path, len(WHOLE_TASK))
        await _replayed(bench)

    return await compare("lost-completion", script, SkippingStore=SkippingStore)


async def restart_and_cut() -> Seen:
    """Log a whole task, restart and replay; then cut the last event in two, restart and replay (C22-25)."""

    async def script(bench: Bench) -> None:
        for type_, data in WHOLE_TASK:
            await bench.store.append(type_, data)
        await _replayed(bench)
        bench.reopen()
        await _replayed(bench, "restart; replay(read())")
        with bench.path.open("r+b") as file:
            file.truncate(bench.path.stat().st_size - 20)
        bench.reopen()
        await _replayed(bench, "cut; restart; replay(read())")

    return await compare("restart-and-cut", script)


@dataclass(frozen=True, slots=True)
class Labelled:
    """Display words for each event code on disk, by language, and the log's hash each time they were looked up."""

    words: dict[str, dict[str, str]]
    hashes: dict[str, str]

    def _repr_html_(self) -> str:
        from labkit.experiments.cards import label_table  # noqa: PLC0415 — as in Seen

        return label_table(self.words, self.hashes)


async def shown_in_two_languages() -> Labelled:
    """Show one log in Chinese, then in English, hashing the file each time (C22-27)."""
    path = fresh_folder("two-languages") / LOG
    await actions.make_sample_log(path)
    words: dict[str, dict[str, str]] = {}
    hashes = {}
    for language in LABELS:
        types = dict.fromkeys(event.type for event in await actions.solution_store(path).read())
        words[language] = {code: LABELS[language][code] for code in types}
        hashes[language] = hashlib.sha256(path.read_bytes()).hexdigest()
    return Labelled(words, hashes)


async def impossible_event(type_: str, data: dict[str, object]) -> Seen:
    """Write the making of a task, then an event that cannot follow, and replay (C22-28)."""

    async def script(bench: Bench) -> None:
        actions.write_events(bench.path, WHOLE_TASK[0], (type_, data))
        await _replayed(bench)

    return await compare(f"impossible-{type_}", script)
