"""What survives a killed process, what survives a power cut, and what that costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

from labkit import workspace
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import CorruptLogError, Durability, DurableLog, Scan

LEVELS: tuple[Durability, ...] = get_args(Durability)


def survivors(events: int = 20) -> Table:
    """Kill a writer at each durability level; then take from its log what no sync had covered (C22-29).

    The power cut is modelled at its worst: of a file, only the bytes that a sync covered are on the platter.
    """
    place = fresh_place("survivors")
    with ThreadPoolExecutor() as beside:
        rows = beside.map(lambda level: _killed(place / level, level, events), LEVELS)
        return Table(dict(zip(LEVELS, rows, strict=True)))


def _killed(root: Path, level: Durability, events: int) -> dict[str, Cell]:
    root.mkdir(mode=0o700)
    command = [sys.executable, "-m", "labkit.experiments.homework.writer", root, "demo", level, events]
    answered, synced = 0, dict[int, int]()
    with subprocess.Popen(
        list(map(str, command)),
        cwd=workspace.kit_root(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        for line in child.stdout or ():
            what, *numbers = line.split()
            if what == "sync":
                synced[int(numbers[0])] = int(numbers[1])
            else:
                answered = int(numbers[0])
            if answered == events:
                break
        child.kill()
    if answered != events:
        raise RuntimeError(f"writer: answered {answered} of {events} appends; run the cell again")
    log = next(root.glob("demo/0*.jsonl"))
    after_power_cut = root / "after-power-cut.jsonl"
    after_power_cut.write_bytes(log.read_bytes()[: synced.get(log.stat().st_ino, 0)])
    return {"answered": answered, "killed": readable(log), "power-cut": readable(after_power_cut)}


def readable(log: Path) -> int:
    """Return how many events can be read from a log."""
    scan = Scan(log)
    try:
        return sum(1 for _ in scan)
    except CorruptLogError:
        return scan.report.events


async def price_of_a_sync(callers: int = 100, each: int = 3) -> Table:
    """Let many callers append at once, at each level; count syncs and time (C22-30)."""
    place = fresh_place("price")
    return Table({level: await _timed(place, level, callers, each) for level in LEVELS})


async def _timed(root: Path, level: Durability, callers: int, each: int) -> dict[str, Cell]:
    waited: list[float] = []

    async def caller(log: DurableLog) -> None:
        for number in range(each):
            called = time.perf_counter()
            await log.append("step", {"number": number})
            waited.append(time.perf_counter() - called)

    log = await DurableLog.open(f"price-{level}", root=root, durability=level)
    syncs, started = log.metrics.syncs, time.perf_counter()
    await asyncio.gather(*(caller(log) for _ in range(callers)))
    seconds, syncs = time.perf_counter() - started, log.metrics.syncs - syncs
    await log.close()
    kept = readable(next((root / f"price-{level}").glob("0*.jsonl")))
    return {
        "answered": len(waited),
        "kept": kept,
        "syncs": syncs,
        "a-second": len(waited) / seconds,
        "delay-ms": 1000 * sorted(waited)[len(waited) // 2],
    }
