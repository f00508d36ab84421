"""A whole round, killed at place after place: what several files say to each other afterwards, and what the next run says."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.experiments.left_out import need_reference
from labkit.experiments.lesson_04 import prepared
from labkit.experiments.lesson_04.garden import LAB, Garden, environment
from labkit.faults.round_sweep import MARK_CHANGES, Point, RoundRunner, fresh_copy, points, starts

SHOWN = ("write", "link", "replace", "rename")
"""The operations that give a file its content or its name; the others prepare them or make them durable."""
WORKERS = 2
_LEADS_TO = {
    "claim_started": "claiming",
    "claim_completed": "claimed",
    "agent_started": "agent_running",
    "agent_finished": "agent_finished",
    "decided": "finished",
}


@dataclass(frozen=True, slots=True)
class Strike:
    """One kill, what the disk then said, and what the next run answered.

    ``phase`` and ``last_event`` are None where there is no state or no event; ``starts`` counts the agent's over both
    runs; ``once``: the task was in exactly one queue, always; ``whole``: every JSON file was.
    """

    point: Point
    phase: str | None
    last_event: str | None
    places: tuple[str, ...]
    answer: dict[str, Any]
    starts: int
    once: bool
    whole: bool

    @property
    def disagreement(self) -> str | None:
        """Which two records tell different stories; None when all agree."""
        if self.phase == "claiming" and self.places == ("inbox",):
            return "queue-behind"
        if self.phase == "finished" and self.places == ("processing",):
            return "queue-behind"
        led = _LEADS_TO.get(self.last_event or "")
        return "state-behind" if led and led != self.phase else None


@dataclass(frozen=True, slots=True)
class Swept:
    """Every kill of a sweep."""

    strikes: tuple[Strike, ...]

    @property
    def goes_on_from(self) -> set[str | None]:
        """The phases from which the next run completed the task; None stands for no state at all."""
        return {strike.phase for strike in self.strikes if strike.answer["decision"] == "completed"}

    @property
    def disagreements(self) -> set[str]:
        """The kinds of disagreement that were met."""
        return {strike.disagreement for strike in self.strikes if strike.disagreement}

    def _repr_html_(self) -> str:
        from labkit.experiments.lesson_04.transcript import swept  # noqa: PLC0415 — as in Scenes

        return swept(self)


async def kill_everywhere(*, every: bool = False) -> Swept:
    """Kill a round of a quick lab at each operation that gives content or a name; or at ``every`` one that changes the disk (C04-17)."""
    need_reference()
    template = await asyncio.to_thread(prepared.template, "ready", "solution", quick=True)
    return Swept(tuple(await asyncio.to_thread(_sweep, template, every=every)))


def _sweep(template: Path, *, every: bool) -> list[Strike]:
    with _memory() as folder, RoundRunner(template, environment()) as first:
        whole = first.run(fresh_copy(template, folder / LAB), folder / "ledger", [MARK_CHANGES])
        wanted = [point for point in points(whole.log) if every or point.op in SHOWN]
        shares = [wanted[number::WORKERS] for number in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            done = pool.map(
                lambda job: _strike_all(template, folder / str(job[0]), job[1]), enumerate(shares)
            )
            return sorted((one for share in done for one in share), key=lambda one: wanted.index(one.point))


def _strike_all(template: Path, folder: Path, share: list[Point]) -> list[Strike]:
    folder.mkdir()
    with RoundRunner(template, environment()) as runner:
        return [_strike(runner, template, folder, point) for point in share]


def _strike(runner: RoundRunner, template: Path, folder: Path, point: Point) -> Strike:
    garden, ledger = Garden(fresh_copy(template, folder / LAB), []), folder / "ledger"
    ledger.unlink(missing_ok=True)
    runner.run(garden.root, ledger, [point.rule])
    phase = garden.record("state")["phase"] if garden.path("state").exists() else None
    last = garden.types()[-1:]
    places, whole = garden.places(), _whole(garden)
    answer = runner.run(garden.root, ledger).answer or {}
    once = len(places) == len(garden.places()) == 1
    return Strike(
        point,
        phase,
        last[0] if last else None,
        tuple(places),
        answer,
        starts(ledger),
        once,
        whole and _whole(garden),
    )


def _whole(garden: Garden) -> bool:
    records = [path for path in garden.loop.rglob("*.json") if not path.name.startswith(".")]
    try:
        return all(isinstance(json.loads(path.read_bytes()), dict) for path in records)
    except ValueError:
        return False


@contextmanager
def _memory() -> Iterator[Path]:
    """Give a folder in memory where there is such a place: a kill does not care, and a sync costs nothing there."""
    shared = Path("/dev/shm")  # noqa: S108 — a folder of our own below it
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)
