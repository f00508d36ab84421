"""Combinations of crash point and choices: all that a model allows, simplest first (`bounded` has a part of them).

A *deviation* is a free choice: what the model makes follow from it (the later bytes of a file in `ordered`) does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from labkit.faults.crash.models import Keys, Rule
from labkit.faults.crash.trace import Choice

Plan = tuple[int, tuple[Choice, ...]]
"""A crash point and the choices before it, by step."""


def every(rules: Sequence[Rule]) -> Iterator[Plan]:
    """Yield every combination once, those with fewest deviations first."""
    for deviations in range(len(rules) + 1):
        found = False
        for plan in with_deviations(rules, deviations):
            found = True
            yield plan
        if not found:  # taking a deviation away leaves a combination, so that there are no larger ones either
            return


def with_deviations(rules: Sequence[Rule], deviations: int) -> Iterator[Plan]:
    """Yield the combinations with so many deviations from "everything arrived", neighbours sharing their beginning."""
    if not deviations:
        yield 0, ()
    yield from _Walk(rules).onward(0, deviations, frozenset(), ())


class _Walk:
    """Goes along the steps, deciding of each whether it arrives."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        varying = accumulate(reversed(rules), lambda count, rule: count + bool(rule.ways), initial=0)
        self._varying_from = list(varying)[::-1]

    def onward(self, start: int, left: int, marked: Keys, choices: tuple[Choice, ...]) -> Iterator[Plan]:
        """Yield what can follow the `choices` made before index `start`, with exactly `left` more deviations."""
        for index in range(start, len(self._rules)):
            rule = self._rules[index]
            if not rule.demands.isdisjoint(marked) or left > self._varying_from[index]:
                return
            if rule.ways and not rule.needs.isdisjoint(marked):
                choices = (*choices, rule.lost)
                marked |= rule.marks
                continue
            if left and rule.ways:
                yield from self._deviate(index, left, marked, choices)
            elif not left and rule.point:
                yield index + 1, choices

    def _deviate(self, index: int, left: int, marked: Keys, choices: tuple[Choice, ...]) -> Iterator[Plan]:
        rule = self._rules[index]
        for choice in rule.choices():
            now = (*choices, choice)
            if left == 1 and (choice.kept or choice.filled):
                yield index + 1, now
            yield from self.onward(index + 1, left - 1, marked | rule.marks, now)


def with_all_that_follows(rules: Sequence[Rule], ways: Mapping[int, Choice | None]) -> tuple[Choice, ...]:
    """Return the choices when steps fare as `ways` says, by number, and what the model makes follow from that.

    `rules` are those of the steps that may be missing; a step that is not in `ways`, or is None there, arrived if it can.
    """
    marked: Keys = frozenset()
    choices = []
    for rule in rules:
        choice = ways.get(rule.step.number)
        if rule.ways and not rule.needs.isdisjoint(marked):
            choice = rule.lost
        if choice is not None:
            choices.append(choice)
            marked |= rule.marks
    return tuple(choices)
