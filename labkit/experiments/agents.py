"""An agent to be killed: does one thing for each word on its input, and says ``done`` when it is done.

python -m labkit.experiments.agents memory|log FOLDER

step     one more step of its task: remembered, or appended to FOLDER/task.jsonl
call     the log says that a mail is about to be sent
effect   the mail is sent: one line in FOLDER/outside/mails-sent.txt, where no log can see it
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from solution.lesson_22 import JsonlSessionStore

UNFINISHED = "unfinished: "
"""Begins the answer of an agent whose kit was handed out without the reference's store."""


async def main(kind: str, folder: Path) -> None:
    """Serve words until the input ends, or somebody kills the process."""
    store = JsonlSessionStore(folder / "task.jsonl")
    remembered: list[int] = []
    for word in map(str.strip, sys.stdin):
        if word == "effect":
            _send_mail(folder / "outside")
        elif word == "call":
            await store.append("tool_called", {"todo_id": "todo-1", "call_id": "call-1", "tool": "send_mail"})
        elif kind == "log":
            await store.append("step", len(await store.read()) + 1)
        else:
            remembered.append(len(remembered) + 1)
        print("done", flush=True)


def _send_mail(outside: Path) -> None:
    outside.mkdir(exist_ok=True)
    with (outside / "mails-sent.txt").open("a") as file:
        file.write("one mail\n")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
    except NotImplementedError as error:
        print(f"{UNFINISHED}{error}", flush=True)
