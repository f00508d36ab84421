"""Where looking beats reading: who did what when, and which cut gives which verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class TracedStep(Protocol):
    """What ``labkit.actions.race`` returns: one step of one caller, between two ticks that all callers share."""

    @property
    def lane(self) -> str:
        """Who did it."""
        ...

    @property
    def kind(self) -> str:
        """``call`` (append called until it resolved), ``read`` or ``write``."""
        ...

    @property
    def began(self) -> int:
        """Tick at which it began."""
        ...

    @property
    def ended(self) -> int:
        """Tick at which it ended, greater than ``began``."""
        ...

    @property
    def number(self) -> int | None:
        """The last sequence read, or the one written."""
        ...


@dataclass(frozen=True, slots=True)
class Bar:
    """One step as a bar: its lane's row, its ticks (from 0, without gaps), its word and its number."""

    lane: int
    kind: str
    began: int
    ended: int
    word: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Lanes:
    """A race as lanes side by side, and the same told in sentences, in the order of the ticks."""

    names: tuple[str, ...]
    bars: tuple[Bar, ...]
    ticks: int
    told: tuple[str, ...]


def lanes(steps: Iterable[TracedStep]) -> Lanes:
    """Lay the steps of a race out in lanes, one for each caller, in the order in which they were called."""
    ordered = sorted(steps, key=lambda step: step.began)
    names = tuple(dict.fromkeys(step.lane for step in ordered if step.kind == "call"))
    ticks = sorted({tick for step in ordered for tick in (step.began, step.ended)})
    place = {tick: at for at, tick in enumerate(ticks)}
    bars = tuple(
        Bar(
            names.index(step.lane),
            step.kind,
            place[step.began],
            place[step.ended],
            t(f"lanes.{step.kind}"),
            step.number,
        )
        for step in ordered
        if step.lane in names
    )
    return Lanes(names, bars, len(ticks), tuple(_told(ordered)))


def _told(steps: Sequence[TracedStep]) -> Iterable[str]:
    for step in sorted(steps, key=lambda step: step.ended):
        yield t(f"lanes.told-{step.kind}", who=step.lane, number=step.number)


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring positions, ``start`` to ``end`` (not included), with one verdict."""

    start: int
    end: int
    verdict: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """All verdicts of one reader, as runs, and how often each verdict came."""

    name: str
    runs: tuple[Run, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cut position across (bytes), one row a reader, the verdict as the colour."""

    positions: int
    rows: tuple[HeatRow, ...]


def heat_map(verdicts: Mapping[str, Sequence[str]]) -> HeatMap:
    """Lay out verdicts by reader and position. A verdict is one of ``whole torn refused lost wrong``.

    Raises: ValueError when two readers were not asked about the same positions.
    """
    lengths = {len(row) for row in verdicts.values()}
    if len(lengths) > 1:
        raise ValueError(f"heat map: rows of {sorted(lengths)} positions; ask every reader about every cut")
    rows = tuple(HeatRow(name, tuple(runs(row)), Counter(row)) for name, row in verdicts.items())
    return HeatMap(max(lengths, default=0), rows)


def runs(row: Sequence[str]) -> Iterable[Run]:
    """Gather neighbours that are the same."""
    at = 0
    for verdict, same in groupby(row):
        length = len(list(same))
        yield Run(at, at + length, verdict)
        at += length
