"""Lesson 04's state, live: the task's phase, its records and events, and the files themselves. Drawn from disk alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from labkit import views
from labkit.watch import Watch
from labkit.widgets import parts
from labkit.widgets.state_files import StateFiles
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Callable

_CSS = Path(parts.__file__).with_name("static") / "spine.css"


class SpinePart(parts.Part):
    """What the pieces of lesson 04 share: a sheet of their own, behind the one of all."""

    _css = parts.Part._css + _CSS.read_text("utf-8")  # noqa: SLF001 - anywidget's own name
    view = traitlets.Dict().tag(sync=True)


class PhaseDiagram(SpinePart):
    """The five phases of a task with the current one lit, and a sentence that screen readers announce."""

    _esm = parts.script("phases.js")

    def __init__(self, state: views.StateView = views.StateView()) -> None:  # noqa: B008 - frozen
        super().__init__(words={"title": t("spine.picture"), "now": t("spine.now")})
        self.show(state)

    def show(self, state: views.StateView, sentence: str = "") -> None:
        """Light a phase."""
        self.view = asdict(views.phase_picture(state, sentence))


class TaskHead(SpinePart):
    """The tasks to choose from, the queue of the chosen one, and which of its records stand there."""

    _esm = parts.script("task_head.js")
    chosen = traitlets.Unicode().tag(sync=True)


class Timeline(SpinePart):
    """The event log, line by line, with what is new since the last action marked."""

    _esm = parts.script("timeline.js")


class SpineBoard:
    """The pieces that show one lab as it is on disk, and follow any change, whoever made it.

    ``looked`` is told of every look.
    """

    def __init__(self, lab: Path, looked: Callable[[views.SpineView], object] = lambda _view: None) -> None:
        self.lab = lab
        self._looked = looked
        self._reader = views.SpineReader(lab)
        self._known: tuple[str, int] = ("", 0)
        self.head = TaskHead(words={name: t(f"spine.{name}") for name in ("task", "queue", "records")})
        self.diagram = PhaseDiagram()
        self.timeline = Timeline(words={"title": t("spine.events"), "new": t("spine.new")})
        self.files = StateFiles(lab, only=("tasks", ".loop"))
        self.head.observe(lambda _change: self.look(), "chosen")
        self.mark()
        self._watch = Watch(lab, self.look)

    def mark(self) -> None:
        """Compare with this moment from now on: called before an action, to see what the action changed."""
        task = self._reader.look(self.head.chosen).task
        self._known = (task.task_id, task.events.count) if task else ("", 0)
        self.files.mark()
        self.look()

    def look(self) -> None:
        """Read the lab and draw what is there."""
        view = self._reader.look(self.head.chosen)
        task = view.task
        self.head.view = _head(view) if task else {}
        self.diagram.show(task.state if task else views.StateView(), views.spine_sentence(view))
        known = self._known[1] if task and task.task_id == self._known[0] else 0
        self.timeline.view = _events(task.events if task else views.EventsView(), known)
        self._looked(view)

    def close(self) -> None:
        """Stop watching."""
        self._watch.close()
        self.files.close()


def _head(view: views.SpineView) -> dict[str, Any]:
    assert view.task is not None
    said = {"there": t("spine.there"), "absent": t("spine.absent"), "damaged": t("spine.damaged-record")}
    return {
        "names": list(view.names),
        "shown": view.task.task_id,
        "more": t("spine.more", n=view.more) if view.more else "",
        "places": ", ".join(view.task.places) or t("spine.nowhere"),
        "records": [[name, how, said[how]] for name, how in view.task.records.items()],
    }


def _events(events: views.EventsView, known: int) -> dict[str, Any]:
    rows = [
        {
            **asdict(row),
            "says": views.event_says(row),
            "gap": "" if row.gap_seconds is None else t("spine.gap", seconds=f"{row.gap_seconds:.3f}"),
            "is_new": row.sequence > known,
        }
        for row in events.rows
    ]
    before = t("spine.events-skipped", n=events.skipped) if events.skipped else ""
    return {"rows": rows, "before": before, "notes": [asdict(line) for line in views.event_notes(events)]}
