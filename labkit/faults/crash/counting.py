"""How many combinations of crash point and choices a model allows: exact, of any size, without listing them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from labkit.faults.crash.models import Keys, Rule

_NOTHING: Keys = frozenset()


def combinations(of_steps: Sequence[Rule]) -> int:
    """Count crash points and choices exactly, without listing them; the nothing before the first step is one.

    A combination is counted at its earliest crash point: the last step before the crash arrived, at least in part.
    Rules that share no needed key vary by themselves, so that their numbers multiply.
    """
    group_of, last_asked = _groups(of_steps), _last_asked(of_steps)
    groups: dict[Hashable, _Group] = defaultdict(_Group)
    marked_in: dict[Hashable, set[Hashable]] = defaultdict(set)
    everything, total = 1, 1
    for index, rule in enumerate(of_steps):
        for key in rule.demands:
            for name in marked_in.pop(key, ()):
                before = groups[name].total
                groups[name].keep_without(key)
                everything = everything // before * groups[name].total
        if not rule.ways:
            total += everything if rule.point else 0
            continue
        name = group_of[index]
        others = everything // groups[name].total
        arrived = groups[name].add(rule, partial(_still_asked, last_asked, index))
        total += others * arrived
        everything = others * groups[name].total
        for key in rule.marks:
            marked_in[key].add(name)
    return total


class _Group:
    """Rules that share keys: in how many ways each set of marked keys comes about."""

    def __init__(self) -> None:
        self.ways: dict[Keys, int] = {_NOTHING: 1}
        self.total = 1

    def add(self, rule: Rule, still_asked: Callable[[Keys], Keys]) -> int:
        """Take one more step; return the number of ways in which it arrived, at least in part."""
        ways: dict[Keys, int] = defaultdict(int)
        arrived = 0
        for marked, count in self.ways.items():
            lost = marked | rule.marks
            if rule.needs.isdisjoint(marked):
                ways[still_asked(marked)] += count
                ways[still_asked(lost)] += count * rule.ways
                arrived += count * rule.ways  # whole, or in part: all ways but that of being lost
            else:
                ways[still_asked(lost)] += count
        self._are(ways)
        return arrived

    def keep_without(self, key: Hashable) -> None:
        """Drop what a promise about `key` rules out."""
        self._are({marked: count for marked, count in self.ways.items() if key not in marked})

    def _are(self, ways: dict[Keys, int]) -> None:
        self.ways = ways
        self.total = sum(ways.values())


def _still_asked(last_asked: dict[Hashable, int], index: int, keys: Keys) -> Keys:
    """Return those of the keys that a later rule needs or demands: sets that differ in others are the same case."""
    return frozenset(key for key in keys if last_asked.get(key, -1) > index)


def _last_asked(of_steps: Sequence[Rule]) -> dict[Hashable, int]:
    return {key: index for index, rule in enumerate(of_steps) for key in (*rule.needs, *rule.demands)}


def _groups(of_steps: Sequence[Rule]) -> list[Hashable]:
    """Return for each rule a name of the group of rules with which it shares needed keys, directly or not."""
    parent: dict[Hashable, Hashable] = {}

    def top(key: Hashable) -> Hashable:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for rule in of_steps:
        first, *rest = rule.needs or (None,)
        for key in rest:
            parent[top(key)] = top(first)
    return [top(next(iter(rule.needs))) if rule.needs else ("alone", at) for at, rule in enumerate(of_steps)]
