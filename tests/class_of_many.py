"""A class of sixty that costs little to grade, and `statelab grade` on it as a real program that can be killed."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from grader.crew import LocalCrew
from grader.fingerprint import suite_of
from grader.intake import Handin
from grader.pool import ClassRun, Rows
from grader.rungs import strongest_rung
from grader.settings import Settings, load_settings
from grader.worker import Task
from tests.piped import KIT, PLAIN_STORE

SETTINGS = load_settings()
_calibrate = ClassRun.calibrate
MANY = 60
ENDLESS = PLAIN_STORE + "\nclass JsonlSessionStore(Plain):\n    pass\n\nwhile True:\n    pass\n"
"""A store that looks like one, and never finishes loading."""
RIGHT, STARTER = KIT / "solution" / "lesson_22", KIT / "assets/sample-class/untouched-starter/lesson_22"


def make_class(folder: Path) -> Path:
    """Make sixty submissions: few whose code runs, many that do not load, each handed in twice, some packed or missing."""
    folder.mkdir(parents=True)
    for number in range(MANY):
        _hand_in(folder / f"s{number:02}", number)
    assert sum(1 for _ in folder.iterdir()) == MANY
    return folder


def _hand_in(place: Path, number: int) -> None:
    lesson = place / "lesson_22"
    if number % 20 in (3, 4):  # runs
        source = STARTER if number > 40 else RIGHT
        shutil.copytree(source, lesson, ignore=shutil.ignore_patterns("__pycache__"))
        with (lesson / "todo.py").open("a", encoding="utf-8") as file:
            file.write(f"# {number // 20}\n")
    elif number % 10 == 7:  # nothing of the lesson
        place.mkdir()
        (place / "readme.txt").write_text(f"{number}", encoding="utf-8")
    else:
        lesson.mkdir(parents=True)
        (lesson / "__init__.py").write_text("from .session_store import *\n", encoding="utf-8")
        wrong = f"import no_module_{number // 2}\n" if number % 6 < 2 else f"def scan(: # {number // 2}\n"
        (lesson / "session_store.py").write_text(wrong, encoding="utf-8")
    if number % 10 == 9:
        with zipfile.ZipFile(place.with_suffix(".zip"), "w") as packed:
            for path in sorted(lesson.iterdir()):
                packed.write(path, f"lesson_22/{path.name}")
        shutil.rmtree(place)


def task_of(handin: Handin, settings: Settings = SETTINGS) -> Task:
    """Give the task to grade a hand-in of lesson 22 as this machine would."""
    rung = strongest_rung().name
    return Task(handin, settings, rung, suite_of("22", settings, rung))


def calibrate_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test's runs take the calibration that was made for the first such test: it is not what they are about."""
    monkeypatch.setattr(ClassRun, "calibrate", lambda run, tell=None: _calibration(run.rung))


@functools.cache
def _calibration(rung: str) -> Rows:
    with LocalCrew(2) as crew:
        return _calibrate(ClassRun(["22"], SETTINGS, rung, crew))


def start_grading(place: Path, out: Path, state: Path, *options: str) -> subprocess.Popen[str]:
    """Start `statelab grade` on lesson 22, in a process group of its own; its progress comes as lines on `stderr`.

    What it keeps for a while is below `state`, too (`boxes`).
    """
    boxes(state).mkdir(parents=True, exist_ok=True)
    program = "from labkit.cli import main; main(prog_name='statelab')"
    words = ["grade", str(place), "--lesson", "22", "--out", str(out), "--lang", "en", *options]
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=KIT,
        env={**os.environ, "LAB_STATE": str(state), "TMPDIR": str(boxes(state))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def boxes(state: Path) -> Path:
    """Give the folder where a run that was started with this state has its boxes."""
    return state / "tmp"


def grade(place: Path, out: Path, state: Path, *options: str) -> dict[str, Any]:
    """Grade a class to the end; give its `outcomes.json`."""
    with start_grading(place, out, state, *options) as running:
        told = running.communicate()[1]
    assert running.returncode == 0, told
    report: dict[str, Any] = json.loads((out / "outcomes.json").read_bytes())
    return report


def lasting(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the rows without what differs from run to run by right: the draw, and the time."""
    return [
        {
            **row,
            "seconds": 0,
            "lessons": {name: {**found, "seed": ""} for name, found in row["lessons"].items()},
        }
        for row in report["submissions"]
    ]


def gradings(state: Path) -> Counter[str]:
    """Count, by content, how often each was recorded as graded."""
    (record,) = state.glob("class-records/*/record.jsonl")
    events = [json.loads(line) for line in record.read_bytes().split(b"\n")[:-1]]
    return Counter(event["data"]["content"] for event in events if event["type"] == "graded")


def workers() -> list[psutil.Process]:
    """List the processes of crews that this process has."""
    found = []
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "grader.worker" in process.cmdline():
                found.append(process)
    return found


def alive(found: list[psutil.Process]) -> list[psutil.Process]:
    """Give those that still run; one that nobody has asked for its exit code does not."""
    left = []
    for process in found:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
    return left
