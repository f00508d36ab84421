"""A person's way out (P16): whatever became of a task, it can be closed, and a corrected one comes under a new id. Given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from issue_garden.answers import Answer, refused
from issue_garden.json_files import BadFileError, load_object
from issue_garden.queue_check import places_of
from issue_garden.records import State, as_object, now_utc
from issue_garden.runner_lock import runner_lock
from issue_garden.state_store import (
    RESULT_LIMIT_BYTES,
    CorruptEventsError,
    StateFolder,
    append_event,
    atomic_write_json,
    read_events,
)
from issue_garden.task import id_problem, list_queue, move_task

REASON_LIMIT_CHARACTERS = 2_000
Kind = TypeVar("Kind")


def close_task(lab: Path, task_id: str, text: str) -> Answer:
    """Close a task for the reason that a person gives: event, result, state, then the move to ``tasks/closed``.

    Killed in between, closing again goes on from there. A damaged record is set aside, not lost: otherwise the one
    way out would be shut exactly when it is needed. Raises StoppedError for bad usage and for a lock that is held.
    """
    if problem := id_problem(task_id):
        raise refused("bad_usage", "bad_id", f"{task_id!r}: {problem}")
    if not text.strip() or len(text) > REASON_LIMIT_CHARACTERS:
        why = f"用 1 到 {REASON_LIMIT_CHARACTERS} 个字写明为什么关闭 (say why it is closed, in at most that many characters)"
        raise refused("bad_usage", "arguments", f"--reason: {why}")
    text = text.encode(
        "utf-8", "backslashreplace"
    ).decode()  # typed bytes that are no UTF-8 still have to be saved
    folder = StateFolder(lab)
    folder.make_root()
    with runner_lock(folder.lock):
        places = places_of(lab, task_id)
        state = _usable(folder.state(task_id), lambda: folder.load_state(task_id))
        _check_closable(folder, task_id, places, state)
        if state is None or state.status != "closed":
            _record(folder, task_id, text, state)
        for place in [queue for queue in ("processing", "inbox") if queue in places][:1]:
            move_task(lab, f"{task_id}.json", place, "closed")
        return Answer("closed", "closed_by_person", details={"task_id": task_id, "text": text})


def _check_closable(folder: StateFolder, task_id: str, places: list[str], state: State | None) -> None:
    """Refuse to close what was never taken (it is edited instead) and what is at rest already."""
    # By the exact name: records under another spelling of an id would contradict those that are there.
    if f"{task_id}.json" not in list_queue(folder.lab, "processing") and task_id not in folder.records():
        message = f"{task_id}: 没有它的记录，也不在 processing (has no record and is not in processing)"
        raise refused("bad_usage", "unknown_task", message)
    if state is not None and state.status == "completed":
        message = (
            f"{task_id}: 已经完成；任务文件应在 tasks/done (is completed; its file belongs in tasks/done)"
        )
        raise refused("bad_usage", "already_completed", message)
    if state is not None and state.status == "closed" and places in (["closed"], []):
        raise refused("bad_usage", "already_closed", f"{task_id}: 已经关闭 (is closed already)")


def _record(folder: StateFolder, task_id: str, text: str, state: State | None) -> None:
    """Write event, result and state, in this order; the result that was there stays inside the new one."""
    folder.prepare(task_id)
    events, result = folder.events(task_id), folder.result(task_id)
    _usable(events, lambda: read_events(events))
    before = _usable(result, lambda: load_object(result, RESULT_LIMIT_BYTES))
    if (
        before is not None and before.get("decision") == "closed"
    ):  # an earlier closing was killed right after it
        before = before.get("before")
    append_event(events, "closed", text=text)
    atomic_write_json(result, _closed_result(task_id, text, before))
    closed = State(task_id, "closed", "finished", state.round if state else 1, now_utc())
    atomic_write_json(folder.state(task_id), as_object(closed))


def _closed_result(task_id: str, text: str, before: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "decision": "closed",
        "reason": "closed_by_person",
        "task_id": task_id,
        "text": text,
        "decided_at": now_utc(),
        "before": before,
    }


def _usable(path: Path, load: Callable[[], Kind]) -> Kind | None:
    """Load a record; None where there is none. A damaged one is renamed: ``NAME.damaged``, ``-2``, and so on."""
    try:
        return load()
    except FileNotFoundError:
        return None
    except (BadFileError, CorruptEventsError):
        aside, attempt = path.with_name(f"{path.name}.damaged"), 1
        while os.path.lexists(aside):
            attempt += 1
            aside = path.with_name(f"{path.name}.damaged-{attempt}")
        path.rename(aside)
        return None
