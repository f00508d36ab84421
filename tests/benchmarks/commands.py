"""What a person waits for at a whole command or a widget: reported, gating nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.measure import Row, Spread

KIT = Path(__file__).resolve().parents[2]
BROWSER_FIGURES = (
    ("slider to redraw", "a 1 MB file in Chromium", "slider-redraw.json", 50),
    ("click to first line", "the control room in Chromium", "first-line.json", 300),
    ("write to mark on the page", "1,000 files in Chromium", "thousand-files.json", 200),
    ("sort or filter to drawn", "a report of 500 students in Chromium", "report-500.json", 200),
)
"""What the browser tests leave in out/browser, each as `{"p95_ms": 31.5, …}`: name, base, file, target in milliseconds."""


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


def in_the_browser(name: str, base: str, file: str, at_most: int) -> Row:
    """Report the 95th percentile, in milliseconds, that a browser test last left in ``file``."""
    name = f"{name}, 95th percentile"
    try:
        milliseconds = float(json.loads((KIT / "out" / "browser" / file).read_bytes())["p95_ms"])
    except FileNotFoundError:
        note = "not measured: run the browser test first"
        return Row(name, base, "ms", None, at_most=at_most, gates=False, note=note)
    return Row(name, base, "ms", Spread.of([milliseconds]), at_most=at_most, gates=False)
