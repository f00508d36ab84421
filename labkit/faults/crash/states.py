"""Every state that a crash can leave, from a trace and a persistence model (docs/crash-models.md).

    found = states(trace, "weak")
    for state in found:
        ...                                # found.tried of found.possible combinations, found.distinct states so far

Pure: no disk, no clock. The same trace, model, seed and limit give the same states in the same order, on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from labkit.faults.crash.bounded import bounded
from labkit.faults.crash.counting import combinations
from labkit.faults.crash.disk import Builder, Layout
from labkit.faults.crash.models import MODELS, rules
from labkit.faults.crash.plans import Plan, every
from labkit.faults.crash.shrinking import shrink
from labkit.faults.crash.trace import Choice, CrashState, Trace

__all__ = ["FEW", "LIMIT", "MODELS", "Enumeration", "build", "possible", "shrink", "states"]

FEW = 20_000
"""So many combinations, or fewer, are all tried where no limit is given."""
LIMIT = 5_000
"""So many distinct states are listed where there are more combinations and no limit is given."""
_FRUITLESS = 1_000
"""After so many draws in a row without a new state, and one more for each that the limit allows, a bounded listing ends."""


def states(trace: Trace, model: str, *, seed: int = 1, limit: int | None = None) -> Enumeration:
    """List the states, simplest first, each tree once for each number of values acknowledged.

    `model` is one of MODELS. All combinations are tried where there are at most `limit` (FEW without one); otherwise
    a part, drawn by `seed`, until `limit` (LIMIT without one) distinct states were found or nothing new comes. Raises
    ValueError for an unknown model, a limit below 1, and a trace whose steps do not fit together.
    """
    return Enumeration(trace, model, seed, limit)


def possible(trace: Trace, model: str) -> int:
    """Count the combinations of crash point and choices under `model`, exactly, before any are found to be the same."""
    return combinations(rules(Layout(trace), model))


def build(trace: Trace, after: int, choices: Sequence[Choice]) -> CrashState:
    """Make one state: the crash comes after `after` steps, of which all arrived but for the `choices`.

    Raises ValueError where there are no such steps.
    """
    in_order = tuple(sorted(choices, key=lambda choice: choice.step))
    _check(trace, after, in_order)
    disk = Builder(Layout(trace)).disk(after, in_order)
    return CrashState(after, in_order, disk.tree(), _acknowledged(trace, after))


def _check(trace: Trace, after: int, choices: Sequence[Choice]) -> None:
    if not 0 <= after <= len(trace.steps):
        raise ValueError(f"crash state: no crash point {after}; the trace has {len(trace.steps)} steps")
    for choice, following in pairwise(choices):
        if choice.step == following.step:
            raise ValueError(f"crash state: step {choice.step} is chosen twice; name each step once")
    for choice in choices:
        if not 1 <= choice.step <= after:
            raise ValueError(
                f"crash state: step {choice.step} is not before the crash point {after}; see the trace"
            )
        size = len(trace.steps[choice.step - 1].data)
        if not 0 <= choice.kept < max(size, 1):
            raise ValueError(
                f"crash state: step {choice.step} has {size} bytes, not {choice.kept}; see the trace"
            )


def _acknowledged(trace: Trace, after: int) -> tuple[object, ...]:
    return tuple(step.value for step in trace.steps[:after] if step.op == "acknowledge")


class Enumeration(Iterator[CrashState]):
    """The states of one trace under one model, and how far the listing has come.

    `possible` is the number of combinations, `tried` how many of them were built so far (none is counted twice), `distinct`
    how many states that gave. Once a full listing (`complete`) has ended, `tried` is `possible`.
    """

    def __init__(self, trace: Trace, model: str, seed: int, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"limit {limit}: a listing has at least one state; use 1 or more")
        layout = Layout(trace)
        of_steps = rules(layout, model)
        self.possible = combinations(of_steps)
        self.complete = self.possible <= (FEW if limit is None else limit)
        self.tried = 0
        self.distinct = 0
        self._limit = self.possible if self.complete else limit or LIMIT
        self._plans = every(of_steps) if self.complete else bounded(of_steps, self._limit, seed)
        self._builder = Builder(layout)
        self._values = [step.value for step in trace.steps if step.op == "acknowledge"]
        self._counts = [0, *accumulate(step.op == "acknowledge" for step in trace.steps)]
        self._plans_met: set[int] = set()
        self._trees_met: set[tuple[int, bytes]] = set()

    def __next__(self) -> CrashState:
        fruitless = 0
        while self.distinct < self._limit and fruitless <= self._limit + _FRUITLESS:
            fruitless += not self.complete
            after, choices = plan = next(self._plans)
            if not self._is_new(plan):
                continue
            self.tried += 1
            disk = self._builder.disk(after, choices)
            met = (self._counts[after], disk.digest())
            if met not in self._trees_met:
                self._trees_met.add(met)
                self.distinct += 1
                return CrashState(after, choices, disk.tree(), tuple(self._values[: self._counts[after]]))
        raise StopIteration

    def _is_new(self, plan: Plan) -> bool:
        if self.complete:
            return True  # a full listing has none twice, and needs no memory of them
        before = len(self._plans_met)
        self._plans_met.add(hash(plan))
        return len(self._plans_met) > before
