"""Pictures of lesson 04 for a notebook: the crash matrix, and the table of refusals. Each also as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from labkit import views
from labkit.widgets import parts
from labkit.widgets.spine_board import SpinePart
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class CrashMatrix(SpinePart):
    """Operations across, verdicts of the next run down, the invariants below."""

    _esm = parts.script("matrix.js")

    def __init__(self, strikes: Iterable[views.Struck], title: str) -> None:
        matrix = views.crash_matrix(strikes)
        fixed = ("frame", "phase", "times", "operations", "goes-on", "nothing-left", "stops")
        first, last = min(matrix.numbers, default=0), max(matrix.numbers, default=0)
        words = {name: t(f"matrix.{name}") for name in fixed}
        words |= {
            "title": title,
            "axis": t("matrix.axis", first=first, last=last),
            "told": t("pictures.told"),
        }
        super().__init__(view=asdict(matrix), words=words)


class RefusalTable(SpinePart):
    """One row a change behind the runner's back, with what it answered."""

    _esm = parts.script("refusals.js")

    def __init__(self, results: Mapping[str, views.CommandEnd], title: str) -> None:
        columns = {name: t(f"refusals.{name}") for name in ("what", "exit", "decision", "cause", "message")}
        rows = [asdict(row) for row in views.refusal_rows(results)]
        super().__init__(view={"rows": rows}, words={**columns, "title": title})
