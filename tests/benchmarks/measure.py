"""Rounds, ratios and rows: how a benchmark is run and what it found."""

from __future__ import annotations

import gc
import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random


class Spread(NamedTuple):
    """Median and range over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: list[float]) -> Spread:
        """Sum up one figure a round."""
        return cls(statistics.median(figures), min(figures), max(figures))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `target` is in the unit of `spread`; a row without one only reports.

    `unit` is "×" for a ratio to the base in the same round, else what the figure counts. `spread` is None for what
    could not be measured here, and `note` then says why.
    """

    name: str
    base: str
    unit: str
    spread: Spread | None
    at_least: float | None = None
    at_most: float | None = None
    gates: bool = True
    note: str = ""

    @property
    def beyond(self) -> bool:
        """Whether the median lies beyond its target; what was not measured reached none."""
        if self.spread is None:
            return True
        too_low = self.at_least is not None and self.spread.median < self.at_least
        return too_low or (self.at_most is not None and self.spread.median > self.at_most)

    @property
    def missed(self) -> bool:
        """Whether a target that gates was not reached."""
        return self.gates and self.beyond

    def plain(self) -> dict[str, Any]:
        """Return the row as plain JSON."""
        spread = self.spread and self.spread._asdict()
        return {**asdict(self), "spread": spread, "missed": self.missed}


def in_random_order(
    variants: Mapping[str, Callable[[], float]], rounds: int, draw: Random
) -> Iterator[dict[str, float]]:
    """Run every variant once a round, in a new order each time; yield the seconds of each, round by round.

    A variant does the work in its way and returns the seconds that the timed part of it took.
    """
    for _ in range(rounds):
        order = list(variants)
        draw.shuffle(order)
        seconds = {}
        for name in order:
            gc.collect()  # what the last variant left behind is not this one's to clear away
            seconds[name] = variants[name]()
        yield seconds
