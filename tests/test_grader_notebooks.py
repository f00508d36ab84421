"""Notebooks that were handed in: executed in the sandbox from the top, reported, and never believed by their outputs."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from grader import cli
from grader.intake import take
from grader.notebooks import NotebookTask, execute, limits_of
from grader.outcome import Head
from grader.report.notebooks import show_notebooks
from grader.settings import load_settings
from tests.class_of_many import calibrate_once
from tests.piped import KIT

SETTINGS = load_settings()
SAVED = {"output_type": "stream", "name": "stdout", "text": "all tests passed"}
ERROR = {"output_type": "error", "ename": "Old", "evalue": "from another day", "traceback": []}


def notebook(*cells: str, saved=SAVED, tags=()) -> bytes:
    """Make a notebook of code cells, each with an output that somebody saved."""
    made = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {"tags": list(tags)},
            "source": source,
            "execution_count": number,
            "outputs": [saved],
        }
        for number, source in enumerate(cells, 1)
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}).encode()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Execute a handful in one box; give what each showed, by name."""
    secret = tmp_path_factory.mktemp("secret") / "secret.txt"
    secret.write_text("grades")
    books = {
        "fine": notebook("x = 1", "assert x == 1", saved=ERROR),
        "wrong": notebook("assert False, 'no'", "1 / 0", "y = 2"),
        "announced": notebook("1 / 0", tags=["raises-exception"]),
        "junk": b"{",
        "list": b"[]",
        "kills": notebook("import os; os.kill(os.getpid(), 9)", "1"),
        "mine": notebook(
            "from labkit.workspace import load_lesson; assert load_lesson('22').MINE == 22",
            "from labkit.workspace import scratch; (scratch('lab') / 'note').write_text('x')",
        ),
        "curious": notebook(
            f"open({str(secret)!r})",
            "import socket; socket.create_connection(('127.0.0.1', 22), 1)",
            f"open({str(KIT / 'pyproject.toml')!r})",
            "open('../code/kit/solution/mine.py', 'w')",
        ),
        "last": notebook("1"),
    }
    handin = take(KIT / "solution", "22")
    init = handin.files["__init__.py"] + b"\nMINE = 22\n"
    mine = type(handin)("22", {**handin.files, "__init__.py": init})
    found = execute(NotebookTask(books, [mine], SETTINGS, "", ""))
    assert [each["name"] for each in found["notebooks"]] == list(books)
    assert found["verdict"] == "fail"
    return {each["name"]: each for each in found["notebooks"]}


def test_a_notebook_is_judged_by_what_it_does_now(shown):
    """A saved error is gone when the cells run; every cell was executed."""
    assert shown["fine"] == {"name": "fine", "status": "ok", "cells": 2, "done": 2, "errors": []}


def test_errors_are_reported_though_the_saved_outputs_say_otherwise(shown):
    """Each with its cell, name and text; the cells behind an error are run, too."""
    assert shown["wrong"]["status"] == "error"
    assert shown["wrong"]["done"] == 3
    assert shown["wrong"]["errors"] == [
        {"cell": 1, "name": "AssertionError", "text": "no"},
        {"cell": 2, "name": "ZeroDivisionError", "text": "division by zero"},
    ]


def test_an_error_that_was_announced_is_none(shown):
    """A cell tagged `raises-exception` shows one on purpose."""
    assert shown["announced"]["status"] == "ok"


def test_what_is_no_notebook_says_so(shown):
    """Broken JSON, or JSON that is none: one word, and the others are executed."""
    assert {shown[name]["status"] for name in ("junk", "list")} == {"unreadable"}


def test_a_kernel_that_is_killed_takes_no_other_with_it(shown):
    """The one that ends its own kernel has crashed; the next has its own."""
    assert shown["kills"]["status"] == "crash"
    assert shown["last"]["status"] == "ok"


def test_a_notebook_imports_its_own_submission_and_has_a_playground(shown):
    """`starter/` of the kit in the box is what was handed in, and `workspace/` can be written to."""
    assert shown["mine"]["status"] == "ok", shown["mine"]["errors"]


def test_a_notebook_is_as_shut_in_as_any_submission(shown):
    """Other files, this machine's network, the kit itself and its own copy of the kit are out of reach or read only."""
    assert [error["cell"] for error in shown["curious"]["errors"]] == [1, 2, 3, 4]
    names = {error["name"] for error in shown["curious"]["errors"]}
    assert names <= {"FileNotFoundError", "PermissionError", "ConnectionRefusedError", "OSError"}


def test_a_cell_that_does_not_end_is_given_up():
    """Its time is an instructor's to set; of the cells behind it, not even the saved outputs are believed."""
    settings = type(SETTINGS)(SETTINGS.limits, SETTINGS.points, {"notebooks": {"check_seconds": 2}})
    books = {"endless": notebook("x = 1", "while True: pass", "x = 3", saved=ERROR)}
    (found,) = execute(NotebookTask(books, [], settings, "", ""))["notebooks"]
    assert found["status"] == "timeout"
    assert "Old" not in [error["name"] for error in found["errors"]]
    assert found["done"] < found["cells"] == 3
    assert limits_of(settings).check_seconds == 2


def test_grade_reports_notebooks_and_marks_none(tmp_path, monkeypatch):
    """One option: rows tell what each showed; without it none is executed, and the marks are the same."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    calibrate_once(monkeypatch)
    lesson = tmp_path / "class" / "one" / "lesson_22"
    lesson.mkdir(parents=True)
    (lesson / "__init__.py").write_text("from .session_store import *\n")
    (lesson / "session_store.py").write_text("def scan(:\n")
    (lesson.parent / "mine.ipynb").write_bytes(notebook("assert 1 == 2"))
    words = [str(tmp_path / "class"), "--lesson", "22", "--out", str(tmp_path / "out"), "--lang", "en"]

    def row(*more: str):
        result = CliRunner().invoke(cli.grade, [*words, *more])
        assert result.exit_code == 0, result.output
        return json.loads((tmp_path / "out" / "outcomes.json").read_bytes())["submissions"][0], result.stdout

    without, _ = row()
    having, told = row("--notebooks")
    again, _ = row("--notebooks", "--resume")
    assert without["notebooks"] == []
    assert having["notebooks"][0]["errors"] == [{"cell": 1, "name": "AssertionError", "text": ""}]
    assert again["notebooks"] == having["notebooks"]
    assert having["lessons"]["22"]["points"] == without["lessons"]["22"]["points"]
    assert having["verdict"] == without["verdict"]
    assert "1 notebooks were executed, 0 of them" in told
    assert "one: mine.ipynb: errors · cell 1: AssertionError" in told


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_notebooks_showed_is_told_in_a_few_lines(language, capsys):
    """One line for each that did not run through, few of its errors, no control characters, both languages."""
    errors = [{"cell": number, "name": "E\x1b[2J", "text": "t"} for number in range(9)]
    statuses = ("ok", "error", "timeout", "crash", "unreadable", "grader-error")
    books = [{"name": each, "status": each, "cells": 1, "done": 0, "errors": errors} for each in statuses]
    rows = [Head("s", "r").row({}, 0.0, books), Head("none", "r").row({})]
    show_notebooks(Console(file=sys.stdout, width=200), rows, language)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(statuses)
    assert "\x1b" not in "".join(lines)
    assert lines[1].count("·") == 4
