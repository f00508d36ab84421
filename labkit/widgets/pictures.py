"""Pictures: the lanes of a race, and the heat map of cuts. Each also as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import traitlets

from labkit import views
from labkit.widgets import parts
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

VERDICTS = ("whole", "torn", "refused", "lost", "wrong")


class Lanes(parts.Part):
    """Who read and wrote when, one lane a caller."""

    _esm = parts.script("lanes.js")
    view = traitlets.Dict().tag(sync=True)

    def __init__(self, steps: Iterable[views.TracedStep], title: str) -> None:
        view: dict[str, Any] = {**asdict(views.lanes(steps)), "title": title, "axis": t("lanes.axis")}
        super().__init__(view=view, words={"told": t("pictures.told"), "frame": t("lanes.frame")})


class HeatMap(parts.Part):
    """Which cut gives which verdict, one row a reader."""

    _esm = parts.script("heatmap.js")
    view = traitlets.Dict().tag(sync=True)

    def __init__(self, verdicts: Mapping[str, Sequence[str]], title: str) -> None:
        heat = views.heat_map(verdicts)
        came = [verdict for verdict in VERDICTS if any(row.counts.get(verdict) for row in heat.rows)]
        view = {
            "positions": heat.positions,
            "verdicts": [[verdict, t(f"heat.{verdict}")] for verdict in came],
            "rows": [_row(row) for row in heat.rows],
        }
        words = {"title": title, "axis": t("heat.axis", last=heat.positions - 1), "told": t("pictures.told")}
        super().__init__(view=view, words=words)


def _row(row: views.HeatRow) -> dict[str, Any]:
    runs = [
        {
            **asdict(run),
            "label": t("heat.run", start=run.start, end=run.end - 1, verdict=t(f"heat.{run.verdict}")),
        }
        for run in row.runs
    ]
    return {"name": row.name, "runs": runs, "counts": dict(row.counts)}
