"""Sessions in PostgreSQL: many writers on many machines (E17). Needs the extra `postgres` (psycopg 3).

    async with await PostgresStore.open("host=db dbname=agents", "build-7") as store:
        await store.append("tool_result", {"ok": True})

Whoever appends to a session holds the row of its head until the commit, so numbers are contiguous whoever writes.

    durability   synchronous_commit   what a resolved append survives
    os           off                  the end of the writer; a crash of the server may take the last moment's events
    fsync        on                   a crash or power cut of the server; one transaction each
    group        on                   the same; one transaction for those that waited together

A connection that is lost while a commit is under way leaves its outcome unknown. The store connects anew, waits for the
head's row, by which the server has decided, and looks for the ids of the events: what is there is not stored twice.
"""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection, IsolationLevel, errors, sql

from .contract import Durability, Event, EventSchemas
from .errors import CorruptLogError, OutcomeUnknownError, PlaceError, UnknownVersionError
from .limits import Limits
from .placing import Request
from .record import BEGINNING, Head, encode_text
from .row_store import Outcome, Row, RowStore, Snapshot
from .secrets import SecretPolicy, redact

FORMAT_VERSION = 1
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_PAGE_ROWS = 500
_SETTING_UP = 0x53_4C_4F_47  # key of the advisory lock under which one of many processes makes the tables
_TABLES = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.format (version integer PRIMARY KEY);
CREATE TABLE IF NOT EXISTS {schema}.heads (session text PRIMARY KEY, sequence bigint NOT NULL, hash text NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.events (
    session text NOT NULL REFERENCES {schema}.heads,
    sequence bigint NOT NULL,
    event_id bytea NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (session, sequence),
    UNIQUE (session, event_id)
);
INSERT INTO {schema}.format SELECT {version} WHERE NOT EXISTS (SELECT 1 FROM {schema}.format);
"""


class PostgresStore(RowStore):
    """One session in a PostgreSQL database, over one connection, and one more for each read; opened by `open`."""

    _connection: AsyncConnection[tuple[Any, ...]] | None = None
    _conninfo: str
    _schema: str
    _reconnect_seconds: float

    @classmethod
    async def open(
        cls,
        conninfo: str,
        session: str,
        *,
        durability: Durability = "group",
        schema: str = "durable_log",
        reconnect_seconds: float = 30,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        secrets: SecretPolicy = redact,
        schemas: EventSchemas | None = None,
    ) -> Self:
        """Open a session for appends, or begin it; its tables are made when they are missing.

        Args:
            conninfo: where the database is, as libpq takes it; best without a password, which belongs in ~/.pgpass.
            session: its id, 1 to 80 letters, digits, `_` and `-`.
            durability: when an append resolves (see the module).
            schema: the PostgreSQL schema that holds the tables.
            reconnect_seconds: how long to try to reach the server again after the connection was lost.
            limits: sizes of records and of the queue.
            secrets: what happens to secrets before anything is written.
            schemas: what each type's data must look like; None takes any JSON value.

        Raises:
            CorruptLogError: the session's end is not what was recorded.
            UnknownVersionError: the tables were made by a newer program. They were not touched.
            PlaceError: an unsafe id or schema name. OSError: the database cannot be reached or used.
        """
        if not _PLAIN_NAME.fullmatch(schema):
            raise PlaceError(
                "schema: is not a plain name of at most 63 letters, digits and _; choose such a name"
            )
        store = cls(
            session,
            f"PostgreSQL, schema {schema}",
            durability=durability,
            limits=limits,
            secrets=secrets,
            schemas=schemas,
        )
        store._conninfo, store._schema, store._reconnect_seconds = conninfo, schema, reconnect_seconds
        try:
            with store._our_errors():
                await store._set_up(await store._writer())
            await store._check_end()
        except BaseException:
            await store._disconnect()
            raise
        return store

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Turn psycopg's errors, which may quote data and addresses, into ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self._error(error) from None

    def _error(self, error: psycopg.Error) -> Exception:
        code = error.sqlstate or type(error).__name__
        if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
            return CorruptLogError(self.name, f"PostgreSQL finds its files damaged ({code})")
        if isinstance(error, errors.UniqueViolation):
            return CorruptLogError(self.name, "has rows behind the event that is recorded as the last")
        if isinstance(error, errors.DiskFull):
            return OSError(errno.ENOSPC, "the server's disk is full", self.name)
        if isinstance(error, psycopg.OperationalError):
            return OSError(errno.ECONNABORTED, f"the database cannot be reached ({code})", self.name)
        return OSError(errno.EIO, f"PostgreSQL refused ({code})", self.name)

    def _query(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=sql.Identifier(self._schema), version=sql.Literal(FORMAT_VERSION))

    # --- Connections ---

    async def _connect(self) -> AsyncConnection[tuple[Any, ...]]:
        """Connect, for as long as the server may take to come back."""
        end = self._loop.time() + self._reconnect_seconds
        pause = 0.05
        while True:
            try:
                return await AsyncConnection.connect(self._conninfo, autocommit=True)
            except psycopg.OperationalError:
                if self._loop.time() + pause > end:
                    raise
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)

    async def _writer(self) -> AsyncConnection[tuple[Any, ...]]:
        """Give the connection that appends, made anew when the last was lost."""
        if self._connection is None or self._connection.broken or self._connection.closed:
            self._connection = await self._connect()
            synchronous = "off" if self._durability == "os" else "on"
            await self._connection.execute(
                "SELECT set_config('synchronous_commit', %s, false)", (synchronous,)
            )
        return self._connection

    async def _set_up(self, connection: AsyncConnection[tuple[Any, ...]]) -> None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETTING_UP,))
            await connection.execute(
                "SET LOCAL client_min_messages = warning"
            )  # IF NOT EXISTS says that it does
            if not await self._is_set_up(connection):
                await connection.execute(self._query(_TABLES))
            found = await (
                await connection.execute(self._query("SELECT version FROM {schema}.format"))
            ).fetchall()
            newest = max((version for (version,) in found), default=0)
            if newest > FORMAT_VERSION:
                raise UnknownVersionError(
                    f"{self.name}: its tables have version {newest}, and the newest known here is {FORMAT_VERSION}; open "
                    "it with a newer program; nothing was changed"
                )
            begin = self._query("INSERT INTO {schema}.heads VALUES (%s, %s, %s) ON CONFLICT DO NOTHING")
            await connection.execute(begin, (self.session, BEGINNING.sequence, BEGINNING.hash))

    async def _is_set_up(self, connection: AsyncConnection[tuple[Any, ...]]) -> bool:
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename IN ('format', 'heads', 'events')"
        row = await (await connection.execute(query, (self._schema,))).fetchone()
        return row == (3,)

    # --- Append ---

    async def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        try:
            return await self._transact(requests)
        except psycopg.OperationalError as error:
            if self._connection is not None and not self._connection.broken:
                raise self._error(error) from None
        except psycopg.Error as error:
            raise self._error(error) from None
        try:  # the connection was lost: nobody knows what became of the transaction
            return await self._transact(requests)
        except psycopg.Error as error:
            if not any(request.line for request in requests):
                raise self._error(error) from None
            raise OutcomeUnknownError(
                f"{self.name}: the connection was lost during a commit, and the server did not come back "
                f"({error.sqlstate or type(error).__name__}); append again with the same event id: that stores it once"
            ) from None

    async def _transact(self, requests: Sequence[Request]) -> list[Outcome]:
        connection = await self._writer()
        async with connection.transaction():
            head = await self._head(connection, lock=True)
            known = await self._events_with(connection, [*_ids_in(requests)])
            rows, head, outcomes = self._place(head, known, requests)
            if rows:
                insert = self._query("INSERT INTO {schema}.events VALUES (%s, %s, %s, %s)")
                async with connection.cursor(binary=True) as cursor:
                    await cursor.executemany(insert, [(self.session, *row) for row in rows])
                update = self._query("UPDATE {schema}.heads SET sequence = %s, hash = %s WHERE session = %s")
                await connection.execute(update, (head.sequence, head.hash, self.session))
        return outcomes

    async def _head(self, connection: AsyncConnection[tuple[Any, ...]], *, lock: bool = False) -> Head:
        query = "SELECT sequence, hash FROM {schema}.heads WHERE session = %s"
        query = f"{query} FOR UPDATE" if lock else query
        found = await (await connection.execute(self._query(query), (self.session,))).fetchone()
        if found is None:
            raise CorruptLogError(self.name, "has no recorded head")
        return Head(*found)

    async def _events_with(
        self, connection: AsyncConnection[tuple[Any, ...]], event_ids: list[str]
    ) -> dict[str, Event]:
        if not event_ids:
            return {}
        query = self._query("SELECT line FROM {schema}.events WHERE session = %s AND event_id = ANY(%s)")
        cursor = await connection.execute(
            query, (self.session, [encode_text(one) for one in event_ids]), binary=True
        )
        events = [self._known(line) async for (line,) in cursor]
        return {event.event_id: event for event in events}

    # --- Read ---

    @asynccontextmanager
    async def _snapshot(self, after: int, *, counted: bool = False) -> AsyncIterator[Snapshot]:
        """Read on a connection of its own, in one transaction that sees one moment."""
        with self._our_errors():
            reader = await self._connect()
            async with reader:
                await reader.set_autocommit(False)
                await reader.set_isolation_level(IsolationLevel.REPEATABLE_READ)
                await reader.set_read_only(True)
                head = await self._head(reader)
                count = None
                if counted:
                    query = self._query("SELECT count(*) FROM {schema}.events WHERE session = %s")
                    found = await (await reader.execute(query, (self.session,))).fetchone()
                    count = found[0] if found else 0
                yield Snapshot(head, self._pages(reader, max(1, after), head.sequence), count)

    async def _pages(
        self, reader: AsyncConnection[tuple[Any, ...]], first: int, last: int
    ) -> AsyncIterator[Sequence[Row]]:
        """Give pages from a cursor on the server, so that neither side holds the whole session."""
        query = self._query(
            "SELECT sequence, event_id, line FROM {schema}.events WHERE session = %s AND sequence BETWEEN %s AND %s "
            "ORDER BY sequence"
        )
        async with reader.cursor("pages", binary=True) as cursor:
            await cursor.execute(query, (self.session, first, last))
            while found := await cursor.fetchmany(_PAGE_ROWS):
                yield [Row(*row) for row in found]

    async def _damage(self) -> str:
        """Say nothing: the server looks after its files, and the scan proves every row."""
        return ""

    async def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                await self._connection.close()


def _ids_in(requests: Sequence[Request]) -> Iterator[str]:
    """Give the ids to look for: those that callers chose, and those of events that were placed before."""
    for request in requests:
        if request.event is not None:
            yield request.event.event_id
        elif request.event_id is not None:
            yield request.event_id
