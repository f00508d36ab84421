"""Grading a class: how many a second, on how many cores, on Dask, in how much memory, and how soon it stops.

The class is the sample class of lesson 22, each sample many times, told apart by a comment: nothing is graded once for
many. Wall clock, since that is what an instructor waits for; what one submission costs is processor time of the whole
machine, because a box takes what its children used along: close other programs first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import statistics
import subprocess
import sys
import time
from itertools import count
from typing import TYPE_CHECKING

import psutil

from grader.cluster import ClusterCrew
from grader.crew import LocalCrew, cores
from grader.intake import KIT_FILES
from grader.journal import ClassRecord
from grader.pool import ClassRun, Submission
from grader.rungs import strongest_rung
from grader.settings import load_settings
from labkit.workspace import LESSON_FOLDERS
from tests.benchmarks.commands import KIT
from tests.benchmarks.measure import Row, Spread, in_random_order
from tests.class_of_many import ENDLESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from random import Random

    from grader.crew import Crew

SAMPLES = KIT / "assets" / "sample-class"
_MIB = 1 << 20


def measure(folder: Path, draw: Random, *, quick: bool) -> Iterator[Row]:
    """Measure everything about a class; `quick` takes a tenth of the submissions."""
    makers = _Class(folder)
    few, many, rounds = (6, 20, 1) if quick else (24, 200, 3)
    yield _cost("22", makers, few, at_most=1.0)
    yield _cost("04", makers, 2, at_most=6.0)
    yield from _throughput(makers, many)
    yield _scaling(makers, few, rounds, draw)
    yield _dask(makers, few, rounds, draw)
    yield _stopping(makers, rounds)


class _Class:
    """Makes submissions that were never graded before, and grades them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.samples = sorted(path for path in SAMPLES.iterdir() if path.is_dir())
        self._number = count()

    def make(self, size: int, lesson: str = "22") -> list[Submission]:
        """Make a class of this size."""
        return [self._make(next(self._number), lesson) for _ in range(size)]

    def _make(self, number: int, lesson: str) -> Submission:
        sample = self.samples[number % len(self.samples)]
        place = self.folder / f"s{number:04}"
        for name in KIT_FILES[lesson].needed:
            target = place / LESSON_FOLDERS[lesson] / name
            target.parent.mkdir(parents=True, exist_ok=True)
            source = sample / LESSON_FOLDERS[lesson] / name
            text = source.read_text("utf-8") if source.exists() else ""
            target.write_text(f"{text}\n# {number}\n", "utf-8")
        for name in KIT_FILES[lesson].optional:
            source = sample / LESSON_FOLDERS[lesson] / name
            if source.exists():
                (place / LESSON_FOLDERS[lesson] / name).write_bytes(source.read_bytes())
        return Submission(place.name, place)

    def grade(
        self,
        crew: Crew,
        submissions: Sequence[Submission],
        lesson: str = "22",
        tell: Callable[[], None] = lambda: None,
    ) -> float:
        """Grade with a crew that has begun; give the seconds it took."""
        run = ClassRun([lesson], load_settings(), strongest_rung().name, crew)
        with ClassRecord(self.folder / f"record-{next(self._number)}") as record:
            start = time.perf_counter()
            run.grade(submissions, record, {}, lambda *_: tell())
            return time.perf_counter() - start


def _cost(lesson: str, makers: _Class, size: int, at_most: float) -> Row:
    """Take the processor time of one submission, one at a time."""
    with LocalCrew(1) as crew:
        makers.grade(crew, makers.make(1, lesson), lesson)  # starting up is not a submission's cost
        before = _machine_seconds()
        makers.grade(crew, makers.make(size, lesson), lesson)
        cost = (_machine_seconds() - before) / size
    name = f"lesson {lesson}, one submission of the sample class"
    return Row(name, "processor time of the machine", "s", Spread.of([cost]), at_most=at_most, gates=False)


def _throughput(makers: _Class, size: int) -> Iterator[Row]:
    """Grade a large class on all cores; tell the rate, and how far the grader's own memory grew after a tenth of it."""
    submissions, sizes = makers.make(size), [0]
    process = psutil.Process()
    with LocalCrew(cores()) as crew:
        seconds = makers.grade(crew, submissions, tell=lambda: sizes.append(process.memory_info().rss))
    rate = size / seconds
    base = f"{cores()} cores, {size} submissions of lesson 22"
    yield Row("class throughput", base, "/s", Spread.of([rate]), at_least=cores(), gates=False)
    grown = max(sizes) - statistics.median(sizes[size // 10 : size // 5])
    yield Row("memory of the grader", f"its growth from submission {size // 10} to {size}", "MiB",
              Spread.of([grown / _MIB]), at_most=10)  # fmt: skip


def _scaling(makers: _Class, size: int, rounds: int, draw: Random) -> Row:
    """Compare all cores with one: throughput, by the number of cores."""
    with LocalCrew(1) as one, LocalCrew(cores()) as all_:
        for crew in (one, all_):
            makers.grade(crew, makers.make(cores()))
        ways = {
            "one": lambda: makers.grade(one, makers.make(size)),
            "all": lambda: makers.grade(all_, makers.make(size)),
        }
        ratios = [took["one"] / took["all"] / cores() for took in in_random_order(ways, rounds, draw)]
    return Row("throughput by core", "of one core alone", "×", Spread.of(ratios), at_least=0.85, gates=False)


def _dask(makers: _Class, size: int, rounds: int, draw: Random) -> Row:
    """Compare a Dask cluster of as many workers on this machine with the grader's own processes."""
    from distributed import LocalCluster  # noqa: PLC0415 - takes a second, and only this needs it

    with (
        LocalCluster(
            n_workers=cores(),
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            worker_dashboard_address=None,
            local_directory=str(makers.folder / "dask"),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        ClusterCrew(cluster.scheduler_address) as there,
        LocalCrew(cores()) as here,
    ):
        for crew in (here, there):
            makers.grade(crew, makers.make(cores()))
        ways = {
            "here": lambda: makers.grade(here, makers.make(size)),
            "there": lambda: makers.grade(there, makers.make(size)),
        }
        ratios = [took["there"] / took["here"] for took in in_random_order(ways, rounds, draw)]
    return Row(
        "a class on Dask", "the grader's own processes", "×", Spread.of(ratios), at_most=1.1, gates=False
    )


def _stopping(makers: _Class, rounds: int) -> Row:
    """Press Ctrl-C while endless loops are graded; time until the command is gone."""
    place = makers.folder / "endless"
    for number in range(2 * cores()):
        lesson = place / f"e{number}" / "lesson_22"
        lesson.mkdir(parents=True)
        (lesson / "__init__.py").write_text("from .session_store import *\n")
        (lesson / "session_store.py").write_text(f"{ENDLESS}# {number}\n")
    program = "from labkit.cli import main; main(prog_name='statelab')"
    words = ["grade", str(place), "--lesson", "22", "--out", str(makers.folder / "out")]
    figures = []
    for _ in range(rounds):
        with subprocess.Popen(
            [sys.executable, "-c", program, *words],
            cwd=KIT,
            env={**os.environ, "LAB_STATE": str(makers.folder / "state")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as running:
            assert running.stderr
            next(line for line in running.stderr if line.startswith("calibrate: 2/2"))
            _wait_for_a_child(running.pid)
            start = time.perf_counter()
            os.killpg(running.pid, signal.SIGINT)
            running.communicate()
            figures.append(time.perf_counter() - start)
    return Row(
        "Ctrl-C to the end of `statelab grade`",
        "while endless loops are graded",
        "s",
        Spread.of(figures),
        at_most=2,
    )


def _wait_for_a_child(pid: int) -> None:
    """Look until the process has a student's code run."""
    while True:
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(pid).children(recursive=True)
            if any("host.py" in " ".join(child.cmdline()) for child in below):
                return


def _machine_seconds() -> float:
    """Give the processor seconds that everything on this machine has used."""
    times = psutil.cpu_times()
    return sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
