"""A measured table as curves: how each column grows with the number that its row is called by, both axes by powers of ten."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from labkit.experiments.homework.tables import Table
from labkit.words import t

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 14, 40
DASHES = ("", "7 4", "2 4")
"""What tells one curve from another besides its name at its end; the colour is the text's own, light or dark."""


@dataclass(frozen=True, slots=True, repr=False)
class Curves(Table):
    """A table whose rows are numbers; of the columns that `drawn` names, a curve stands above it."""

    drawn: tuple[str, ...]

    def _repr_html_(self) -> str:
        return f"{self._picture()}{Table._repr_html_(self)}"

    def _picture(self) -> str:
        curves = {name: [float(cell) for cell in self.column(name)] for name in self.drawn}
        powers = _powers([y for ys in curves.values() for y in ys])
        xs = [float(row.replace(",", "")) for row in self.rows]
        across = _Axis(xs, LEFT, WIDTH - RIGHT)
        up = _Axis([10.0**power for power in powers], HEIGHT - BOTTOM, TOP)
        parts = [_x_tick(row, across.at(x)) for row, x in zip(self.rows, xs, strict=True)]
        parts += [_y_tick(power, up.at(10.0**power)) for power in powers]
        for (name, ys), dash in zip(curves.items(), DASHES, strict=False):
            points = [(across.at(x), up.at(y)) for x, y in zip(xs, ys, strict=True)]
            parts.append(_curve(t(f"homework.{name}"), points, dash))
        parts.append(_text(WIDTH - RIGHT + 30, HEIGHT - BOTTOM + 20, t("homework.events")))
        told = escape("; ".join(t(f"homework.{name}") for name in self.drawn))
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="{told}" '
            'style="max-width:100%;color:var(--jp-ui-font-color1);font:12px var(--jp-ui-font-family)">'
            f"<title>{told}</title>{''.join(parts)}</svg>"
        )


class _Axis:
    """Where a value stands between `start` and `end`, in pixels, by its logarithm."""

    def __init__(self, values: list[float], start: float, end: float) -> None:
        self._least, self._span = math.log10(min(values)), math.log10(max(values) / min(values)) or 1.0
        self._start, self._length = start, end - start

    def at(self, value: float) -> float:
        return self._start + self._length * (math.log10(value) - self._least) / self._span


def _powers(values: list[float]) -> range:
    """Return the powers of ten that hold all values between the first and the last of them."""
    return range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)


def _x_tick(label: str, x: float) -> str:
    y = HEIGHT - BOTTOM
    line = f'<path d="M{x:.0f} {TOP}V{y + 4}" stroke="currentColor" opacity=".25"/>'
    return line + _text(x, y + 20, label, "middle")


def _y_tick(power: int, y: float) -> str:
    line = f'<path d="M{LEFT - 4} {y:.0f}H{WIDTH - RIGHT}" stroke="currentColor" opacity=".25"/>'
    return line + _text(LEFT - 8, y + 4, f"{10.0**power:,g}", "end")


def _curve(name: str, points: list[tuple[float, float]], dash: str) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="currentColor"/>' for x, y in points)
    line = f'<polyline points="{corners}" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="{dash}"/>'
    x, y = points[-1]
    return line + dots + _text(x + 10, y + 4, name)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="currentColor">{escape(text)}</text>'
