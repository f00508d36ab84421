"""A class run that is ended in the middle, in any way, goes on: same outcomes, nothing graded twice, nothing left."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from random import Random, SystemRandom

import psutil
import pytest
from click.testing import CliRunner

from grader import cli
from tests.class_of_many import (
    ENDLESS,
    MANY,
    alive,
    boxes,
    calibrate_once,
    grade,
    gradings,
    lasting,
    make_class,
    start_grading,
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of sixty."""
    return make_class(tmp_path_factory.mktemp("many") / "class")


@pytest.fixture(scope="module")
def undisturbed(many: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a run finds that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return grade(many, folder / "out", folder / "state")


def kill_after(running, line: str, delay: float) -> list[psutil.Process]:
    """Kill the grader some moment after it has told this line; give what was running below it just before."""
    for told in running.stderr:
        if told.startswith(line):
            break
    below = psutil.Process(running.pid).children(recursive=True)
    threading.Timer(delay, os.kill, (running.pid, signal.SIGKILL)).start()
    running.communicate()
    return below


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.proof)])
def test_a_class_run_survives_being_killed_again_and_again(kills, many, undisturbed, tmp_path):
    """SIGKILL at random points, --resume each time: the outcomes of an undisturbed run, each content graded once."""
    seed = SystemRandom().randrange(1 << 32)
    draw = Random(seed)
    lines = ["calibrate: 1/2"] + [
        f"grade: {row}/" for row in sorted(draw.sample(range(1, MANY - 8), kills - 1))
    ]
    below = []
    for line in lines:
        running = start_grading(many, tmp_path / "out", tmp_path / "state", "--resume")
        below += kill_after(running, line, draw.random() / 10)
        assert running.returncode == -signal.SIGKILL, (seed, line)
        assert not (tmp_path / "out").exists(), (seed, line)
    assert psutil.wait_procs(below, timeout=60)[1] == [], seed

    report = grade(many, tmp_path / "out", tmp_path / "state", "--resume")
    assert lasting(report) == lasting(undisturbed), seed
    counted = gradings(tmp_path / "state")
    assert set(counted.values()) == {1}, seed
    assert len(counted) == len({row["content"] for row in report["submissions"]}), seed
    assert list(boxes(tmp_path / "state").iterdir()) == [], seed


def test_equal_contents_are_graded_once(many, undisturbed):
    """Sixty rows, of which some hold the same: each row has its outcome, and keeps its own name."""
    rows = undisturbed["submissions"]
    contents = {row["content"] for row in rows}
    assert len(rows) == MANY
    assert 20 < len(contents) < 40
    assert len({row["submission"] for row in rows}) == MANY
    assert {row["verdict"] for row in rows} == {"ok", "fail", "syntax-error", "import-error", "missing-file"}


def a_class(folder: Path, **sources: str) -> Path:
    """Make a class of submissions whose store is this source."""
    for name, source in sources.items():
        lesson = folder / name / "lesson_22"
        lesson.mkdir(parents=True)
        (lesson / "__init__.py").write_text("from .session_store import *\n", "utf-8")
        (lesson / "session_store.py").write_text(source, "utf-8")
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_stops_in_order(number, tmp_path):
    """Ctrl-C on a terminal reaches the whole group: no child is left, no box, and what was graded is recorded."""
    place = a_class(tmp_path / "class", a="def scan(:\n", b=ENDLESS, c=ENDLESS + "# another\n")
    running = start_grading(place, tmp_path / "out", tmp_path / "state", "--jobs", "2")
    for told in running.stderr:
        if told.startswith("grade: 1/3"):
            break
    below = psutil.Process(running.pid).children(recursive=True)
    os.killpg(running.pid, number)
    told = running.communicate()[1]
    assert running.returncode == 130
    assert told == "Error: stopped; what was graded is recorded: go on with --resume\n"
    assert below
    assert alive(below) == []
    assert list(boxes(tmp_path / "state").iterdir()) == []
    assert sum(gradings(tmp_path / "state").values()) == 1
    assert not (tmp_path / "out").exists()


def run(place: Path, folder: Path, *options: str):
    """Run `statelab grade` here, without its calibration; give its exit code and what it told on standard error."""
    words = [str(place), "--lesson", "22", "--out", str(folder / "out"), "--lang", "en", *options]
    result = CliRunner().invoke(cli.grade, words)
    return result.exit_code, result.stderr


@pytest.fixture
def _here(tmp_path, monkeypatch):
    """Keep records in this test's folder, and calibrate once for all."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    calibrate_once(monkeypatch)


@pytest.mark.usefixtures("_here")
def test_a_run_that_does_not_resume_grades_anew_and_says_so(tmp_path):
    """A record is there: it is named, with what would take it; afterwards the later outcomes count."""
    place = a_class(tmp_path / "class", a="def scan(:\n")
    (_, first), (_, second), (_, third) = (run(place, tmp_path, *more) for more in ([], [], ["--resume"]))
    assert "--resume" not in first
    assert "holds 1 gradings by these checks; they are made anew, and --resume would take them" in second
    assert "--resume" not in third
    assert list(gradings(tmp_path / "state").values()) == [2]


@pytest.mark.usefixtures("_here")
def test_a_changed_submission_is_graded_again(tmp_path):
    """What was handed in anew after the first run is not what was recorded."""
    place = a_class(tmp_path / "class", a="def scan(:\n", b="def scan(: # b\n")
    run(place, tmp_path)
    (place / "a" / "lesson_22" / "session_store.py").write_text("import no_module\n")
    run(place, tmp_path, "--resume")
    rows = json.loads((tmp_path / "out" / "outcomes.json").read_bytes())["submissions"]
    assert [row["verdict"] for row in rows] == ["import-error", "syntax-error"]
    assert sorted(gradings(tmp_path / "state").values()) == [1, 1, 1]


@pytest.mark.usefixtures("_here")
def test_a_damaged_record_stops_the_run_before_anyone_is_graded(tmp_path):
    """Exit 3, with the place and the next step; the record is not touched, and there is no report."""
    place = a_class(tmp_path / "class", a="def scan(:\n")
    run(place, tmp_path)
    (record,) = (tmp_path / "state").glob("class-records/*/record.jsonl")
    damaged = record.read_bytes().replace(b'"graded"', b'"gra\xffed"')
    record.write_bytes(damaged)
    code, told = run(place, tmp_path / "new", "--resume")
    assert code == 3
    assert f"{record}: line 3: " in told
    assert "nothing was graded anew" in told
    assert record.read_bytes() == damaged
    assert not (tmp_path / "new").exists()
