"""One assignment of two tests, graded by four graders side by side: what the grading itself costs a submission.

Write `add(a, b)`. Ours runs each submission in a box of its own, over the pipe; the others run it where they are.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.grade import grade_handin
from grader.intake import Handin
from grader.settings import load_settings
from grader.suites.check import CheckFailed, Suite, Text
from tests.benchmarks.measure import Row, Spread, in_random_order
from tests.benchmarks.peers import environment, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

SUBMISSIONS = 10
FOR_OTTER = 2  # it starts anew for each and takes seconds; every figure is by submission
RIGHT, WRONG = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
SOURCES = [WRONG if number % 2 else RIGHT for number in range(SUBMISSIONS)]
EXPECTED = [source is RIGHT for source in SOURCES]
CASES = {"shown": (2, 3), "hidden": (-7, 4)}
PLAIN = {
    **os.environ,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}  # the kit's environment has plugins, and plain is plain
TARGETS = {"plain pytest": 1.0, "nbgrader": 8.0, "otter-grader": 20.0}


def compare_graders(folder: Path, rounds: int, draw: Random) -> Iterator[Row]:
    """Give one row a grader: how many times as long it takes as ours, submission by submission."""
    ways: dict[str, Callable[[], float]] = {"ours": grade_ours}
    missing: dict[str, str] = {}
    for name, grader in (("plain pytest", Pytest), ("nbgrader", Nbgrader), ("otter-grader", Otter)):
        try:
            ways[name] = grader.prepared(folder / name).grade
        except (OSError, RuntimeError) as error:
            missing[name] = f"not measured: {error}"
    seconds = list(in_random_order(ways, rounds, draw))
    for name, target in TARGETS.items():
        ratios = [one[name] / one["ours"] for one in seconds if name in one]
        yield Row(
            f"a submission of a trivial assignment, boxed, against {name}",
            f"{name}, not isolated",
            "×",
            Spread.of(ratios) if ratios else None,
            at_least=target,
            note=missing.get(name, ""),
        )


def grade_ours() -> float:
    """Grade every submission in a box of its own; give seconds a submission."""
    head = (
        "class JsonlSessionStore:\n    def append(self, type, data): pass\n    def read(self): pass\n"
        "class CorruptLogError(Exception): pass\n"
    )
    handins = [
        Handin("22", {"__init__.py": (head + source).encode(), "session_store.py": b""}) for source in SOURCES
    ]
    settings = load_settings()
    start = time.perf_counter()
    passed = [grade_handin(one, OURS.checks, settings)[1].ok for one in handins]
    seconds = time.perf_counter() - start
    _must_be(passed, EXPECTED, "ours")
    return seconds / SUBMISSIONS


OURS = Suite("22")  # the trivial assignment has no lesson; box, child and pipe are those of lesson 22


def _adds(name: str, numbers: tuple[int, int]) -> None:
    @OURS.check(f"22-{name}", rules=(), dimension="integrity", hint=Text("加法", "addition"), required=True)
    async def check(lab: Any) -> None:
        """两个数相加
        Two numbers are added
        """
        call = "async def scenario(lesson, folder, given):\n    return lesson.add(*given)\n"
        if await lab.scenario(call, list(numbers)) != sum(numbers):
            raise CheckFailed(Text("和不对", "the sum is wrong"))


for _name, _numbers in CASES.items():
    _adds(_name, _numbers)


@dataclass(frozen=True, slots=True)
class Pytest:
    """One start of plain pytest a submission, in the submission's own folder."""

    homes: list[Path]

    @classmethod
    def prepared(cls, folder: Path) -> Pytest:
        """Lay down what each student handed in, with the two tests."""
        homes = []
        tests = [f"def test_{name}(): assert hw.add{case} == {sum(case)}\n" for name, case in CASES.items()]
        for number, source in enumerate(SOURCES):
            home = folder / f"s{number}"
            home.mkdir(parents=True)
            (home / "hw.py").write_text(source, encoding="utf-8")
            (home / "hw_test.py").write_text("import hw\n" + "".join(tests), encoding="utf-8")
            homes.append(home)
        return cls(homes)

    def grade(self) -> float:
        """Give seconds a submission."""
        words = [sys.executable, "-m", "pytest", "-q", "--junitxml=j.xml", "hw_test.py"]
        start = time.perf_counter()
        passed = [
            subprocess.run(
                [*words, f"--rootdir={home}"], cwd=home, env=PLAIN, capture_output=True, check=False
            )
            for home in self.homes
        ]
        seconds = time.perf_counter() - start
        _must_be([one.returncode == 0 for one in passed], EXPECTED, "plain pytest")
        return seconds / SUBMISSIONS


@dataclass(frozen=True, slots=True)
class Nbgrader:
    """`nbgrader autograde` over the whole class."""

    course: Path
    programs: Path

    @classmethod
    def prepared(cls, folder: Path) -> Nbgrader:
        """Make a course with one assignment, released, and handed in by everyone."""
        programs = environment("nbgrader")
        tests = [
            _cell(f"assert add{case} == {sum(case)}", name, grade=True, solution=False, locked=True, points=1)
            for name, case in CASES.items()
        ]
        answer = _cell(
            f"### BEGIN SOLUTION\n{RIGHT}### END SOLUTION", "answer", grade=False, solution=True, locked=False
        )
        _write_notebook(folder / "source" / "ps1" / "p.ipynb", [answer, *tests])
        run([programs / "nbgrader", "generate_assignment", "ps1", "--create"], folder, programs)
        released = json.loads((folder / "release" / "ps1" / "p.ipynb").read_bytes())
        for number, source in enumerate(SOURCES):
            released["cells"][0]["source"] = source
            _write_notebook(folder / "submitted" / f"s{number}" / "ps1" / "p.ipynb", released["cells"])
        return cls(folder, programs)

    def grade(self) -> float:
        """Give seconds a submission."""
        start = time.perf_counter()
        run([self.programs / "nbgrader", "autograde", "ps1", "--force"], self.course, self.programs)
        seconds = time.perf_counter() - start
        run([self.programs / "nbgrader", "export", "--to", "grades.csv"], self.course, self.programs)
        with (self.course / "grades.csv").open(encoding="utf-8", newline="") as file:
            scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
        _must_be([scores[f"s{number}"] == 2 for number in range(SUBMISSIONS)], EXPECTED, "nbgrader")
        return seconds / SUBMISSIONS


@dataclass(frozen=True, slots=True)
class Otter:
    """`otter run` on one submission after another."""

    folder: Path
    programs: Path

    @classmethod
    def prepared(cls, folder: Path) -> Otter:
        """Make the autograder's archive and the first few submissions."""
        programs = environment("otter")
        cases = [
            {"code": f">>> add{case} == {sum(case)}\nTrue", "hidden": name == "hidden", "locked": False}
            for name, case in CASES.items()
        ]
        suite = {"cases": cases, "scored": True, "setup": "", "teardown": "", "type": "doctest"}
        test = {"name": "q1", "points": 2, "suites": [suite]}
        (folder / "tests").mkdir(parents=True)
        (folder / "tests" / "q1.py").write_text(f"OK_FORMAT = True\ntest = {test!r}\n", encoding="utf-8")
        run(
            [programs / "otter", "generate", "-t", "tests", "-o", "autograder.zip", "--no-environment"],
            folder,
            programs,
        )
        for number, source in enumerate(SOURCES[:FOR_OTTER]):
            _write_notebook(folder / f"s{number}.ipynb", [_cell(source, "answer")])
            (folder / f"out{number}").mkdir()
        return cls(folder, programs)

    def grade(self) -> float:
        """Give seconds a submission."""
        start = time.perf_counter()
        for number in range(FOR_OTTER):
            words = ["run", "-a", "autograder.zip", "-o", f"out{number}", f"s{number}.ipynb"]
            run([self.programs / "otter", *words], self.folder, self.programs)
        seconds = time.perf_counter() - start
        results = [
            json.loads((self.folder / f"out{number}" / "results.json").read_bytes())
            for number in range(FOR_OTTER)
        ]
        passed = [sum(test.get("score", 0) for test in one["tests"]) == 2 for one in results]
        _must_be(passed, EXPECTED[:FOR_OTTER], "otter-grader")
        return seconds / FOR_OTTER


def _cell(source: str, name: str, **marks: Any) -> dict[str, Any]:
    """Make one code cell; `marks` are what nbgrader knows it by."""
    known = {"nbgrader": {"schema_version": 3, "grade_id": name, "task": False, **marks}} if marks else {}
    return {
        "cell_type": "code",
        "id": name,
        "metadata": known,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def _write_notebook(path: Path, cells: list[dict[str, Any]]) -> None:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _must_be(passed: list[bool], expected: list[bool], grader: str) -> None:
    """A quick grader that is wrong has no figure."""
    if passed != expected:
        raise AssertionError(f"{grader}: passed {passed} where {expected} is right")
