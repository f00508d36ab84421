"""More appends than the disk can take: a queue that grows, one that makes callers wait, one that turns them away."""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass

from labkit import actions
from labkit.experiments.homework.curves import Curves
from labkit.experiments.homework.on_disk import lines
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import DurableLog, Limits
from solution.durable_log.writer import WhenFull

SLOW_DISK = {"op": ["fsync", "fdatasync"], "do": "slow", "times": None, "seconds": 0.005}
BOUND = Limits().waiting
QUEUES: dict[str, tuple[int, WhenFull]] = {
    "unbounded": (1 << 30, "wait"),
    "waits": (BOUND, "wait"),
    "refuses": (BOUND, "refuse"),
}
LOOKED_AT = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)


@dataclass(frozen=True, slots=True)
class Depths:
    """How many appends waited at most when so many had been called, by kind of queue; and what became of all of them."""

    waiting: Curves
    after: Table

    def _repr_html_(self) -> str:
        return self.waiting._repr_html_() + self.after._repr_html_()


async def queue_depths(appends: int = 10_000) -> Depths:
    """Fire so many appends at a slow disk, through each kind of queue, and count who waits (C22-40)."""
    place = fresh_place("queue")
    waiting: dict[str, dict[str, Cell]] = {}
    after: dict[str, dict[str, Cell]] = {}
    for kind, (bound, when_full) in QUEUES.items():
        with actions.disturbed(place, SLOW_DISK):
            limits = Limits(waiting=bound)
            async with await DurableLog.open(kind, root=place, limits=limits, when_full=when_full) as log:
                most, after[kind] = await _fire(log, appends)
        after[kind]["on-disk"] = len(lines(place / kind))
        for called, depth in most.items():
            waiting.setdefault(f"{called:,}", {})[kind] = depth
    return Depths(Curves(waiting, tuple(QUEUES)), Table(after))


async def _fire(log: DurableLog, appends: int) -> tuple[dict[int, int], dict[str, Cell]]:
    """Call append after append, awaiting none. Who waits was called, and is neither answered nor refused.

    Nobody keeps an answer, so the memory that is held is the queue's.
    """
    most, deepest, refused = dict[int, int](), 0, 0
    gc.collect()  # what others left behind is not to be freed within the measurement
    blocks, started = sys.getallocatedblocks(), time.perf_counter()
    for called in range(1, appends + 1):
        answer = log.append("step", {"number": called})
        refused += answer.done() and answer.exception() is not None
        deepest = max(deepest, called - log.metrics.appends - refused)
        if called in LOOKED_AT:
            most[called] = deepest
    seconds = time.perf_counter() - started
    gc.collect()  # refusals that nobody looks at any more
    held = sys.getallocatedblocks() - blocks
    await log.version()  # answered behind all of them
    return most, {"held-blocks": held, "calling-ms": 1000 * seconds, "refused-calls": refused}
