"""Does the memory agree with the queue? Asked at every start, before anything is touched (P8, P15). Given.

A task's file and its records cannot change in one step. So after a crash, or after somebody moved a file by hand, they
may tell two stories. This module names the difference; only a person can know which story is true.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from issue_garden.answers import blocked
from issue_garden.json_files import BadFileError
from issue_garden.records import State
from issue_garden.state_store import StateFolder
from issue_garden.task import QUEUES, id_problem, list_queue

_HOME = {"active": "processing", "completed": "done", "rejected": "processing", "closed": "closed"}


def places_of(lab: Path, task_id: str) -> list[str]:
    """Return the queues that hold a task of this id; ids that differ in case only are one id."""
    name = f"{task_id}.json".lower()
    return [queue for queue in QUEUES if any(found.lower() == name for found in list_queue(lab, queue))]


def check_records(folder: StateFolder) -> None:
    """Compare every state with the queue. Raises StoppedError for the first, by id, that disagrees."""
    for task_id, kinds in sorted(folder.records().items()):
        check_record(folder, task_id, kinds)


def check_record(folder: StateFolder, task_id: str, kinds: list[str]) -> None:
    """Compare one task's state with where its file is. Nothing raised: they agree, and the task is active or at rest."""
    if problem := id_problem(task_id):
        _incomplete(
            task_id, "bad_record_name", f".loop: 有不合法的任务名 (holds an impossible task name): {problem}"
        )
    places = places_of(folder.lab, task_id)
    try:
        state = folder.load_state(task_id)
    except FileNotFoundError:
        if "inbox" in places:
            _exists(task_id, kinds[0], kinds)
        _incomplete(
            task_id,
            "state_missing",
            f".loop: 有 {task_id} 的 {', '.join(kinds)}，却没有 state (has {', '.join(kinds)} of {task_id}, and no state)",
        )
    except BadFileError as bad:
        _incomplete(task_id, "state_invalid", f"{folder.relative(folder.state(task_id))}: {bad.reason}")
    if state.task_id != task_id:
        reason = f"写着另一个任务 {state.task_id} (speaks of another task, {state.task_id})"
        _incomplete(task_id, "state_invalid", f"{folder.relative(folder.state(task_id))}: {reason}")
    _compare(state, places, kinds)


def _compare(state: State, places: list[str], kinds: list[str]) -> None:
    task_id, home = state.task_id, _HOME[state.status]
    if places == ["inbox"] and state.phase == "claiming":
        stop_resume(
            task_id,
            "phase_claiming",
            "领取没有做完，任务还在 inbox (claiming was cut short; the task is still in the inbox)",
        )
    if "inbox" in places:
        _exists(task_id, kinds[0], kinds)
    if state.status == "rejected" and places == ["processing"]:
        raise blocked(
            "needs_person",
            "rejected",
            f"tasks/processing/{task_id}.json: 上一轮没有通过；看 .loop/results/{task_id}.json 和 git diff，再用 "
            f"tools/close_task.py 关闭 (its round was rejected; look at the result and at git diff, then close it)",
            task_id=task_id,
        )
    if places == [home] or (state.status == "closed" and not places):
        return
    if not places:
        _incomplete(
            task_id,
            "task_missing",
            f"{task_id}: 状态是 {state.status}，任务文件却不在任何队列里 (is {state.status}, and in no queue)",
        )
    if places == ["processing"]:
        _incomplete(
            task_id,
            "still_in_processing",
            f"tasks/processing/{task_id}.json: 状态已是 {state.status}，只差最后一次移动；看过结果后把它移到 tasks/{home} "
            f"(is already {state.status} and only its last move is missing; look at the result, then move it to tasks/{home})",
        )
    _incomplete(
        task_id,
        "wrong_queue",
        f"{task_id}: 状态是 {state.status}，文件却在 {', '.join(places)} (is {state.status}, and its file is in {', '.join(places)})",
    )


def check_unknown(folder: StateFolder, task_id: str) -> None:
    """Make sure that a task about to be claimed is new: ids are never reused, not even one that left no record (P8)."""
    for known, kinds in folder.records().items():
        if known.lower() == task_id.lower():
            _exists(task_id, kinds[0], kinds)
    for queue in places_of(folder.lab, task_id):
        if queue != "inbox":
            _exists(task_id, queue, [])


def stop_resume(task_id: str, cause: str, what: str, **details: object) -> NoReturn:
    """Answer ``unsafe_resume``: going on could do a thing twice, so nothing is touched."""
    advice = (
        "先看 git diff、任务文件和 .loop 里的记录，弄清 Agent 是否开始过 "
        "(first look at git diff, the task and its records in .loop: did an agent begin?)"
    )
    raise blocked("unsafe_resume", cause, f"{task_id}: {what}; {advice}", task_id=task_id, **details)


def _exists(task_id: str, cause: str, kinds: list[str]) -> NoReturn:
    raise blocked(
        "claim_exists",
        cause,
        f"tasks/inbox/{task_id}.json: 这个 ID 用过了（{cause}）；关闭旧任务，用新 ID 提交 "
        f"(this id was used before, see {cause}; close the old task and hand in a new one under a new id)",
        task_id=task_id,
        records=kinds,
    )


def _incomplete(task_id: str, cause: str, what: str) -> NoReturn:
    raise blocked("finish_incomplete", cause, what, task_id=task_id)
