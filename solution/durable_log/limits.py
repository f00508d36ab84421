"""How large a record, its nesting and the writer's queue may grow (E6)."""

from __future__ import annotations

import msgspec

LONGEST_ID = 200
"""Characters of an event id, a type, a cause or a correlation."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, lines with their newline. Every one may be set anew at each opening: none is stored.

    record_bytes   a longer record is refused at append; put large content among the blobs
    line_bytes     a longer line is refused at reading: what a reader holds in memory is bounded by it
    depth          levels of `[` and `{` that data may have
    segment_bytes  an active segment of this size is closed, and a new one begins
    waiting        appends that wait in the queue, at most
    """

    record_bytes: int = 1 << 20
    line_bytes: int = 16 << 20
    depth: int = 100
    segment_bytes: int = 32 << 20
    waiting: int = 1000

    def __post_init__(self) -> None:
        """Refuse sizes that cannot be kept. Raises: ValueError."""
        if min(self.record_bytes, self.line_bytes, self.depth, self.segment_bytes, self.waiting) < 1:
            raise ValueError("limits: each is at least 1; leave out those that you do not mean to set")
        if self.line_bytes < self.record_bytes:
            raise ValueError(
                "limits: line_bytes is below record_bytes, so a log could not be read back; raise it"
            )
        if self.depth > 200:
            raise ValueError("limits: depth is over 200, deeper than every JSON reader bears; lower it")
