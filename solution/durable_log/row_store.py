"""Events as rows of a database: what the stores over SQLite and PostgreSQL share (E17).

A row holds an event's line, byte for byte as a JSONL log would, so records, hashes and chain are the same everywhere
and one scanner proves them all. Beside the rows stands each session's head: the last event's number and hash.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, cast

import msgspec

from .contract import SCHEMA_VERSION, Durability, Event, EventSchemas, Report
from .errors import (
    ConflictError,
    CorruptLogError,
    DurableLogError,
    LogClosedError,
    QueueFullError,
    RefusedError,
    SecretError,
    UnknownVersionError,
)
from .limits import LONGEST_ID, Limits
from .placing import Placer, Request
from .reading import Scan
from .record import BEGINNING, Head, encode_data, encode_text, hash_of, same_data
from .secrets import SecretPolicy
from .session_folder import require_safe_id

MOST_TOGETHER = 500
"""Appends that go into one transaction, at most."""

Outcome = Event | DurableLogError
"""What became of one append of a transaction that was committed."""


class Row(NamedTuple):
    """One event as it is stored: its number, its id as a JSON string, its line with the newline."""

    sequence: int
    event_id: bytes
    line: bytes


class Snapshot(NamedTuple):
    """A session as it was at one moment: its head, and the rows up to it from some event on, page by page.

    `rows` is how many there are of all its rows, for whoever asked for it: counting reads them all.
    """

    head: Head
    pages: AsyncIterator[Sequence[Row]]
    rows: int | None = None


def place(
    session: str,
    head: Head,
    known: dict[str, Event],
    requests: Sequence[Request],
    *,
    record_bytes: int,
    same: Callable[[Any, Any], bool],
) -> tuple[list[Row], Head, list[Outcome]]:
    """Give new events their rows behind `head`. `known` holds the events that already have an id asked for here.

    A request that was placed before, in a transaction whose end nobody saw, is the event that bears its hash, if there is
    one; else it is placed again.
    """
    placer = Placer(
        session,
        head,
        {},
        record_bytes=record_bytes,
        find_event=lambda event_id, _: known.get(event_id),
        same=same,
    )
    rows: list[Row] = []
    outcomes: list[Outcome] = []
    for request in requests:
        if (before := request.event) and before == known.get(before.event_id):
            outcomes.append(before)
            continue
        request.line, request.event = b"", None
        try:
            placer.place(request)
        except (ConflictError, RefusedError) as refusal:
            outcomes.append(refusal)
            continue
        event = cast("Event", request.event)
        outcomes.append(event)
        if request.line:
            rows.append(Row(event.sequence, encode_text(event.event_id), request.line))
            known[event.event_id] = event
            head = Head(event.sequence, event.event_hash)
    return rows, head, outcomes


class _Pages:
    """Hands the lines of one page after the other to a scan."""

    def __init__(self) -> None:
        self.waiting = b""

    def read(self, _size: int) -> bytes:
        page, self.waiting = self.waiting, b""
        return page


class RowScan:
    """Proves rows in their order: numbers, links and hashes by the same scan as a file's, and the columns beside them."""

    def __init__(self, name: str, session: str, *, after: int, limits: Limits, newest: int | None) -> None:
        self.name = name
        self._after = after
        self._pages = _Pages()
        self._settings = {"session": session, "limits": limits, "newest": newest, "name": name}
        self.scan = self._scan_behind(BEGINNING)

    def _scan_behind(self, before: Head) -> Scan:
        return Scan(cast("IO[bytes]", self._pages), before=before, **self._settings)  # type: ignore[arg-type]

    def take(self, rows: Sequence[Row]) -> Iterator[Event]:
        """Give the events of the next rows, without the one at `after`, with which the rows begin when it is not 0.

        Raises: CorruptLogError, UnknownVersionError; at the bad place, behind the events before it.
        """
        if self._after and self.scan.head == BEGINNING:
            self.scan = self._scan_behind(self._head_in(rows[0]))
            rows = rows[1:]
        self._pages.waiting = b"".join(row.line for row in rows)
        due = iter(rows)
        for block in self.scan.blocks(final=False):
            for event, row in zip(block.events, due, strict=False):
                if (row.sequence, row.event_id) != (event.sequence, encode_text(event.event_id)):
                    raise self.corrupt("a row's number or id is not that of its line", line=row.sequence)
                yield event
        if next(due, None) is not None:
            raise self.corrupt("a row is not one line", line=self.scan.head.sequence + 1)

    def _head_in(self, row: Row) -> Head:
        line = row.line[:-1]
        event = _event(row.line)
        if event is None or event.sequence != self._after or event.event_hash != hash_of(line):
            raise self.corrupt("is not the record that is due", line=self._after)
        return Head(event.sequence, event.event_hash)

    def finish(self, head: Head) -> None:
        """Compare the last row with the head that is recorded. Raises: CorruptLogError."""
        if self.scan.head != head and self._after <= head.sequence:
            raise self.corrupt(
                f"ends at event {self.scan.head.sequence}, and event {head.sequence} is recorded as the last: rows were "
                "removed, added or altered"
            )

    def corrupt(self, reason: str, line: int | None = None) -> CorruptLogError:
        """Return the error that says so; a row counts as a line."""
        return CorruptLogError(self.name, reason, line=line)


def _event(line: bytes) -> Event | None:
    try:
        return _decode_event(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return next(iter(Scan(cast("IO[bytes]", _whole(line)), newest=None, verify_chain=False)), None)


def _whole(line: bytes) -> _Pages:
    pages = _Pages()
    pages.waiting = line
    return pages


_decode_event = msgspec.json.Decoder(Event).decode


class RowStore(ABC):
    """The queue before the database and the scan behind it; a database adds transactions and snapshots.

    Appends wait in the order of their calls and go into the database together, each in a transaction of its own under
    `durability="fsync"`. Implements `EventStore`.
    """

    def __init__(
        self,
        session: str,
        name: str,
        *,
        durability: Durability,
        limits: Limits,
        secrets: SecretPolicy,
        schemas: EventSchemas | None,
    ) -> None:
        """Prepare a store of the session; `name` says in messages where it lies. Raises: PlaceError."""
        require_safe_id(session)
        self.session = session
        self.name = f"{name}:{session}"
        self._durability = durability
        self._limits = limits
        self._secrets = secrets
        self._schemas = schemas
        self._newest = SCHEMA_VERSION if schemas is None else None
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Request | asyncio.Future[None]] = deque()
        self._working: asyncio.Task[None] | None = None
        self._why_closed = ""
        self._why_failed = ""
        self._closing: asyncio.Task[None] | None = None

    # --- What a database adds ---

    @abstractmethod
    async def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Store these behind the head, all in one transaction, and say what became of each.

        Raises: DurableLogError, OSError; then nothing of them is stored, unless the error says otherwise.
        """

    @abstractmethod
    def _snapshot(self, after: int, *, counted: bool = False) -> AbstractAsyncContextManager[Snapshot]:
        """Look at the session at one moment. The pages begin with the row at `after`, when that is not 0."""

    @abstractmethod
    async def _damage(self) -> str:
        """Have the database check itself; say what is wrong, or nothing."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Give up the connection."""

    # --- Append ---

    def append(
        self,
        type: str,  # noqa: A002 - the lesson's own parameter name
        data: Any,
        *,
        event_id: str | None = None,
        expected_version: int | None = None,
        causation_id: str | None = None,
        correlation_id: str | None = None,
    ) -> asyncio.Future[Event]:
        """Store one event at the end; see `EventStore.append`. The call itself takes the place in line.

        An append that was called is stored, whether somebody goes on waiting for it or not. With `limits.waiting`
        appends waiting, the next is refused with QueueFullError. OSError: the database could not store it.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(f"{self.name}: belongs to another event loop; open the session once in each")
        future: asyncio.Future[Event] = self._loop.create_future()
        try:
            self._check_names(type, event_id, causation_id, correlation_id)
            raw, copy = encode_data(data, self._limits.depth)
            if not self._secrets.clears(raw, copy) and (safe := self._secrets(copy)) is not copy:
                raw, copy = encode_data(safe, self._limits.depth)
            v = SCHEMA_VERSION if self._schemas is None else self._schemas.check(type, copy)
            given = (event_id, expected_version, causation_id, correlation_id)
            self._submit(Request(future, time.time_ns(), v, type, encode_text(type), raw, copy, *given))
        except DurableLogError as error:
            future.set_exception(error)
        return future

    def _check_names(self, type_: str, *ids: str | None) -> None:
        """Refuse what cannot be a type or an id. Raises: RefusedError."""
        for what, name in (("type", type_), *(("id", one) for one in ids if one is not None)):
            if name.__class__ is not str or not 1 <= len(name) <= LONGEST_ID:
                raise RefusedError(f"{what}: is not 1 to {LONGEST_ID} characters; choose another name")
            if self._secrets(name) is not name:
                raise SecretError(f"{what}: holds what looks like a secret; choose another name")
        if type_ != type_.strip():
            raise RefusedError("type: has white space around it; take it away")

    def _submit(self, request: Request) -> None:
        self._refuse_if(self._why_failed or self._why_closed)
        if len(self._waiting) >= self._limits.waiting:
            raise QueueFullError(
                f"{self.name}: {len(self._waiting)} appends wait already; await some of them before the next"
            )
        self._wait_in_line(request)

    def _refuse_if(self, reason: str) -> None:
        if reason:
            raise LogClosedError(f"{self.name}: {reason}; open it anew")

    def _wait_in_line(self, entry: Request | asyncio.Future[None]) -> None:
        self._waiting.append(entry)
        if self._working is None:
            self._working = self._loop.create_task(self._work())

    async def _work(self) -> None:
        """Serve the queue until it is empty."""
        try:
            while self._waiting:
                entry = self._waiting.popleft()
                if isinstance(entry, Request):
                    await self._store([entry, *self._others()])
                elif not entry.done():
                    entry.set_result(None)
        finally:
            self._working = None

    def _others(self) -> Iterator[Request]:
        most = 1 if self._durability == "fsync" else MOST_TOGETHER
        while most > 1 and self._waiting and isinstance(self._waiting[0], Request):
            most -= 1
            yield cast("Request", self._waiting.popleft())

    async def _store(self, requests: list[Request]) -> None:
        try:
            self._refuse_if(self._why_failed)
            outcomes: Sequence[Event | BaseException] = await self._commit(requests)
        except Exception as error:  # noqa: BLE001 - those who wait have to be told, whatever it is
            outcomes = [error] * len(requests)
        for request, outcome in zip(requests, outcomes, strict=True):
            if request.future.done():  # nobody waits any more
                continue
            if isinstance(outcome, Event):
                request.future.set_result(outcome)
            else:
                request.future.set_exception(outcome)

    def _same(self, stored: Any, given: Any) -> bool:
        return same_data(self._secrets.reveal(stored), self._secrets.reveal(given))

    def _place(
        self, head: Head, known: dict[str, Event], requests: Sequence[Request]
    ) -> tuple[list[Row], Head, list[Outcome]]:
        return place(
            self.session, head, known, requests, record_bytes=self._limits.record_bytes, same=self._same
        )

    def _known(self, line: bytes) -> Event:
        """Give the event that stands in a stored line. Raises: CorruptLogError."""
        event = _event(line)
        if event is None or event.event_hash != hash_of(line[:-1]):
            raise CorruptLogError(self.name, "a row's line is not the record that was stored")
        return event

    # --- Read ---

    async def _barrier(self) -> None:
        """Wait until everything that was called before is stored, or was refused."""
        self._refuse_if(self._why_failed or self._why_closed)
        if self._working is not None:
            reached: asyncio.Future[None] = self._loop.create_future()
            self._wait_in_line(reached)
            await reached

    async def read(self, *, after: int = 0) -> list[Event]:
        """Give the events behind sequence `after`; see `EventStore.read`."""
        await self._barrier()
        return [event async for event in self.stream(after=after)]

    async def stream(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Give the events that are committed now, one by one, in bounded memory; see `EventStore.stream`."""
        self._refuse_if(self._why_failed or self._why_closed)
        async with self._snapshot(after) as snapshot:
            scan = self._scan(after)
            async for page in snapshot.pages:
                for event in scan.take(page):
                    yield event if self._schemas is None else self._schemas.upcast(event)
            scan.finish(snapshot.head)

    def _scan(self, after: int) -> RowScan:
        return RowScan(self.name, self.session, after=after, limits=self._limits, newest=self._newest)

    async def version(self) -> int:
        """Give the last sequence; see `EventStore.version`."""
        await self._barrier()
        async with self._snapshot(0) as snapshot:
            return snapshot.head.sequence

    async def verify(self) -> Report:
        """Read everything and report; see `EventStore.verify`. `offset` and `good_bytes` are those of the same log as a file.

        Raises: UnknownVersionError; OSError when the database cannot be asked.
        """
        await self._barrier()
        scan = self._scan(0)
        try:
            if damage := await self._damage():
                raise scan.corrupt(damage)
            async with self._snapshot(0, counted=True) as snapshot:
                async for page in snapshot.pages:
                    for _ in scan.take(page):
                        pass
                scan.finish(snapshot.head)
                if snapshot.rows != snapshot.head.sequence:
                    raise scan.corrupt(f"has {snapshot.rows} rows, and {snapshot.head.sequence} are recorded")
        except UnknownVersionError:
            raise
        except CorruptLogError as damaged:
            report = scan.scan.report
            return msgspec.structs.replace(
                report, verdict="corrupt", reason=damaged.reason, line=damaged.line, torn_bytes=0
            )
        return scan.scan.report

    async def _check_end(self) -> None:
        """Prove the last event and the recorded head, at opening. Raises: CorruptLogError, UnknownVersionError."""
        async with self._snapshot(0) as snapshot:
            head = snapshot.head
        async for _ in self.stream(after=max(0, head.sequence - 1)):
            pass

    # --- The end ---

    async def close(self) -> None:
        """Finish what was called and disconnect; see `EventStore.close`."""
        self._why_closed = "is closed"
        if self._closing is None:
            self._closing = self._loop.create_task(self._finish())
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        if self._working is not None:
            await asyncio.wait([self._working])
        await self._disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()
