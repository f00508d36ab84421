"""The crash lab's state spine: its stand-ins answer as the real tools do, and no crash state breaks what it promises."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.faults.crash.scenarios import spine
from tests import spine_code  # noqa: F401 - makes issue_garden importable
from tests.spine_lab import environment

# isort: split
from issue_garden.contract import load_contract
from issue_garden.git_view import GitLook, Measure, look, measure
from issue_garden.task import load_task
from issue_garden.verification import run_command

SOURCE = "src/search.mjs"
ACCEPTED = spine.tools().accepted
AS_IT_WAS = spine.tools().commit[SOURCE]

Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "nothing": lambda lab: None,
    "a task moved": lambda lab: (lab / f"tasks/inbox/{spine.TASK}.json").rename(lab / "tasks/done/x.json"),
    "the agent's work": lambda lab: (lab / SOURCE).write_bytes(ACCEPTED),
    "half a source": lambda lab: (lab / SOURCE).write_bytes(ACCEPTED[:300]),
    "an empty source": lambda lab: (lab / SOURCE).write_bytes(b""),
    "no source": lambda lab: (lab / SOURCE).unlink(),
    "a word behind it": lambda lab: (lab / SOURCE).write_bytes(AS_IT_WAS + b"// looked at it\n"),
    "a new file": lambda lab: (lab / "src/new.mjs").write_bytes(b"export {};\n"),
    "a runner's memory": lambda lab: (
        (lab / ".loop/claims").mkdir(parents=True) or (lab / ".loop/lock").touch()
    ),
}


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    """The scenario's lab with a real repository."""
    spine.prepare(tmp_path)
    (tmp_path / ".git" / "config").unlink()
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    for command in (["init", "-q", "--template="], ["add", "-A"], [*names, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=tmp_path, env=environment() | settings, check=True)
    return tmp_path


def seen(lab: Path) -> tuple[GitLook, Measure]:
    """What Git says, less what no two repositories share."""
    now = look(lab)
    size = measure(lab, now.head)
    body = b"\n".join(
        line for line in size.diff.split(b"\n") if not line.startswith((b"index", b"@@", b"deleted"))
    )
    return replace(now, head=""), Measure(size.lines, body.replace(b"/dev/null", b"b/" + SOURCE.encode()))


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_the_stand_in_for_git_says_what_git_says(garden: Path, change: Change) -> None:
    """Every difference, what is ignored, counted lines and the diff itself."""
    change(garden)
    really = seen(garden)

    with spine.tools().border():
        assert seen(garden) == really


@pytest.mark.parametrize("source", [AS_IT_WAS, ACCEPTED, ACCEPTED[:300], AS_IT_WAS + b"// looked at it\n"])
def test_the_stand_in_for_node_judges_as_node_does(
    garden: Path, source: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code, number of tests and verdict of the lesson's own acceptance test."""
    monkeypatch.setenv("PATH", environment()["PATH"])
    (garden / SOURCE).write_bytes(source)
    contract, task = load_contract(garden), load_task(garden, "inbox", f"{spine.TASK}.json")

    def judged() -> tuple[int, bool]:
        result = run_command(garden, contract.verification[0], contract, task)
        return result.exit_code, result.passed

    really = judged()
    with spine.tools().border():
        assert judged() == really == (0 if source == ACCEPTED else 1, source == ACCEPTED)


def test_what_nothing_stands_in_for_is_loud(tmp_path: Path) -> None:
    """A command that the runner did not use when the stand-ins were written is an error, never an empty answer."""
    with spine.tools().border(), pytest.raises(LookupError, match="push"):
        subprocess.run(["git", "push"], cwd=tmp_path, check=False)
