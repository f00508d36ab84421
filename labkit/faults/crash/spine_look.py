"""Looks at a lab of the crash lab and says what its files hold, by docs/formats-spine.md and without the runner's code.

Standard library only. Times and names that differ from run to run are left out, so that a replay says the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUEUES = ("inbox", "processing", "done", "closed")
_AFTER_THE_START = ("agent_running", "agent_finished", "finished")
_REJECTED = {
    ("rejected", "rejected"),
    ("closed", "rejected"),
    ("closed", "closed"),
}  # closing: result, then state


def look(lab: Path, task: str) -> dict[str, Any]:
    """Return what is known of `task`.

    `places`: the queues that hold it. `records`: which of claim, facts, state, attempt and result exist. `damaged`: the
    state and task files that are not whole (their paths). `status` and `phase` of the state, `decision` of the result,
    None where there is none. `events`: the types in its log, None for a log that cannot be read; a torn tail is no damage.
    """
    loop = lab / ".loop"
    records = {
        "claim": loop / "claims" / f"{task}.json",
        "facts": loop / "tasks" / task / "facts.json",
        "state": loop / "tasks" / task / "state.json",
        "attempt": loop / "tasks" / task / "attempts" / "round-001.json",
        "result": loop / "results" / f"{task}.json",
    }
    tasks = {queue: lab / "tasks" / queue / f"{task}.json" for queue in QUEUES}
    found = {name: _object(path) for name, path in (records | tasks).items() if path.exists()}
    events = _events(loop / "tasks" / task / "events.jsonl")
    damaged = [_name(lab, (records | tasks)[name]) for name, value in found.items() if value is None]
    state, result = found.get("state") or {}, found.get("result") or {}
    return {
        "places": [queue for queue in QUEUES if queue in found],
        "records": [name for name in records if name in found],
        "damaged": damaged + [f".loop/tasks/{task}/events.jsonl"] * (events is None),
        "status": state.get("status"),
        "phase": state.get("phase"),
        "decision": result.get("decision"),
        "events": events,
    }


def borne_out(seen: dict[str, Any], task: str) -> list[dict[str, str]]:
    """Return what a runner may have said of `task` and its lab, as `look` saw it, still bears out."""
    decided = (seen["decision"], seen["status"])
    away, records = seen["places"] != ["inbox"], set(seen["records"])
    holds = {
        "interrupted": away and {"claim", "facts", "state"} <= records,
        "completed": decided == ("completed", "completed") and seen["places"] == ["done"],
        "rejected": decided in _REJECTED and seen["places"] in (["processing"], ["closed"]),
        "closed": decided == ("closed", "closed") and seen["places"] == ["closed"],
    }
    started = "agent_started" in (seen["events"] or []) and seen["phase"] in _AFTER_THE_START
    return [{"agent": task}] * started + [{"decision": word, "task": task} for word in holds if holds[word]]


def _name(lab: Path, path: Path) -> str:
    return path.relative_to(lab).as_posix()


def _object(path: Path) -> dict[str, Any] | None:
    """Give the JSON object of a file, None when it holds none: cut, empty, zeros."""
    try:
        value = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _events(path: Path) -> list[str] | None:
    """Give the types of a log's events. What follows the last newline and is no event is a torn tail: not yet said."""
    *lines, tail = path.read_bytes().split(b"\n") if path.exists() else [b""]
    events = [_event(line) for line in lines]
    if tail and (last := _event(tail)):
        events.append(last)
    numbers = [event.get("sequence") if event else None for event in events]
    if numbers != list(range(1, len(events) + 1)):
        return None
    return [str(event["type"]) for event in events if event and "type" in event]


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
