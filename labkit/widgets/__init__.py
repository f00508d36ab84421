"""What a notebook calls. Wiring only: a click goes to ``actions``, a change on disk comes back through ``views``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labkit import views, workspace
from labkit.crash_actions import Settings, Switches
from labkit.widgets.check import Check
from labkit.widgets.control_room import ControlRoom
from labkit.widgets.crash_explorer import CrashExplorer
from labkit.widgets.crash_matrix import CrashMatrix, RefusalTable
from labkit.widgets.crash_timeline import CrashTimeline
from labkit.widgets.gate import Gate
from labkit.widgets.pictures import HeatMap, Lanes
from labkit.widgets.prediction import Prediction
from labkit.widgets.spine_board import PhaseDiagram
from labkit.widgets.state_files import StateFiles
from labkit.widgets.torn_write import TornWrite
from labkit.widgets.zoo import Zoo
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from labkit.views import CommandEnd, Found, Struck, TracedStep

__all__ = [
    "check",
    "control_room",
    "crash_explorer",
    "crash_matrix",
    "crash_timeline",
    "gate",
    "heatmap",
    "lanes",
    "phase_diagram",
    "predict",
    "refusal_table",
    "state_files",
    "torn_write",
    "zoo",
]


def torn_write(folder: Path | str | None = None, target: str | None = None) -> TornWrite:
    """Return the torn-write widget, on a sample log in ``folder`` (default ``workspace/torn-write``).

    ``target`` names whose ``read`` and ``append`` stand beside the kit's; default is the learner's own code.
    """
    return TornWrite(_folder(folder, "torn-write"), target or workspace.target())


def state_files(folder: Path | str | None = None) -> StateFiles:
    """Return the live view of a folder (default ``workspace``): its tree, one file, and what changed."""
    return StateFiles(Path(folder).absolute() if folder else workspace.kit_root() / "workspace")


def control_room(lab: Path | str | None = None, code: str | None = None) -> ControlRoom:
    """Return the control room of a lab (default ``workspace/issue-garden-lab``), which need not be there yet.

    ``code`` is what a lab that it makes is laid down with: ``starter`` or ``solution``; default is what the old one was
    made from, else the learner's choice.
    """
    folder = Path(lab).absolute() if lab else workspace.kit_root() / "workspace" / "issue-garden-lab"
    return ControlRoom(folder, code)


def phase_diagram(state: Mapping[str, Any] | Path | str) -> PhaseDiagram:
    """Return the picture of a task's phases: of a state, a ``state.json``, or the task at hand of a lab folder."""
    return PhaseDiagram(views.state_view(state))


def crash_matrix(strikes: Iterable[Struck], title: str | None = None) -> CrashMatrix:
    """Return the picture of a round killed at place after place: operation × verdict, and whether the invariants held."""
    return CrashMatrix(strikes, title or t("matrix.title"))


def crash_explorer(
    store: str = "naive", model: str = "weak", events: int = 10, limit: int = 2000, **switches: bool
) -> CrashExplorer:
    """Return the crash explorer, with what is chosen at first: a store, a model, numbers of events and states at most.

    ``switches`` are ``fsync``, ``folder_sync`` and ``atomic_replace``. Raises: ValueError for a choice that there is not;
    TypeError for another switch.
    """
    return CrashExplorer(Settings(store, model, events, limit, Switches(**switches)))


def crash_timeline(found: Found) -> CrashTimeline:
    """Return one counterexample drawn: what was done, what was synced, what the crash kept, and the bytes it left."""
    made = CrashTimeline()
    made.show(views.timeline_of(found))
    return made


def refusal_table(results: Mapping[str, CommandEnd], title: str | None = None) -> RefusalTable:
    """Return what the runner answered to each change behind its back, by the change's name."""
    return RefusalTable(results, title or t("refusals.title"))


def check(lesson: str = "22", target: str | None = None, *, part: str | None = None) -> Check:
    """Return the Check button for a lesson, or for the homework: its suite on the learner's code, in a process of its own.

    With ``part``, a dimension of the rubric, it shows that part's tests only: ``check("22-homework", part="durability")``.
    """
    return Check(lesson, target or workspace.target(), part)


def gate() -> Gate:
    """Return the button that tries the learner's own tests on right stores and on the eleven that are wrong on purpose."""
    return Gate()


def lanes(trace: Iterable[TracedStep], title: str | None = None) -> Lanes:
    """Return the picture of a race: what ``labkit.actions.race`` returned, one lane a caller."""
    return Lanes(trace, title or t("lanes.title"))


def heatmap(verdicts: Mapping[str, Sequence[str]], title: str | None = None) -> HeatMap:
    """Return the map of cut positions × verdict: what ``labkit.actions.cut_everywhere`` returned, by reader."""
    return HeatMap(verdicts, title or t("heat.title"))


def zoo(target: str | None = None) -> Zoo:
    """Return the corruption zoo, to browse: bytes, the right verdict, and that of the learner's own ``read``."""
    return Zoo(workspace.kit_root() / "assets" / "corruption-zoo", target or workspace.target())


def predict(question: str, options: Sequence[str] = ()) -> Prediction:
    """Return a question to answer before the next cell runs; ``.compare(happened)`` then shows both.

    ``question`` is a key of ``words.toml`` (options are looked up as ``KEY.OPTION``) or a text that stands for itself.
    Without options the answer is written.
    """
    return Prediction(question, tuple(options))


def _folder(given: Path | str | None, name: str) -> Path:
    if not given:
        return workspace.scratch(name)
    folder = Path(given).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder
