"""The whole-file JSON snapshot, to compare (E17): what many agents keep, and what this package is the answer to.

Every append writes the whole history anew over the old one. It has the face of an `EventStore` and keeps what it can of
its promises; `tests/test_durable_conformance.py` names those that it cannot keep.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from .contract import GENESIS, SCHEMA_VERSION, Durability, Event, Report
from .errors import (
    ConflictError,
    CorruptLogError,
    DurableLogError,
    IdReusedError,
    LogClosedError,
    RefusedError,
)
from .session_folder import require_safe_id


class SnapshotStore:
    """One session's events as one JSON array in one file. No lock, no chain, no limits; not for use."""

    def __init__(
        self, path: str | os.PathLike[str], session: str, *, durability: Durability = "group"
    ) -> None:
        """Read what is there. Raises: CorruptLogError when it is no such array; PlaceError for an unsafe id."""
        require_safe_id(session)
        self.session = session
        self._path = Path(path)
        self._durability = durability
        self._events = self._load()
        self._closed = False

    def _load(self) -> list[Event]:
        try:
            text = self._path.read_text(encoding="utf-8")
            events = msgspec.convert(json.loads(text), list[Event])
        except FileNotFoundError:
            return []
        except (ValueError, RecursionError):
            raise CorruptLogError(str(self._path), "is not an array of events") from None
        if [event.sequence for event in events] != list(range(1, len(events) + 1)):
            raise CorruptLogError(str(self._path), "its numbers are not contiguous")
        return events

    def append(
        self,
        type: str,  # noqa: A002 - as in the contract
        data: Any,
        *,
        event_id: str | None = None,
        expected_version: int | None = None,
        causation_id: str | None = None,
        correlation_id: str | None = None,
    ) -> asyncio.Future[Event]:
        """Write all events and this one behind them, at once; see `EventStore.append`."""
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(
                self._append(type, data, event_id, expected_version, causation_id, correlation_id)
            )
        except (DurableLogError, OSError) as error:
            future.set_exception(error)
        return future

    def _append(  # noqa: PLR0917 - those of the contract
        self,
        type_: str,
        data: Any,
        event_id: str | None,
        expected_version: int | None,
        causation_id: str | None,
        correlation_id: str | None,
    ) -> Event:
        if self._closed:
            raise LogClosedError(f"{self._path}: is closed; open it anew")
        for event in self._events:
            if event.event_id == event_id:
                if (event.type, event.data) != (type_, data):
                    raise IdReusedError(f"{self.session}: the event id is another event's; use a new one")
                return event
        if expected_version is not None and expected_version != len(self._events):
            raise ConflictError(self.session, expected_version, len(self._events))
        event = Event(
            v=SCHEMA_VERSION,
            session=self.session,
            sequence=len(self._events) + 1,
            event_id=event_id or uuid.uuid4().hex,
            type=type_,
            data=data,
            occurred_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            causation_id=causation_id,
            correlation_id=correlation_id,
            previous_hash=GENESIS,
            event_hash=GENESIS,
        )
        self._save([*self._events, event])
        self._events.append(event)
        return event

    def _save(self, events: list[Event]) -> None:
        try:
            text = json.dumps([msgspec.structs.asdict(event) for event in events])
        except (TypeError, ValueError, RecursionError):
            raise RefusedError("data: is no JSON value; convert it before you append") from None
        with self._path.open("w", encoding="utf-8") as file:
            file.write(text)
            if self._durability != "os":
                file.flush()
                os.fsync(file.fileno())

    async def read(self, *, after: int = 0) -> list[Event]:
        """Give the events of the file behind sequence `after`."""
        return self._load()[after:]

    async def stream(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Give the same one by one; all of them are in memory."""
        for event in await self.read(after=after):
            yield event

    async def version(self) -> int:
        """Give the last sequence."""
        return len(self._events)

    async def verify(self) -> Report:
        """Say whether the file can be parsed: there is nothing else to compare it with."""
        file = str(self._path)
        try:
            events = self._load()
        except CorruptLogError as damage:
            return Report(
                verdict="corrupt", file=file, events=0, last_sequence=0, good_bytes=0, reason=damage.reason
            )
        return Report(verdict="sound", file=file, events=len(events), last_sequence=len(events), good_bytes=0)

    async def close(self) -> None:
        """Refuse further appends."""
        self._closed = True
