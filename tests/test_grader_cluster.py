"""A class graded on a real Dask cluster: same outcomes as here, also when a worker is killed; clear words without one."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import pickle
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from distributed import LocalCluster

from grader import cli
from grader.cluster import ClusterCrew, ClusterError, grade_bytes
from grader.intake import take
from grader.journal import ClassRecord
from grader.pool import ClassRun, Submission
from grader.rungs import strongest_rung
from tests.class_of_many import SETTINGS, lasting, task_of
from tests.piped import KIT

SAMPLES = KIT / "assets" / "sample-class"


@pytest.fixture
def cluster(tmp_path):
    """Two worker processes of one thread each; no dashboard, nothing but this machine can reach them."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        worker_dashboard_address=None,
        local_directory=str(tmp_path / "dask"),
        silence_logs=logging.CRITICAL,
    ) as started:
        yield started


def submissions(folder: Path) -> list[Submission]:
    """Give six that end alike in every run: right ones, and some that do not load."""
    made = [Submission("right", SAMPLES / "right"), Submission("starter", SAMPLES / "untouched-starter")]
    for number in range(4):
        lesson = folder / f"s{number}" / "lesson_22"
        lesson.mkdir(parents=True)
        (lesson / "__init__.py").write_text("from .session_store import *\n")
        (lesson / "session_store.py").write_text(f"def scan(: # {number}\n")
        made.append(Submission(f"s{number}", folder / f"s{number}"))
    return made


def test_a_worker_that_is_killed_loses_nothing(cluster, tmp_path):
    """SIGKILL in the middle: every row is there, equal to those of a run on this machine, and no fault was recorded."""
    given = submissions(tmp_path / "class")
    here = ClassRun(["22"], SETTINGS, strongest_rung().name, cli.LocalCrew(2))
    told: list[str] = []

    def kill_one(name: str, _verdict: str) -> None:
        told.append(name)
        if len(told) == 1:
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    with ClusterCrew(cluster.scheduler_address) as crew, ClassRecord(tmp_path / "record") as record:
        assert crew.width() == 2
        there = ClassRun(["22"], SETTINGS, strongest_rung().name, crew).grade(given, record, {}, kill_one)
        types = [json.loads(line)["type"] for line in record.path.read_bytes().splitlines()]
    with here.crew, ClassRecord(tmp_path / "other") as other:
        expected = here.grade(given, other, {})
    assert lasting({"submissions": there}) == lasting({"submissions": expected})
    assert types.count("graded") == len(given) == len(told)
    assert "grading-failed" not in types


def test_grade_on_a_cluster_is_one_option(cluster, tmp_path, monkeypatch):
    """Calibration and class both run there; the reports are written here."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    submissions(tmp_path / "class")
    words = [str(tmp_path / "class"), "--out", str(tmp_path / "out"), "--lesson", "22"]
    result = CliRunner().invoke(cli.grade, [*words, "--cluster", cluster.scheduler_address])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out" / "outcomes.json").read_bytes())
    assert [row["verdict"] for row in report["submissions"]] == ["syntax-error"] * 4
    assert report["calibration"][0]["lessons"]["22"]["complete"]


def test_a_cluster_that_goes_away_is_told(tmp_path):
    """What was graded is recorded; the next step is to start it again."""
    started = LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    with ClusterCrew(started.scheduler_address) as crew:
        started.close()
        with pytest.raises(ClusterError, match="go on with --resume"):
            for _ in range(100):
                crew.width()


def test_no_scheduler_is_told_with_the_address_to_give(monkeypatch):
    """Nothing listens there: one line, with what an address looks like."""
    monkeypatch.setattr("grader.cluster._CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:9: no scheduler answers .* such as tcp://"):
        ClusterCrew("tcp://127.0.0.1:9").__enter__()


def test_an_address_that_is_none_is_told():
    """What Dask cannot read is told as no scheduler, too."""
    with pytest.raises(ClusterError, match="no scheduler answers"):
        ClusterCrew("nonsense://there").__enter__()


def test_without_the_extra_one_line_names_it(tmp_path, monkeypatch):
    """Dask is not installed: exit 3, with the command that installs it, and nobody is graded."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    (tmp_path / "class" / "one").mkdir(parents=True)
    words = [str(tmp_path / "class"), "--lesson", "22", "--cluster", "tcp://127.0.0.1:8786"]
    result = CliRunner().invoke(cli.grade, words)
    assert result.exit_code == 3
    assert "pip install 'agent-state-lab[cluster]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("version", "fits"), [("2025.12.0", False), ("2026.2", False), ("2026.3.0", True), ("2027.1", True)]
)
def test_an_old_dask_is_refused(version, fits, monkeypatch):
    """Its version is named, and the oldest that does."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    monkeypatch.setattr("grader.cluster._CONNECT_SECONDS", 0.2)
    with pytest.raises(
        ClusterError, match="no scheduler answers" if fits else f"Dask {version} is older than 2026.3"
    ):
        ClusterCrew("tcp://127.0.0.1:9").__enter__()


def test_what_travels_is_bytes_without_a_path(tmp_path):
    """A worker on another machine has none of the grader's folders: nothing of them is in a task."""
    given = submissions(tmp_path / "class")[-1]
    packed = pickle.dumps(task_of(take(given.path, "22")))
    assert str(tmp_path).encode() not in packed
    assert json.loads(grade_bytes(packed))["outcome"]["verdict"] == "syntax-error"
