"""The power goes, and takes what was not synced: what a round of the reference can leave, as it is, and less one step."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from labkit.experiments.cards import table
from labkit.experiments.left_out import need_reference
from labkit.faults.crash.explorer import code_of, record
from labkit.faults.crash.promises import Facts, broken
from labkit.faults.crash.recovery import Recoveries, Report
from labkit.faults.crash.states import build, states
from labkit.faults.crash.switches import Switches, apply
from labkit.faults.crash.trace import Choice, CrashState, Trace
from labkit.words import t

MODEL = "weak"
MOST = 80
"""So many states are tried of each spine: a cell of a notebook takes seconds."""
SPINES = {
    "as-it-is": Switches(),
    "no-fsync": Switches(fsync=False),
    "no-folder-sync": Switches(folder_sync=False),
    "in-place": Switches(atomic_replace=False),
}


@dataclass(frozen=True, slots=True)
class Crash:
    """One crash, as `crash_timeline` draws it: what was recorded, what was left of it, and what the next run made of that."""

    trace: Trace
    state: CrashState
    broken: tuple[str, ...]
    report: Report
    model: str = MODEL

    @property
    def starts(self) -> int:
        """How often the agent was started, before the crash and after it."""
        return sum("agent" in value for value in self.state.acknowledged) + int(self.report["started"])


@dataclass(slots=True)
class Cut:
    """What became of one spine: how many states there can be, how many were tried, and how many broke which promise."""

    possible: int
    tried: int = 0
    broken: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class PowerCuts:
    """``cuts["no-fsync"]`` is what became of one spine; ``second_start`` is a crash after which the agent starts again."""

    spines: dict[str, Cut]
    second_start: Crash

    def __getitem__(self, spine: str) -> Cut:
        return self.spines[spine]

    def _repr_html_(self) -> str:
        head = [t(f"power.{column}") for column in ("spine", "tried", "possible", "broken")]
        return table(head, [[t(f"power.{name}"), *_row(cut)] for name, cut in self.spines.items()])


def _row(cut: Cut) -> list[str]:
    told = (f"✗ {count} × {t(f'promise.{name}')}" for name, count in cut.broken.most_common())
    return [f"{cut.tried:,}", f"≈ 10^{len(str(cut.possible)) - 1}", "; ".join(told) or f"✓ {t('power.kept')}"]


async def cut_the_power(most: int = MOST) -> PowerCuts:
    """Record one round, cut the power in it in `most` ways, and run the runner again on each; then the same less one step."""
    return await asyncio.to_thread(_cut, most)


def _cut(most: int) -> PowerCuts:
    need_reference()
    _, code = code_of("spine")
    recorded = record(code, events=1)
    with Recoveries(code) as recoveries:
        spines = {name: _tried(apply(recorded, less), recoveries, most) for name, less in SPINES.items()}
        return PowerCuts(spines, _lose_two_names(apply(recorded, SPINES["no-folder-sync"]), recoveries))


def _tried(trace: Trace, recoveries: Recoveries, most: int) -> Cut:
    found = states(trace, MODEL, limit=most)
    cut = Cut(found.possible)
    for state, report in recoveries.reports(found):
        cut.tried += 1
        cut.broken.update(_broken(trace, state, report, recoveries))
    return cut


def _lose_two_names(trace: Trace, recoveries: Recoveries) -> Crash:
    """Cut the power as the agent begins, and lose the name of ``.loop`` and the task's move; all else arrives."""
    begun = next(step.number for step in trace.steps if step.op == "acknowledge")
    lost = [
        Choice(s.number)
        for s in trace.steps[:begun]
        if s.path == ".loop" or s.to.startswith("tasks/processing/")
    ]
    state = build(trace, begun, lost)
    report = recoveries.report(state.tree)
    return Crash(trace, state, _broken(trace, state, report, recoveries), report)


def _broken(trace: Trace, state: CrashState, report: Report, recoveries: Recoveries) -> tuple[str, ...]:
    return broken(recoveries.promises, Facts(trace.acknowledged, state.acknowledged), report)
