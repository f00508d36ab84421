"""What a log holds, in numbers: records by type, sizes, the time that it covers. Bounded memory, no content."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from .inspection import Entry

_MOST_TYPES = 1_000
_MILLISECONDS_FROM = 1e11  # larger epochs than this are in milliseconds


class Statistics:
    """Numbers over the records of one log; give each record to `add`."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.records = self.bytes = 0
        self.longest = (0, 0)
        self.first: datetime | None = None
        self.last: datetime | None = None

    def add(self, entry: Entry, type_: str) -> None:
        """Count one record, under a type that may be shown; the empty one counts what may not."""
        self.records += 1
        self.bytes += entry.size
        self.longest = max(self.longest, (entry.size, -entry.line))
        known = type_ in self.types or len(self.types) < _MOST_TYPES
        self.types[type_ if known else ""] += 1
        if (at := moment(entry.at)) is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    @property
    def a_second(self) -> float | None:
        """Give records a second over the time that the log covers; None when it covers none."""
        if self.first is None or self.last is None or self.first == self.last:
            return None
        return self.records / (self.last - self.first).total_seconds()


def moment(at: Any) -> datetime | None:
    """Give the moment that a record's time stands for: RFC 3339, or seconds or milliseconds since 1970; else None."""
    try:
        if isinstance(at, str) and len(at) <= 40:
            found = datetime.fromisoformat(at)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if type(at) in (int, float):
            return datetime.fromtimestamp(at / 1000 if abs(at) >= _MILLISECONDS_FROM else at, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
