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
from labkit.faults.crash.plans import Plan, with_all_that_follows
from labkit.faults.crash.trace import Choice

T = TypeVar("T")
Fate = Choice | None
"""How a step fares: not whole in this way, or None for arrived."""
Fates = Sequence[tuple[Rule, Fate]]
RECENT = 256
"""So many of the last steps that no promise covers vary; of those before them a system has written back most by itself."""
_DRAWN_CUTS = 2
_DRAWS = 256
"""So many draws go along the crash points at once."""


def bounded(rules: Sequence[Rule], limit: int, seed: int) -> Iterator[Plan]:
    """Yield combinations, simple ones first and about `limit` of these, then draws without end. Some come more than once."""
    part = _Part(rules, Random(seed), points=max(1, limit // 8))  # noqa: S311 - no secret, and can be drawn again
    yield 0, ()
    yield from part.each_point(from_top=True)
    yield from part.each_point(from_top=False)
    for deviations, share in ((1, limit // 4), (2, limit // 8)):
        for from_top in (True, False):
            yield from part.deviating(deviations, max(1, share), from_top=from_top)
    while part.all_points:
        yield from part.drawn(part.mixed, _DRAWS)


class _Moment:
    """A crash point and what may be missing there: `free` steps by themselves, and `last`, which arrived at least in part."""

    def __init__(self, last: Rule, window: Sequence[Rule]) -> None:
        self.last = last
        fixed = {last.step.number, *_covered(window, last.needs)}
        self.free = [rule for rule in window if rule.step.number not in fixed]
        self.varying = [*self.free, last] if last.ways else self.free

    def plan(self, fates: Fates, *, from_top: bool) -> Plan:
        """Return the combination where steps fare as `fates` says, and the others arrived (or, from the bottom, did not)."""
        others: dict[int, Fate] = {}
        if not from_top:
            others = {rule.step.number: rule.lost for rule in self.free}
            for rule, _ in fates:
                others |= dict.fromkeys(_covered(self.free, rule.needs))
        ways = others | {rule.step.number: fate for rule, fate in fates}
        return self.last.step.number, with_all_that_follows(self.varying, ways)


class _Part:
    """The passes over the crash points (`points` of them, where there are more), and the likely ways of each step."""

    def __init__(self, rules: Sequence[Rule], draw: Random, points: int) -> None:
        self._rules = rules
        self._draw = draw
        self.all_points = [index + 1 for index, rule in enumerate(rules) if rule.point]
        self._points = sorted(sorted(self.all_points, key=lambda _: draw.random())[:points])
        self._not_whole: dict[int, list[Fate]] = {}
        self._in_part: dict[int, list[Fate]] = {}
        self._arrived: dict[int, list[Fate]] = {}
        for rule in rules:
            number, cuts = rule.step.number, _likely_cuts(rule, draw)
            self._not_whole[number] = [*cuts]
            self._in_part[number] = [choice for choice in cuts if choice.kept or choice.filled]
            self._arrived[number] = [None, *self._in_part[number]]

    def each_point(self, *, from_top: bool) -> Iterator[Plan]:
        """Yield every crash point with all there, or with nothing there that may be missing."""
        for moment in self._moments(self._points):
            yield moment.plan((), from_top=from_top)

    def deviating(self, count: int, share: int, *, from_top: bool) -> Iterator[Plan]:
        """Yield the combinations with so many deviations; where they are more than `share`, so many draws of them."""
        if self._number(count, from_top=from_top) > share:
            yield from self.drawn(lambda moment: self._deviation(moment, count, from_top=from_top), share)
            return
        for moment in self._moments(self._points):
            for some in combinations(moment.varying, count):
                for fates in product(*(self._fates(moment, rule, from_top=from_top) for rule in some)):
                    yield moment.plan(tuple(zip(some, fates, strict=True)), from_top=from_top)

    def drawn(self, one: Callable[[_Moment], Plan], count: int) -> Iterator[Plan]:
        """Yield so many draws, crash points in their order."""
        for moment in self._moments(sorted(self._some(self.all_points, count))):
            yield one(moment)

    def mixed(self, moment: _Moment) -> Plan:
        """Draw how each step fares: whole with a chance drawn first, else lost or in part."""
        whole = self._draw.random()
        fates = [
            (rule, self._any_fate(moment, rule)) for rule in moment.varying if self._draw.random() >= whole
        ]
        return moment.plan(fates, from_top=True)

    def _moments(self, points: Sequence[int]) -> Iterator[_Moment]:
        window = _Window(self._rules)
        moment = None
        for after in points:
            last = self._rules[after - 1]
            if moment is None or moment.last is not last:
                moment = _Moment(last, window.at(after)[-RECENT:])
            yield moment

    def _number(self, count: int, *, from_top: bool) -> int:
        number = 0
        for moment in self._moments(self._points):
            ways = [len(self._fates(moment, rule, from_top=from_top)) for rule in moment.varying]
            once = sum(ways)
            number += once if count == 1 else (once * once - sum(each * each for each in ways)) // 2
        return number

    def _fates(self, moment: _Moment, rule: Rule, *, from_top: bool) -> list[Fate]:
        if rule is moment.last:
            return self._in_part[rule.step.number]
        return (self._not_whole if from_top else self._arrived)[rule.step.number]

    def _deviation(self, moment: _Moment, count: int, *, from_top: bool) -> Plan:
        some = self._some(moment.varying, count) if moment.varying else []
        fates = [(rule, self._fates(moment, rule, from_top=from_top)) for rule in some]
        return moment.plan(
            [(rule, self._some(each, 1)[0]) for rule, each in fates if each], from_top=from_top
        )

    def _any_fate(self, moment: _Moment, rule: Rule) -> Fate:
        last = rule is moment.last
        if rule.step.op == "write" and (last or self._draw.random() < 0.5):
            kept = int(self._draw.random() * len(rule.step.data))
            filled = rule.fills and self._draw.random() < 0.5
            return Choice(rule.step.number, kept, filled) if kept or filled or not last else None
        return None if last else rule.lost

    def _some(self, items: Sequence[T], count: int) -> list[T]:
        return [items[int(self._draw.random() * len(items))] for _ in range(count)]


class _Window:
    """The steps that no promise covers at a crash point; goes along the crash points, never back."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._at = 0
        self._open: list[Rule] = []

    def at(self, after: int) -> list[Rule]:
        """Return the steps before the crash point `after` that may be missing there."""
        for rule in self._rules[self._at : after]:
            if rule.demands:
                promised = _covered(self._open, rule.demands)
                self._open = [other for other in self._open if other.step.number not in promised]
            if rule.ways:
                self._open.append(rule)
        self._at = after
        return self._open


def _covered(rules: Sequence[Rule], keys: Keys) -> set[int]:
    """Return the numbers of the steps that must have arrived so that none of the `keys` is marked."""
    arrived = set()
    for rule in reversed(rules):
        if not rule.marks.isdisjoint(keys):
            arrived.add(rule.step.number)
            keys |= rule.needs
    return arrived


def _likely_cuts(rule: Rule, draw: Random) -> list[Choice]:
    """Return the ways not to arrive that find most: lost, at a record border or a byte beside it, and a few drawn ones."""
    number, data = rule.step.number, rule.step.data
    if not rule.ways or rule.step.op != "write":
        return [rule.lost] if rule.ways else []
    borders = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    cuts = {0, 1, len(data) - 1, *(int(draw.random() * len(data)) for _ in range(_DRAWN_CUTS))}
    for border in {*borders[:1], *borders[-1:]} - {len(data)}:
        cuts |= {border - 1, border, border + 1}
    how = (False, True) if rule.fills else (False,)
    return [Choice(number, kept, filled) for filled in how for kept in sorted(cuts) if kept < len(data)]
