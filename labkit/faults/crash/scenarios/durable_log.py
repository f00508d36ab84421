"""How `durable_log` is used and recovered at each of its levels: what the three scenarios of it share."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.faults.crash.promises import AFTER_CRASH
from labkit.faults.crash.scenarios.one_thread import OneThread, run
from solution.durable_log import Durability, DurableLog, DurableLogError, Limits, writer

SESSION = "crash"
TOGETHER = 4
"""Appends that wait for each other at the level `group`."""
_TWO_SEGMENTS = Limits(segment_bytes=2500)
"""Ten events fill one segment and begin another, so that a rotation is part of the recording."""

# Syncs and rotations are done on the spot, whatever they cost here, instead of in the writer's thread.
writer.BRIEF_SECONDS = math.inf
writer.ThreadPoolExecutor = OneThread  # type: ignore[attr-defined]


def work(folder: Path, events: int, acknowledge: Callable[[int], object], level: Durability) -> None:
    """Append the numbers from 1 to `events`: one after the other, or a few at a time where they share a sync."""
    size = TOGETHER if level == "group" else 1

    async def append(log: DurableLog, number: int) -> None:
        try:
            await log.append("event", {"n": number})
        except (OSError, DurableLogError):  # the disk said no, and the caller was told
            return
        acknowledge(number)

    async def append_all() -> None:
        async with await open_log(folder, level) as log:
            for first in range(1, events + 1, size):
                await asyncio.gather(
                    *(append(log, number) for number in range(first, min(first + size, events + 1)))
                )

    run(append_all())


def recover(folder: Path, level: Durability) -> dict[str, Any]:
    """Read; append one more with a log newly opened; read again with a third."""

    async def recovered() -> dict[str, Any]:
        report: dict[str, Any] = {"read": None, "error": None, "after": None}
        try:
            report["read"] = await _read(folder, level)
            async with await open_log(folder, level) as log:
                await log.append("event", {"n": AFTER_CRASH})
            report["after"] = await _read(folder, level)
        except Exception as error:  # noqa: BLE001 - which one it is, is the answer
            report["error"] = type(error).__name__
        return report

    return run(recovered())


async def _read(folder: Path, level: Durability) -> list[Any]:
    async with await open_log(folder, level) as log:
        return [event.data["n"] for event in await log.read()]


async def open_log(folder: Path, level: Durability) -> DurableLog:
    """Open the session below `folder`, which is its root."""
    return await DurableLog.open(SESSION, root=folder, durability=level, limits=_TWO_SEGMENTS)
