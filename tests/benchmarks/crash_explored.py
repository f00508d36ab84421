"""How fast the crash lab recovers from states, how long a whole exploration takes, and that its memory stays flat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks.commands import KIT
from tests.benchmarks.measure import Row, Spread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PROGRAM = """
import json, resource, sys, time
from labkit.faults.crash.explorer import explore
store, model, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
started = time.perf_counter()
found = explore(store, model, events=10, limit=limit)
seconds = time.perf_counter() - started
print(json.dumps([found.explored, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


class Explored(NamedTuple):
    """What one exploration cost, in a process of its own: states recovered from, wall clock, most memory in KiB."""

    states: int
    seconds: float
    kibibytes: int


def measure(folder: Path, rounds: int) -> Iterator[Row]:
    """Explore in each round: the lesson to its end, durable_log and the spine for their pace, few states and many."""
    found = {
        name: [_explore(folder, *order) for _ in range(rounds)]
        for name, order in {
            "whole": ("lesson", "kill", 10_000),
            "log": ("durable-fsync", "weak", 2_000),
            "spine": ("spine", "kill", 300),
            "few": ("lesson", "weak", 2_000),
            "many": ("lesson", "weak", 20_000),
        }.items()
    }
    whole = Spread.of([one.seconds for one in found["whole"]])
    yield Row("crash lab, ten events of lesson 22, kill, every state", "wall clock", "s", whole, at_most=10)
    for name, shown, at_least in (
        ("log", "durable_log, fsync, weak", 500),
        ("spine", "the state spine, kill", 20),
    ):
        pace = Spread.of([one.states / one.seconds for one in found[name]])
        yield Row(
            f"crash lab, recovering: {shown}", "wall clock, its start included", "/s", pace, at_least=at_least
        )
    grown = [many.kibibytes / few.kibibytes for few, many in zip(found["few"], found["many"], strict=True)]
    yield Row(
        "crash lab, most memory for 20,000 states", "for 2,000 states", "×", Spread.of(grown), at_most=1.6
    )


def _explore(folder: Path, store: str, model: str, limit: int) -> Explored:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, store, model, str(limit)],
        cwd=KIT,
        env={**os.environ, "LAB_STATE": str(folder / "crash-state")},
        stdout=subprocess.PIPE,
        check=True,
    )
    return Explored(*json.loads(done.stdout))
