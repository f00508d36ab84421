"""The hostile corpus: every case ends with its golden verdict and reasons, and nothing of it is left (`tests.hostile`)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from grader import rungs, temporary
from tests import hostile, residue
from tests.hostile import CASES, KINDS, contained, ended, goldens, kind

ROOT = os.geteuid() == 0
ISOLATED = [kind for kind in KINDS if not kind.startswith("limits-only")]


@pytest.fixture(scope="module")
def reachable():
    with hostile.surroundings() as names:
        yield names


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_submission_ends_as_its_golden_says(case, reachable):
    """Verdict by verdict, on the strongest rung of whoever runs this; no process, file, mount or socket is left."""
    assert ended(case, reachable) == goldens()[kind()][case]


def corpus_as(user: int, rung: str) -> dict[str, hostile.Ended]:
    """Run the whole corpus in a process of its own, as another user; give how each case ended."""
    done = subprocess.run(
        hostile.as_someone(user, rung), cwd=hostile.KIT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert (
        found["kind"]
        == f"{rungs.strongest_rung().name if rung == 'strongest' else rung}, {'user' if user else 'root'}"
    )
    return dict(found["ended"])


needs_root = pytest.mark.skipif(
    not ROOT and not os.environ.get("CI"), reason="the other kind of user can only be tried by root"
)


@needs_root
def test_the_corpus_ends_the_same_for_an_ordinary_user():
    """Who grades without root gets the goldens of that user, case by case."""
    found = corpus_as(hostile.ANOTHER, "strongest")
    assert found == goldens()[f"{rungs.strongest_rung().name}, user"]


@needs_root
@pytest.mark.proof
@pytest.mark.parametrize("user", [0, hostile.ANOTHER], ids=["root", "user"])
@pytest.mark.parametrize("rung", ["bubblewrap", "namespaces-landlock", "limits-only"])
def test_the_corpus_on_every_rung(rung, user):
    """Also where another rung would be chosen, and where nothing isolates."""
    assert corpus_as(user, rung) == goldens()[f"{rung}, {'user' if user else 'root'}"]


@pytest.mark.parametrize("kind", ISOLATED)
def test_an_isolating_rung_contains_every_case(kind):
    """In a box no attack passes, and nothing is left of any."""
    assert [case for case, found in goldens()[kind].items() if not contained(case, found)] == []


def test_every_case_is_known_on_every_rung():
    """No rung lacks a golden, none has one too many, and each case says in a line what it does."""
    assert {kind: sorted(found) for kind, found in goldens().items()} == dict.fromkeys(KINDS, CASES)
    assert not [case for case in CASES if not hostile.about(case).endswith(".")]


def test_the_table_of_the_documentation_is_that_of_the_goldens():
    """docs/isolation.md says of each case and rung what the goldens say: write it anew with `--table`."""
    assert hostile.table() in hostile.DOCUMENT.read_text("utf-8")


# --- what the residue check can see ---


def test_what_was_there_before_a_case_stays(reachable):
    """The labs of lesson 04 are built once for all tests: a case neither leaves them nor takes them away."""
    root = temporary.make()
    try:
        assert ended("imports_the_solution", reachable)["left"] == []
        assert root.exists()
    finally:
        temporary.remove(root)


def leave_process(stack):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    stack.append(lambda: (process.kill(), process.wait()))


def leave_file(stack):
    path = Path(tempfile.gettempdir()) / f"{residue.MARK}-here"
    path.touch()
    stack.append(path.unlink)


def leave_socket(stack):
    line = socket.socket(socket.AF_UNIX)
    line.bind(f"\0{residue.MARK}-here")
    stack.append(line.close)


@pytest.mark.parametrize(
    ("leave", "word"), [(leave_process, "process"), (leave_file, "file"), (leave_socket, "socket")]
)
def test_what_is_left_is_seen(leave, word, monkeypatch):
    """The check that nothing is left would say so if it were."""
    monkeypatch.setattr(residue, "_SECONDS", 0)
    known, undo = residue.here(), []
    leave(undo)
    try:
        assert residue.left(known) == [word]
    finally:
        undo[0]()
    assert residue.left(known) == []
