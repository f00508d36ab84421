"""A writer to be killed: appends events to a session, and tells of each answer and of each sync.

python -m labkit.experiments.homework.writer ROOT SESSION LEVEL EVENTS

append N       event N was answered: as durable as LEVEL promises
sync INODE N   the file with this number was synced when it had N bytes
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from solution.durable_log import Durability, DurableLog


def told(sync: Callable[[int], None]) -> Callable[[int], None]:
    """Give a sync that says what it synced."""

    def synced(descriptor: int) -> None:
        sync(descriptor)
        status = os.fstat(descriptor)
        print("sync", status.st_ino, status.st_size, flush=True)

    return synced


async def main(root: Path, session: str, level: Durability, events: int) -> None:
    """Append, then wait to be killed."""
    log = await DurableLog.open(session, root=root, durability=level)
    for number in range(1, events + 1):
        await log.append("step", {"number": number})
        print("append", number, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            setattr(os, name, told(getattr(os, name)))
    place, session_id, durability, count = sys.argv[1:]
    asyncio.run(main(Path(place), session_id, cast("Durability", durability), int(count)))
