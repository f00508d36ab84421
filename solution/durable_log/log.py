"""`DurableLog`: one session's events, appended and read (docs/formats-durable.md says how they are stored).

async with await DurableLog.open("build-7", durability="group") as log:
    event = await log.append("tool_result", {"ok": True})
    history = await log.read()
"""

from __future__ import annotations

import asyncio
import os
import time
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from .backup import back_up
from .checkpoint import Checkpoints, Replayed
from .contract import SCHEMA_VERSION, Durability, Event, EventSchemas, Report
from .errors import ConflictError, CorruptLogError, DurableLogError, LogLockedError, RefusedError, SecretError
from .limits import LONGEST_ID, Limits
from .lock import SessionLock
from .manifest import Closed
from .metrics import Alert, Metrics
from .opening import OnTorn, Opened, open_for_appends
from .placing import Request
from .record import Head, encode_data, encode_text, same_data
from .retention import remove_before
from .secrets import SecretPolicy, redact
from .segments import Segments
from .session_folder import SessionFolder, open_session_folder
from .verification import verify_session
from .writer import WhenFull, Writer

_POLL_SECONDS = 0.05
_MOST_TYPES = 1000


class DurableLog:
    """One session's log, open for appends in this process, on one event loop. Implements `EventStore`."""

    def __init__(
        self,
        folder: SessionFolder,
        opened: Opened,
        lock: SessionLock,
        *,
        durability: Durability,
        limits: Limits,
        when_full: WhenFull,
        secrets: SecretPolicy,
        schemas: EventSchemas | None,
        metrics: Metrics,
        alert: Alert | None,
    ) -> None:
        """Wrap what `open` has opened; call that."""
        self.session = folder.session
        self.folder = folder
        self.metrics = metrics
        self._loop = get_running_loop()
        self._limits = limits
        self._depth = limits.depth
        self._types: dict[str, tuple[str, bytes]] = {}
        self._lock = lock
        self._secrets = secrets
        self._clears = secrets.clears
        self._schemas = schemas
        self._alert = alert
        self._writer = Writer(
            opened,
            self.session,
            self._same,
            durability=durability,
            limits=limits,
            when_full=when_full,
            metrics=metrics,
        )
        self._submit = self._writer.submit
        self._upkeep = asyncio.Lock()
        self._compressing: asyncio.Future[int] | None = None
        self._closing: asyncio.Task[None] | None = None
        lock.in_child = self._writer.disown

    @classmethod
    async def open(
        cls,
        session: str,
        *,
        root: str | os.PathLike[str] | None = None,
        durability: Durability = "group",
        on_torn: OnTorn = "repair",
        when_locked: Literal["refuse", "wait"] = "refuse",
        when_full: WhenFull = "wait",
        limits: Limits = Limits(),  # noqa: B008 - frozen
        secrets: SecretPolicy = redact,
        schemas: EventSchemas | None = None,
        alert: Alert | None = None,
    ) -> Self:
        """Open a session for appends, or begin it; this process is its one writer until `close`.

        Args:
            session: its id, 1 to 80 letters, digits, `_` and `-`.
            root: the folder that holds sessions; None for `LAB_STATE` or the user's state folder.
            durability: when an append resolves (see `Durability`).
            on_torn: mend what a crash left of an unfinished append, with a copy and an audit record, or refuse to open.
            when_locked: refuse while another process writes the session, or wait for its end.
            when_full: with `limits.waiting` appends waiting, "wait" lets the next call itself do the work that they wait
                for, so that calls keep their order and memory stays bounded; "refuse" raises QueueFullError.
            limits: sizes of records, lines, segments and the queue.
            secrets: what happens to secrets before anything is written.
            schemas: what each type's data must look like; None takes any JSON value.
            alert: called with every damage that is found.

        Raises:
            LogLockedError: another process, or another log in this one, writes the session.
            LockingUnsupportedError: the file system cannot lock.
            CorruptLogError, TornTailError, UnknownVersionError: the log cannot be continued; nothing was changed.
            PlaceError: an unsafe id or folder. OSError.
        """
        folder = open_session_folder(root, session)
        lock = await _take_lock(folder, wait=when_locked == "wait")
        metrics = Metrics()
        newest = SCHEMA_VERSION if schemas is None else None
        opening = get_running_loop().run_in_executor(
            None,
            lambda: open_for_appends(folder, limits=limits, newest=newest, on_torn=on_torn, metrics=metrics),
        )
        try:
            opened = await asyncio.shield(opening)
        except BaseException as error:
            # Also when somebody stopped waiting: the lock goes when the thread does not touch the files any more.
            if opening.done():
                _abandon(lock, opening)
            else:
                opening.add_done_callback(partial(_abandon, lock))
            if isinstance(error, CorruptLogError) and alert is not None:
                alert(error)
            raise
        return cls(
            folder,
            opened,
            lock,
            durability=durability,
            limits=limits,
            when_full=when_full,
            secrets=secrets,
            schemas=schemas,
            metrics=metrics,
            alert=alert,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()

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
        """Store one event at the end; see `EventStore.append`. Not `async`: the call itself takes the place in line.

        An append that was called is written, whether somebody goes on waiting for it or not: cancelling the future, or
        a timeout around it, ends the waiting alone. Give an `event_id` to repeat such an append safely.

        Raises at once only RuntimeError, when called outside the log's event loop. What else is wrong is raised where
        the future is awaited, OSError included, when the disk refused the write: then nothing of it is stored.
        """
        if get_running_loop() is not self._loop:
            raise RuntimeError(
                f"{self.folder.path}: belongs to another event loop; open the session once in each"
            )
        future: asyncio.Future[Event] = asyncio.Future(loop=self._loop)
        called_at = time.time_ns()
        try:
            known = self._types.get(type) if type.__class__ is str else None
            name, type_json = known or self._new_type(type)
            if event_id is not None or causation_id is not None or correlation_id is not None:
                self._check_ids(event_id, causation_id, correlation_id)
            raw, copy = encode_data(data, self._depth)
            if not self._clears(raw, copy):
                safe = self._secrets(copy)
                if safe is not copy:
                    raw, copy = encode_data(safe, self._depth)
            v = SCHEMA_VERSION if self._schemas is None else self._schemas.check(name, copy)
            self._submit(
                Request(
                    future,
                    called_at,
                    v,
                    name,
                    type_json,
                    raw,
                    copy,
                    event_id,
                    expected_version,
                    causation_id,
                    correlation_id,
                )
            )
        except (DurableLogError, OSError) as error:
            self._count(error)
            if not future.done():
                future.set_exception(error)
        return future

    def _new_type(self, type_: str) -> tuple[str, bytes]:
        """Check a type that is met for the first time. Raises: RefusedError."""
        if type(type_) is not str or not type_ or len(type_) > LONGEST_ID or type_ != type_.strip():
            raise RefusedError(
                f"type: is not 1 to {LONGEST_ID} characters without white space around them; give the event a name"
            )
        if self._secrets(type_) is not type_:
            raise SecretError("type: holds what looks like a secret; give the event another name")
        found = type_, encode_text(type_)
        if len(self._types) < _MOST_TYPES:
            self._types[type_] = found
        return found

    def _check_ids(self, *ids: str | None) -> None:
        """Refuse what cannot be an id. Raises: RefusedError."""
        for one in ids:
            if one is not None and (type(one) is not str or not 1 <= len(one) <= LONGEST_ID):
                raise RefusedError(
                    f"id: is not 1 to {LONGEST_ID} characters; choose a shorter name for the event"
                )
            if one is not None and self._secrets(one) is not one:
                raise SecretError("id: holds what looks like a secret; choose another name for the event")

    def _same(self, stored: Any, given: Any) -> bool:
        """Say whether data are the same, as read and as captured, though an encryption never gives the same twice."""
        return same_data(self._secrets.reveal(stored), self._secrets.reveal(given))

    def _count(self, error: Exception) -> None:
        if isinstance(error, ConflictError):
            self.metrics.conflicts += 1
        elif isinstance(error, RefusedError):
            self.metrics.refused += 1
        elif isinstance(error, CorruptLogError):
            self._found(error)

    def _found(self, damage: CorruptLogError) -> None:
        self.metrics.corruptions += 1
        if self._alert is not None:
            self._alert(damage)

    # --- Read ---

    async def read(self, *, after: int = 0, verify_chain: bool = True) -> list[Event]:
        """Give the events behind sequence `after`; see `EventStore.read`. Without `verify_chain`, hashes are not computed."""
        await self._writer.barrier()
        events: list[Event] = []
        async for some in self._blocks(after, verify_chain=verify_chain):
            events += some
        return events

    async def stream(self, *, after: int = 0, verify_chain: bool = True) -> AsyncIterator[Event]:
        """Give the events that are committed now, one by one, in bounded memory; see `EventStore.stream`."""
        async for some in self._blocks(after, verify_chain=verify_chain):
            for event in some:
                yield event

    async def _blocks(self, after: int, *, verify_chain: bool) -> AsyncIterator[list[Event]]:
        """Give the committed events in lists; the event loop gets a turn between them."""
        scans = self._writer.scans(
            after, verify_chain=verify_chain, newest=None if self._schemas else SCHEMA_VERSION
        )
        try:
            for scan in scans:
                for block in scan.blocks():
                    events = block.events
                    if events[0].sequence <= after:
                        events = events[max(0, after + 1 - events[0].sequence) :]
                    if self._schemas is not None:
                        events = [self._schemas.upcast(event) for event in events]
                    yield events
                    await asyncio.sleep(0)
        except CorruptLogError as damage:
            self._found(damage)
            raise

    async def version(self) -> int:
        """Give the last sequence; see `EventStore.version`."""
        await self._writer.barrier()
        return self._writer.committed.sequence

    async def verify(self) -> Report:
        """Read everything and report; see `EventStore.verify`. Runs in a thread beside the event loop."""
        await self._writer.barrier()
        report = await asyncio.to_thread(
            verify_session, self.folder, limits=self._limits, newest=None if self._schemas else SCHEMA_VERSION
        )
        if report.verdict == "corrupt":
            self._found(CorruptLogError(report.file, report.reason, line=report.line, offset=report.offset))
        return report

    # --- Segments, and the end ---

    async def rotate(self) -> Head:
        """Close the active segment behind the last event and begin another; gives that event. See `Segments.rotate`.

        Raises: LogClosedError.
        """
        await self._writer.barrier()
        return await self._writer.rotate()

    async def checkpoint(self, replayed: Replayed, *, keep: int = 2) -> Path:
        """Save where the log stands, so that the next replay begins there; the active segment is closed at that event.

        Raises: RefusedError, LimitError for a state that is no JSON value; LogClosedError; OSError, which closes the log.
        """
        await self._writer.barrier()
        if replayed.head == self._writer.committed:
            with suppress(RefusedError):  # it was rotated there already
                await self._writer.rotate()
        return await self._writer.alone(lambda _segments: Checkpoints(self.folder, keep=keep).save(replayed))

    async def remove_before(self, sequence: int, *, confirmed: bool) -> tuple[Closed, ...]:
        """Remove old segments behind a proved checkpoint, for good; see `retention.remove_before`.

        Raises: RetentionError, CorruptLogError; LogClosedError; OSError, which closes the log.
        """
        await self._writer.barrier()
        async with self._upkeep:
            await self._uncompressing()
            return await self._writer.alone(partial(remove_before, sequence=sequence, confirmed=confirmed))

    async def compress(self) -> int:
        """Compress closed segments beside the appends; returns how many. See `Segments.compress`.

        Raises: LogClosedError; CorruptLogError for a segment that is not what was closed; OSError, and nothing is lost.
        """
        await self._writer.barrier()
        async with self._upkeep:
            await self._uncompressing()
            self._writer.require_open()
            self._compressing = self._loop.run_in_executor(
                None, lambda: Segments.look(self.folder).compress()
            )
            return await asyncio.shield(self._compressing)

    async def _uncompressing(self) -> None:
        """Wait for a compression whose caller may have stopped waiting: it would bring back a segment that goes."""
        if self._compressing is not None:
            await asyncio.wait([self._compressing])

    async def back_up(self, target: str | os.PathLike[str], *, hard_links: bool = False) -> Report:
        """Copy the session as it is now to a new folder, beside the appends; see `backup.back_up`, and `restore`."""
        await self._writer.barrier()
        return await asyncio.to_thread(back_up, self.folder, target, hard_links=hard_links)

    async def close(self) -> None:
        """Finish what was called, record the head, give up the lock; see `EventStore.close`.

        Raises: OSError when the last sync or the record of the head failed: then the events since the sync before may
        be lost with the machine. The lock is given up all the same. Cancelling ends the waiting alone.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        elif self._closing.done():
            return
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._writer.close()
            await self._uncompressing()
        finally:
            self._lock.release()


async def _take_lock(folder: SessionFolder, *, wait: bool) -> SessionLock:
    while True:
        try:
            return SessionLock.take(folder.lock_path)
        except LogLockedError:
            if not wait:
                raise
        await asyncio.sleep(_POLL_SECONDS)


def _abandon(lock: SessionLock, opening: asyncio.Future[Opened]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().file.close()
    lock.release()
