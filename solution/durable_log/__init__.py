"""The engineering version of the event log: durable, chained, fast, and useful outside the classroom (E1-E17)."""

from __future__ import annotations

from .contract import Durability, Event, EventSchemas, EventStore, Report
from .errors import (
    ConflictError,
    CorruptLogError,
    DurableLogError,
    EventsRemovedError,
    IdReusedError,
    LimitError,
    LockingUnsupportedError,
    LogClosedError,
    LogLockedError,
    OutcomeUnknownError,
    PlaceError,
    QueueFullError,
    RefusedError,
    SchemaError,
    SecretError,
    TornTailError,
    UnknownVersionError,
)
from .limits import Limits
from .log import DurableLog
from .metrics import Metrics
from .reading import Scan
from .record import Head

__all__ = [
    "ConflictError",
    "CorruptLogError",
    "Durability",
    "DurableLog",
    "DurableLogError",
    "Event",
    "EventSchemas",
    "EventStore",
    "EventsRemovedError",
    "Head",
    "IdReusedError",
    "LimitError",
    "Limits",
    "LockingUnsupportedError",
    "LogClosedError",
    "LogLockedError",
    "Metrics",
    "OutcomeUnknownError",
    "PlaceError",
    "QueueFullError",
    "RefusedError",
    "Report",
    "Scan",
    "SchemaError",
    "SecretError",
    "TornTailError",
    "UnknownVersionError",
]
