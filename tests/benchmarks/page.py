"""The table of docs/performance.md, between its markers."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.benchmarks.measure import Row

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def table(rows: list[Row], events: int, rounds: int) -> str:
    """Show the rows as Markdown, with what they were measured on."""
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    lines = [
        f"{events:,} events of about 200 bytes, {rounds} rounds; {machine}.",
        "",
        "| what | against | median | range | target | |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_line(row) for row in rows),
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    target = (
        _figure(row.at_least, row.unit, "≥ ")
        if row.at_least is not None
        else _figure(row.at_most, row.unit, "≤ ")
    )
    verdict = ("missed" if row.beyond else "met") + ("" if row.gates else " (gates nothing)")
    if row.spread is None:
        return f"| {row.name} | {row.base} | {row.note} | | {target} | {verdict} |"
    median, low, high = (_figure(figure, row.unit) for figure in row.spread)
    return f"| {row.name} | {row.base} | {median} | {low} – {high} | {target} | {verdict} |"


def _figure(figure: float | None, unit: str, sign: str = "") -> str:
    if figure is None:
        return ""
    return f"{sign}{figure:.2f}×" if unit == "×" else f"{sign}{figure:.3g} {unit}"


def write_table(page: Path, text: str) -> None:
    """Replace what stands between the markers of `page`. Raises ValueError when a marker is missing."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page}: no place for the table; put {BEGIN} and {END} where it shall stand")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
