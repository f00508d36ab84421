"""What a log counts about itself, and whom it calls when history is damaged (E14)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .errors import CorruptLogError

Alert = Callable[[CorruptLogError], None]
"""Called at once, in the thread that found it, with the damage that the same error then tells the caller."""

LATENCY_STEPS = 26
"""Steps of the histogram: step i counts what took less than 2**i microseconds, and the last everything longer."""


class Metrics(msgspec.Struct, kw_only=True):
    """Counts since the log was opened. Read it whenever you like; `snapshot` gives a copy.

    latency        appends by the time from call to answer: step i, less than 2**i microseconds. Of appends that were
                   stored together, each counts as the one of them that waited longest
    queue_depth    appends that waited when the last batch was taken from the queue; most_waiting is the most that did
    bytes_written  bytes of the appended lines
    replay_seconds time it took to read the active segment at opening
    """

    appends: int = 0
    conflicts: int = 0
    refused: int = 0
    write_failures: int = 0
    sync_failures: int = 0
    syncs: int = 0
    torn_recoveries: int = 0
    corruptions: int = 0
    rotations: int = 0
    bytes_written: int = 0
    queue_depth: int = 0
    most_waiting: int = 0
    replay_seconds: float = 0.0
    latency: list[int] = msgspec.field(default_factory=lambda: [0] * LATENCY_STEPS)

    def stored(self, count: int, size: int, nanoseconds: int) -> None:
        """Count `count` appends of `size` bytes that were answered after so long, at most."""
        self.appends += count
        self.bytes_written += size
        step = (nanoseconds // 1000).bit_length()
        self.latency[step if step < LATENCY_STEPS else -1] += count

    def latency_below(self, share: float) -> float:
        """Return the seconds within which `share` (0 to 1) of the appends were answered, rounded up to a step."""
        due = share * sum(self.latency)
        for step, count in enumerate(self.latency):
            due -= count
            if due <= 0:
                return float(2**step) / 1e6
        return 0.0

    def snapshot(self) -> Metrics:
        """Return a copy that stays as it is."""
        return msgspec.structs.replace(self, latency=list(self.latency))
