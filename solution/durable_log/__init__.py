"""The engineering version of the event log: durable, chained, fast, and useful outside the classroom (E1-E17)."""

from __future__ import annotations

from .backup import back_up, restore
from .blobs import Blobs
from .checkpoint import Checkpoints, Replayed, replay
from .contract import Durability, Event, EventSchemas, EventStore, Report
from .effects import Effects
from .errors import (
    BlobError,
    ConflictError,
    CorruptLogError,
    DurableLogError,
    EventsRemovedError,
    IdReusedError,
    InDoubtError,
    LimitError,
    LockingUnsupportedError,
    LogClosedError,
    LogLockedError,
    OutcomeUnknownError,
    PlaceError,
    QueueFullError,
    RefusedError,
    RetentionError,
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
from .session_folder import SessionFolder, open_session_folder
from .verification import verify_session

__all__ = [
    "BlobError",
    "Blobs",
    "Checkpoints",
    "ConflictError",
    "CorruptLogError",
    "Durability",
    "DurableLog",
    "DurableLogError",
    "Effects",
    "Event",
    "EventSchemas",
    "EventStore",
    "EventsRemovedError",
    "Head",
    "IdReusedError",
    "InDoubtError",
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
    "Replayed",
    "Report",
    "RetentionError",
    "Scan",
    "SchemaError",
    "SecretError",
    "SessionFolder",
    "TornTailError",
    "UnknownVersionError",
    "back_up",
    "open_session_folder",
    "replay",
    "restore",
    "verify_session",
]
