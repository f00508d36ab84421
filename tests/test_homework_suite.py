"""The homework's suite, in both directions and over both transports: right passes, untouched and wrong do not."""

from __future__ import annotations

import csv
import json
import secrets
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import cli, gate
from grader.bench import lay_homework_down
from grader.channel import ChildLost
from grader.intake import take
from grader.outcome import verdict_of
from grader.report.grades_csv import columns
from grader.suites import load_suite
from grader.suites.check import Check, CheckFailed
from grader.suites.mutants.homework import MUTANTS, VARIANTS, Sample
from labkit.workspace import HOMEWORK, kit_root, target_folder
from tests.suite_run import in_process, over_the_pipe

SUITE = load_suite(HOMEWORK)
CLASS = kit_root() / "assets" / "sample-class"

pytestmark = [
    # Wrong code may leave descriptors behind it: that is its mistake, not this test's.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def alone(submission: Path, folder: Path) -> Path:
    """Lay the homework of a submission down by itself, as for a child; give the package."""
    code = folder / "code"
    code.mkdir(parents=True)
    lay_homework_down(take(submission, HOMEWORK), code)
    return code / "lesson_22"


def reasons_in_process(submission: Path, checks: list[Check], folder: Path, seed: str) -> dict[str, str]:
    """Run checks in process; give why each did not pass, "" for one that did."""
    package = alone(submission, folder)
    errors = {check.id: in_process(check, package, folder / check.id, seed) for check in checks}
    return {check_id: _reason(error) for check_id, error in errors.items()}


def _reason(error: Exception | None) -> str:
    if error is None:
        return ""
    if isinstance(error, ChildLost):
        return error.reason
    return "not-implemented" if isinstance(error, NotImplementedError) else "fail"


def by_id(sample: Sample) -> str:
    return sample.id


@pytest.mark.both_directions
@pytest.mark.parametrize("check", SUITE.checks, ids=lambda check: check.id)
def test_check(check: Check, request: pytest.FixtureRequest, tmp_path: Path):
    """The target keeps the rules that this check is about."""
    submission = target_folder(request.config.getoption("--target"))
    seed = request.config.getoption("--seed") or secrets.token_hex(8)
    error = in_process(check, alone(submission, tmp_path), tmp_path / "work", seed)
    if error and not isinstance(error, CheckFailed):
        raise error.__cause__ or error  # where the code under test raised it: there a debugger is to stop

    assert not error, f"{check.title.en}\n{error}\n{check.hint.en}\n(--seed {seed})"


@pytest.mark.both_directions
@pytest.mark.parametrize(("target", "reason"), [("solution", ""), ("starter", "not-implemented")])
def test_the_ends_are_the_same_both_ways(target, reason, tmp_path):
    """The solution passes every check and the starter none, each told "not implemented", over either transport."""
    submission, seed = target_folder(target), secrets.token_hex(8)
    if target == "starter":
        submission = CLASS / "untouched-starter"  # the kit's own starter may be half written
    piped = over_the_pipe(submission, HOMEWORK, SUITE.checks, seed)
    direct = reasons_in_process(submission, SUITE.checks, tmp_path, seed)

    assert {id_: found.reason for id_, found in piped.items()} == direct
    assert set(direct.values()) == {reason}


@pytest.mark.both_directions
@pytest.mark.parametrize("sample", MUTANTS, ids=by_id)
def test_each_mistake_is_seen_by_its_own_check(sample: Sample, tmp_path: Path):
    """The check meant for this mistake fails, as a rule that does not hold, in process and over the pipe."""
    submission, check, seed = tmp_path / "submission", SUITE.find(sample.caught_by), secrets.token_hex(8)
    sample.lay_down(submission)

    error = in_process(check, alone(submission, tmp_path), tmp_path / "work", seed)
    assert isinstance(error, CheckFailed)
    assert over_the_pipe(submission, HOMEWORK, [check], seed)[check.id].message == error.message


def test_every_check_can_fail():
    """For every check there is a homework that only has to make one mistake to fail it."""
    assert {sample.caught_by for sample in MUTANTS} == {check.id for check in SUITE.checks}


@pytest.mark.parametrize("sample", VARIANTS, ids=by_id)
def test_right_code_in_another_style_passes_everything(sample: Sample, tmp_path: Path):
    """No check asks for one way of writing it."""
    sample.lay_down(tmp_path / "submission")
    found = reasons_in_process(tmp_path / "submission", SUITE.checks, tmp_path, secrets.token_hex(8))

    assert {check_id: reason for check_id, reason in found.items() if reason} == {}


def test_the_gate_takes_the_homework_by_its_name(monkeypatch):
    """`statelab gate --lesson 22-homework` tries its mutants on its checks, and says which stopped which."""
    monkeypatch.setattr(gate, "mutants_of", lambda _lesson: MUTANTS[:1])
    done = CliRunner().invoke(gate.gate, ["--lesson", HOMEWORK, "--json"])

    assert done.exit_code == 0, done.output
    (mutant,) = json.loads(done.stdout)["mutants"]
    assert (mutant["id"], mutant["caught"]) == (MUTANTS[0].id, True)


@pytest.mark.proof
@pytest.mark.parametrize("sample", [*MUTANTS, *VARIANTS], ids=by_id)
def test_both_transports_agree_check_by_check(sample: Sample, tmp_path: Path):
    """Every check ends the same both ways, on all code known."""
    seed = secrets.token_hex(8)
    sample.lay_down(tmp_path / "submission")
    piped = over_the_pipe(tmp_path / "submission", HOMEWORK, SUITE.checks, seed)

    direct = reasons_in_process(tmp_path / "submission", SUITE.checks, tmp_path, seed)
    assert {id_: found.reason for id_, found in piped.items()} == direct


# --- Counted apart from its lesson ---


def handed_in(folder: Path, *, without: str = "") -> Path:
    """Copy the right submission's lesson 22, perhaps without one of its files."""
    shutil.copytree(CLASS / "right" / "lesson_22", folder / "lesson_22")
    if without:
        (folder / "lesson_22" / without).unlink()
    return folder


def test_a_homework_is_judged_by_itself(tmp_path):
    """One file is taken for it, and what became of the lesson's store beside it makes no difference."""
    submission = handed_in(tmp_path / "mine")
    (submission / "lesson_22" / "session_store.py").write_text("class JsonlSessionStore")

    assert list(take(submission, HOMEWORK).files) == ["homework.py"]
    found = over_the_pipe(submission, HOMEWORK, [SUITE.find("22-homework-seal")])
    assert found["22-homework-seal"].status == "pass"


def test_a_store_is_judged_without_its_homework(tmp_path):
    """A homework that Python does not read costs nothing in lesson 22."""
    submission, check = handed_in(tmp_path / "mine"), load_suite("22").find("22-01")
    (submission / "lesson_22" / "homework.py").write_text("def broken(:")

    assert over_the_pipe(submission, "22", [check])["22-01"].status == "pass"
    reasons = {found.reason for found in over_the_pipe(submission, HOMEWORK, SUITE.checks).values()}
    assert reasons == {"syntax-error"}


def test_what_was_not_handed_in_is_named(tmp_path):
    """The message says which file it is, where it belongs."""
    (check, *_) = SUITE.checks
    found = over_the_pipe(handed_in(tmp_path / "mine", without="homework.py"), HOMEWORK, [check])[check.id]

    assert found.reason == "missing-file"
    assert found.message
    assert "lesson_22/homework.py is not there" in found.message.en.lower()


@pytest.mark.parametrize(
    ("lessons", "verdict"),
    [
        ({"22": "ok", HOMEWORK: "missing-file"}, "ok"),
        ({"22": "fail", HOMEWORK: "missing-file"}, "fail"),
        ({"22": "missing-file", HOMEWORK: "missing-file"}, "missing-file"),
        ({"22": "ok", HOMEWORK: "fail"}, "fail"),
        ({"22": "ok", HOMEWORK: "ok"}, "ok"),
        ({HOMEWORK: "missing-file"}, "missing-file"),
        ({}, "grader-error"),
    ],
)
def test_no_homework_fails_nobody(lessons, verdict):
    """A row's one word leaves out a homework that was not handed in, unless nothing else was asked for."""
    assert verdict_of(lessons) == verdict


def test_a_class_is_graded_on_its_homework_where_that_is_asked_for(tmp_path, monkeypatch):
    """Every report has it under its name, and a student without one keeps a row."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    for name, without in (("did", ""), ("did-not", "homework.py")):
        handed_in(tmp_path / "class" / name, without=without)
    out = tmp_path / "out"
    arguments = ["--lesson", HOMEWORK, "--out", out, "--jobs", "2", "--allow-unsandboxed", "--lang", "en"]
    done = CliRunner().invoke(cli.grade, [str(tmp_path / "class"), *map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)

    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["submission"]: row for row in csv.DictReader(file)}
    verdicts = {name: (row["verdict"], row[f"{HOMEWORK}_verdict"]) for name, row in rows.items()}
    assert verdicts == {"did": ("ok", "complete"), "did-not": ("missing-file", "missing-file")}
    assert {row["22_verdict"] for row in rows.values()} == {""}
    for file in ("report.html", "feedback/did.md", "gradescope/did.json", "junit/did.xml"):
        assert "Lesson 22, homework" in (out / file).read_text("utf-8")


def test_a_class_that_is_not_asked_for_it_has_no_columns_of_it():
    """The table is what it was before there was a homework."""
    assert not [column for column in columns() if column.startswith(HOMEWORK)]
    assert set(columns()) < set(columns(homework=True))
