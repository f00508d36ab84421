"""Old segments: compressed, removed, and needed once more when a checkpoint turns out to be damaged."""

from __future__ import annotations

import statistics
import time

from labkit.experiments.homework.steps import take_steps
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import Checkpoints, DurableLog, EventsRemovedError, RetentionError, replay
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import SessionFolder


async def seek_a_record(events: int = 10_000, records: int = 9) -> Table:
    """Read single records from all over a closed segment, plain and then compressed (C22-47)."""
    place = fresh_place("seek")
    async with await DurableLog.open("demo", root=place, durability="os") as log:
        await take_steps(log, events)
        await log.rotate()
        wanted = [events * part // records for part in range(1, records + 1)]
        rows = {"plain": _sought(log.folder, wanted)}
        await log.compress()
        rows["compressed"] = _sought(log.folder, wanted)
    return Table(rows)


def _sought(folder: SessionFolder, wanted: list[int]) -> dict[str, Cell]:
    segments = Segments.look(folder)
    segments.line(1)  # makes the index, once for all records
    found, seconds = 0, []
    for sequence in wanted:
        started = time.perf_counter()
        found += b'"sequence":%d,' % sequence in segments.line(sequence)
        seconds.append(time.perf_counter() - started)
    stored = next(folder.path.glob(f"{1:020d}.jsonl*"))
    return {
        "stored-kib": stored.stat().st_size >> 10,
        "found": found,
        "one-record-ms": 1000 * statistics.median(seconds),
    }


async def damage_a_checkpoint(events: int = 300) -> Table:
    """Damage a checkpoint while its segments are there, ask for their removal, and damage one behind a removal (C22-47)."""
    rows: dict[str, dict[str, Cell]] = {}
    async with await _checkpointed("retention-kept", events) as log:
        _damage(log.folder)
        rows["segments-kept"] = await _recovered(log)
        try:
            await log.remove_before(events + 1, confirmed=True)
        except RetentionError:
            rows["removal-asked"] = {"answer": "refused-word", "closed-segments": _closed(log)}
    async with await _checkpointed("retention-removed", events) as log:
        await log.remove_before(events + 1, confirmed=True)
        rows["checkpoint-sound"] = await _recovered(log)
        _damage(log.folder)
        rows["segments-removed"] = await _recovered(log)
    return Table(rows)


async def _checkpointed(name: str, events: int) -> DurableLog:
    """Open a session that has counted its events in a checkpoint, and went on for a few more."""
    log = await DurableLog.open("demo", root=fresh_place(name), durability="os")
    await take_steps(log, events)
    await log.checkpoint(await replay(log, _count, 0))
    await take_steps(log, 5, first=events)
    return log


def _count(state: int, _event: object) -> int:
    return state + 1


def _damage(folder: SessionFolder) -> None:
    """Flip one bit in the middle of the newest checkpoint."""
    path = Checkpoints(folder).paths()[0]
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


async def _recovered(log: DurableLog) -> dict[str, Cell]:
    applied = 0

    def count(state: int, _event: object) -> int:
        nonlocal applied
        applied += 1
        return state + 1

    try:
        replayed = await replay(log, count, 0, checkpoints=Checkpoints(log.folder))
    except EventsRemovedError:
        return {"answer": "lost-word", "closed-segments": _closed(log)}
    return {
        "answer": "recovered-word",
        "closed-segments": _closed(log),
        "begun-at": replayed.begun_at,
        "replayed": applied,
        "state": replayed.state,
    }


def _closed(log: DurableLog) -> int:
    return len(Segments.look(log.folder).closed)
