"""Sessions in one SQLite file: the embedded default for many sessions, and for programs that know SQL (E17).

    async with await SqliteStore.open("sessions.db", "build-7") as store:
        await store.append("tool_result", {"ok": True})

Several processes may write, also the same session; SQLite's own lock puts their transactions in an order. The file has
to lie on a local disk.

    durability   synchronous   what a resolved append survives
    os           NORMAL        the end of the process; a power cut may take the last events, never those before them
    fsync        FULL          a power cut; one transaction each
    group        FULL          the same; one transaction for those that waited together
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from .contract import Durability, Event, EventSchemas
from .errors import (
    CorruptLogError,
    LockingUnsupportedError,
    LogClosedError,
    LogLockedError,
    UnknownVersionError,
)
from .limits import Limits
from .placing import Request
from .record import BEGINNING, Head, encode_text
from .row_store import Outcome, Row, RowStore, Snapshot
from .secrets import SecretPolicy, redact
from .session_folder import private_subfolder, refuse_git

FORMAT_VERSION = 1
_APPLICATION_ID = 0x53_4C_4F_47  # "SLOG"
_PAGE_ROWS = 500
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS heads (
    session TEXT PRIMARY KEY NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    session TEXT NOT NULL REFERENCES heads,
    sequence INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    line BLOB NOT NULL,
    UNIQUE (session, sequence),
    UNIQUE (session, event_id)
);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
"""
_DAMAGED = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"})
_ERRNO = {"SQLITE_FULL": errno.ENOSPC, "SQLITE_READONLY": errno.EROFS, "SQLITE_CANTOPEN": errno.ENOENT}

Answer = TypeVar("Answer")


class SqliteStore(RowStore):
    """One session in a SQLite file. Its connection lives in one thread; opened by `open`."""

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        session: str,
        *,
        durability: Durability = "group",
        busy_seconds: float = 5,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        secrets: SecretPolicy = redact,
        schemas: EventSchemas | None = None,
    ) -> Self:
        """Open a session for appends, or begin it.

        Args:
            path: the database file; it is made, mode 0600, in a private folder, when it is missing.
            session: its id, 1 to 80 letters, digits, `_` and `-`.
            durability: when an append resolves (see the module).
            busy_seconds: how long to wait for another process's transaction.
            limits: sizes of records and of the queue.
            secrets: what happens to secrets before anything is written.
            schemas: what each type's data must look like; None takes any JSON value.

        Raises:
            CorruptLogError: no SQLite file, a damaged one, or one whose end is not what was recorded.
            UnknownVersionError: written by a newer program. It was not touched.
            LockingUnsupportedError: the file system cannot keep a write-ahead log.
            LogLockedError: another process wrote for longer than `busy_seconds`.
            PlaceError: an unsafe id or folder. OSError.
        """
        store = cls(
            session, os.fspath(path), durability=durability, limits=limits, secrets=secrets, schemas=schemas
        )
        store._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-store")
        try:
            await store._run(lambda: store._connect(Path(path).absolute(), busy_seconds))
            await store._check_end()
        except BaseException:
            await store._disconnect()
            raise
        return store

    _thread: ThreadPoolExecutor
    _database: sqlite3.Connection | None = None

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        """Do something with the database in its thread; SQLite's errors become ours."""

        def with_our_errors() -> Answer:
            with self._our_errors():
                return work()

        try:
            working = self._loop.run_in_executor(self._thread, with_our_errors)
        except RuntimeError:  # the thread was told to end, in the middle of somebody's stream
            raise LogClosedError(f"{self.name}: is closed; open it anew") from None
        return await asyncio.shield(working)

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "") or type(error).__name__
            raise self._error(code) from None

    def _error(self, code: str) -> Exception:
        kind = "_".join(code.split("_")[:2])
        if kind in _DAMAGED:
            return CorruptLogError(self.name, f"is no sound SQLite database ({code})")
        if kind in ("SQLITE_BUSY", "SQLITE_LOCKED"):
            return LogLockedError(
                f"{self.name}: another process writes for too long; nothing was stored; append again"
            )
        if code == "ProgrammingError":  # the connection was closed
            return LogClosedError(f"{self.name}: is closed; open it anew")
        if kind == "SQLITE_CONSTRAINT":
            return CorruptLogError(self.name, "has rows behind the event that is recorded as the last")
        if kind == "SQLITE_IOERR":
            # Once a sync has failed, nobody knows what a second one would say the truth about.
            self._why_failed = f"closed itself after a failed write or sync ({code})"
        return OSError(_ERRNO.get(kind, errno.EIO), f"SQLite could not store it ({code})", self.name)

    # --- In the thread ---

    def _connect(self, path: Path, busy_seconds: float) -> None:
        refuse_git(path.parent)
        private_subfolder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        database = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
        self._database = database
        version, application = (
            database.execute(f"PRAGMA {what}").fetchone()[0] for what in ("user_version", "application_id")
        )
        empty = not database.execute("SELECT 1 FROM sqlite_master").fetchone()
        if application == _APPLICATION_ID and version > FORMAT_VERSION:
            raise UnknownVersionError(
                f"{path}: has format version {version}, and the newest known here is {FORMAT_VERSION}; open it with a "
                "newer program; nothing was changed"
            )
        if application != _APPLICATION_ID and not empty:
            raise CorruptLogError(str(path), "is a SQLite database of another program")
        if database.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise LockingUnsupportedError(
                f"{path}: its file system cannot keep a write-ahead log; use a local disk"
            )
        database.execute(f"PRAGMA synchronous = {'NORMAL' if self._durability == 'os' else 'FULL'}")
        database.execute("PRAGMA fullfsync = ON")  # macOS: its fsync alone does not reach the drive
        if empty:
            database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT")
        begin = "INSERT INTO heads VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        database.execute(begin, (self.session, BEGINNING.sequence, BEGINNING.hash))

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._database is None:
            raise LogClosedError(f"{self.name}: is closed; open it anew")
        return self._database

    def _transact(self, requests: Sequence[Request]) -> list[Outcome]:
        database = self._connected
        database.execute("BEGIN IMMEDIATE")
        try:
            known = self._events_with([request.event_id for request in requests if request.event_id])
            rows, head, outcomes = self._place(self._head(), known, requests)
            database.executemany(
                "INSERT INTO events VALUES (?, ?, ?, ?)", [(self.session, *row) for row in rows]
            )
            database.execute(
                "UPDATE heads SET sequence = ?, hash = ? WHERE session = ?",
                (head.sequence, head.hash, self.session),
            )
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        return outcomes

    def _head(self) -> Head:
        return self._counted_head()[0]

    def _counted_head(self, *, counted: bool = False) -> tuple[Head, int | None]:
        """Give the head and, from the same moment, the number of rows."""
        count = "(SELECT count(*) FROM events WHERE session = :session)" if counted else "NULL"
        query = f"SELECT sequence, hash, {count} FROM heads WHERE session = :session"  # noqa: S608 - two fixed texts
        found = self._connected.execute(query, {"session": self.session}).fetchone()
        if found is None or (type(found[0]), type(found[1])) != (int, str):
            raise CorruptLogError(self.name, "has no recorded head")
        return Head(*found[:2]), found[2]

    def _events_with(self, event_ids: Sequence[str]) -> dict[str, Event]:
        """Give the events that have one of these ids; an id at a time, for SQLite limits the parameters of a query."""
        query = "SELECT line FROM events WHERE session = ? AND event_id = ?"
        found = {}
        for event_id in event_ids:
            for (line,) in self._connected.execute(query, (self.session, encode_text(event_id))):
                found[event_id] = self._known(line)
        return found

    def _page(self, first: int, last: int) -> list[Row]:
        query = (
            "SELECT sequence, event_id, line FROM events WHERE session = ? AND sequence BETWEEN ? AND ? "
            "ORDER BY sequence LIMIT ?"
        )
        rows = [
            Row(*found)
            for found in self._connected.execute(query, (self.session, first, last, _PAGE_ROWS)).fetchall()
        ]
        for row in rows:
            if tuple(map(type, row)) != (int, bytes, bytes):  # SQLite keeps any type in any column
                raise CorruptLogError(self.name, "a row is not of this format")
        return rows

    # --- What RowStore asks for ---

    async def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        return await self._run(lambda: self._transact(requests))

    @asynccontextmanager
    async def _snapshot(self, after: int, *, counted: bool = False) -> AsyncIterator[Snapshot]:
        """Fix the head: rows are only ever added behind it, so the pages up to it are those of this moment."""
        head, count = await self._run(lambda: self._counted_head(counted=counted))
        yield Snapshot(head, self._pages(max(1, after), head.sequence), count)

    async def _pages(self, first: int, last: int) -> AsyncIterator[Sequence[Row]]:
        while page := await self._run(partial(self._page, first, last)):
            yield page
            first = page[-1].sequence + 1

    async def _damage(self) -> str:
        found = await self._run(lambda: self._connected.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return "" if found == "ok" else "SQLite's own check finds the file damaged"

    async def _disconnect(self) -> None:
        def close() -> None:
            if self._database is not None:
                self._database.close()
                self._database = None

        if self._database is not None:
            await self._loop.run_in_executor(self._thread, close)
        self._thread.shutdown(wait=False)
