"""A part of the combinations, where there are too many to try each.

CrashMonkey's bet (OSDI 2018) is that small deviations find most. So: every crash point with all there, and with nothing there that
no sync had promised; one and two deviations from each of these; then draws. Each of these passes gets a share of the limit,
and where it does not fit its share, it is drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from random import Random
from typing import TypeVar

from labkit.faults.crash.models import Keys, Rule
from labkit.faults.crash.plans import Plan
from labkit.faults.crash.trace import Choice

T = TypeVar("T")
Way = Choice | None
"""How a step fares: not whole, or None for arrived."""
RECENT = 256
"""So many of the last steps that no promise covers vary; of those before them a system has written back most by itself."""
_DRAWN_CUTS = 2
_DRAWS = 256
"""So many draws go along the crash points at once."""


def bounded(rules: Sequence[Rule], limit: int, seed: int) -> Iterator[Plan]:
    """Yield combinations without end, simple ones first and about `limit` of these; then draws. Some come more than once."""
    part = _Part(rules, Random(seed), points=max(1, limit // 8))  # noqa: S311 - no secret, and can be drawn again
    yield 0, ()
    yield from part.each_point(from_top=True)
    yield from part.each_point(from_top=False)
    for deviations, share in ((1, limit // 4), (2, limit // 8)):
        for from_top in (True, False):
            yield from part.deviating(deviations, max(1, share), from_top=from_top)
    while True:
        yield from part.drawn(part.mixed, _DRAWS)


class _Moment:
    """A crash point and what may be missing there: `free` steps by themselves, and `last`, which arrived at least in part."""

    def __init__(self, rules: Sequence[Rule], after: int, window: Sequence[int]) -> None:
        self.after = after
        last = rules[after - 1]
        self.last = after - 1 if last.ways else None
        fixed = _covered(rules, window, last.needs) | {after - 1}
        self.free = [index for index in window if index not in fixed]
        self.varying = [*self.free, after - 1] if last.ways else self.free
        self._rules = rules

    def plan(self, ways: dict[int, Way], *, from_top: bool) -> Plan:
        """Return the combination in which the steps fare as `ways` says, the others all (or, from the bottom, none)."""
        lost: dict[int, Way] = {} if from_top else {at: self._rules[at].lost for at in self.free}
        if not from_top:
            for index in ways:
                lost |= dict.fromkeys(_covered(self._rules, self.free, self._rules[index].needs))
        return self.after, _choices(self._rules, self.varying, lost | ways)


class _Part:
    """The passes over the crash points (`points` of them, where there are more), and the likely ways of each step."""

    def __init__(self, rules: Sequence[Rule], draw: Random, points: int) -> None:
        self._rules = rules
        self._draw = draw
        self._all_points = [index + 1 for index, rule in enumerate(rules) if rule.point]
        self._points = sorted(sorted(self._all_points, key=lambda _: draw.random())[:points])
        self._from_top: dict[int, list[Way]] = {}
        self._in_part: dict[int, list[Way]] = {}
        self._from_bottom: dict[int, list[Way]] = {}
        for index, rule in enumerate(rules):
            if rule.ways:
                cuts = _likely_cuts(rule, draw)
                self._from_top[index] = [*cuts]
                self._in_part[index] = [choice for choice in cuts if choice.kept or choice.filled]
                self._from_bottom[index] = [None, *self._in_part[index]]

    def each_point(self, *, from_top: bool) -> Iterator[Plan]:
        """Yield every crash point with all there, or with nothing there that may be missing."""
        for moment in self._moments(self._points):
            yield moment.plan({}, from_top=from_top)

    def deviating(self, count: int, share: int, *, from_top: bool) -> Iterator[Plan]:
        """Yield the combinations with so many deviations; where they are more than `share`, so many draws of them."""
        if self._number(count, from_top=from_top) > share:
            yield from self.drawn(lambda moment: self._deviation(moment, count, from_top=from_top), share)
            return
        for moment in self._moments(self._points):
            for steps in combinations(moment.varying, count):
                for ways in product(*(self._ways(moment, step, from_top=from_top) for step in steps)):
                    yield moment.plan(dict(zip(steps, ways, strict=True)), from_top=from_top)

    def drawn(self, one: Callable[[_Moment], Plan], count: int) -> Iterator[Plan]:
        """Yield so many draws, crash points in their order."""
        for moment in self._moments(sorted(self._some(self._all_points, count))):
            yield one(moment)

    def mixed(self, moment: _Moment) -> Plan:
        """Draw how each step fares: whole with a chance drawn first, else lost or in part."""
        whole = self._draw.random()
        ways: dict[int, Way] = {}
        for step in moment.varying:
            if self._draw.random() >= whole:
                ways[step] = self._any_way(moment, step)
        return moment.plan(ways, from_top=True)

    def _moments(self, points: Sequence[int]) -> Iterator[_Moment]:
        window = _Window(self._rules)
        moment = None
        for after in points:
            if moment is None or moment.after != after:
                moment = _Moment(self._rules, after, window.at(after)[-RECENT:])
            yield moment

    def _number(self, count: int, *, from_top: bool) -> int:
        number = 0
        for moment in self._moments(self._points):
            ways = [len(self._ways(moment, step, from_top=from_top)) for step in moment.varying]
            once = sum(ways)
            number += once if count == 1 else (once * once - sum(each * each for each in ways)) // 2
        return number

    def _ways(self, moment: _Moment, step: int, *, from_top: bool) -> list[Way]:
        if step == moment.last:
            return self._in_part[step]
        return (self._from_top if from_top else self._from_bottom)[step]

    def _deviation(self, moment: _Moment, count: int, *, from_top: bool) -> Plan:
        steps = self._some(moment.varying, count) if moment.varying else []
        ways = {step: self._ways(moment, step, from_top=from_top) for step in steps}
        return moment.plan(
            {step: self._some(some, 1)[0] for step, some in ways.items() if some}, from_top=from_top
        )

    def _any_way(self, moment: _Moment, step: int) -> Way:
        rule, last = self._rules[step], step == moment.last
        if rule.step.op == "write" and (last or self._draw.random() < 0.5):
            kept = int(self._draw.random() * len(rule.step.data))
            filled = rule.fills and self._draw.random() < 0.5
            return Choice(step + 1, kept, filled) if kept or filled or not last else None
        return None if last else rule.lost

    def _some(self, items: Sequence[T], count: int) -> list[T]:
        return [items[int(self._draw.random() * len(items))] for _ in range(count)]


class _Window:
    """The steps that no promise covers at a crash point; goes along the crash points, never back."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._at = 0
        self._open: list[int] = []

    def at(self, after: int) -> list[int]:
        """Return the indexes of the steps before the crash point `after` that may be missing there."""
        for index in range(self._at, after):
            rule = self._rules[index]
            if rule.demands:
                promised = _covered(self._rules, self._open, rule.demands)
                self._open = [step for step in self._open if step not in promised]
            if rule.ways:
                self._open.append(index)
        self._at = after
        return self._open


def _covered(rules: Sequence[Rule], steps: Sequence[int], keys: Keys) -> set[int]:
    """Return which of the `steps` must have arrived so that none of the `keys` is marked."""
    arrived = set()
    for index in reversed(steps):
        if not rules[index].marks.isdisjoint(keys):
            arrived.add(index)
            keys |= rules[index].needs
    return arrived


def _choices(rules: Sequence[Rule], steps: Sequence[int], ways: dict[int, Way]) -> tuple[Choice, ...]:
    """Return the choices when the `steps` fare as `ways` says, and what the model makes follow from that."""
    marked: Keys = frozenset()
    choices = []
    for index in steps:
        choice = ways.get(index)
        if not rules[index].needs.isdisjoint(marked):
            choice = rules[index].lost
        if choice is not None:
            choices.append(choice)
            marked |= rules[index].marks
    return tuple(choices)


def _likely_cuts(rule: Rule, draw: Random) -> list[Choice]:
    """Return the ways not to arrive that find most: lost, at a record border or a byte beside it, and a few drawn ones."""
    number, data = rule.step.number, rule.step.data
    if rule.step.op != "write":
        return [rule.lost]
    borders = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    cuts = {0, 1, len(data) - 1, *(int(draw.random() * len(data)) for _ in range(_DRAWN_CUTS))}
    for border in {*borders[:1], *borders[-1:]} - {len(data)}:
        cuts |= {border - 1, border, border + 1}
    how = (False, True) if rule.fills else (False,)
    return [Choice(number, kept, filled) for filled in how for kept in sorted(cuts) if kept < len(data)]
