"""`statelab verify` and `statelab grade` from outside: what they print, and how they exit."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import cli, rungs
from grader.crew import LocalCrew
from grader.journal import ClassRecord, record_folder
from grader.pool import CalibrationError, ClassRun
from grader.report.words import SAID, TOPICS, VERDICTS, chosen_language
from grader.settings import load_settings
from grader.suites import JUDGED
from grader.worker import grade_task
from tests.class_of_many import calibrate_once
from tests.piped import KIT

SAMPLES = KIT / "assets" / "sample-class"


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    """Keep class records out of the user's own."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))


@pytest.fixture
def _calibrated(monkeypatch):
    """Spare a test that is about something else the calibration of its runs."""
    calibrate_once(monkeypatch)


class HereCrew(LocalCrew):
    """A crew in this process, where a test can make the grader believe things."""

    def _hand_out(self, task):
        return grade_task(task)


def run(command, *arguments):
    """Run a command on lesson 22, the quick one, unless the arguments name another."""
    words = [str(argument) for argument in arguments]
    words += [] if "--lesson" in words else ["--lesson", "22"]
    return CliRunner().invoke(command, words, catch_exceptions=False)


def a_class(folder, **samples):
    """Make a class: a sample of the kit by each name; a name without one is an empty folder."""
    for name, sample in samples.items():
        if sample:
            shutil.copytree(SAMPLES / sample, folder / name)
        else:
            (folder / name).mkdir(parents=True)
    return folder


def test_the_solution_passes_everything():
    """Exit 0, five required and all extended, in JSON that a program reads."""
    result = run(cli.verify, "--lesson", "22", "--target", "solution", "--json")
    report = json.loads(result.stdout)
    lesson = report["lessons"]["22"]
    assert result.exit_code == 0
    assert report["isolation"] == rungs.strongest_rung().name
    assert lesson["required"] == {"passed": 5, "total": 5}
    assert lesson["extended"]["passed"] == lesson["extended"]["total"] > 20
    assert lesson["complete"]


def test_the_starter_is_not_implemented():
    """Exit 1, none of five, each for the same reason."""
    result = run(cli.verify, "--lesson", "22", "--target", SAMPLES / "untouched-starter", "--json")
    tests = json.loads(result.stdout)["lessons"]["22"]["tests"]
    assert result.exit_code == 1
    assert [test["reason"] for test in tests if test["required"]] == ["not-implemented"] * 5


@pytest.mark.parametrize(
    ("lang", "closing", "title"),
    [
        ("en", "covered: append and replay · contiguous numbers · call order", "Required: 5/5"),
        ("zh", "覆盖：追加与重放 · 编号连续 · 并发保序", "必做：5/5"),
    ],
)
def test_a_table_closes_with_the_score_and_the_topics(lang, closing, title):
    """The learner's own language, the same closing line in both."""
    result = run(cli.verify, "--target", "solution", "--lang", lang)
    assert title in result.stdout
    assert "solution: 5 passed, 0 failed" in result.stdout
    assert closing in result.stdout


def test_the_first_failure_comes_with_its_next_step():
    """What failed first is explained: rule, expected and found, and a hint."""
    result = run(cli.verify, "--target", SAMPLES / "race", "--lang", "en")
    assert result.exit_code == 1
    assert "Start with 22-03" in result.stdout
    assert "Expected:" in result.stdout
    assert "Next step:" in result.stdout


def test_code_that_is_not_written_gets_the_step_to_write_as_its_next():
    """The hint of a check is about written code; before that, the next step is to write it."""
    result = run(cli.verify, "--lesson", "22", "--target", SAMPLES / "untouched-starter", "--lang", "en")
    assert "Next step: Fill in the bodies that are empty" in result.stdout
    assert "Look at the disk first" not in result.stdout


def test_code_that_does_not_load_gets_no_hint_about_what_it_stores(tmp_path):
    """The message says to make Python accept the file; the hint of a check is about code that runs."""
    folder = shutil.copytree(SAMPLES / "right", tmp_path / "mine")
    (folder / "lesson_22" / "session_store.py").write_text("def scan(:", "utf-8")
    shown = run(cli.verify, "--lesson", "22", "--target", folder, "--lang", "en").stdout
    assert "Make Python accept this file first" in " ".join(shown.split())
    assert "Next step" not in shown


def test_extended_tests_that_passed_are_shown_on_request():
    """Without --all they are only counted."""
    shown = run(cli.verify, "--target", "solution", "--lang", "en", "--all").stdout
    counted = run(cli.verify, "--target", "solution", "--lang", "en").stdout
    assert "22-s01" in shown
    assert "22-s01" not in counted


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        (cli.verify, ["--target", "no-such-folder"], "no-such-folder: no such folder"),
        (cli.verify, ["--target", KIT / "README.md"], "no such folder"),
        (cli.verify, ["--lesson", "99"], "99"),
        (cli.verify, ["--settings", "no-such.toml"], "no-such.toml: cannot be read"),
        (cli.grade, ["no-such-folder"], "no-such-folder: No such file"),
        (cli.grade, [KIT / "pyproject.toml"], "Not a directory"),
        (cli.grade, ["--roster", "no-such.csv"], "no-such.csv: cannot be read"),
        (cli.grade, ["--jobs", "0"], "jobs"),
    ],
)
def test_wrong_use_is_exit_2_and_says_what_to_name(command, arguments, named):
    """A folder, lesson or file that is not there is named; nothing is graded and nothing is written."""
    result = run(command, *arguments)
    assert result.exit_code == 2
    assert named in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_without_submissions_is_wrong_use(tmp_path):
    """Hidden files are nobody's work: there is nothing to grade."""
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / ".hidden").touch()
    result = run(cli.grade, tmp_path / "class")
    assert result.exit_code == 2
    assert "holds no submission" in result.stderr


@pytest.mark.usefixtures("_calibrated")
def test_a_class_gets_one_row_each_whatever_was_handed_in(tmp_path):
    """Right, wrong, empty, half uploaded and stray things all have their row, in the order of their names."""
    folder = a_class(tmp_path / "class", **{"a right": "right", "b 中文 🧪": "race", "c empty": None})
    (folder / "d.zip").write_bytes(b"PK")
    (folder / "e.csv").write_text("name\n")
    result = run(cli.grade, folder, "--out", tmp_path / "out", "--json", "--jobs", "2")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [(row["submission"], row["verdict"], bool(row["problem"])) for row in report["submissions"]] == [
        ("a right", "ok", False),
        ("b 中文 🧪", "fail", False),
        ("c empty", "missing-file", False),
        ("d.zip", "missing-file", True),
        ("e.csv", "missing-file", True),
    ]
    assert json.loads((tmp_path / "out" / "outcomes.json").read_text()) == report
    assert {row["isolation"] for row in report["submissions"]} == {rungs.strongest_rung().name}


@pytest.mark.usefixtures("_calibrated")
def test_every_report_is_written_and_the_page_is_named(tmp_path):
    """The last line is the path of `report.html`; beside it stand the forms for other programs."""
    result = run(cli.grade, a_class(tmp_path / "class", one="untouched-starter"), "--out", tmp_path / "out")
    assert result.stdout.splitlines()[-1] == str(tmp_path / "out" / "report.html")
    names = {path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")}
    assert names == {"outcomes.json", "grades.csv", "report.html", "feedback", "gradescope", "junit"}


def test_a_class_is_calibrated_first(tmp_path):
    """The solution and the untouched starter open every table, and every step is a line in a log."""
    folder = a_class(tmp_path / "class", one="untouched-starter")
    result = run(cli.grade, folder, "--out", tmp_path / "out", "--lang", "en")
    assert result.stdout.index("solution") < result.stdout.index("starter") < result.stdout.index(" one ")
    assert "calibrate: 2/2" in result.stderr
    assert "grade: 1/1 one: fail" in result.stderr


@pytest.mark.usefixtures("_calibrated")
def test_a_roster_gives_a_row_to_everyone(tmp_path):
    """Who handed in nothing has a row, ids reach the grades, and a row of the list that is not used is told."""
    folder = a_class(tmp_path / "class", 李雷="untouched-starter")
    roster = tmp_path / "roster.csv"
    roster.write_text("学号,姓名\n007,李雷\n,谁\n008,韩梅梅\n", "utf-8")
    result = run(cli.grade, folder, "--out", tmp_path / "out", "--roster", roster, "--json")
    rows = json.loads(result.stdout)["submissions"]
    assert result.exit_code == 0
    assert [(row["submission"], row["student"], row["handed_in"]) for row in rows] == [
        ("李雷", "007", "李雷"),
        ("韩梅梅", "008", ""),
    ]
    assert rows[1]["problem"]["en"] == "nothing was handed in"
    assert "roster.csv:3: no id" in result.stderr
    with (tmp_path / "out" / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.reader(file))) == 3


@pytest.mark.usefixtures("_calibrated")
def test_two_submissions_of_one_student_have_one_row_each_with_the_reason(tmp_path):
    """Nobody but the instructor can say which counts: neither is graded, and the run goes on."""
    folder = a_class(tmp_path / "class", **{"007": "untouched-starter", "007 again": "right", "other": None})
    roster = tmp_path / "roster.csv"
    roster.write_text("id\n007\n", "utf-8")
    result = run(cli.grade, folder, "--out", tmp_path / "out", "--roster", roster, "--json")
    rows = json.loads(result.stdout)["submissions"]
    assert result.exit_code == 0
    assert ["more than once" in (row["problem"] or {"en": ""})["en"] for row in rows] == [True, True, False]
    assert {row["verdict"] for row in rows} == {"missing-file"}


def test_the_default_class_is_the_samples_after_your_own_starter():
    """On a fresh clone there is something to grade."""
    names = [submission.name for submission in cli._submissions(None)]
    assert names[0] == "starter"
    assert {"right", "untouched-starter", "race"} <= set(names)


def test_a_grader_that_is_wrong_about_the_solution_judges_nobody(tmp_path, monkeypatch):
    """If the reference does not pass, the run stops as the grader's error before anyone has a row."""
    shutil.copytree(SAMPLES / "race", tmp_path / "solution")
    shutil.copytree(SAMPLES, tmp_path / "assets" / "sample-class")
    monkeypatch.setattr("grader.pool.kit_root", lambda: tmp_path)
    result = run(cli.grade, SAMPLES, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "calibration: lesson 22: the solution does not pass" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_starter_that_passes_something_stops_the_run(tmp_path, monkeypatch):
    """Points for nothing would be points for everybody."""
    shutil.copytree(KIT / "solution", tmp_path / "solution", ignore=shutil.ignore_patterns("lesson_04"))
    shutil.copytree(SAMPLES / "right", tmp_path / "assets" / "sample-class" / "untouched-starter")
    monkeypatch.setattr("grader.pool.kit_root", lambda: tmp_path)
    with LocalCrew(2) as crew, pytest.raises(CalibrationError, match="untouched starter"):
        ClassRun(["22"], load_settings(), rungs.strongest_rung().name, crew).calibrate()


def test_other_peoples_code_is_not_run_unshielded(tmp_path, monkeypatch):
    """Where nothing isolates, a class is refused with exit 4, and graded when that is accepted."""
    weak = rungs.rungs()[-1]
    for module in ("grader.cli", "grader.grade", "grader.rungs", "grader.worker"):
        monkeypatch.setattr(f"{module}.strongest_rung", lambda: weak)
    monkeypatch.setattr(cli, "LocalCrew", HereCrew)
    folder = a_class(tmp_path / "class", one="untouched-starter")
    refused = run(cli.grade, folder, "--out", tmp_path / "out")
    accepted = run(cli.grade, folder, "--out", tmp_path / "out", "--allow-unsandboxed", "--json")
    assert refused.exit_code == 4
    assert "--allow-unsandboxed" in refused.stderr
    assert accepted.exit_code == 0
    assert json.loads(accepted.stdout)["isolation"] == weak.name


def test_your_own_code_is_run_unshielded_with_a_warning(monkeypatch):
    """`verify` goes on where nothing isolates, and says so on standard error."""
    weak = rungs.rungs()[-1]
    for module in ("grader.cli", "grader.grade", "grader.rungs"):
        monkeypatch.setattr(f"{module}.strongest_rung", lambda: weak)
    result = run(cli.verify, "--target", SAMPLES / "untouched-starter", "--lang", "en")
    assert result.exit_code == 1
    assert "Nothing on this machine isolates" in result.stderr


@pytest.mark.usefixtures("_calibrated")
def test_an_unwritable_report_is_the_graders_error_and_costs_no_outcome(tmp_path):
    """The reason and what to choose instead are said; the outcomes are recorded, and --resume takes them."""
    (tmp_path / "file").touch()
    folder = a_class(tmp_path / "class", one="untouched-starter")
    result = run(cli.grade, folder, "--out", tmp_path / "file")
    assert result.exit_code == 3
    assert "choose another --out" in result.stderr
    again = run(cli.grade, folder, "--out", tmp_path / "out", "--resume")
    assert again.exit_code == 0
    record = (record_folder(folder) / "record.jsonl").read_text()
    assert record.count('"type":"graded"') == 1


@pytest.mark.usefixtures("_calibrated")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_leaves_the_last_reports_as_they_were(tmp_path):
    """Nothing half written: every file of the earlier run is there, byte for byte, and the reason is told."""
    folder, out = a_class(tmp_path / "class", one="untouched-starter"), tmp_path / "out"
    run(cli.grade, folder, "--out", out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (out / ".outcomes.json.new").symlink_to("/dev/full")
    result = run(cli.grade, folder, "--out", out, "--resume")
    assert result.exit_code == 3
    assert "No space left on device" in result.stderr
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_class_that_is_being_graded_is_not_graded_twice(tmp_path):
    """Another grader holds the record: exit 3, and nothing is touched."""
    folder = a_class(tmp_path / "class", one="untouched-starter")
    with ClassRecord(record_folder(folder)):
        result = run(cli.grade, folder, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "another grader is at work" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("_calibrated")
def test_a_name_that_moves_the_cursor_is_shown_harmlessly(tmp_path):
    """A folder name with control characters reaches neither the log nor the table as such."""
    folder = a_class(tmp_path / "class", **{"evil\x1b[2J\nname": None})
    result = run(cli.grade, folder, "--out", tmp_path / "out", "--lang", "en")
    assert "\x1b" not in result.output
    assert "evil\ufffd[2J\ufffdname: missing-file" in result.stderr


def test_every_word_is_said_in_both_languages():
    """No lesson is without topics, no text without one of its languages, and placeholders are the same in both."""
    texts = [*SAID.values(), *VERDICTS.values(), *(topic for topics in TOPICS.values() for topic in topics)]
    assert set(TOPICS) == set(JUDGED)
    for text in texts:
        assert text.zh
        assert text.en
        assert sorted(part.split("}")[0] for part in text.zh.split("{")[1:]) == sorted(
            part.split("}")[0] for part in text.en.split("{")[1:]
        )


@pytest.mark.parametrize(
    ("asked", "variable", "chosen"),
    [("en", "zh", "en"), ("zh", "en", "zh"), (None, "zh_CN.UTF-8", "zh"), (None, "en_US.UTF-8", "en")],
)
def test_the_language_is_asked_for_or_the_systems(monkeypatch, asked, variable, chosen):
    """--lang comes before LAB_LANG."""
    monkeypatch.setenv("LAB_LANG", variable)
    assert chosen_language(asked) == chosen
