"""What every crash can leave of a store, and what it breaks: the crash lab's explorer, one table a question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from IPython.display import Code

from labkit import workspace
from labkit.experiments.homework.tables import Cell, Table
from labkit.experiments.left_out import need_reference
from labkit.faults.crash.counterexample import Counterexample
from labkit.faults.crash.explorer import Exploration, code_of, explore, record
from labkit.faults.crash.switches import Switches

_ALL = Switches()
SWITCHED_OFF = {
    "all-on": _ALL,
    "no-fsync": replace(_ALL, fsync=False),
    "no-folder-sync": replace(_ALL, folder_sync=False),
}
_OWN = workspace.kit_root() / "assets" / "crash-lab" / "my_store.py"

OF_THE_REFERENCE = ("lesson", "spine", "spine-resumed", "spine-closed", "spine-twice")


@dataclass(frozen=True, slots=True, repr=False)
class Crashes(Table):
    """``seen["weak"]["broken"]`` is one cell; ``counterexample("weak")`` is what was found, to be drawn."""

    found: dict[str, tuple[Counterexample, ...]]

    def counterexample(self, row: str) -> Counterexample:
        """Return the first counterexample of a row. Raises: LookupError when nothing was found there."""
        if not self.found[row]:
            raise LookupError(f"{row}: no counterexample was found; look at another row")
        return self.found[row][0]


def crashes(store: str | Path, *models: str, events: int = 3, limit: int | None = None) -> Crashes:
    """Record a store, or the scenario in a file of the learner's own, once; explore that under some models, a row each."""
    if store in OF_THE_REFERENCE:
        need_reference()
    trace = record(code_of(store)[1], events)
    return _told({model: explore(store, model, events=events, limit=limit, trace=trace) for model in models})


def switched_off(store: str, model: str = "weak", events: int = 1, limit: int | None = None) -> Crashes:
    """Explore one recording as it is, then with the syncs of files taken out of it, then those of folders."""
    trace = record(code_of(store)[1], events)
    return _told(
        {
            name: explore(store, model, events=events, limit=limit, trace=trace, switches=switches)
            for name, switches in SWITCHED_OFF.items()
        }
    )


def own_store() -> Path:
    """Return a small scenario to change, below ``workspace/crash-lab``; one that is there already is left as it is."""
    path = workspace.scratch("crash-lab") / "my_store.py"
    if not path.exists():
        path.write_bytes(_OWN.read_bytes())
    return path


def source_of(path: Path) -> Code:
    """Return a file of code, to be read in the notebook as it is now."""
    return Code(path.read_text("utf-8"), language="python")  # type: ignore[no-untyped-call]


def _told(explorations: dict[str, Exploration]) -> Crashes:
    rows = {name: _row(one) for name, one in explorations.items()}
    return Crashes(rows, {name: one.broken for name, one in explorations.items()})


def _row(one: Exploration) -> dict[str, Cell]:
    broken = dict.fromkeys(name for found in one.broken for name in found.broken)
    return {
        "explored": one.explored,
        "possible": one.possible,
        "broken": sum(one.counts),
        "promises": ", ".join(broken) or "none-broken",
        "verdict": "lost-unpromised" if broken and one.verdict == "kept" else f"verdict-{one.verdict}",
    }
