"""What a person waits for at a whole command or a widget: reported, gating nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.measure import Row, Spread

KIT = Path(__file__).resolve().parents[2]
SLIDER_FIGURES = KIT / "out/browser/slider-redraw.json"
"""Left by the browser test: `{"p95_ms": 31.5, "bytes": 1048576}`."""


def time_verify(rounds: int) -> Row:
    """Time `statelab verify --lesson 22` on the solution, from start to exit."""
    name, base = "`statelab verify --lesson 22`", "wall clock"
    start_command = "from labkit.cli import main; main(prog_name='statelab')"
    arguments = ["verify", "--lesson", "22", "--target", "solution", "--json"]
    figures = []
    for _ in range(rounds):
        start = time.perf_counter()
        finished = subprocess.run(
            [sys.executable, "-c", start_command, *arguments], cwd=KIT, capture_output=True, check=False
        )
        figures.append(time.perf_counter() - start)
        if finished.returncode or not finished.stdout:  # a quick failure is no figure
            note = f"not measured: it ended with exit code {finished.returncode}"
            return Row(name, base, "s", None, at_most=2, gates=False, note=note)
    return Row(name, base, "s", Spread.of(figures), at_most=2, gates=False)


def slider_redraw() -> Row:
    """Report the slider's figure as the browser test last left it."""
    name, base = "slider to redraw, 95th percentile", "a 1 MB file in Chromium"
    try:
        milliseconds = float(json.loads(SLIDER_FIGURES.read_bytes())["p95_ms"])
    except FileNotFoundError:
        note = "not measured: run the browser test first"
        return Row(name, base, "ms", None, at_most=50, gates=False, note=note)
    return Row(name, base, "ms", Spread.of([milliseconds]), at_most=50, gates=False)
