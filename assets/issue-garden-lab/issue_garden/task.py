"""Tasks: what one is, which names it may have, and the four folders that are its queue (P9)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from issue_garden.answers import blocked, refused
from issue_garden.json_files import BadFileError, load_object, require_fields

QUEUES = ("inbox", "processing", "done", "closed")
TASK_LIMIT_BYTES = 65_536
TASK_FIELDS = ("id", "title", "goal", "acceptance")

# fullmatch and [A-Za-z]: `$` would let a trailing newline pass, and `\w` letters such as é.
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_ACCEPTANCE = re.compile(r"acceptance/[A-Za-z0-9_-]+\.test\.mjs")
_DEVICES = {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)}


@dataclass(frozen=True)
class Task:
    """One task: ``document`` is the whole object as it stood in the file."""

    id: str
    title: str
    goal: str
    acceptance: str
    document: dict[str, Any]


def id_problem(task_id: str) -> str | None:
    """Say what is wrong with a task id, or None. Checked wherever an id enters, since it becomes a path."""
    if len(task_id) > 80:
        return f"ID 有 {len(task_id)} 个字符，最多 80 个 (the id has {len(task_id)} characters, 80 at most)"
    if not _ID.fullmatch(task_id):
        return "ID 只能用 A–Z a–z 0–9 _ - (an id uses only A–Z a–z 0–9 _ -)"
    if task_id.lower() in _DEVICES:
        return "ID 在一些系统上是设备名 (the id is the name of a device on some systems)"
    return None


def parse_task(value: dict[str, Any]) -> Task:
    """Turn a task's object into a ``Task``; ``BadFileError`` says which field is wrong."""
    require_fields(value, TASK_FIELDS)
    for name, most in (("id", 80), ("title", 200), ("goal", 4_000), ("acceptance", 200)):
        text = value[name]
        if not isinstance(text, str) or not text.strip() or "\0" in text:  # NUL fits into no argument
            raise BadFileError(
                "bad_value", f"{name} 不是可用的文本 ({name} is not a text, is blank, or holds NUL)"
            )
        if name != "id" and len(text) > most:
            raise BadFileError(
                "bad_value", f"{name} 超过 {most} 个字符 ({name} has more than {most} characters)"
            )
    if problem := id_problem(value["id"]):
        raise BadFileError("bad_id", problem)
    if not _ACCEPTANCE.fullmatch(value["acceptance"]):
        raise BadFileError(
            "bad_value",
            "acceptance 应形如 acceptance/NAME.test.mjs (acceptance looks like acceptance/NAME.test.mjs)",
        )
    return Task(value["id"], value["title"], value["goal"], value["acceptance"], value)


def load_task(lab: Path, queue: str, file_name: str, *, same_name: bool = True) -> Task:
    """Read a task from its queue, in one read. Anything wrong is refused, and the file stays where it is.

    With ``same_name`` its id must be the file's stem; a resume compares that name with the claim instead.
    """
    path = lab / "tasks" / queue / file_name
    try:
        if problem := id_problem(path.stem):
            raise BadFileError("bad_id", f"文件名: {problem} (file name)")
        task = parse_task(load_object(path, TASK_LIMIT_BYTES))
        if same_name and task.id != path.stem:
            raise BadFileError(
                "bad_id", f"id 是 {task.id!r}，与文件名不同 (id {task.id!r} differs from the file's name)"
            )
    except BadFileError as bad:
        advice = (
            "改好这个文件再运行；任务仍在原处 (correct the file and run again; the task stays where it is)"
        )
        where = f"tasks/{queue}/{file_name!r}"
        raise refused("bad_task", bad.cause, f"{where}: {bad.reason}; {advice}") from None
    return task


def list_queue(lab: Path, queue: str) -> list[str]:
    """Names of the task files in a queue, in order.

    Editors leave other things there (hidden files, folders, back-ups): they are no tasks. A symbolic link that is
    named like a task is listed, so that reading it refuses it: passing it over would hide it.
    """
    with os.scandir(lab / "tasks" / queue) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name.endswith(".json")
            and not entry.name.startswith(".")
            and (entry.is_symlink() or entry.is_file(follow_symlinks=False))
        )


def move_task(lab: Path, file_name: str, source: str, target: str) -> None:
    """Move a task from one queue to another, durably: it is in exactly one of them whenever the process dies.

    A rename would silently replace a task of the same name, so that is looked for first. The caller holds the
    runner's lock; no second runner can come between.
    """
    new = lab / "tasks" / target / file_name
    if os.path.lexists(new):
        raise blocked(
            "finish_incomplete",
            "wrong_queue",
            f"tasks/{target}/{file_name}: 那里已有同名任务 (a task of that name is already there); "
            "比较两个文件，再决定留哪一个 (compare the two files and decide which one stays)",
        )
    os.rename(lab / "tasks" / source / file_name, new)
    for queue in (target, source):
        sync_folder(lab / "tasks" / queue)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Windows has no such call: there a rename survives a kill, not a power cut."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
