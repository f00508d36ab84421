"""What it costs to make the crash states of a log, against a loop that only copies the tree and takes its digest."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from labkit.faults.crash.states import build, states
from labkit.faults.crash.trace import Entry, Step, Trace
from tests.benchmarks.measure import Row, Spread, in_random_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

EVENTS, SIZE = 10, 200


def a_log(*, fsync: bool) -> Trace:
    """Make the trace of ten events, each written by itself and acknowledged."""
    steps = [Step(1, "create", 1, "log.jsonl")]
    for number in range(EVENTS):
        data = b'{"sequence":%d}' % number
        steps.append(
            Step(len(steps) + 1, "write", 1, "log.jsonl", at=number * SIZE, data=data.ljust(SIZE - 1) + b"\n")
        )
        if fsync:
            steps.append(Step(len(steps) + 1, "sync", 1, "log.jsonl"))
        steps.append(Step(len(steps) + 1, "acknowledge", value=number))
    return Trace((), tuple(steps))


def measure(rounds: int, draw: Random) -> Iterator[Row]:
    """Compare a full listing (synced events) and a bounded one (unsynced), in processor seconds."""
    for name, fsync, at_least in (("all", True, 0.25), ("a part", False, 0.08)):
        trace = a_log(fsync=fsync)
        found = states(trace, "weak")
        for _ in found:
            pass
        tree = build(trace, len(trace.steps), ()).tree
        variants = {"listed": _listing(trace), "copied": _copying(tree, found.tried)}
        ratios, speeds = [], []
        for seconds in in_random_order(variants, rounds, draw):
            ratios.append(seconds["copied"] / seconds["listed"])
            speeds.append(found.tried / seconds["listed"])
        title = f"crash states of a ten-event log, weak, {name}"
        yield Row(
            title, "a loop that copies the tree, and its digest", "×", Spread.of(ratios), at_least=at_least
        )
        yield Row(title, "processor time", "/s", Spread.of(speeds), at_least=20_000, gates=False)


def _listing(trace: Trace) -> Callable[[], float]:
    def run() -> float:
        start = time.process_time()
        for _ in states(trace, "weak"):
            pass
        return time.process_time() - start

    return run


def _copying(tree: dict[str, Entry], count: int) -> Callable[[], float]:
    def run() -> float:
        met = set()
        start = time.process_time()
        for _ in range(count):
            copied = {
                path: Entry(entry.kind, bytes(bytearray(entry.content)), entry.mode)
                for path, entry in tree.items()
            }
            whole = hashlib.blake2b(digest_size=16)
            for path, entry in copied.items():
                whole.update(path.encode() + entry.content)
            met.add(whole.digest())
        return time.process_time() - start

    return run
