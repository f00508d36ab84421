"""Lesson 04's state spine as it lies on disk: whose phase, which records, what the log tells. Reads; never repairs.

A file that is torn, empty, full of NUL bytes, huge or of another kind is said to be so; nothing here raises for it.
docs/formats-spine.md has every field.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from labkit.words import t

PHASES = ("claiming", "claimed", "agent_running", "agent_finished", "finished")
STATUSES = ("active", "completed", "rejected", "closed")
QUEUES = ("inbox", "processing", "done", "closed")
RECORDS = ("claim", "facts", "state", "events", "attempt", "result")
LIMITS_BYTES = {
    "claim": 262_144,
    "facts": 262_144,
    "state": 262_144,
    "result": 4_194_304,
    "attempt": 4_194_304,
}
EVENTS_BYTES = 1_048_576
"""Of a longer log only the size is told."""
MOST_EVENTS = 60
"""The last so many events are shown."""
MOST_TASKS = 6
"""So many tasks are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON file. ``problem`` is empty for a sound one; otherwise it says, in the reader's language, what stands there.

    ``there`` is whether the name exists at all.
    """

    there: bool = False
    value: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StateView:
    """What a state says: texts as in the file, empty where it says nothing. ``lit`` is the phase to light, or empty."""

    task_id: str = ""
    status: str = ""
    phase: str = ""
    round: int = 0
    updated_at: str = ""
    lit: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event: its number, type, time of day, seconds since the one before (None: unknown), and what else it says."""

    sequence: int
    type: str
    time: str
    gap_seconds: float | None
    details: str


@dataclass(frozen=True, slots=True)
class EventsView:
    """A log. ``skipped`` counts events that are not shown; ``torn`` bytes at its end; ``problem`` where reading stopped."""

    there: bool = False
    rows: tuple[EventRow, ...] = ()
    skipped: int = 0
    torn: int = 0
    problem: str = ""

    @property
    def count(self) -> int:
        """Number of sound events."""
        return self.skipped + len(self.rows)


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task: the queues that hold it, its state, its log, and for each of RECORDS what is there.

    ``records`` maps a name to ``there``, ``absent`` or ``damaged``.
    """

    task_id: str
    places: tuple[str, ...]
    state: StateView
    events: EventsView
    records: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SpineView:
    """A lab. ``task`` is the one at hand, None when there is none; ``names`` the tasks one may turn to; ``more`` the rest."""

    exists: bool
    task: TaskView | None = None
    names: tuple[str, ...] = ()
    more: int = 0


def state_view(state: Mapping[str, Any] | Path | str) -> StateView:
    """Read a state: one that is parsed already, a ``state.json``, or the lab whose task at hand is meant."""
    if isinstance(state, Mapping):
        return _state_view(Record(there=True, value=state))
    path = Path(state)
    if path.is_dir():
        task = SpineReader(path).look().task
        return task.state if task else StateView()
    return _state_view(read_record(path, LIMITS_BYTES["state"]))


class SpineReader:
    """Looks at one lab again and again. A log that has not changed is not taken apart twice."""

    def __init__(self, lab: Path) -> None:
        self.lab = lab
        self._log: tuple[bytes, EventsView] = (b"", _events([]))

    def look(self, chosen: str = "") -> SpineView:
        """Return what is on disk now, about the task ``chosen`` or else the one at hand."""
        if not self.lab.is_dir():
            return SpineView(exists=False)
        queues = {queue: _task_names(self.lab / "tasks" / queue) for queue in QUEUES}
        names = list(dict.fromkeys(self._in_order(queues)))
        if not names:
            return SpineView(exists=True)
        task_id = chosen if chosen in names else names[0]
        task = self._task(task_id, tuple(queue for queue in QUEUES if task_id in queues[queue]))
        named = names[:MOST_TASKS]
        shown = tuple(sorted({*named, task_id}))
        return SpineView(exists=True, task=task, names=shown, more=len(names) - len(named))

    def _in_order(self, queues: Mapping[str, list[str]]) -> Iterator[str]:
        """Yield task ids: what was begun, what has records (the youngest first), what waits, what is done."""
        yield from queues["processing"]
        yield from _youngest_first(self.lab / ".loop" / "tasks")
        yield from queues["inbox"]
        yield from queues["done"]
        yield from queues["closed"]

    def _task(self, task_id: str, places: tuple[str, ...]) -> TaskView:
        loop = self.lab / ".loop"
        own = loop / "tasks" / task_id
        paths = {
            "claim": loop / "claims" / f"{task_id}.json",
            "facts": own / "facts.json",
            "state": own / "state.json",
            "attempt": _last_attempt(own / "attempts"),
            "result": loop / "results" / f"{task_id}.json",
        }
        found = {name: read_record(path, LIMITS_BYTES[name]) for name, path in paths.items()}
        events = self._events(own / "events.jsonl")
        records = {name: _how(found.get(name, events)) for name in RECORDS}
        return TaskView(task_id, places, _state_view(found["state"]), events, records)

    def _events(self, path: Path) -> EventsView:
        raw, problem = _content(path, EVENTS_BYTES)
        if raw is None:
            return EventsView(there=bool(problem), problem=problem)
        if raw != self._log[0]:
            self._log = (raw, events_view(raw))
        return self._log[1]


# --- One JSON file ---


def read_record(path: Path, limit_bytes: int) -> Record:
    """Read a JSON file of at most ``limit_bytes``, or say what stands in its place."""
    raw, problem = _content(path, limit_bytes)
    if raw is None:
        return Record(there=bool(problem), problem=problem)
    try:
        value = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        return Record(there=True, problem=_not_json(raw, error))
    if not isinstance(value, dict):
        return Record(there=True, problem=t("spine.no-object"))
    return Record(there=True, value=value)


def _content(path: Path, limit_bytes: int) -> tuple[bytes | None, str]:
    """Return the bytes of a regular file; else None, and what stands in its place (empty: nothing does).

    A link is not followed, a pipe or device not waited for.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return None, t("spine.not-a-file")
        if status.st_size > limit_bytes:
            return None, t("spine.too-large", size=status.st_size)
        with path.open("rb") as file:
            return file.read(limit_bytes), ""
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        return None, t("spine.unreadable", reason=error.strerror or type(error).__name__)


def _not_json(raw: bytes, error: Exception) -> str:
    if not raw:
        return t("spine.empty")
    if b"\0" in raw:
        return t("spine.nul", n=raw.count(0), size=len(raw))
    if isinstance(error, UnicodeDecodeError):
        return t("spine.not-utf8", at=error.start)
    if isinstance(error, json.JSONDecodeError):
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            return t("spine.cut-short", size=len(raw))
        return t("spine.not-json", line=error.lineno)
    return t("spine.not-json", line=1)


def _state_view(record: Record) -> StateView:
    """Turn a state into what can be shown of it, whatever a hand has written there."""
    if not record.there:
        return StateView()
    if record.problem:
        return StateView(problem=t("spine.state-problem", problem=record.problem))
    texts = {name: record.value.get(name) for name in ("task_id", "status", "phase", "updated_at")}
    plain = {name: value if isinstance(value, str) else "" for name, value in texts.items()}
    number = record.value.get("round")
    known = plain["phase"] in PHASES
    return StateView(
        **plain,
        round=number if type(number) is int else 0,
        lit=plain["phase"] if known else "",
        problem=_state_problem(texts),
    )


def _state_problem(texts: Mapping[str, Any]) -> str:
    status, phase = texts["status"], texts["phase"]
    if phase not in PHASES:
        return t("spine.unknown-phase", phase=repr(phase)[:40])
    if status not in STATUSES:
        return t("spine.unknown-status", status=repr(status)[:40])
    if (status == "active") != (phase != "finished"):
        return t("spine.mismatch", status=status, phase=phase)
    return ""


# --- The log ---


def events_view(raw: bytes) -> EventsView:
    """Take a log apart as docs/formats-spine.md frames it: a torn tail is no fault, any other piece that is no event is."""
    *lines, last = raw.split(b"\n")
    events: list[dict[str, Any]] = []
    for line in lines:
        event = _event(line, len(events) + 1)
        if event is None:
            return _events(events, problem=t("spine.bad-line", line=len(events) + 1))
        events.append(event)
    whole = _event(last, len(events) + 1)
    if whole is not None:  # it lacks only its newline
        return _events([*events, whole])
    return _events(events, torn=len(last))


def _event(line: bytes, due: int) -> dict[str, Any] | None:
    try:
        event = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    sound = isinstance(event, dict) and event.get("sequence") == due and isinstance(event.get("type"), str)
    return event if sound else None


def _events(events: list[dict[str, Any]], *, torn: int = 0, problem: str = "") -> EventsView:
    rows = list(_rows(events))
    skipped = max(0, len(rows) - MOST_EVENTS)
    return EventsView(there=True, rows=tuple(rows[skipped:]), skipped=skipped, torn=torn, problem=problem)


def _rows(events: Iterable[dict[str, Any]]) -> Iterator[EventRow]:
    before: float | None = None
    for event in events:
        now = _seconds(event.get("at"))
        gap = now - before if now is not None and before is not None else None
        rest = {name: value for name, value in event.items() if name not in ("sequence", "type", "at")}
        details = " · ".join(f"{name} {_short(value)}" for name, value in rest.items())
        yield EventRow(event["sequence"], event["type"][:80], _clock(event.get("at")), gap, details)
        before = now


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _seconds(at: object) -> float | None:
    """Return a time of the log as seconds of the epoch."""
    try:
        return datetime.fromisoformat(str(at)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _clock(at: object) -> str:
    """Return the time of day of ``YYYY-MM-DDThh:mm:ss.mmmZ``; whatever else stands there as it stands."""
    text = str(at)
    return text[11:23] if len(text) == 24 and text[10] == "T" else text[:30]


# --- Names ---


def _task_names(queue: Path) -> list[str]:
    return sorted(name.removesuffix(".json") for name in _names(queue) if name.endswith(".json"))


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]  # noqa: PTH208 - names only
    except OSError:  # there is none, or it vanished
        return []


def _youngest_first(folder: Path) -> list[str]:
    times = {name: _signature(folder / name / "state.json") for name in _names(folder)}
    return sorted(times, key=lambda name: times[name][-1], reverse=True)


def _last_attempt(folder: Path) -> Path:
    return folder / max(_names(folder), default="round-001.json")


def _signature(path: Path) -> tuple[int, int, int]:
    try:
        status = path.lstat()
    except OSError:
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _how(found: Record | EventsView) -> str:
    return "absent" if not found.there else "damaged" if found.problem else "there"
