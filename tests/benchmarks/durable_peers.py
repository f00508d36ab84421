"""`durable_log` beside what else an agent could keep its events in: SQLite, and the logs of others (E17)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solution.durable_log.snapshot_store import SnapshotStore
from solution.durable_log.sqlite_store import SqliteStore
from tests.benchmarks import peers
from tests.benchmarks.durable_log import append_concurrently, append_one_by_one, fresh, sync_bare
from tests.benchmarks.event_log import TYPE
from tests.benchmarks.measure import Row, Spread, in_random_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

PROGRAM = Path(__file__).parent / "peer_logs.py"
_CALLERS = 100


def append_sqlite(folder: Path, data: list[dict[str, Any]], synchronous: str) -> float:
    """Time bare SQLite: write-ahead log, an INSERT and a commit an event."""
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {synchronous}")
        database.execute("CREATE TABLE events (sequence INTEGER PRIMARY KEY, type TEXT, data TEXT)")
        start = time.perf_counter()
        for sequence, one in enumerate(data, 1):
            text = json.dumps(one, ensure_ascii=False, separators=(",", ":"))
            database.execute("INSERT INTO events VALUES (?, ?, ?)", (sequence, TYPE, text))
        return time.perf_counter() - start


def append_sqlite_store(folder: Path, data: list[dict[str, Any]]) -> float:
    """Time `SqliteStore`, one by one, each event synced by itself."""

    async def all_of_it() -> float:
        async with await SqliteStore.open(folder / "store.db", "tea", durability="fsync") as store:
            start = time.perf_counter()
            for one in data:
                await store.append(TYPE, one)
            return time.perf_counter() - start

    return asyncio.run(all_of_it())


def append_snapshot(folder: Path, data: list[dict[str, Any]]) -> float:
    """Time the whole-file snapshot, each version of the file synced."""

    async def all_of_it() -> float:
        store = SnapshotStore(folder / "state.json", "tea", durability="fsync")
        start = time.perf_counter()
        for one in data:
            await store.append(TYPE, one)
        return time.perf_counter() - start

    return asyncio.run(all_of_it())


def append_peer(folder: Path, data: list[dict[str, Any]], way: str, programs: Path) -> float:
    """Time one of the peers in its environment; starting it does not count."""
    lines = folder / "data.jsonl"
    lines.write_text("\n".join(map(json.dumps, data)), encoding="utf-8")
    words = [str(programs / "python"), "-I", str(PROGRAM), way, str(folder / way), str(lines)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


class Contest:
    """Several ways over several rounds. Peers that cannot be installed here leave a note instead of figures."""

    def __init__(
        self, folder: Path, data: list[dict[str, Any]], ways: dict[str, Callable[[], float]]
    ) -> None:
        self._folder, self._data = folder, data
        self._ways = ways
        self._missing = ""
        self._results: list[dict[str, float]] = []

    def with_peers(self, *names: str) -> Contest:
        """Let these peers take part."""
        try:
            programs = peers.environment("eventlogs")
        except (OSError, RuntimeError) as error:
            self._missing = f"not measured: {error}"
            return self
        for name in names:
            self._ways[name] = partial(self._peer, name, programs)
        return self

    def _peer(self, name: str, programs: Path) -> float:
        return append_peer(fresh(self._folder), self._data, name, programs)

    def run(self, rounds: int, draw: Random) -> Contest:
        """Measure every way in every round."""
        self._results = list(in_random_order(self._ways, rounds, draw))
        return self

    def row(self, name: str, way: str, base: str, base_way: str, at_least: float | None = None) -> Row:
        """Say how many times as fast as the base a way is."""
        spread = None
        if base_way in self._ways:
            spread = Spread.of([seconds[base_way] / seconds[way] for seconds in self._results])
        note = "" if spread else self._missing
        return Row(name, base, "×", spread, at_least=at_least, gates=at_least is not None, note=note)


def compare_unsynced(folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random) -> Iterator[Row]:
    """Compare appends that nobody syncs with SQLite's cheapest level that survives the process, and with `jsonlines`."""
    contest = Contest(
        folder,
        data,
        {
            "callers": lambda: append_concurrently(fresh(folder), data, _CALLERS, "os"),
            "one": lambda: append_one_by_one(fresh(folder), data, "os"),
            "sqlite": lambda: append_sqlite(fresh(folder), data, "NORMAL"),
        },
    )
    contest.with_peers("jsonlines").run(rounds, draw)
    sqlite = "SQLite, WAL, NORMAL, an event a commit"
    yield contest.row(f"durable_log append, {_CALLERS} callers", "callers", sqlite, "sqlite", 3)
    yield contest.row("durable_log append, one by one", "one", sqlite, "sqlite", 3)
    yield contest.row("durable_log append, one by one", "one", "jsonlines, flushed", "jsonlines")


def compare_synced(folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random) -> Iterator[Row]:
    """Compare one synced event after the other with every peer that syncs, and the other stores of the package."""
    contest = Contest(
        folder,
        data,
        {
            "ours": lambda: append_one_by_one(fresh(folder), data, "fsync"),
            "bare": lambda: sync_bare(fresh(folder), data),
            "group": lambda: append_concurrently(fresh(folder), data, _CALLERS, "group"),
            "sqlite": lambda: append_sqlite(fresh(folder), data, "FULL"),
            "store": lambda: append_sqlite_store(fresh(folder), data),
            "snapshot": lambda: append_snapshot(fresh(folder), data),
        },
    )
    contest.with_peers("eventsourcing", "langgraph").run(rounds, draw)
    ours, group = "durable_log, an event an fsync", f"durable_log, group, {_CALLERS} callers"
    yield contest.row(ours, "ours", "a bare write + fsync loop", "bare", 0.9)
    yield contest.row(group, "group", ours, "ours", 12)
    yield contest.row(ours, "ours", "SQLite, WAL, FULL, an event a commit", "sqlite", 1.5)
    yield contest.row(ours, "ours", "eventsourcing's SQLite recorder", "eventsourcing", 1.5)
    yield contest.row(ours, "ours", "LangGraph's SQLite saver", "langgraph", 1.5)
    yield contest.row(ours, "ours", "SqliteStore, an event a commit", "store")
    yield contest.row(ours, "ours", f"a whole-file snapshot, {len(data):,} events", "snapshot")


def measure(
    folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random
) -> Iterator[tuple[str, Row | None]]:
    """Run every comparison with others; yield each step's title before it begins, then its rows."""
    yield "durable_log beside SQLite and jsonlines", None
    yield from (("unsynced", row) for row in compare_unsynced(folder, data, min(rounds, 5), draw))
    yield "durable_log beside all that sync", None
    yield from (("synced", row) for row in compare_synced(folder, data[:1000], rounds, draw))
