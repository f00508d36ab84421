"""The smallest crash state that still breaks something: fewest choices first, then the earliest crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from labkit.faults.crash.disk import Builder, Layout
from labkit.faults.crash.models import Rule, allowed, rules
from labkit.faults.crash.plans import Plan, with_deviations
from labkit.faults.crash.trace import Choice, CrashState, Trace

SIMPLE_CASES = 400
"""So many states with at most one deviation are tried before the given one is made smaller."""


def shrink(trace: Trace, model: str, state: CrashState, breaks: Callable[[CrashState], bool]) -> CrashState:
    """Return a state that `breaks` and is minimal: no choice can be left out, no earlier crash has the same effect.

    `breaks` says of a state whether it still breaks the promise in question; `state` does. Each of the model's simplest
    states (SIMPLE_CASES of them) is tried first. Raises ValueError when `state` breaks nothing or the model cannot leave it.
    """
    search = _Search(trace, model, breaks)
    if not allowed(search.rules, state.after, state.choices):
        raise ValueError(f"shrink: {model} cannot leave this state; give the model that it was found under")
    if not breaks(state):
        raise ValueError("shrink: the state breaks nothing; give one that does")
    for plan in islice(_simplest(search.rules, len(state.choices)), SIMPLE_CASES):
        if (simple := search.broken(plan)) is not None:
            return simple
    return search.smallest(state)


def _simplest(of_steps: Sequence[Rule], below: int) -> Iterator[Plan]:
    for deviations in (0, 1):
        for after, choices in with_deviations(of_steps, deviations, _ends):
            if len(choices) < below:
                yield after, choices


def _ends(rule: Rule) -> list[Choice]:
    """Return the three plainest ways not to arrive: lost, half there, all zeros."""
    size = len(rule.step.data)
    ways = [Choice(rule.step.number), Choice(rule.step.number, size // 2)][: 2 if size > 1 else 1]
    return [*ways, Choice(rule.step.number, 0, filled=True)] if rule.fills else ways


class _Search:
    def __init__(self, trace: Trace, model: str, breaks: Callable[[CrashState], bool]) -> None:
        layout = Layout(trace)
        self.rules = rules(layout, model)
        self._trace = trace
        self._builder = Builder(layout)
        self._breaks = breaks

    def broken(self, plan: Plan) -> CrashState | None:
        """Return the state of this combination if the model can leave it and it breaks the promise."""
        after, choices = plan
        if not allowed(self.rules, after, choices):
            return None
        done = tuple(step.value for step in self._trace.steps[:after] if step.op == "acknowledge")
        state = CrashState(after, choices, self._builder.disk(after, choices).tree(), done)
        return state if self._breaks(state) else None

    def smallest(self, state: CrashState) -> CrashState:
        """Make `state` smaller in the first way that still breaks, until none does."""
        while True:
            smaller = map(self.broken, _smaller(state))
            better = next((found for found in smaller if found is not None), None)
            if better is None:
                return state
            state = better


def _smaller(state: CrashState) -> Iterator[Plan]:
    """Yield simpler combinations: a choice left out, an earlier crash, a plainer choice."""
    after, choices = state.after, state.choices
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
