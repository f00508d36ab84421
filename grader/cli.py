"""`statelab verify` and `statelab grade`: arguments, progress, exit codes.

0 every required test passed, or every submission has its report   1 some required test did not pass
2 wrong use   3 the grader itself failed   4 isolation is too weak for other people's code   130 stopped
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from grader.cluster import ClusterCrew, ClusterError
from grader.crew import LocalCrew, cores
from grader.grade import grade_submission
from grader.journal import SCHEMA, ClassRecord, RecordError, record_folder
from grader.plain_text import printable
from grader.pool import (
    SAMPLE_CLASS,
    CalibrationError,
    ClassRun,
    Submission,
    find_submissions,
    seat_class,
)
from grader.report.files import write_class, write_outcomes
from grader.report.notebooks import show_notebooks
from grader.report.progress import progress
from grader.report.terminal import show_class, show_outcome
from grader.report.words import chosen_language, say
from grader.roster import RosterError, load_roster
from grader.rungs import strongest_rung
from grader.sandbox import sweep
from grader.settings import DEFAULT_FILE, SettingsError, load_settings
from grader.suites import JUDGED, LESSONS, load_suite
from labkit.workspace import WorkspaceError, kit_root, target, target_folder

if TYPE_CHECKING:
    from grader.crew import Crew
    from grader.outcome import Outcome
    from grader.pool import Rows, Tell
    from grader.report.words import Language
    from grader.roster import Roster
    from grader.rungs import Rung
    from grader.settings import Settings

_lessons = click.option(
    "--lesson",
    "lessons",
    multiple=True,
    type=click.Choice(JUDGED),
    help="One lesson, or the homework; again for more. Default: every lesson, and no homework.",
)
_language = click.option(
    "--lang", type=click.Choice(["zh", "en"]), help="Language. Default: LAB_LANG, or the system's."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) and nothing else.")
_settings = click.option(
    "--settings",
    "settings_file",
    type=click.Path(path_type=Path),
    default=DEFAULT_FILE,
    show_default="grader/grading.toml",
    help="Limits and points, in place of the kit's.",
)


class GraderFault(click.ClickException):
    """The grader itself failed."""

    exit_code = 3


class Stopped(click.ClickException):
    """Ctrl-C, or SIGTERM."""

    exit_code = 130


class IsolationTooWeak(click.ClickException):
    """Other people's code is not run where nothing shuts it in, unless that was asked for."""

    exit_code = 4


@click.command(epilog="Example: statelab verify --lesson 22 --target solution")
@_lessons
@click.option("--target", "name", help="starter, solution or a folder. Default: LAB_TARGET, or starter.")
@click.option("--all", "every", is_flag=True, help="Show the extended tests that passed, too.")
@_language
@_settings
@_json
def verify(
    *,
    lessons: tuple[str, ...],
    name: str | None,
    every: bool,
    lang: str | None,
    settings_file: Path,
    as_json: bool,
) -> None:
    """Grade one folder: your own starter, the solution, or any other."""
    name, lessons = name or target(), lessons or LESSONS
    try:
        folder = target_folder(name)
    except WorkspaceError as error:
        raise click.BadParameter(str(error), param_hint="--target") from None
    settings, rung = _load_settings(settings_file), _find_rung()
    shown_name = name if name in ("starter", "solution") else folder.name
    total = sum(len(load_suite(lesson).checks) for lesson in lessons)
    with progress("verify", total, lines=False) as step:
        outcome = grade_submission(shown_name, folder, lessons, settings, lambda check, _: step(check.id))
    if as_json:
        click.echo(json.dumps(outcome.plain(), indent=1))
    else:
        language = chosen_language(lang)
        if not rung.isolated:
            Console(stderr=True).print(say("bare", language), style="yellow")
        show_outcome(Console(highlight=False), outcome, language, every=every)
    raise SystemExit(_exit_code(outcome))


@click.command(epilog="Example: statelab grade class-2026/ --out out/grade --jobs 4")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/grade"), show_default=True, help="Reports."
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=cores(), help="How many at a time. Default: one a core."
)
@click.option(
    "--cluster", metavar="ADDRESS", help="Grade on a Dask cluster instead: its scheduler's address."
)
@click.option("--resume", is_flag=True, help="Take what an earlier run recorded, and grade only the rest.")
@click.option(
    "--roster",
    type=click.Path(path_type=Path),
    help="The class list, a CSV with the columns id, name, submission: who handed in nothing gets a row, too.",
)
@click.option(
    "--notebooks",
    is_flag=True,
    help="Execute the notebooks that were handed in, and report what failed in them.",
)
@click.option("--allow-unsandboxed", is_flag=True, help="Grade although nothing here shuts the code in.")
@_lessons
@_language
@_settings
@_json
def grade(
    *,
    folder: Path | None,
    out: Path,
    jobs: int,
    cluster: str | None,
    resume: bool,
    roster: Path | None,
    notebooks: bool,
    allow_unsandboxed: bool,
    lessons: tuple[str, ...],
    lang: str | None,
    settings_file: Path,
    as_json: bool,
) -> None:
    """Grade every submission in DIR: each child folder or archive is one. Default: your starter and the kit's sample class.

    What is found out is recorded as it comes: a run that was stopped or killed goes on with --resume.
    """
    found, students = _submissions(folder), _load_roster(roster)
    settings, rung = _load_settings(settings_file), _find_rung()
    if not rung.isolated and not allow_unsandboxed:
        raise IsolationTooWeak(
            f"isolation: only {rung.name} works here, which hides nothing from the code of others; "
            "install bubblewrap, or accept that with --allow-unsandboxed"
        )
    sweep()
    with _told_plainly(), _crew(jobs, cluster) as crew:
        with progress("open", len(found), lines=False) as step:
            submissions = seat_class(found, students, step)
        run = ClassRun(lessons or LESSONS, settings, rung.name, crew, notebooks)
        with ClassRecord(record_folder(folder or kit_root() / SAMPLE_CLASS)) as record:
            calibration, rows = _grade_class(run, submissions, record, resume=resume)
    language = chosen_language(lang)
    page = _write_reports(out, calibration, rows, language)
    if as_json:
        write_outcomes(sys.stdout, calibration, rows)
    else:
        show_class(Console(highlight=False), chain(calibration, rows), language)
        show_notebooks(Console(highlight=False), rows, language)
        click.echo(page)
    raise SystemExit(GraderFault.exit_code if any(map(_is_fault, rows)) else 0)


def _is_fault(row: Mapping[str, Any]) -> bool:
    """Say whether the grader failed at a row."""
    return "grader-error" in (row["verdict"], *(notebook["status"] for notebook in row["notebooks"]))


def _grade_class(
    run: ClassRun, submissions: Sequence[Submission], record: ClassRecord, *, resume: bool
) -> tuple[Rows, Rows]:
    """Calibrate, then grade; give the rows of both."""
    recorded = record.gradings(run.suites().values())
    if recorded and not resume:
        click.echo(
            f"{record.path}: holds {len(recorded)} gradings by these checks; "
            "they are made anew, and --resume would take them",
            err=True,
        )
    record.note("run-began", schema=SCHEMA, submissions=len(submissions), resumes=resume)
    with _progress("calibrate", 2) as tell:
        calibration = run.calibrate(tell)
    with _progress("grade", len(submissions)) as tell:
        rows = run.grade(submissions, record, recorded if resume else {}, tell)
    record.note("run-ended")
    return calibration, rows


@contextlib.contextmanager
def _progress(title: str, total: int) -> Iterator[Tell]:
    with progress(title, total, lines=True) as step:
        yield lambda name, verdict: step(f"{printable(name)}: {verdict}")


def _crew(jobs: int, cluster: str | None) -> Crew:
    """Give whoever grades. Raises: ClusterError."""
    return ClusterCrew(cluster) if cluster else LocalCrew(jobs)


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    """Let SIGTERM stop the run in order, as Ctrl-C does, and tell in one line what ended it early."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (CalibrationError, RecordError, ClusterError) as error:
        raise GraderFault(str(error)) from None
    except KeyboardInterrupt:
        raise Stopped("stopped; what was graded is recorded: go on with --resume") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _write_reports(out: Path, calibration: Rows, rows: Rows, language: Language) -> Path:
    try:
        return write_class(out, calibration, rows, language)
    except OSError as error:
        raise GraderFault(
            f"{out}: cannot be written ({error.strerror}); every outcome is recorded: "
            "choose another --out, or make room, and go on with --resume"
        ) from None


def _submissions(folder: Path | None) -> list[Submission]:
    """List what to grade. A folder that is not there, is none, or holds no submission is wrong use."""
    place = folder or kit_root() / SAMPLE_CLASS
    try:
        found = find_submissions(place)
    except OSError as error:
        raise click.BadParameter(
            f"{place}: {error.strerror}; name a folder that holds one folder per submission", param_hint="DIR"
        ) from None
    if not found:
        raise click.BadParameter(
            f"{place}: holds no submission; put one folder per student into it", param_hint="DIR"
        )
    return found if folder else [Submission("starter", kit_root() / "starter"), *found]


def _load_roster(file: Path | None) -> Roster | None:
    """Read the class list, and tell which of its rows are not used."""
    if file is None:
        return None
    try:
        roster = load_roster(file)
    except RosterError as error:
        raise click.BadParameter(str(error), param_hint="--roster") from None
    for row in roster.bad_rows:
        click.echo(f"{file}:{row.line}: {printable(row.why.en)}; the row is not used", err=True)
    return roster


def _load_settings(file: Path) -> Settings:
    try:
        return load_settings(file)
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint="--settings") from None


def _find_rung() -> Rung:
    try:
        return strongest_rung()
    except OSError as error:
        raise GraderFault(str(error)) from None


def _exit_code(outcome: Outcome) -> int:
    """0 when all required tests passed, 3 when the grader failed at one, else 1."""
    if outcome.verdict == "grader-error":
        return GraderFault.exit_code
    return 0 if outcome.verdict == "ok" else 1
