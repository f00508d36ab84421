"""What a homework experiment measured: rows with names, columns with names, and how that looks."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from html import escape
from pathlib import Path

from IPython.display import HTML

from labkit import workspace
from labkit.experiments import cards
from labkit.words import t

NOTEBOOK = "22-homework"
Cell = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Table:
    """``table["fsync"]["killed"]`` is one cell; shown in words from the catalogue: ``homework.fsync``, ``homework.killed``."""

    rows: dict[str, dict[str, Cell]]

    def __getitem__(self, row: str) -> dict[str, Cell]:
        return self.rows[row]

    def column(self, name: str) -> list[Cell]:
        """Return one column, from top to bottom."""
        return [row[name] for row in self.rows.values()]

    def _repr_html_(self) -> str:
        columns = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        head = ["", *(t(f"homework.{name}") for name in columns)]
        body = [
            [named(row), *(_shown(cells.get(name, "–")) for name in columns)]
            for row, cells in self.rows.items()
        ]
        return cards.table(head, body)

    def __repr__(self) -> str:
        return "\n".join(f"{named(row)}: {cells}" for row, cells in self.rows.items())


def named(word: str) -> str:
    """Return a word of the catalogue, or the word itself when it is a name."""
    try:
        return t(f"homework.{word}")
    except LookupError:
        return word


def _shown(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "✓" if cell else "✗"
    if isinstance(cell, float):
        return f"{cell:,.3g}" if cell < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else named(cell)


def fresh_place(experiment: str) -> Path:
    """Return an empty private folder for one experiment.

    It lies in the user's own state folder: `durable_log` refuses one inside a Git work tree, as the kit's may be.
    """
    folder = workspace.state_folder() / NOTEBOOK / experiment
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def where_files_are() -> HTML:
    """Say where the experiments leave their files."""
    folder = workspace.state_folder() / NOTEBOOK
    return HTML(f"<p>{escape(t('homework.where', folder=folder))}</p>")  # type: ignore[no-untyped-call]
