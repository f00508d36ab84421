"""A round killed at place after place: which operation gives which verdict, and whether the invariants held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from labkit.views.pictures import Run, runs
from labkit.views.spine_commands import operation_line
from labkit.words import t


class StruckPoint(Protocol):
    """Where a round was struck, as ``labkit.faults.round_sweep.Point``."""

    @property
    def number(self) -> int:
        """Which operation that changes the disk, 1-based."""
        ...

    @property
    def op(self) -> str:
        """What it is."""
        ...

    @property
    def path(self) -> str:
        """Its file, below the lab."""
        ...


class Struck(Protocol):
    """One kill, what the disk then said, and what the next run answered."""

    @property
    def point(self) -> StruckPoint:
        """Where."""
        ...

    @property
    def phase(self) -> str | None:
        """The phase that the state said afterwards, None without a state."""
        ...

    @property
    def answer(self) -> Mapping[str, Any]:
        """What the next run printed."""
        ...

    @property
    def starts(self) -> int:
        """How often an agent was started, over both runs."""
        ...

    @property
    def once(self) -> bool:
        """Whether the task was in exactly one queue, always."""
        ...

    @property
    def whole(self) -> bool:
        """Whether every record was whole JSON, always."""
        ...


INVARIANTS = ("once", "whole", "at-most-once")
_KINDS = {"completed": "goes-on", "idle": "nothing-left"}


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One verdict: its words, its ``kind`` (``goes-on``, ``nothing-left``, ``stops``), and the columns where it came."""

    label: str
    kind: str
    runs: tuple[Run, ...]
    times: int
    operations: str


@dataclass(frozen=True, slots=True)
class Invariant:
    """One thing that must hold whatever was killed, and the columns (from 0) where it did not."""

    label: str
    verdict: str
    broken: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CrashMatrix:
    """Strikes across, verdicts down. ``numbers`` and ``told`` speak of each column; ``phases`` are runs of what the state said."""

    numbers: tuple[int, ...]
    told: tuple[str, ...]
    phases: tuple[Run, ...]
    rows: tuple[MatrixRow, ...]
    invariants: tuple[Invariant, ...]


def crash_matrix(strikes: Iterable[Struck]) -> CrashMatrix:
    """Lay strikes out in the order of their operations; verdicts in the order in which they first come."""
    ordered = sorted(strikes, key=lambda strike: strike.point.number)
    verdicts = [_verdict(strike) for strike in ordered]
    return CrashMatrix(
        numbers=tuple(strike.point.number for strike in ordered),
        told=tuple(map(_told, ordered, verdicts)),
        phases=tuple(runs([strike.phase or "–" for strike in ordered])),
        rows=tuple(_rows(ordered, verdicts)),
        invariants=tuple(_invariants(ordered)),
    )


def _verdict(strike: Struck) -> str:
    words = (strike.answer.get(name) for name in ("decision", "reason", "cause"))
    return " / ".join(str(word) for word in words if word) or t("room.no-answer")


def _told(strike: Struck, verdict: str) -> str:
    point = {"op": strike.point.op, "path": strike.point.path}
    return t("matrix.strike", number=strike.point.number, operation=operation_line(point), verdict=verdict)


def _rows(strikes: Sequence[Struck], verdicts: Sequence[str]) -> Iterator[MatrixRow]:
    for verdict in dict.fromkeys(verdicts):
        came = [one for one in runs(verdicts) if one.verdict == verdict]
        kind = _KINDS.get(verdict.partition(" / ")[0], "stops")
        operations = ", ".join(
            _range(strikes[one.start].point.number, strikes[one.end - 1].point.number) for one in came
        )
        yield MatrixRow(verdict, kind, tuple(came), verdicts.count(verdict), operations)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _invariants(strikes: Sequence[Struck]) -> Iterator[Invariant]:
    held = {
        "once": [strike.once for strike in strikes],
        "whole": [strike.whole for strike in strikes],
        "at-most-once": [strike.starts <= 1 for strike in strikes],
    }
    for name in INVARIANTS:
        broken = tuple(at for at, holds in enumerate(held[name]) if not holds)
        verdict = t("matrix.broken", n=len(broken)) if broken else t("matrix.holds")
        yield Invariant(t(f"matrix.{name}"), verdict, broken)
