"""Persistence models: which steps a crash may keep from the disk (docs/crash-models.md has the definitions).

Sources: Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014, ALICE's abstract persistence models);
Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing" (OSDI 2018, CrashMonkey and ACE);
ext4's `data=ordered`; POSIX on `fsync` and `rename`.

A model is one rule a step, and rules know only of keys: something on the disk that may lack what was done to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from labkit.faults.crash.disk import Change, Layout
from labkit.faults.crash.trace import CONTENT, NAMES, Choice, Step

MODELS = ("kill", "ordered", "weak")
"""From strict to weak: every state of a model is one of the next."""

Keys = frozenset[Hashable]
_NOTHING: Keys = frozenset()
_NAMES = "every name step"
_ALL = "every step"
_lost = lru_cache(maxsize=1 << 16)(Choice)  # long traces lose the same steps over and over


@dataclass(frozen=True, slots=True)
class Rule:
    """What a model says of one step.

    `point` says whether a crash right after it can leave what no earlier crash leaves. `ways` is the number of ways not to
    arrive whole: for a write every byte to cut at (twice when it `fills`), for another change one. A step that did
    not arrive whole marks its keys `marks`. One that `needs` a marked key is lost too; one that `demands` a
    marked key cannot have been passed, because it promised that key.
    """

    step: Step
    point: bool = False
    ways: int = 0
    fills: bool = False
    marks: Keys = _NOTHING
    needs: Keys = _NOTHING
    demands: Keys = _NOTHING

    @property
    def lost(self) -> Choice:
        """The way in which nothing of it arrived."""
        return _lost(self.step.number)

    def choices(self) -> Iterable[Choice]:
        """Return every way not to arrive whole; the first is to be lost."""
        number = self.step.number
        if self.step.op != "write":
            return (Choice(number),) if self.ways else ()
        how = (False, True) if self.fills else (False,)
        return (Choice(number, kept, filled) for filled in how for kept in range(len(self.step.data)))


def rules(layout: Layout, model: str) -> list[Rule]:
    """Return the rule of each step; ValueError names a model that is not one of MODELS."""
    if model not in MODELS:
        raise ValueError(f'crash model "{model}": not known; use {", ".join(MODELS)}')
    rule = {"kill": _kill, "ordered": _ordered, "weak": _weak}[model]
    return [_of_step(step, layout, rule) for step in layout.steps]


def _of_step(step: Step, layout: Layout, model: Callable[[Step, Sequence[Change]], Rule]) -> Rule:
    changes = layout.changes.get(step.number, ())
    rule = model(step, changes)
    if step.op == "acknowledge":
        return Rule(step, point=True, demands=rule.demands)
    if changes or step.op in CONTENT:
        ways = len(step.data) * (2 if rule.fills else 1) if step.op == "write" else 1
        if ways:
            return replace(rule, point=True, ways=ways)
    return Rule(step, demands=rule.demands)  # a sync, or a change that changes nothing


def _kill(step: Step, _changes: Sequence[Change]) -> Rule:
    """Say: whatever was begun before the last step is whole."""
    return Rule(step, marks=frozenset((_ALL,)), demands=frozenset((_ALL,)))


def _ordered(step: Step, _changes: Sequence[Change]) -> Rule:
    """Say: names in one order, the bytes of each file in one order, neither waiting for the other."""
    if step.op == "sync":
        return Rule(step, demands=frozenset((_NAMES, step.node)))
    line: Keys = frozenset((_NAMES if step.op in NAMES else step.node,))
    return Rule(step, marks=line, needs=line)


def _weak(step: Step, changes: Sequence[Change]) -> Rule:
    """Say: only its own sync brings an object's change; an entry takes its values in their order."""
    if step.op == "sync":
        return Rule(step, demands=frozenset((step.node,)))
    if step.op not in NAMES:
        return Rule(step, fills=step.op == "write", marks=frozenset((step.node,)))
    entries: Keys = frozenset((folder, name) for folder, name, _ in changes)
    return Rule(step, marks=entries | {folder for folder, _, _ in changes}, needs=entries)


def allowed(of_steps: Sequence[Rule], after: int, choices: Sequence[Choice]) -> bool:
    """Say whether the model can leave the state of these choices; `after` need not be a crash point of its own."""
    by_step = {choice.step: choice for choice in choices}
    marked: Keys = _NOTHING
    for rule in of_steps[:after]:
        choice = by_step.pop(rule.step.number, None)
        if not rule.demands.isdisjoint(marked):
            return False
        if choice is not None:
            if not _is_a_way(rule, choice):
                return False
            if not rule.needs.isdisjoint(marked) and (choice.kept or choice.filled):
                return False
            marked |= rule.marks
        elif rule.ways and not rule.needs.isdisjoint(marked):
            return False
    return not by_step


def _is_a_way(rule: Rule, choice: Choice) -> bool:
    if rule.step.op != "write":
        return bool(rule.ways) and not choice.kept and not choice.filled
    return 0 <= choice.kept < len(rule.step.data) and (rule.fills or not choice.filled)
