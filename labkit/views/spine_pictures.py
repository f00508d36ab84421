"""Pictures of the state spine: the phase diagram and the log as lines, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.views.sentences import Line
from labkit.views.spine import PHASES
from labkit.words import catalogue, t

if TYPE_CHECKING:
    from labkit.views.spine import EventRow, EventsView, SpineView, StateView

_ZONES = (("start", 0, 0), ("resume", 1, 1), ("never", 2, 3), ("done", 4, 4))
_MARKS = {"completed": "good", "closed": "quiet", "rejected": "bad", "claimed": "good"}


@dataclass(frozen=True, slots=True)
class Phase:
    """One box: the phase as files name it, its name for people, and ``place``: ``past``, ``now`` or ``ahead``."""

    code: str
    label: str
    place: str


@dataclass(frozen=True, slots=True)
class Zone:
    """What may follow from the phases ``start`` to ``to``, counted from 0; ``lit`` when the task is there."""

    start: int
    to: int
    text: str
    lit: bool


@dataclass(frozen=True, slots=True)
class PhasePicture:
    """The five phases with the current one lit (``lit``, empty when none is), and the same in one sentence."""

    phases: tuple[Phase, ...]
    zones: tuple[Zone, ...]
    lit: str
    sentence: str
    mark: str


def phase_picture(state: StateView, sentence: str = "") -> PhasePicture:
    """Lay a state out. ``sentence`` stands in for what a state that says nothing cannot say itself."""
    at = PHASES.index(state.lit) if state.lit else -1
    places = ["past" if number < at else "now" if number == at else "ahead" for number in range(len(PHASES))]
    labels = [t(f"phase.{code}") for code in PHASES]
    if state.lit == "finished" and state.status:
        labels[-1] = state.status
    phases = tuple(map(Phase, PHASES, labels, places))
    zones = [Zone(start, to, t(f"spine.zone-{name}"), start <= at <= to) for name, start, to in _ZONES]
    return PhasePicture(phases, tuple(zones), state.lit, sentence or state_sentence(state), _mark(state))


def state_sentence(state: StateView) -> str:
    """Say where a task is and what that means; or what is wrong with the file that should say so."""
    task = state.task_id or t("spine.task")
    if state.problem:
        return t("spine.damaged", task=task, problem=state.problem) if state.task_id else state.problem
    if not state.lit:
        return t("spine.no-state", task=task)
    means = state.status if f"phase-means.{state.status}" in catalogue() else state.lit
    return t(
        "spine.at",
        task=task,
        status=state.status,
        phase=state.phase,
        round=str(state.round),
        means=t(f"phase-means.{means}"),
    )


def spine_sentence(view: SpineView) -> str:
    """Say the state of the task at hand, or that there is none."""
    if not view.exists:
        return t("spine.no-lab")
    if view.task is None:
        return t("spine.no-task")
    state = view.task.state
    if not state.lit and not state.problem:
        claimed = any(how != "absent" for how in view.task.records.values())
        return t("spine.no-state" if claimed else "spine.unclaimed", task=view.task.task_id)
    return state_sentence(state)


def event_says(row: EventRow) -> str:
    """Say what an event of a known type means; nothing for any other."""
    return t(f"event.{row.type}") if f"event.{row.type}" in catalogue() else ""


def event_notes(events: EventsView) -> Iterator[Line]:
    """Say what the rows of a log do not: that there are none, that its end is torn, that reading stopped."""
    if events.problem:
        yield Line("bad", f"events.jsonl: {events.problem}")
    elif events.torn:
        yield Line("surprise", t("spine.events-torn", n=events.torn))
    elif not events.rows:
        yield Line("quiet", t("spine.events-none"))


def _mark(state: StateView) -> str:
    if state.problem:
        return "bad"
    return _MARKS.get(state.status) or _MARKS.get(state.lit) or ("surprise" if state.lit else "quiet")
