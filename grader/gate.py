"""`statelab gate`: is the gate shut? The suite, or a learner's own tests, against every store known to be wrong.

Of the suite, the check meant for a mutant must fail it; of one's own tests, any that passes on right stores.

0 every mutant was failed   1 one got through, or a test of one's own fails a right store   2 wrong use, or a file that
holds no tests   3 the grader itself failed
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from grader import own_tests
from grader.cli import GraderFault
from grader.grade import grade_handin
from grader.report.own_tests import show_tried
from grader.report.progress import progress
from grader.report.words import chosen_language, say
from grader.rungs import strongest_rung
from grader.settings import DEFAULT_FILE, load_settings
from grader.suites import JUDGED, load_suite, package_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.outcome import LessonOutcome
    from grader.suites.check import Check
    from grader.suites.mutants import Sample

SCHEMA = 1
EXIT_CODES: dict[own_tests.Verdict, int] = {
    "not-loaded": 2,
    "no-tests": 2,
    "wrong-tests": 1,
    "survivors": 1,
    "all-killed": 0,
}
"""How `statelab gate --tests` ends, by what became of the file."""


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
        _, outcome = grade_handin(own_tests.handed_in(mutant, lesson), checks, settings)
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
    mutants: Sequence[Sample] = import_module(f"grader.suites.mutants.{package_of(lesson)}").MUTANTS
    return mutants


@click.command(epilog="Example: statelab gate --tests workspace/my_tests/test_my_store.py")
@click.option("--lesson", type=click.Choice(JUDGED), default="22", show_default=True, help="Which suite.")
@click.option(
    "--tests",
    "file",
    type=click.Path(path_type=Path),
    help="Your own tests of lesson 22 (pytest), instead of the suite.",
)
@click.option("--jobs", type=click.IntRange(1, 256), default=os.cpu_count() or 1, help="How many at a time.")
@click.option(
    "--lang",
    type=click.Choice(["zh", "en"]),
    help="Language for --tests. Default: LAB_LANG, or the system's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) and nothing else.")
def gate(*, lesson: str, file: Path | None, jobs: int, lang: str | None, as_json: bool) -> None:
    """Prove the suite, or your own tests: every store known to be wrong must be failed.

    With --tests, each of your tests must pass on right stores, and each wrong store must be failed by at least one.
    """
    if file is not None:
        raise SystemExit(_gate_own_tests(lesson, file, jobs, lang, as_json=as_json))
    with progress("gate", len(mutants_of(lesson)), lines=True) as step:
        judged = judge(lesson, jobs, step)
    if as_json:
        click.echo(json.dumps(_plain(lesson, judged), indent=1))
    else:
        Console(highlight=False).print(_table(judged))
    raise SystemExit(_exit_code(judged))


def _gate_own_tests(lesson: str, file: Path, jobs: int, lang: str | None, *, as_json: bool) -> int:
    if lesson != own_tests.LESSON:
        raise click.BadParameter(
            f"lesson {lesson} has no stores to try tests on; leave --lesson out", param_hint="--tests"
        )
    try:
        tests = own_tests.OwnTests.read(file)
    except own_tests.OwnTestsError as error:
        raise click.BadParameter(str(error), param_hint="--tests") from None
    language = chosen_language(lang)
    try:
        rung = strongest_rung()
        with progress("gate", own_tests.stores(), lines=True) as step:
            tried = own_tests.try_tests(tests, jobs, step)
    except OSError as error:
        raise GraderFault(
            f"gate: a store could not be started ({error}); try fewer --jobs, or again later"
        ) from None
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "isolation": rung.name, **tried.plain()}, indent=1))
    else:
        if not rung.isolated:
            Console(stderr=True).print(say("bare", language), style="yellow")
        show_tried(tried, language)
    return EXIT_CODES[tried.verdict]


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
