"""The pieces that widgets are made of: each a set of traits and a script that draws them. Nothing is decided here."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import traitlets

from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from labkit import views

_STATIC = Path(__file__).with_name("static")
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<name>[\w.]+)";\n', re.MULTILINE)


def script(name: str) -> str:
    """Return one script with what it imports written in place: a browser gets each widget as a single module."""
    source = (_STATIC / name).read_text("utf-8")
    return _IMPORT.sub(
        lambda found: re.sub(r"^export ", "", script(found["name"]), flags=re.MULTILINE), source
    )


class Part(anywidget.AnyWidget):
    """What all pieces share: the one style sheet, and texts in the reader's language."""

    _css = (_STATIC / "lab.css").read_text("utf-8")
    words = traitlets.Dict().tag(sync=True)


class Bytes(Part):
    """A byte view; `view` is `labkit.views.ByteView` as plain values, with texts."""

    _esm = script("bytes.js")
    view = traitlets.Dict().tag(sync=True)


class Slider(Part):
    """A whole number from `low` to `high`, by pointer, keyboard or typing."""

    _esm = script("slider.js")
    label = traitlets.Unicode().tag(sync=True)
    low = traitlets.Int(0).tag(sync=True)
    high = traitlets.Int(0).tag(sync=True)
    value = traitlets.Int(0).tag(sync=True)
    chosen: Callable[[int], object] | None = None
    """Called with every value that the reader chooses; not with one that `show` sets."""

    def show(self, value: int) -> None:
        """Move to a value without choosing it."""
        chosen, self.chosen = self.chosen, None
        self.value = value
        self.chosen = chosen

    @traitlets.observe("value")
    def _value_changed(self, change: dict[str, Any]) -> None:
        if self.chosen:
            self.chosen(change["new"])


class Number(Slider):
    """A whole number from `low` to `high`, typed."""

    _esm = script("number.js")


class Choice(Part):
    """One of `options`, pairs of value and label."""

    _esm = script("choice.js")
    label = traitlets.Unicode().tag(sync=True)
    options: traitlets.List[Any] = traitlets.List().tag(sync=True)
    value = traitlets.Unicode().tag(sync=True)


class Toggle(Part):
    """Something that is on or off."""

    _esm = script("toggle.js")
    label = traitlets.Unicode().tag(sync=True)
    value = traitlets.Bool(default_value=True).tag(sync=True)


class Select(Part):
    """One of many names; `groups` are pairs of a group's label and its names."""

    _esm = script("select.js")
    label = traitlets.Unicode().tag(sync=True)
    groups: traitlets.List[Any] = traitlets.List().tag(sync=True)
    value = traitlets.Unicode().tag(sync=True)


class Panel(Part):
    """Verdict cards, notes and the task table."""

    _esm = script("panel.js")
    view = traitlets.Dict().tag(sync=True)


class Files(Part):
    """A folder's tree beside one of its files; `chosen` is the file a reader pinned, or empty."""

    _esm = script("files.js")
    view = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)


class Status(Part):
    """One sentence on what last happened, announced by screen readers."""

    _esm = script("status.js")
    text = traitlets.Unicode().tag(sync=True)


class Heading(Part):
    """The heading of a group of controls."""

    _esm = script("heading.js")
    text = traitlets.Unicode().tag(sync=True)


def group(title: str, *children: ipywidgets.Widget) -> ipywidgets.VBox:
    """Return controls below a heading."""
    made = ipywidgets.VBox([Heading(text=title), *children])
    made.add_class("lab-group")
    return made


def row(*children: ipywidgets.Widget) -> ipywidgets.Box:
    """Return controls side by side, wrapping where there is no room."""
    made = ipywidgets.Box(children)
    made.add_class("lab-row")
    return made


def in_one_line(error: BaseException) -> str:
    """Say an error as one line of text, as a status line can show it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def button(label: str, click: Callable[[], object]) -> ipywidgets.Button:
    """Return a button as wide as its label that calls ``click``."""
    made = ipywidgets.Button(description=label, layout={"width": "auto"})
    made.on_click(lambda _button: click())
    return made


def bytes_words() -> dict[str, str]:
    """Return the fixed texts of a byte view."""
    fixed = {name: t(f"bytes.{name}") for name in ("title", "offset", "hex", "text", "empty")}
    return {**fixed, "line": t("bytes.line", line="{line}")}


def bytes_trait(view: views.ByteView, name: str) -> dict[str, Any]:
    """Return a byte view as the plain values that ``bytes.js`` draws."""
    counts = {str(mark): t(f"bytes.{mark}", n=n) for mark, n in view.counts.items() if n}
    if view.changed_bytes:
        counts["changed"] = t("bytes.changed", n=view.changed_bytes)
    caption = [t("file.size", name=name, size=view.size)]
    if view.end - view.start < view.size:
        caption.append(t("file.window", start=view.start, end=view.end))
    return {
        "caption": " · ".join(caption),
        "size": view.size,
        "focus": view.focus,
        "counts": counts,
        "rows": [[row.offset, row.line, _runs(row)] for row in view.rows],
    }


def _runs(row: views.Row) -> list[list[Any]]:
    """Join neighbours that look alike, ``[mark, changed, hex, text, name]``: a slider redraws few elements quickly.

    A character of several bytes stays by itself, with its name.
    """
    runs: list[list[Any]] = []
    joins = False
    for cell in row.cells:
        single = len(cell.hex) == 2
        if single and joins and runs[-1][:2] == [cell.mark, cell.changed]:
            runs[-1][2] += f" {cell.hex}"
            runs[-1][3] += cell.glyph
        else:
            runs.append([cell.mark, cell.changed, cell.hex, cell.glyph, cell.name])
        joins = single
    return runs


def panel_words() -> dict[str, str]:
    """Return the fixed texts of a panel."""
    columns = {name: t(f"task.{name}") for name in ("name", "status", "note")}
    return {"title": t("report.title"), "tasks": t("task.title"), **columns}


def panel_trait(
    cards: Iterable[views.Card], lines: Iterable[views.Line | None], tasks: views.TaskTable | None = None
) -> dict[str, Any]:
    """Return verdicts, notes and tasks as the plain values that ``panel.js`` draws."""
    return {
        "cards": [asdict(card) for card in cards],
        "lines": [asdict(line) for line in lines if line],
        "tasks": asdict(tasks) if tasks else None,
    }
