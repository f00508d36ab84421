"""Every error of durable_log: `where: what; what to do next`, and never a byte of anybody's data."""

from __future__ import annotations


class DurableLogError(Exception):
    """The parent of all errors raised here on purpose."""


class CorruptLogError(DurableLogError):
    """Recorded history is damaged. `line` is 1-based and physical, `offset` in bytes; None where there are no lines."""

    def __init__(self, path: str, reason: str, *, line: int | None = None, offset: int | None = None) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {reason}; keep the file, look at it with: statelab log inspect")
        self.path = path
        self.reason = reason
        self.line = line
        self.offset = offset


class ConflictError(DurableLogError):
    """The writer's knowledge is old: the log is at `actual`, not at `expected`. Nothing was written."""

    def __init__(self, session: str, expected: int, actual: int) -> None:
        super().__init__(
            f"{session}: is at version {actual}, not {expected}; read what was added, decide anew, append again"
        )
        self.expected = expected
        self.actual = actual


class RefusedError(DurableLogError):
    """The event cannot be stored, and nothing was written. Subclasses say why."""


class IdReusedError(RefusedError):
    """The event id belongs to another event."""


class LimitError(RefusedError):
    """A record, its depth or its file would grow past a limit."""


class SchemaError(RefusedError):
    """The data is not what its type's schema asks for."""


class SecretError(RefusedError):
    """The data holds a secret, and the policy is to refuse."""


class UnknownVersionError(DurableLogError):
    """A record, type or manifest of a version that this code does not know. The file was not touched."""


class TornTailError(DurableLogError):
    """The log ends with an unfinished append, and it was opened to refuse rather than to repair. Nothing was changed."""


class LogLockedError(DurableLogError):
    """Another process writes this session."""


class LockingUnsupportedError(DurableLogError):
    """The file system cannot lock; writing without a lock is refused."""


class LogClosedError(DurableLogError):
    """The log is closed, by the caller or by itself after a failed write or sync; open it anew."""


class OutcomeUnknownError(DurableLogError):
    """The server was lost while it committed: the event may be stored or not. Repeating with the same event id is safe."""


class QueueFullError(DurableLogError):
    """Too many appends wait already, and the log was opened to refuse rather than to wait."""


class PlaceError(DurableLogError):
    """The session id or its folder is not acceptable: unsafe name, another owner, inside a Git work tree."""


class EventsRemovedError(DurableLogError):
    """A read asks for events that retention removed: those up to `sequence`, whose `event_hash` is `hash`."""

    def __init__(self, session: str, sequence: int, hash: str) -> None:  # noqa: A002 - as in Head
        super().__init__(
            f"{session}: events up to {sequence} were removed by retention; replay from a checkpoint behind them"
        )
        self.sequence = sequence
        self.hash = hash


class RetentionError(DurableLogError):
    """Old events are not covered by a proved checkpoint, or nobody confirmed that they may go. Nothing was removed."""


class BlobError(DurableLogError):
    """A big content is missing, altered, or not what its reference says."""


class InDoubtError(DurableLogError):
    """An effect was begun, and nothing says whether it was done: whoever can look outside the log has to decide."""
