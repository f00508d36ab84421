"""Every state that a crash can leave of one run, each recovered from, and the promises that some of them break.

exploration = explore("naive", "kill", events=10)
exploration.verdict                   "kept", "broken" or "not-seen"
exploration.broken[0].id              replays with: statelab crash replay ID
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labkit.faults.crash import counterexample, failing, promises, recorder
from labkit.faults.crash.counterexample import Counterexample, facts
from labkit.faults.crash.recovery import (
    Code,
    CrashLabError,
    NotWrittenError,
    Recoveries,
    Report,
    scratch_folder,
)
from labkit.faults.crash.scenarios import STORES, scenario_path
from labkit.faults.crash.states import Enumeration, shrink, states
from labkit.faults.crash.switches import Switches, apply
from labkit.faults.crash.trace import CrashState, Trace, Unseen

Verdict = Literal["kept", "broken", "not-seen"]

MODELS = promises.ALL_MODELS
MOST_LOST = 3
"""Recoveries without an answer, after which no more are tried: each costs its whole time limit, twice."""
_DOUBTFUL = frozenset({"c-writer", "mmap", "sqlite3", "child"})
"""With these, bytes may have reached the disk that no step tells of: then a loss may be one of the recorder's own."""
_TELL_EVERY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration is: states recovered from, choices tried, choices there are, kinds of break found."""

    explored: int
    tried: int
    possible: int
    broken: int


@dataclass(frozen=True, slots=True)
class Exploration:
    """What an exploration found.

    steps      operations and acknowledgements in the trace
    tried      combinations of crash point and choices that were built; `possible` is how many there are
    explored   states among them that differ in their files or in what had been acknowledged: each was recovered from
    broken     one minimal counterexample for each set of broken promises and each error
    counts     how many of the explored states broke the promises of the counterexample at the same place
    unseen     what the recorder could not follow
    complete   nothing is left: every combination was tried
    stopped    why it ended early: "interrupted", or "lost" after MOST_LOST recoveries without an answer; else empty
    """

    store: str
    model: str
    events: int
    seed: int
    switches: Switches
    steps: int
    tried: int
    possible: int
    explored: int
    broken: tuple[Counterexample, ...]
    counts: tuple[int, ...]
    unseen: tuple[Unseen, ...]
    complete: bool
    stopped: str
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """`broken` when something promised is; `not-seen` when the recorder did not see all; else `kept`."""
        if any(found.promised for found in self.broken) and not self.doubtful:
            return "broken"
        return "not-seen" if self.unseen or self.stopped else "kept"

    @property
    def doubtful(self) -> bool:
        """Whether bytes may have reached the disk that the trace does not tell of."""
        return any(unseen.what in _DOUBTFUL for unseen in self.unseen)


def code_of(store: str | Path, imports: tuple[Path, ...] = ()) -> tuple[str, Code]:
    """Return the name of a store and what is under test. Raises: CrashLabError."""
    if isinstance(store, Path):
        if not store.is_file():
            raise CrashLabError(f"{store}: no such file; name a scenario, or use --store {STORES[0]}")
        return store.stem, Code(store.resolve(), imports)
    try:
        return store, Code(scenario_path(store), imports)
    except LookupError as error:
        raise CrashLabError(str(error.args[0])) from None


def explore(
    store: str | Path,
    model: str,
    *,
    events: int = 10,
    seed: int = 1,
    limit: int | None = None,
    switches: Switches = Switches(),  # noqa: B008 - frozen
    imports: tuple[Path, ...] = (),
    trace: Trace | None = None,
    seconds: float = 10.0,
    on_progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Exploration:
    """Record a store at work, and recover from every state that a crash can leave under `model`.

    Args:
        store: one of STORES, or the path of a scenario's file.
        model: one of MODELS; "fail" lets operations fail instead of the machine.
        events: how many events the store is given.
        seed: decides which states are tried where there are too many for all.
        limit: how many distinct states are recovered from at most.
        switches: syncs and replacements that are taken out of the trace.
        imports: folders to import from before the kit's own.
        trace: a recording that is there already.
        seconds: how long one recovery may take.
        on_progress: called now and then, in the caller's thread.
        stop: asked between states; true ends the exploration with what was found.

    Ctrl-C ends it in the same way. Every counterexample is saved. Raises: CrashLabError, whose words are for the user.
    """
    name, code = code_of(store, imports)
    if model not in MODELS:
        raise CrashLabError(f"{model}: no model is called so; choose one of {', '.join(MODELS)}")
    counterexample.folder()  # where they go has to be known before there are any
    began = time.monotonic()
    with Recoveries(code, seconds=seconds) as recoveries:
        refuse_unknown(recoveries, code)
        refuse_unwritten(recoveries)
        recorded = apply(trace or record(code, events), switches)
        refuse_nothing(recoveries, code, recorded)
        asked = Asked(name, model, events, seed, switches, code, recorded)
        search = Search(asked, recoveries, on_progress or (lambda _: None), stop or (lambda: False))
        if model == "fail":
            with failing.Failures(code, events, len(recorded.steps), seconds=seconds) as failures:
                search.through(failures)
                tried, there_are = failures.tried, failures.possible
        else:
            found = states(recorded, model, seed=seed, limit=limit)
            search.through(found)
            tried, there_are = found.tried, found.possible
        broken = search.minimal()
    return Exploration(
        store=name,
        model=model,
        events=events,
        seed=seed,
        switches=switches,
        steps=len(recorded.steps),
        tried=tried,
        possible=there_are,
        explored=search.explored,
        broken=tuple(broken),
        counts=tuple(search.counts.values()),
        unseen=recorded.unseen,
        complete=tried == there_are and not search.stopped,
        stopped=search.stopped,
        seconds=time.monotonic() - began,
    )


def record(code: Code, events: int) -> Trace:
    """Record a scenario's work in a folder that is gone afterwards. Raises: CrashLabError."""
    place = scratch_folder()
    try:
        return recorder.record_scenario(
            code.scenario, place, events=events, imports=code.imports, seconds=recorder.SECONDS
        )
    except recorder.RecordError as error:
        raise CrashLabError(str(error)) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def refuse_unknown(recoveries: Recoveries, code: Code) -> None:
    """Look every promise of the scenario up. Raises: CrashLabError for one that nobody judges."""
    if not recoveries.promises:
        raise CrashLabError(
            f"{code.scenario}: PROMISES is empty, so nothing can break; name at least one promise"
        )
    try:
        for name in recoveries.promises:
            promises.promise(name)
    except LookupError as error:
        raise CrashLabError(f"{code.scenario}: {error.args[0]}") from None


def refuse_nothing(recoveries: Recoveries, code: Code, recorded: Trace) -> None:
    """Look whether the recording can break anything. Raises: CrashLabError where its promises would be empty words."""
    what = ""
    if not recorded.steps:
        what = "work changed nothing in its folder"
    elif not recorded.acknowledged and promises.OF_WHAT_WAS_SAID.intersection(recoveries.promises):
        what = "work acknowledged nothing"
    if what and not recorded.unseen:
        raise CrashLabError(
            f"{code.scenario}: {what}, so there is nothing to lose; "
            "let it be a plain function that writes, and calls acknowledge(value)"
        )


def refuse_unwritten(recoveries: Recoveries) -> None:
    """Recover once from nothing, which says at once whether there is something to explore. Raises: NotWrittenError."""
    report = recoveries.report({})
    if "missing" in report:
        raise NotWrittenError(f"not implemented yet: {report['missing']}; write it first, then explore")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is explored: the parts of a counterexample that all of one exploration have in common."""

    store: str
    model: str
    events: int
    seed: int
    switches: Switches
    code: Code
    trace: Trace

    @property
    def is_built_in(self) -> bool:
        """Whether this is one of STORES, and no scenario of somebody's own that is called as one."""
        return self.store in STORES and self.code.scenario == scenario_path(self.store)


Kind = tuple[tuple[str, ...], str]
"""The promises that a state breaks, and the error that the recovery met: states of one kind have one counterexample."""


class Search:
    """What was found so far."""

    def __init__(
        self,
        asked: Asked,
        recoveries: Recoveries,
        on_progress: Callable[[Progress], object],
        stop: Callable[[], bool],
    ) -> None:
        self.explored = 0
        self.stopped = ""
        self.counts: Counter[Kind] = Counter()
        self._first: dict[Kind, tuple[CrashState, Report]] = {}
        self._asked, self._recoveries = asked, recoveries
        self._on_progress, self._stop = on_progress, stop
        self._told = 0.0

    def through(self, states: Enumeration | failing.Failures) -> None:
        """Recover from every state, until there are no more or somebody stops it."""
        try:
            for state, report in self._recoveries.reports(states, self._stop):
                self._meet(state, report_of(state, report))
                self._tell(states)
                if self._lost >= MOST_LOST:
                    self.stopped = "lost"
                    return
            self._tell(states, last=True)
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        if self._stop():
            self.stopped = "interrupted"

    def minimal(self) -> list[Counterexample]:
        """Return, saved, one counterexample for each kind of break: as few choices as break the same promises."""
        found = []
        for kind, (state, report) in self._first.items():
            try:
                smaller = state if self.stopped else self._shrunk(kind, state)
            except KeyboardInterrupt:
                smaller, self.stopped = state, "interrupted"
            if smaller != state:
                report = self._recoveries.report(smaller.tree)  # noqa: PLW2901 - that of the state that is kept
            found.append(self._counterexample(kind[0], smaller, report))
        return found

    @property
    def _lost(self) -> int:
        return sum(
            count
            for (names, _), count in self.counts.items()
            if names in (("recovery-ends",), ("work-ends",))
        )

    def _meet(self, state: CrashState, report: Report) -> None:
        self.explored += 1
        kind = self._kind(state, report)
        if kind[0]:
            self.counts[kind] += 1
            self._first.setdefault(kind, (state, report))

    def _kind(self, state: CrashState, report: Report) -> Kind:
        return judged(self._recoveries, self._asked.trace, state, report), str(report.get("error") or "")

    def _shrunk(self, kind: Kind, state: CrashState) -> CrashState:
        if isinstance(state, failing.FailedRun) or "recovery-ends" in kind[0]:
            return state

        def breaks(other: CrashState) -> bool:
            return self._kind(other, self._recoveries.report(other.tree)) == kind

        return shrink(self._asked.trace, self._asked.model, state, breaks)

    def _counterexample(self, names: tuple[str, ...], state: CrashState, report: Report) -> Counterexample:
        asked = self._asked
        found = Counterexample(
            store=asked.store,
            model=asked.model,
            events=asked.events,
            seed=asked.seed,
            switches=asked.switches,
            broken=names,
            promised=promises.promised(asked.store, asked.model) or not asked.is_built_in,
            report=report,
            trace=asked.trace,
            state=state,
            scenario=asked.code.scenario,
            imports=asked.code.imports,
        )
        counterexample.save(found)
        return found

    def _tell(self, states: Enumeration | failing.Failures, *, last: bool = False) -> None:
        now = time.monotonic()
        if last or now - self._told >= _TELL_EVERY_SECONDS:
            self._told = now
            self._on_progress(Progress(self.explored, states.tried, states.possible, len(self.counts)))


def judged(recoveries: Recoveries, trace: Trace, state: CrashState, report: Report) -> tuple[str, ...]:
    """Return the promises that a state breaks."""
    if isinstance(state, failing.FailedRun) and state.ended:
        return ("work-ends",)
    if not isinstance(report.get("read"), list | None):
        raise CrashLabError(
            f"recover: gave read as {type(report['read']).__name__}, not as a list; see docs/crash-lab.md for what it returns"
        )
    return promises.broken(recoveries.promises, facts(trace, state), report)


def report_of(state: CrashState, report: Report) -> Report:
    """Return what is to be said of a state: what the recovery gave, or why the work before it gave nothing."""
    return {"ended": state.ended} if isinstance(state, failing.FailedRun) and state.ended else report


def replay(found: Counterexample, *, seconds: float = 10.0) -> tuple[tuple[str, ...], Report]:
    """Try a counterexample once more, with the code as it is now; give the promises that it breaks, and the report.

    A crash is recovered from again; of a failed operation the work is done again too. Raises: CrashLabError when the
    scenario is gone or cannot be used.
    """
    if not found.scenario.is_file():
        raise CrashLabError(
            f"{found.scenario}: the scenario is gone; put it back, or look at what was found: --no-run"
        )
    state = found.state
    with Recoveries(found.code, seconds=seconds, children=1) as recoveries:
        if isinstance(state, failing.FailedRun):
            with failing.Failures(found.code, found.events, state.after, seconds=seconds) as failures:
                state = failures.run(state.fault)
        report = report_of(state, recoveries.report(state.tree))
        return judged(recoveries, found.trace, state, report), report
