"""The hostile corpus: every submission in tests/golden/hostile ends with its golden verdict and reasons.

Each file is the `__init__.py` of a submission whose other files are the right ones. The goldens are by rung, because
not every rung contains every case. To write them anew after a case was added, on the strongest rung or on one that
is named: python -m tests.test_grader_hostile [RUNG]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from grader import grade, rungs
from grader.grade import grade_handin
from grader.intake import take
from grader.rungs import strongest_rung
from grader.settings import load_settings
from grader.suites import load_suite
from tests.piped import KIT, SOLUTION

HERE = Path(__file__).parent / "golden"
GOLDEN = HERE / "hostile.json"
CASES = sorted(path.stem for path in (HERE / "hostile").glob("*.py"))
NEVER_ANSWER = ("loops", "loops_deaf", "never_done")
RIGHT_ALL_THE_SAME = [
    "thread_without_end"
]  # its store is the solution's; what it leaves running ends with the box


def kind(rung: rungs.Rung) -> str:
    """Give the name under which a rung's goldens stand: limits are the same with and without root."""
    return rung.name.removesuffix("-as-root")


def graded(case: str, folder: Path) -> dict[str, str]:
    """Grade one case on the required checks; give the reason by check, "" for a pass."""
    package = folder / case / "lesson_22"
    shutil.copytree(SOLUTION, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "hostile" / f"{case}.py", package / "__init__.py")
    settings = load_settings()
    if case in NEVER_ANSWER:
        settings = replace(settings, limits=replace(settings.limits, call_seconds=0.5))
    _, outcome = grade_handin(take(folder / case, "22"), load_suite("22").required, settings)
    return {test.check.id: test.finding.reason for test in outcome.tests}


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_submission_ends_as_its_golden_says(case, tmp_path):
    """Verdict by verdict: what a rung contains fails with its reason, what it does not contain is known."""
    golden = json.loads(GOLDEN.read_text())[kind(strongest_rung())]
    assert graded(case, tmp_path) == golden[case]


@pytest.mark.parametrize(("rung", "passing"), [("bubblewrap", []), ("limits-only", ["imports_the_solution"])])
def test_what_a_rung_does_not_contain_is_known(rung, passing):
    """In the box no attack passes; under limits alone, a copy of the reference does, and nothing else."""
    golden = json.loads(GOLDEN.read_text())[rung]
    assert sorted(golden) == CASES
    assert sorted([*passing, *RIGHT_ALL_THE_SAME]) == [
        case for case, reasons in golden.items() if not any(reasons.values())
    ]


def write_goldens(*names: str) -> None:
    """Write the goldens of one rung, to be read before they are committed."""
    if names:
        rung = next(rung for rung in rungs.rungs() if rung.name == names[0])
        rungs.strongest_rung = grade.strongest_rung = lambda: rung
    goldens = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        goldens[kind(rungs.strongest_rung())] = {case: graded(case, Path(folder)) for case in CASES}
    GOLDEN.write_text(json.dumps(goldens, indent=1, sort_keys=True) + "\n")
    print(f"{GOLDEN.relative_to(KIT)}: written", file=sys.stderr)


if __name__ == "__main__":
    write_goldens(*sys.argv[1:])
