"""One function per click in the crash lab: begins an exploration in a process of its own, and reads what it left on disk.

An exploration tells how far it is in a file, `LAB_STATE/crash/explored/NAME.json`, one for each choice of store, model,
events and switches; what it found are counterexamples (docs/formats-crash.md). Whoever shows them reads these files.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from labkit import workspace
from labkit.faults.crash import counterexample
from labkit.faults.crash.counterexample import Counterexample
from labkit.faults.crash.recovery import CrashLabError
from labkit.faults.crash.scenarios import STORES
from labkit.faults.crash.switches import Switches
from labkit.owned_child import OwnedChild

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MODELS", "STORES", "Counterexample", "CrashLabError", "Explored", "Settings", "Switches"]

MODELS = ("kill", "ordered", "weak")
MOST_EVENTS = 40
MOST_STATES = 20_000
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What is explored, of how many states at most. Raises: ValueError for a choice that there is not."""

    store: str
    model: str
    events: int = 10
    limit: int = 2000
    switches: Switches = field(default_factory=Switches)

    def __post_init__(self) -> None:
        """Refuse what no exploration could begin with."""
        for value, there in ((self.store, STORES), (self.model, MODELS)):
            if value not in there:
                raise ValueError(f"crash lab: no {value!r}; choose one of {', '.join(there)}")
        for number, most, what in (
            (self.events, MOST_EVENTS, "events"),
            (self.limit, MOST_STATES, "states"),
        ):
            if not 1 <= number <= most:
                raise ValueError(f"crash lab: {number} {what}; choose from 1 to {most}")

    @property
    def name(self) -> str:
        """Names the file of these settings; what was switched off is in it."""
        off = [name for name, on in asdict(self.switches).items() if not on]
        numbers = (f"{self.events}events", f"{self.limit}states")
        return "-".join((self.store, self.model, *numbers, *(f"no_{name}" for name in off)))

    @property
    def shown(self) -> str:
        """Say how a person would type it."""
        off = [f"--no-{name.replace('_', '-')}" for name, on in asdict(self.switches).items() if not on]
        numbers = ("--events", str(self.events), "--limit", str(self.limit))
        return " ".join(("statelab crash explore --store", self.store, "--model", self.model, *numbers, *off))


@dataclass(frozen=True, slots=True)
class Explored:
    """How far an exploration is, or was when it ended.

    ``ended`` is false while it runs, and for ever when its process was killed. ``explored`` counts states, ``tried`` and
    ``possible`` combinations of crash point and choices, ``kinds`` the kinds of break found so far; ``found`` are the ids
    of the counterexamples, ``states`` how many states broke something, ``verdict``, ``complete`` and ``stopped`` as of an exploration.
    ``unseen`` is what the recorder could not follow, and where; ``seconds`` is the time taken.
    """

    ended: bool = False
    steps: int = 0
    explored: int = 0
    tried: int = 0
    possible: int = 0
    kinds: int = 0
    found: tuple[str, ...] = ()
    states: int = 0
    verdict: str = ""
    complete: bool = False
    stopped: str = ""
    unseen: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


def folder() -> Path:
    """Return where explorations say how far they are. Raises: CrashLabError when it cannot be made."""
    place = counterexample.folder() / "explored"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CrashLabError(
            f"{place}: {error.strerror}; set LAB_STATE to a folder that can be written"
        ) from None
    return place


def begin(settings: Settings, heard: Callable[[], object]) -> OwnedChild:
    """Start an exploration beside the kernel; it ends when the kernel does. Raises: CrashLabError; OSError; RuntimeError.

    RuntimeError: no event loop is running.
    """
    forget_end(settings)
    plan = json.dumps(asdict(settings))
    argv = (sys.executable, "-m", "labkit.crash_child", plan)
    return OwnedChild(settings.shown, argv, workspace.kit_root(), os.environ, heard)


def ask_to_end(settings: Settings) -> None:
    """Ask an exploration to end after the state at hand, with what it has found. Raises: CrashLabError; OSError."""
    _stop_file(settings).touch()


def is_asked_to_end(settings: Settings) -> bool:
    """Whether somebody did."""
    return _stop_file(settings).exists()


def forget_end(settings: Settings) -> None:
    """Take that wish back: the exploration has ended, or a new one begins. Raises: CrashLabError; OSError."""
    _stop_file(settings).unlink(missing_ok=True)


def say(settings: Settings, explored: Explored) -> None:
    """Write how far an exploration is, whole or not at all. Raises: CrashLabError; OSError."""
    path = folder() / f"{settings.name}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({"format": _FORMAT, **asdict(explored)}), "utf-8")
    temporary.replace(path)


def explored(settings: Settings) -> Explored | None:
    """Read how far an exploration is; None when there was none, or its file is not what was written."""
    try:
        said = json.loads((folder() / f"{settings.name}.json").read_text("utf-8"))
        if said.pop("format") != _FORMAT:
            return None
        found, unseen = (str(name) for name in said.pop("found")), said.pop("unseen")
        return Explored(**said, found=tuple(found), unseen=tuple((what, where) for what, where in unseen))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def open_counterexample(name: str) -> Counterexample:
    """Read one counterexample and its trace. Raises: CrashLabError when it is not there, or not what was written."""
    return counterexample.load(name)


def _stop_file(settings: Settings) -> Path:
    return folder() / f"{settings.name}.stop"
