"""What every store of durable_log promises, whatever it keeps its events in (E1-E3, E10, E13, E17).

One suite, `tests/test_durable_conformance.py`, holds JSON lines, SQLite and PostgreSQL to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any, Literal, Protocol

import msgspec

Durability = Literal["os", "fsync", "group"]
"""When an append resolves.

os      its record was handed to the operating system: survives the death of the process, not of the machine
fsync   its record was synced by itself: survives power loss, as far as the drive tells the truth
group   its record was synced together with those that waited beside it: the same promise, one sync for many
"""

SCHEMA_VERSION = 1
GENESIS = "0" * 64
"""The `previous_hash` of a session's first event."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event as it was stored. Its fields, in this order, are the keys of its line (docs/formats-durable.md).

    `sequence` counts from 1 and is the only order; `occurred_at` (UTC, RFC 3339, microseconds) and the ids of cause
    and correlation inform. `event_hash` is over the stored bytes, `previous_hash` is that of the event before.
    """

    v: int
    session: str
    sequence: int
    event_id: str
    type: str
    data: Any
    occurred_at: str
    causation_id: str | None
    correlation_id: str | None
    previous_hash: str
    event_hash: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one read of a log found: the one answer that reader, inspector, verifier and repairer share (E10).

    verdict        sound · torn (only an unfinished last record; the events before it count) · corrupt
    events         valid events up to the end or to the first bad place; 0 says nothing about a corrupt log's rest
    last_sequence  the number of the last of them; 0 for none
    good_bytes     offset behind the last of them, in bytes from the start of the file that `file` names
    torn_bytes     bytes of the torn tail
    line, offset   1-based physical line and byte offset of the bad place, the torn tail included, in `file`; else None
    reason         what is wrong there, in words without a byte of the data
    log_hash       `event_hash` of the last valid event, GENESIS for none: two logs with equal hash are equal
    schema_version the newest record version that was met, 0 for none
    """

    verdict: Literal["sound", "torn", "corrupt"]
    file: str
    events: int
    last_sequence: int
    good_bytes: int
    torn_bytes: int = 0
    line: int | None = None
    offset: int | None = None
    reason: str = ""
    log_hash: str = GENESIS
    schema_version: int = 0


class EventSchemas(Protocol):
    """What each type's data must look like, and how old data becomes new (E4); `Schemas` is one."""

    def check(self, type: str, data: Any) -> int:  # noqa: A002
        """Return the version of the type's schema that `data` keeps; it is stored as the event's `v`.

        Raises: SchemaError for an unknown type or data that its schema refuses.
        """
        ...

    def upcast(self, event: Event) -> Event:
        """Return the event with its data in today's form; what is stored is not touched.

        Raises: UnknownVersionError for a type or version that is not known.
        """
        ...


class EventStore(Protocol):
    """One session's events. Every append has a number of its own; numbers are contiguous from 1."""

    session: str

    def append(
        self,
        type: str,  # noqa: A002 - the lesson's own parameter name
        data: Any,
        *,
        event_id: str | None = None,
        expected_version: int | None = None,
        causation_id: str | None = None,
        correlation_id: str | None = None,
    ) -> Awaitable[Event]:
        """Store one event at the end, in the order of the calls; resolve when it is as durable as was declared.

        A plain function or an `async` one: what is wrong is raised where its result is awaited.

        `data` is taken at the call: later changes of it change nothing. With an `event_id` that is there already,
        the first record is given back and nothing is written, also after a restart (E3).

        Raises:
            ConflictError: `expected_version` is not the last sequence; nothing was written.
            IdReusedError: the id belongs to an event of another type or other data.
            RefusedError: type, data or an id cannot be stored; a subclass says why (limits, schema, secrets).
            CorruptLogError: the log is damaged; nothing was written behind the damage.
            LogClosedError: the log was closed, or closed itself after a failed write or sync.
        """
        ...

    async def read(self, *, after: int = 0) -> list[Event]:
        """Give the events behind sequence `after`, every append called before this read included (E13).

        Raises: CorruptLogError.
        """
        ...

    def stream(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Give the events that are committed now, one by one, in bounded memory; appends under way may be missing.

        Raises: CorruptLogError, at the bad place.
        """
        ...

    async def version(self) -> int:
        """Give the last sequence, queued behind the appends called before; 0 for an empty session."""
        ...

    async def verify(self) -> Report:
        """Read everything, hashes and numbers included, and report. Never raises for damage, never changes a byte."""
        ...

    async def close(self) -> None:
        """Finish what was called, give up the lock. Closing twice is allowed."""
        ...
