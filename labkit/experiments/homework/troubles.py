"""Five logs, four of them in trouble, and what each counted about itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from labkit import actions
from labkit.experiments.homework.half_written import SEGMENT, SYNCS, killed_append
from labkit.experiments.homework.steps import take_steps
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import CorruptLogError, DurableLog

CALLERS = 30
SLOW = {"op": SYNCS, "match": SEGMENT, "do": "slow", "seconds": 0.01, "times": None}
FULL_DISK = {"op": "write", "match": SEGMENT, "do": "ENOSPC", "nth": 3, "times": 2}

Alerts = list[CorruptLogError]


async def cause_trouble() -> Table:
    """Slow a disk, fill it, kill a writer, damage a line; read the counters of each log, and hear its alerts (C22-50)."""
    place = fresh_place("troubles")
    causes: dict[str, Callable[[Path, Alerts], Awaitable[DurableLog]]] = {
        "quiet": _quiet,
        "slow": _slow,
        "full-disk": _full_disk,
        "killed-writer": _killed_writer,
        "damaged-line": _damaged_line,
    }
    rows: dict[str, dict[str, Cell]] = {}
    for name, cause in causes.items():
        root, alerts = place / name, Alerts()
        root.mkdir(mode=0o700)
        log = await cause(root, alerts)
        await log.close()
        counted = log.metrics
        rows[name] = {
            "appends": counted.appends,
            "latency-ms": 1000 * counted.latency_below(0.9),
            "most-waiting": counted.most_waiting,
            "write-failures": counted.write_failures,
            "torn-recoveries": counted.torn_recoveries,
            "corruptions": counted.corruptions,
            "alert-line": (alerts and alerts[0].line) or "–",
        }
    return Table(rows)


async def _append(log: DurableLog) -> None:
    """Let many append at once, as agents and their tools do; who is refused goes on without."""

    async def caller(number: int) -> None:
        with suppress(OSError):
            await log.append("step", {"number": number})

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))


async def _quiet(root: Path, alerts: Alerts) -> DurableLog:
    log = await DurableLog.open("demo", root=root, alert=alerts.append)
    await take_steps(log, CALLERS)
    return log


async def _slow(root: Path, alerts: Alerts) -> DurableLog:
    with actions.disturbed(root, SLOW):
        log = await DurableLog.open("demo", root=root, durability="fsync", alert=alerts.append)
        await _append(log)
    return log


async def _full_disk(root: Path, alerts: Alerts) -> DurableLog:
    with actions.disturbed(root, FULL_DISK):
        log = await DurableLog.open("demo", root=root, durability="fsync", alert=alerts.append)
        await _append(log)
    return log


async def _killed_writer(root: Path, alerts: Alerts) -> DurableLog:
    await asyncio.to_thread(killed_append, root, 3)
    return await _quiet(root, alerts)


async def _damaged_line(root: Path, alerts: Alerts) -> DurableLog:
    log = await _quiet(root, alerts)
    file = next(log.folder.path.glob(SEGMENT))
    file.write_bytes(file.read_bytes().replace(b'"number":6', b'"number":9'))
    with suppress(CorruptLogError):
        await log.read()
    return log
