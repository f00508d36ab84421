"""A crash that broke a promise, kept so that it can be looked at and tried again: `LAB_STATE/crash/ID.json`.

The trace lies beside it under its digest, so that nothing of the run that found it is needed any more.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from labkit import workspace
from labkit.faults.crash import trace_file
from labkit.faults.crash.failing import FailedRun, Fault
from labkit.faults.crash.promises import Facts
from labkit.faults.crash.recovery import Code, CrashLabError, Report, files_of, tree_of
from labkit.faults.crash.states import build
from labkit.faults.crash.switches import Switches
from labkit.faults.crash.trace import Choice, CrashState, Trace

FORMAT = 1
_ID = re.compile(r"[^/\\\0]{1,120}")
_DIGEST = re.compile(r"[0-9a-f]{64}\.jsonl", re.ASCII)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One crash state, or one failed operation, after which the recovery does not keep what was promised.

    `broken` are all the promises that it breaks; `promised` says whether the store promises them under this model.
    `scenario` and `imports` say what is under test. `trace` is what was recorded, with the switches applied; of a failed
    operation it is the same run without the failure.
    """

    store: str
    model: str
    events: int
    seed: int
    switches: Switches
    broken: tuple[str, ...]
    promised: bool
    report: Report
    trace: Trace
    state: CrashState
    scenario: Path
    imports: tuple[Path, ...] = ()

    @property
    def fault(self) -> Fault | None:
        """The failed operation, of a counterexample that is no crash."""
        return self.state.fault if isinstance(self.state, FailedRun) else None

    @property
    def id(self) -> str:
        """A name that the same crash of the same run has again: its digest is over everything but names drawn by chance."""
        fault = [self.fault.nth, self.fault.op, self.fault.do] if self.fault else None
        choices = [asdict(choice) for choice in self.state.choices]
        known = [self.events, asdict(self.switches), self.broken, fault, self.state.after, choices]
        digest = sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        return f"{self.store}-{self.model}-{digest[:8]}"

    @property
    def facts(self) -> Facts:
        """What the promises are judged by."""
        return facts(self.trace, self.state)

    @property
    def code(self) -> Code:
        """What is under test."""
        return Code(self.scenario, self.imports)


def facts(trace: Trace, state: CrashState) -> Facts:
    """Return what is known of a run. Where an operation failed and the run went on, what it did not do it refused."""
    attempted, said = trace.acknowledged, state.acknowledged
    failed = isinstance(state, FailedRun)
    refused = tuple(value for value in attempted if value not in said) if failed else ()
    return Facts(attempted, said, refused)


def folder() -> Path:
    """Return where counterexamples are kept, made if it is missing. Raises: CrashLabError."""
    try:
        place = workspace.state_folder() / "crash"
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CrashLabError(
            f"{error.filename}: {error.strerror}; set LAB_STATE to a folder that can be written"
        ) from None
    return place


def save(found: Counterexample) -> Path:
    """Write it and its trace, each whole or not at all; returns the path of the first. Raises: CrashLabError."""
    place = folder()
    name = f"{trace_file.digest(found.trace)}.jsonl"
    try:
        if not _is_whole(place / name):
            trace_file.save(found.trace, place / name)
        return _write(place / f"{found.id}.json", _shown(found, name))
    except OSError as error:
        raise CrashLabError(
            f"{place}: {error.strerror}; free some room, or set LAB_STATE to a folder that can be written"
        ) from None


def _is_whole(trace: Path) -> bool:
    """Say whether a trace holds what its name says: it is the SHA-256 of its bytes."""
    return trace.is_file() and sha256(trace.read_bytes()).hexdigest() == trace.stem


def known() -> list[str]:
    """List the ids of all that are kept, newest first."""
    found = sorted(folder().glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.stem for path in found]


def load(name: str) -> Counterexample:
    """Return the counterexample with this id.

    Raises: CrashLabError when there is none, or its file or its trace is not what was written.
    """
    path = folder() / f"{name}.json"
    if not _ID.fullmatch(name) or not path.is_file():
        raise CrashLabError(
            f"{name}: no such counterexample; 'statelab crash replay' without an id lists them"
        )
    try:
        found = _read(json.loads(path.read_text("utf-8")), path.parent)
        if found.id != name:  # its digest speaks of nearly all that it holds
            raise ValueError("another counterexample")  # noqa: TRY301
        return found  # noqa: TRY300
    except (
        OSError,
        ValueError,
        RecursionError,
        TypeError,
        KeyError,
        IndexError,
        trace_file.TraceFileError,
    ) as error:
        what = error if isinstance(error, trace_file.TraceFileError) else "is not what was written"
        raise CrashLabError(f"{path}: {what}; find it again with 'statelab crash explore'") from None


def _shown(found: Counterexample, trace_name: str) -> dict[str, Any]:
    state = found.state
    shown: dict[str, Any] = {
        "format": FORMAT,
        "id": found.id,
        "store": found.store,
        "model": found.model,
        "events": found.events,
        "seed": found.seed,
        "switches": asdict(found.switches),
        "broken": list(found.broken),
        "promised": found.promised,
        "after": state.after,
        "choices": [asdict(choice) for choice in state.choices],
        "acknowledged": list(state.acknowledged),
        "report": found.report,
        "trace": trace_name,
        "scenario": str(found.scenario),
        "imports": [str(place) for place in found.imports],
    }
    if isinstance(state, FailedRun):
        shown |= {"fault": asdict(state.fault), "tree": files_of(state.tree), "ended": state.ended}
    return shown


def _read(shown: dict[str, Any], place: Path) -> Counterexample:
    if shown["format"] != FORMAT or not _DIGEST.fullmatch(shown["trace"]):
        raise ValueError("another format")
    if not _is_whole(place / shown["trace"]):
        raise ValueError("another trace")
    trace = trace_file.load(place / shown["trace"])
    acknowledged = tuple(shown["acknowledged"])
    state: CrashState
    if "fault" in shown:
        fault = Fault(**shown["fault"])
        state = FailedRun(shown["after"], (), tree_of(shown["tree"]), acknowledged, fault, shown["ended"])
    else:
        state = build(trace, shown["after"], tuple(Choice(**choice) for choice in shown["choices"]))
    return Counterexample(
        store=shown["store"],
        model=shown["model"],
        events=shown["events"],
        seed=shown["seed"],
        switches=Switches(**shown["switches"]),
        broken=tuple(shown["broken"]),
        promised=shown["promised"],
        report=dict(shown["report"]),
        trace=trace,
        state=state,
        scenario=Path(shown["scenario"]),
        imports=tuple(map(Path, shown["imports"])),
    )


def _write(path: Path, shown: dict[str, Any]) -> Path:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(shown, file, ensure_ascii=False, indent=1)
            file.write("\n")
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
