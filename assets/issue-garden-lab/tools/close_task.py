"""Takes a task out of the loop by a person's decision (lesson 3): python tools/close_task.py ID"""

from __future__ import annotations

import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAB))  # started as a file, Python looks beside it only

from issue_garden.answers import Answer, answer_of, print_answer, refused  # noqa: E402
from issue_garden.task import id_problem, list_queue, move_task  # noqa: E402


def close() -> Answer:
    """Move the named task from ``processing`` to ``closed``."""
    if len(sys.argv) != 2:
        raise refused("bad_usage", "arguments", "用法 (usage): python tools/close_task.py ID")
    task_id = sys.argv[1]
    if problem := id_problem(task_id):
        raise refused("bad_usage", "bad_id", f"{task_id!r}: {problem}")
    if f"{task_id}.json" not in list_queue(LAB, "processing"):
        raise refused(
            "bad_usage", "unknown_task", f"{task_id}: 不在 tasks/processing 里 (is not in tasks/processing)"
        )
    move_task(LAB, f"{task_id}.json", "processing", "closed")
    return Answer("closed", "closed_by_person", details={"task_id": task_id})


if __name__ == "__main__":
    sys.exit(print_answer(answer_of(close)))
