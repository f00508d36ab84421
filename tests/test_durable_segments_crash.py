"""Whatever changes a session's folder is killed, and made to fail, at every operation that touches the disk.

After each strike the next writer opens the session, finds all its events, and the change can be made again. Nothing
may depend on luck: where a strike falls is counted, not timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labkit.faults.round_sweep import MARK_CHANGES, Point, fresh_copy, points
from solution.durable_log import backup
from solution.durable_log.blobs import Blobs
from solution.durable_log.checkpoint import Checkpoints, Replayed
from solution.durable_log.session_folder import SessionFolder
from tests.child_process import KIT
from tests.durable_changes import CHANGES
from tests.durable_session import SESSION, Session, three_segments, verdict

# Each of these is two dozen copies, all proved; being killed is what they are for, and test runs that.
_COSTLY = ("backup", "restore")
FAILING = [pytest.param(do, marks=pytest.mark.proof) if do in _COSTLY else do for do in CHANGES]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the strikes fork: POSIX only")


class Striker:
    """A child that carries orders out, each in a fork of its own."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", str(KIT / "tests/durable_strikes.py"), str(KIT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def strike(self, root: Path, do: str, *rules: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps({"root": str(root), "do": do, "rules": rules}) + "\n")
        self._child.stdin.flush()
        return dict(json.loads(self._child.stdout.readline()))

    def end(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


@pytest.fixture(scope="module")
def striker() -> Iterator[Striker]:
    child = Striker()
    yield child
    child.end()


def prepare(place: Path, do: str) -> Path:
    """Make what the change needs: a session of 20 events in three segments, or nothing to begin with."""
    place.mkdir()
    if do == "begin":
        return place
    session = three_segments(place)
    if do in ("remove", "backup", "restore"):
        Checkpoints(session.folder).save(Replayed(state={"n": 20}, head=session.head))
        session.write(data=Blobs(session.folder).put(b"picture" * 100))
        session.segments.compress()
    if do == "restore":
        backup.back_up(session.folder, place / "copy")
    return place


def sweep(
    striker: Striker, template: Path, do: str, *ends: str
) -> Iterator[tuple[Point, dict[str, Any], Path]]:
    """Strike a fresh copy at every operation; give the place, how it ended, and the copy."""
    place = template.with_name("struck")
    marked = striker.strike(fresh_copy(template, place), do, MARK_CHANGES)
    assert marked["answer"] == "done"
    for point in points(marked["log"], ends):
        yield point, striker.strike(fresh_copy(template, place), do, point.rule), place


def check_going_on(root: Path, do: str, where: Point) -> None:
    """The next writer opens the session, it is whole, nothing temporary is left, and it goes on."""
    session = Session(root)
    assert verdict(session.folder)[0] == "sound", where
    assert session.head.sequence == {"begin": 0, "remove": 21, "backup": 21, "restore": 21}.get(do, 20), where
    assert not list(session.folder.path.glob(".*.tmp")), where
    session.write(2)
    session.rotate()
    session.write(1)
    assert session.segments.find("id-16") == (16 if session.head.sequence > 16 else None), where
    assert verdict(session.folder) == ("sound", session.segments.active.name, ""), where


def check_made(root: Path, do: str, where: Point) -> None:
    """What was asked for is there, whole: said of a change that was struck and then made again."""
    folder = SessionFolder(root / SESSION, SESSION)
    names = {path.name for path in folder.path.iterdir()}
    if do == "compress":
        assert not [
            name for name in names if name in ("00000000000000000001.jsonl", "00000000000000000008.jsonl")
        ]
    elif do == "remove":
        assert not [
            name for name in names if name.startswith(("00000000000000000001.", "00000000000000000008."))
        ]
    elif do == "checkpoint":
        assert [found.head.sequence for found in Checkpoints(folder).sound([])] == [20], where
    elif do in ("backup", "restore"):
        copy = root / "copy" if do == "backup" else root / "elsewhere" / SESSION
        assert verdict(SessionFolder(copy, SESSION))[0] == "sound", where


def make_again(striker: Striker, root: Path, do: str, where: Point) -> None:
    ended = striker.strike(root, do)
    already = (
        do in ("backup", "restore") and ended["answer"] == "PlaceError"
    )  # it had got its name: then it is whole
    assert ended["answer"] == "done" or already, (where, ended)
    check_made(root, do, where)


@pytest.mark.parametrize("do", CHANGES)
def test_killed_anywhere_the_session_goes_on(striker: Striker, tmp_path: Path, do: str) -> None:
    """SIGKILL before each operation and in the middle of each write: old state or new one, and the change can be repeated."""
    template = prepare(tmp_path / "template", do)
    struck = 0

    for point, ended, place in sweep(striker, template, do, "kill"):
        assert ended["signal"] == 9, point
        make_again(striker, place, do, point)
        check_going_on(place, do, point)
        struck += 1

    assert struck >= 5


@pytest.mark.parametrize("do", FAILING)
def test_failing_anywhere_says_so_and_loses_nothing(striker: Striker, tmp_path: Path, do: str) -> None:
    """ENOSPC at each operation, syncs and renames included: an error, no event lost, no half file, and later it works."""
    template = prepare(tmp_path / "template", do)

    for point, ended, place in sweep(striker, template, do, "ENOSPC"):
        assert ended["answer"] == "OSError", (point, ended)
        assert not list(place.rglob(".*.tmp")), point
        make_again(striker, place, do, point)
        check_going_on(place, do, point)


@pytest.mark.parametrize("do", CHANGES)
def test_a_disk_that_takes_a_byte_at_a_time_is_written_to_the_end(
    striker: Striker, tmp_path: Path, do: str
) -> None:
    """A short write is no error: the rest follows."""
    root = prepare(tmp_path / "root", do)

    ended = striker.strike(root, do, {"op": "write", "do": "short", "times": None})

    assert ended["answer"] == "done"
    check_going_on(root, do, Point(0, "write", "*", "short"))
