"""How the conformance suite opens each store, in this process and in another, and how somebody alters its bytes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from solution.durable_log import EventStore

KIT = Path(__file__).resolve().parents[1]


class Stored(NamedTuple):
    """One record as somebody with access to the bytes sees it; `event_id` is None where it is in the line alone."""

    sequence: int
    event_id: bytes | None
    line: bytes


class Kind:
    """One store over one empty place below `folder`, which a test may open as often as it likes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def opening(self) -> str:
        """Python that opens session `session` with keyword arguments `settings`."""
        raise NotImplementedError

    async def open(self, session: str = "tea", **settings: Any) -> EventStore:
        names: dict[str, Any] = {}
        exec(f"{IMPORTS}\nasync def opened(session, settings): return {self.opening}", names)
        return await names["opened"](session, settings)

    def alter(self, change: Callable[[list[Stored]], list[Stored]], session: str = "tea") -> None:
        """Give the records to `change` and put what it returns in their place, as a thief would: closed, underneath."""
        raise NotImplementedError

    def all_bytes(self) -> bytes:
        """Give everything that the store has written anywhere."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return b"\n".join(path.read_bytes() for path in files)

    def child(self, body: str) -> subprocess.Popen[str]:
        """Start a process that runs `body`, the inside of a coroutine with `store` open and `say(value)`."""
        lines = "\n    ".join(body.strip().split("\n"))
        program = (
            f"import asyncio, json, sys\n{IMPORTS}\n"
            "def say(value): print(json.dumps(value), flush=True)\n"
            f"async def main():\n    session, settings = 'tea', {{}}\n    store = {self.opening}\n    {lines}\n"
            "asyncio.run(main())\n"
        )
        return subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=KIT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


IMPORTS = """
from solution.durable_log import DurableLog
from solution.durable_log.postgres_store import PostgresStore
from solution.durable_log.snapshot_store import SnapshotStore
from solution.durable_log.sqlite_store import SqliteStore
"""


class JsonLines(Kind):
    """`DurableLog`, the log of this package."""

    @property
    def opening(self) -> str:
        return f"await DurableLog.open(session, root={str(self.folder)!r}, **settings)"

    def alter(self, change: Callable[[list[Stored]], list[Stored]], session: str = "tea") -> None:
        path = next((self.folder / session).glob("*.jsonl"))
        lines = path.read_bytes().splitlines(keepends=True)
        changed = change([Stored(number, None, line) for number, line in enumerate(lines, 1)])
        path.write_bytes(b"".join(record.line for record in changed))


class Sqlite(Kind):
    """`SqliteStore`."""

    @property
    def path(self) -> Path:
        return self.folder / "sessions.db"

    @property
    def opening(self) -> str:
        return f"await SqliteStore.open({str(self.path)!r}, session, **settings)"

    def alter(self, change: Callable[[list[Stored]], list[Stored]], session: str = "tea") -> None:
        where = (session,)
        with closing(sqlite3.connect(self.path)) as database, database:
            rows = database.execute(
                "SELECT sequence, event_id, line FROM events WHERE session = ? ORDER BY sequence", where
            )
            changed = change([Stored(*row) for row in rows])
            database.execute("DELETE FROM events WHERE session = ?", where)
            database.executemany(
                "INSERT INTO events VALUES (?, ?, ?, ?)", [(session, *row) for row in changed]
            )


class Postgres(Kind):
    """`PostgresStore`, in a schema of its own on the session's server."""

    def __init__(self, folder: Path, conninfo: str, schema: str, data: Path) -> None:
        super().__init__(folder)
        self.conninfo, self.schema, self.data = conninfo, schema, data

    @property
    def opening(self) -> str:
        return f"await PostgresStore.open({self.conninfo!r}, session, **{{'schema': {self.schema!r}, **settings}})"

    def alter(self, change: Callable[[list[Stored]], list[Stored]], session: str = "tea") -> None:
        events = sql.Identifier(self.schema, "events")
        with psycopg.connect(self.conninfo) as database, database.cursor(binary=True) as cursor:
            query = sql.SQL("SELECT sequence, event_id, line FROM {} WHERE session = %s ORDER BY sequence")
            rows = cursor.execute(query.format(events), (session,)).fetchall()
            changed = change([Stored(*row) for row in rows])
            cursor.execute(sql.SQL("DELETE FROM {} WHERE session = %s").format(events), (session,))
            insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, %s, %s)").format(events)
            cursor.executemany(insert, [(session, *row) for row in changed])

    def all_bytes(self) -> bytes:
        with psycopg.connect(self.conninfo, autocommit=True) as database:
            database.execute("CHECKPOINT")
        return b"\n".join(path.read_bytes() for path in self.data.rglob("*") if path.is_file())


class Snapshot(Kind):
    """`SnapshotStore`, which is to fail."""

    @property
    def path(self) -> Path:
        return self.folder / "state.json"

    @property
    def opening(self) -> str:
        return f"SnapshotStore({str(self.path)!r}, session, **{{'durability': 'os', **settings}})"

    def alter(self, change: Callable[[list[Stored]], list[Stored]], session: str = "tea") -> None:
        events = json.loads(self.path.read_bytes())
        changed = change([Stored(event["sequence"], None, json.dumps(event).encode()) for event in events])
        self.path.write_bytes(b"[" + b",".join(record.line for record in changed) + b"]")
