"""`statelab gate`: is the gate shut? The suite against every store known to be wrong; the check meant for it must fail it.

0 every mutant was failed by its own check   1 one got through   3 the grader itself failed
"""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from grader.grade import grade_handin
from grader.intake import take
from grader.report.progress import progress
from grader.settings import DEFAULT_FILE, load_settings
from grader.suites import LESSONS, load_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.outcome import LessonOutcome
    from grader.suites.check import Check
    from grader.suites.mutants import Sample

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant, and how the suite took it."""

    mutant: Sample
    outcome: LessonOutcome

    @property
    def failed(self) -> list[str]:
        """Ids of the checks that it did not pass."""
        return [test.check.id for test in self.outcome.tests if not test.passed]

    @property
    def caught(self) -> bool:
        """Whether the check meant for it failed it, and for no reason but that the rule does not hold."""
        return any(
            test.check.id == self.mutant.caught_by and test.finding.status == "fail"
            for test in self.outcome.tests
        )

    def plain(self) -> dict[str, Any]:
        """Give the judgement as JSON."""
        return {
            "id": self.mutant.id,
            "idea": {"en": self.mutant.idea.en, "zh": self.mutant.idea.zh},
            "caught_by": self.mutant.caught_by,
            "caught": self.caught,
            "failed": self.failed,
        }


def judge(lesson: str, jobs: int, tell: Callable[[str], None]) -> list[Judged]:
    """Grade every mutant of a lesson like a submission, `jobs` at a time. `tell` hears each name as it ends."""
    settings, checks = load_settings(DEFAULT_FILE), asked(lesson)

    def grade(mutant: Sample) -> Judged:
        with tempfile.TemporaryDirectory() as folder:
            mutant.lay_down(Path(folder))
            _, outcome = grade_handin(take(Path(folder), lesson), checks, settings)
        tell(mutant.id)
        return Judged(mutant, outcome)

    with ThreadPoolExecutor(jobs) as threads:
        return list(threads.map(grade, mutants_of(lesson)))


def asked(lesson: str) -> list[Check]:
    """Give the checks that a mutant is tried on: the required ones, and each that is meant for some mutant."""
    meant = {mutant.caught_by for mutant in mutants_of(lesson)}
    return [check for check in load_suite(lesson).checks if check.required or check.id in meant]


def mutants_of(lesson: str) -> Sequence[Sample]:
    """Give the mutants of a lesson, in the order of its page."""
    mutants: Sequence[Sample] = import_module(f"grader.suites.mutants.lesson_{lesson}").MUTANTS
    return mutants


@click.command(epilog="Example: statelab gate --lesson 22")
@click.option("--lesson", type=click.Choice(LESSONS), default="22", show_default=True, help="Which suite.")
@click.option("--jobs", type=click.IntRange(1, 256), default=os.cpu_count() or 1, help="How many at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) and nothing else.")
def gate(*, lesson: str, jobs: int, as_json: bool) -> None:
    """Prove the suite: every store known to be wrong must be failed by the check meant for it."""
    with progress("gate", len(mutants_of(lesson)), lines=True) as step:
        judged = judge(lesson, jobs, step)
    if as_json:
        click.echo(json.dumps(_plain(lesson, judged), indent=1))
    else:
        Console(highlight=False).print(_table(judged))
    raise SystemExit(_exit_code(judged))


def _plain(lesson: str, judged: Sequence[Judged]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "lesson": lesson,
        "tests": [
            {
                "id": check.id,
                "title": {"en": check.title.en, "zh": check.title.zh},
                "required": check.required,
            }
            for check in asked(lesson)
        ],
        "mutants": [one.plain() for one in judged],
    }


def _table(judged: Sequence[Judged]) -> Table:
    table = Table("mutant", "meant for it", "failed by", title="gate")
    for one in judged:
        mark = "stopped" if one.caught else "GOT THROUGH"
        table.add_row(one.mutant.id, f"{one.mutant.caught_by} {mark}", " ".join(one.failed) or "nothing")
    return table


def _exit_code(judged: Sequence[Judged]) -> int:
    if any(test.finding.status == "error" for one in judged for test in one.outcome.tests):
        return 3
    return 0 if all(one.caught for one in judged) else 1
