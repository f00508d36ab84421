"""One crash drawn: its steps by file and folder, what a sync had secured, what the crash kept, and the bytes it left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from labkit import views
from labkit.views.crash_timeline import MOST_FILES
from labkit.widgets import parts
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from labkit.views import TimelineRow, TimelineView

_CSS = Path(parts.__file__).with_name("static") / "crash.css"


class CrashPart(parts.Part):
    """What the pieces of the crash lab share: a sheet of their own, behind the one of all."""

    _css = parts.Part._css + _CSS.read_text("utf-8")  # noqa: SLF001 - anywidget's own name
    view = traitlets.Dict().tag(sync=True)


class Steps(CrashPart):
    """All steps of a trace, by object across the page and as a table, with the place of the crash."""

    _esm = parts.script("crash_timeline.js")


class CrashTimeline(ipywidgets.VBox):
    """One crash: its steps, then the bytes of the files that it touched. Empty until ``show`` is called."""

    def __init__(self) -> None:
        words = {name: t(f"crash-timeline.{name}") for name in ("frame", "table", "legend", "here")}
        self.steps = Steps(words=words)
        self.bytes = tuple(parts.Bytes(words=parts.bytes_words()) for _ in range(MOST_FILES))
        super().__init__((self.steps, *self.bytes))
        self.show(None)

    def show(self, view: TimelineView | None, note: str = "") -> None:
        """Draw a crash, with a ``note`` of its own; None draws nothing."""
        self.steps.view = steps_trait(view, note) if view else {}
        there = [(file.path, file.view) for file in view.files if file.view] if view else []
        for part, file in zip(self.bytes, [*there, *[None] * MOST_FILES], strict=False):
            part.layout.display = None if file else "none"
            if file:
                part.view = parts.bytes_trait(file[1], file[0])


def steps_trait(view: TimelineView, note: str) -> dict[str, Any]:
    """Return a timeline as the plain values that ``crash_timeline.js`` draws: texts, indices, numbers."""
    columns = views.timeline_columns(view)
    said = (*views.report_lines(view.report), *map(views.file_line, view.files), note)
    return {
        "title": views.crash_line(view),
        "after": view.after,
        "lines": [["bad", views.broken_line(name)] for name in view.broken]
        + [["quiet", line] for line in said if line],
        "lanes": [t("crash-timeline.said"), *map(views.lane_line, view.lanes)],
        "head": [t(f"crash-timeline.{name}") for name in columns],
        "rows": [[cells[name] for name in columns] for cells in map(views.timeline_cells, view.rows)],
        "steps": [_drawn(row) for row in view.rows],
        "bars": [list(bar) for bar in views.secured_bars(view)],
        "fates": list(_legend(view)),
    }


def _drawn(row: TimelineRow) -> dict[str, Any]:
    fate = "lost" if row.lost else row.fate
    return {
        "lane": row.lane + 1,
        "op": row.op,
        "fate": fate,
        "share": row.kept / row.size if row.kept and row.size else 0,
        "text": " · ".join((str(row.number), views.step_line(row), views.fate_line(row))),
    }


def _legend(view: TimelineView) -> Iterator[list[str]]:
    """Name the ways in which the steps of this timeline ended."""
    there = {"lost" if row.lost else str(row.fate) for row in view.rows}
    for fate in (*map(str, views.Fate), "lost"):
        if fate in there:
            yield [fate, t(f"crash-timeline.legend-{fate}")]
