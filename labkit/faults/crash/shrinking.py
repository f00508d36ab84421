"""The smallest crash state that still breaks something: fewest choices first, then the earliest crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from labkit.faults.crash.disk import Builder, Layout
from labkit.faults.crash.models import Rule, allowed, rules
from labkit.faults.crash.plans import Plan, with_all_that_follows
from labkit.faults.crash.trace import Choice, CrashState, Trace


def shrink(trace: Trace, model: str, state: CrashState, breaks: Callable[[CrashState], bool]) -> CrashState:
    """Return a state that `breaks` and is minimal: no choice can be left out, no earlier crash has the same effect.

    `breaks` says of a state whether it still breaks the promise in question; `state` does. It is asked once about each
    tree and what had been acknowledged. Raises ValueError when `state` breaks nothing, or the model cannot leave it.
    """
    search = _Search(trace, model, breaks)
    if not allowed(search.rules, state.after, state.choices):
        raise ValueError(f"shrink: {model} cannot leave this state; give the model that it was found under")
    if search.broken((state.after, state.choices)) is None:
        raise ValueError("shrink: the state breaks nothing; give one that does")
    return search.smallest(state)


class _Search:
    def __init__(self, trace: Trace, model: str, breaks: Callable[[CrashState], bool]) -> None:
        layout = Layout(trace)
        self.rules = rules(layout, model)
        self._trace = trace
        self._builder = Builder(layout)
        self._breaks = breaks
        self._known: dict[tuple[int, bytes], bool] = {}

    def smallest(self, state: CrashState) -> CrashState:
        """Make `state` smaller in the first way that still breaks, until none does."""
        while True:
            smaller = map(self.broken, _smaller(self.rules, state))
            better = next((found for found in smaller if found is not None), None)
            if better is None:
                return state
            state = better

    def broken(self, plan: Plan) -> CrashState | None:
        """Return the state of this combination if the model can leave it and it breaks the promise."""
        after, choices = plan
        if not allowed(self.rules, after, choices):
            return None
        done = tuple(step.value for step in self._trace.steps[:after] if step.op == "acknowledge")
        disk = self._builder.disk(after, choices)
        state = CrashState(after, choices, disk.tree(), done)
        key = len(done), disk.digest()
        if key not in self._known:
            self._known[key] = self._breaks(state)
        return state if self._known[key] else None


def _smaller(of_steps: Sequence[Rule], state: CrashState) -> Iterator[Plan]:
    """Yield simpler combinations, the simplest first: one choice by itself, one left out, an earlier crash, a plainer cut."""
    after, choices = state.after, state.choices
    for choice in choices:
        alone = with_all_that_follows(of_steps[:after], {choice.step: choice})
        if len(alone) < len(choices):
            yield after, alone
    for index in range(len(choices)):
        yield after, (*choices[:index], *choices[index + 1 :])
    for earlier in range(after):
        yield earlier, tuple(choice for choice in choices if choice.step <= earlier)
    for index, choice in enumerate(choices):
        for plainer in _plainer(choice):
            yield after, (*choices[:index], plainer, *choices[index + 1 :])


def _plainer(choice: Choice) -> Iterator[Choice]:
    if choice.kept and choice.filled:
        yield replace(choice, filled=False)
    if choice.kept or choice.filled:
        yield Choice(choice.step)
    if choice.kept and choice.filled:
        yield replace(choice, kept=0)
