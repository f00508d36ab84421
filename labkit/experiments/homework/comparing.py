"""The same events in four stores: a JSON snapshot, JSON lines, SQLite, PostgreSQL. What each costs, what each can do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from labkit.experiments.homework import postgres_here
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import CorruptLogError, Durability, DurableLog, DurableLogError, EventStore
from solution.durable_log.snapshot_store import SnapshotStore
from solution.durable_log.sqlite_store import SqliteStore

Open = Callable[[Path, Durability], Awaitable[EventStore]]


async def _snapshot(place: Path, durability: Durability) -> EventStore:
    return SnapshotStore(place / "events.json", "demo", durability=durability)


async def _lines(place: Path, durability: Durability) -> EventStore:
    return await DurableLog.open("demo", root=place, durability=durability)


async def _sqlite(place: Path, durability: Durability) -> EventStore:
    return await SqliteStore.open(place / "events.sqlite", "demo", durability=durability)


FILES: dict[str, Open] = {"snapshot": _snapshot, "jsonl": _lines, "sqlite": _sqlite}


async def four_stores(events: int = 200) -> Table:
    """Store the same events in each, synced one by one; then damage the file, and ask for what is left (C22-55)."""
    place = fresh_place("four-stores")
    rows: dict[str, dict[str, Cell]] = {}
    for name, open_store in FILES.items():
        folder = place / name
        folder.mkdir(mode=0o700)
        rows[name] = await _stored(await open_store(folder, "fsync"), events)
        rows[name] |= {"after-damage": await _after_damage(open_store, folder), **ABLE[name]}
    rows["postgresql"] = await _postgresql(events) | ABLE["postgresql"]
    return Table(rows)


ABLE: dict[str, dict[str, Cell]] = {
    "snapshot": {"many-writers": False, "query": "read-all"},
    "jsonl": {"many-writers": False, "query": "read-all"},
    "sqlite": {"many-writers": True, "query": "sql"},
    "postgresql": {"many-writers": True, "query": "sql"},
}


async def _stored(store: EventStore, events: int) -> dict[str, Cell]:
    started = time.perf_counter()
    for number in range(events):
        await store.append("step", {"number": number})
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    read = len(await store.read())
    read_seconds = time.perf_counter() - started
    await store.close()
    return {"kept": read, "a-second": events / seconds, "read-ms": 1000 * read_seconds}


async def _after_damage(open_store: Open, folder: Path) -> str:
    """Set half a page in the middle of the largest file to NUL, as a bad sector would; say whether it is noticed."""
    _damage(folder)
    try:
        store = await open_store(folder, "fsync")
        await store.read()
        await store.close()
    except (CorruptLogError, DurableLogError):
        return "refused-word"
    return "accepted"


def _damage(folder: Path) -> None:
    file = max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    raw = bytearray(file.read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 2048] = bytes(2048)
    file.write_bytes(raw)


async def _postgresql(events: int) -> dict[str, Cell]:
    server, why_not = await asyncio.to_thread(postgres_here.start)
    if server is None:
        return {"kept": why_not, "a-second": "–", "read-ms": "–", "after-damage": "–"}
    try:
        from solution.durable_log.postgres_store import PostgresStore  # noqa: PLC0415 - an extra

        store = await PostgresStore.open(server.conninfo, "demo", durability="fsync")
        return await _stored(store, events) | {"after-damage": "server-checks"}
    finally:
        await asyncio.to_thread(server.stop)


async def growth(events: tuple[int, ...] = (50, 100, 200)) -> Table:
    """Count the bytes that a snapshot and a log have written after so many events (C22-55)."""
    place = fresh_place("growth")
    rows: dict[str, dict[str, Cell]] = {"snapshot": {}, "jsonl": {}}
    for name, row in rows.items():
        for many in events:
            folder = place / f"{name}-{many}"
            folder.mkdir(mode=0o700)
            row[f"after-{many}"] = await _bytes_written(FILES[name], folder, many)
    return Table(rows)


async def _bytes_written(open_store: Open, folder: Path, events: int) -> int:
    """Return the bytes written: all of the snapshot each time, of a log what it grew by."""
    store, written, before = await open_store(folder, "os"), 0, 0
    for number in range(events):
        await store.append("step", {"number": number})
        now = _size(folder)
        written, before = written + (now if isinstance(store, SnapshotStore) else now - before), now
    await store.close()
    return written


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in [*folder.glob("events.json"), *folder.glob("demo/0*.jsonl")])
