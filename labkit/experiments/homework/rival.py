"""One of two processes that write the same log at the same time.

python rival.py no-lock|locked FOLDER EVENTS

Prints `ready`, waits for a line, appends its events, all called at once, and prints `done`. With `locked` it waits until
the log has no other writer. With `no-lock` it uses a store whose queue lives in this process, and is ready when the
first append has chosen its number and is about to write; the disk takes half a millisecond for each write.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from labkit import actions
from labkit.faults import file_layer
from labkit.naive import OwnQueueStore
from solution.durable_log import DurableLog

FIRST_WRITE = {"op": "write", "do": "hold", "seconds": 60}
EVERY_WRITE = {"op": "write", "do": "slow", "times": None, "seconds": 0.0005}


async def without_lock(folder: Path, events: int) -> None:
    """Append with nothing between this process and the other."""
    store = OwnQueueStore(folder / "events.jsonl")
    with actions.disturbed(folder, FIRST_WRITE, EVERY_WRITE):
        appends = asyncio.gather(*(store.append("step", {"pid": os.getpid()}) for _ in range(events)))
        while not any(one["op"] == "write" for one in file_layer.log()):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.001)
        await told_to_go()
        file_layer.release()
        await appends


async def with_lock(folder: Path, events: int) -> None:
    """Append while this process alone may."""
    await told_to_go()
    async with await DurableLog.open("demo", root=folder, durability="os", when_locked="wait") as log:
        await asyncio.gather(*(log.append("step", {"pid": os.getpid()}) for _ in range(events)))


async def told_to_go() -> None:
    """Say that this process is ready, and wait for a line."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    kind, place, many = sys.argv[1:]
    asyncio.run({"no-lock": without_lock, "locked": with_lock}[kind](Path(place), int(many)))
    print("done", flush=True)
