"""Ways to keep a lab's state that are wrong on purpose, for the notebook of lesson 04. Each has one mistake.

They run in a child process that works in a lab: what they import is the lab's own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def move_first(desk: Any, task: Any, head: str) -> None:
    """Move the task, and write down afterwards what was moved. In between there is a task that nothing explains."""
    from issue_garden.records import Facts, State, as_object, new_claim, now_utc  # noqa: PLC0415 — the lab's
    from issue_garden.state_store import append_event, atomic_write_json, canonical_digest  # noqa: PLC0415
    from issue_garden.task import move_task  # noqa: PLC0415

    folder, file_name = desk.folder, f"{task.id}.json"
    move_task(desk.lab, file_name, "inbox", "processing")
    folder.prepare(task.id)
    digests = {
        "task_digest": canonical_digest(task.document),
        "contract_digest": canonical_digest(desk.contract.document),
        "head": head,
    }
    facts = Facts(task.id, task.document, **digests, recorded_at=now_utc())
    atomic_write_json(folder.facts(task.id), as_object(facts))
    atomic_write_json(folder.claim(task.id), as_object(new_claim(task.id, file_name, digests)))
    append_event(folder.events(task.id), "claim_started", round=1)
    append_event(folder.events(task.id), "claim_completed")
    atomic_write_json(folder.state(task.id), as_object(State(task.id, "active", "claimed", 1, now_utc())))


def save_in_place(path: Path, value: Any) -> None:
    """Write over the file itself: opening it for writing has already emptied it."""
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def save_from_elsewhere(path: Path, value: Any, elsewhere: Path) -> None:
    """Write a temporary file first, but in another folder: a rename cannot leave its disk."""
    temporary = elsewhere / f"{path.name}.{os.getpid()}.tmp"
    try:
        temporary.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
        os.replace(temporary, path)  # noqa: PTH105 — by the name under which the lesson speaks of it
    finally:
        temporary.unlink(missing_ok=True)


def main() -> None:
    """Run one round of the lab in the current folder, with a claim that moves first."""
    lab = Path.cwd()
    sys.path.insert(0, str(lab))
    from issue_garden import stateful_round  # noqa: PLC0415
    from issue_garden.agents import SimulatedAgent  # noqa: PLC0415
    from issue_garden.answers import answer_of, print_answer  # noqa: PLC0415

    stateful_round.claim_task = move_first
    sys.exit(print_answer(answer_of(lambda: stateful_round.run_round(lab, SimulatedAgent()))))


if __name__ == "__main__":
    main()
