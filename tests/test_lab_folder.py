"""`statelab workspace`: the learner's lab is laid down whole, looked at, and begun anew without losing anything."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from labkit import generate, lab_folder, workspace
from labkit.lab_folder import LabFolderError, main
from tests.spine_lab import Lab


def run(*arguments: object) -> tuple[int, str]:
    """Run `statelab workspace ARGUMENTS`; return exit code and what it printed."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert not done.exception or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a lab shall be, in a folder that is not there yet."""
    return tmp_path / "workspace" / "issue-garden-lab"


def test_a_new_lab_stands_where_the_lesson_begins(place: Path) -> None:
    """One commit of the base; lesson 3's result laid over it and not committed; a repository of its own."""
    lab_folder.new(place, "starter")
    lab = Lab(place)

    assert lab.git("rev-list", "--count", "HEAD").strip() == "1"
    assert lab.git("status", "--short").splitlines() == [
        " M src/search.mjs",
        " D tasks/inbox/issue-001.json",
        "?? tasks/done/issue-001.json",
    ]
    assert lab.git("rev-parse", "--show-toplevel").strip() == str(place)
    assert not (place / "issue_garden/state_store.py").exists()
    assert os.listdir(place.parent) == [place.name]  # noqa: PTH208


@pytest.mark.parametrize("code", ["starter", "solution"])
def test_a_ready_lab_has_the_chosen_code_committed(place: Path, code: str) -> None:
    """As after the lesson's second step; the status says whose bodies stand there."""
    lab_folder.new(place, code, ready=True)
    found = lab_folder.status(place)

    assert (found.code, found.chosen, found.changed) == (code, code, [])
    assert found.queues == {
        "inbox": ["issue-002.json"],
        "processing": [],
        "done": ["issue-001.json"],
        "closed": [],
    }
    spine = place / "issue_garden/state_store.py"
    assert (
        spine.read_bytes()
        == (workspace.kit_root() / code / "lesson_04/issue_garden/state_store.py").read_bytes()
    )


def test_a_submission_can_be_laid_down(place: Path, tmp_path: Path) -> None:
    """A folder with a lesson_04 of its own: its bodies, over the kit's tools and tests."""
    submitted = tmp_path / "submission"
    shutil.copytree(workspace.kit_root() / "solution/lesson_04", submitted / "lesson_04")
    (submitted / "lesson_04/issue_garden/state_store.py").write_text("# mine\n", "utf-8")
    lab_folder.new(place, str(submitted), ready=True)

    assert (place / "issue_garden/state_store.py").read_text("utf-8") == "# mine\n"
    assert lab_folder.status(place).code == "edited"


def test_a_lab_never_replaces_what_is_there(place: Path) -> None:
    """A folder, a file, a dangling link: refused, and pointed to `reset`."""
    place.parent.mkdir()
    for make in (place.mkdir, place.touch, lambda: place.symlink_to("nowhere")):
        make()
        with pytest.raises(LabFolderError, match="workspace reset") as refused:
            lab_folder.new(place, "starter")
        assert refused.value.cause == "exists"
        place.rmdir() if place.is_dir() else place.unlink()


def test_a_reset_keeps_the_old_lab_whole(place: Path) -> None:
    """Set aside under its name and the time, state and repository and all; twice in one second, two names."""
    lab_folder.new(place, "solution", ready=True)
    Lab(place).run("--simulate-interruption-after-claim")
    before = Lab(place).snapshot()

    first = lab_folder.reset(place, "solution")
    second = lab_folder.reset(place, "starter")

    assert first is not None
    assert second is not None
    assert Lab(first).snapshot() == before
    assert Lab(first).run().said == ("completed", "verified", None)
    assert first.name.startswith("issue-garden-lab.aside-")
    assert {path.name for path in place.parent.iterdir()} == {place.name, first.name, second.name}


def test_a_reset_without_a_lab_makes_one(place: Path) -> None:
    """There was nothing to keep, and it says so."""
    assert lab_folder.reset(place, "starter") is None
    assert lab_folder.status(place).exists


def test_a_reset_waits_for_a_runner(place: Path) -> None:
    """A lab in which one works is not moved away under it."""
    lab_folder.new(place, "solution", ready=True)
    (place / ".loop").mkdir()
    with (place / ".loop/runner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(LabFolderError) as refused:
            lab_folder.reset(place, "solution")

    assert refused.value.cause == "runner_active"
    assert {path.name for path in place.parent.iterdir()} == {place.name}


@pytest.mark.parametrize(
    ("number", "cause"),
    [(errno.ENOSPC, "disk_full"), (errno.EROFS, "not_writable"), (errno.EACCES, "not_writable")],
)
@pytest.mark.parametrize("nth", [1, 5, 20])
def test_a_disk_that_refuses_is_named_and_leaves_no_half_lab(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int, cause: str, nth: int
) -> None:
    """At whichever file: the error, the old lab untouched, nothing staged left behind."""
    lab_folder.new(place, "starter")
    before, calls, real = Lab(place).snapshot(), [], shutil.copyfile

    def failing(source: Path, target: Path, **options: bool) -> object:
        calls.append(target)
        if len(calls) == nth:
            raise OSError(number, os.strerror(number), str(target))
        return real(source, target, **options)

    monkeypatch.setattr(shutil, "copyfile", failing)
    with pytest.raises(LabFolderError) as refused:
        lab_folder.reset(place, "starter")

    assert refused.value.cause == cause
    assert {path.name for path in place.parent.iterdir()} == {place.name}
    assert Lab(place).snapshot() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """As an ordinary user in somebody else's folder."""
    place = Path("/proc/issue-garden-lab")
    with pytest.raises(LabFolderError) as refused:
        lab_folder.new(place, "starter")

    assert refused.value.cause in ("not_writable", "io_error")
    assert str(place.parent) in str(refused.value)


@pytest.mark.parametrize(
    ("programs", "cause"), [((), "git_missing"), (("git",), "node_missing"), (("git", "old"), "node_too_old")]
)
def test_a_missing_tool_is_named(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], cause: str
) -> None:
    """No Git, no Node, a Node too old: before anything is made."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if "git" in programs:
        (folder / "git").symlink_to(str(shutil.which("git")))
    if "old" in programs:
        (folder / "node").write_text("#!/bin/sh\necho v18.0.0\n", "utf-8")
        (folder / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("LAB_NODE", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))  # no Node beside this Python either
    with pytest.raises(LabFolderError) as refused:
        lab_folder.new(place, "starter")

    assert refused.value.cause == cause
    assert not place.parent.exists()


def test_a_wished_node_that_does_not_serve_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`LAB_NODE` is a wish: refused, never passed over."""
    monkeypatch.setenv("LAB_NODE", "/no/such/node")
    with pytest.raises(LabFolderError, match="LAB_NODE") as refused:
        lab_folder.new(place, "starter")

    assert refused.value.cause == "node_unfit"


def test_a_status_reads_what_is_on_disk_and_changes_nothing(place: Path) -> None:
    """Queue, phases, changes; a state that cannot be read is said to be so."""
    lab_folder.new(place, "solution", ready=True)
    lab = Lab(place)
    lab.run("--simulate-interruption-after-claim")
    (place / ".loop/tasks/other").mkdir()
    (place / ".loop/tasks/other/state.json").write_bytes(b"\0" * 10)
    before = lab.snapshot()
    found = lab_folder.status(place)

    assert found.tasks == {"issue-002": "active/claimed", "other": "unreadable"}
    assert found.changed == [" D tasks/inbox/issue-002.json", "?? tasks/processing/issue-002.json"]
    assert lab.snapshot() == before


def test_a_lab_without_its_repository_is_named(place: Path) -> None:
    """Also where the kit's own repository lies around it."""
    lab_folder.new(place, "starter")
    shutil.rmtree(place / ".git")
    subprocess.run(["git", "init", "-q", str(place.parent)], check=True)

    assert run("status", "--folder", place, "--json")[0] == 1
    with pytest.raises(LabFolderError) as refused:
        lab_folder.status(place)
    assert refused.value.cause == "repository_missing"


def test_the_command_line_tells_a_program_what_it_did(place: Path) -> None:
    """`--json` everywhere: success and failure, each with what a program needs."""
    code, output = run("new", "--folder", place, "--code", "solution", "--json")
    assert (code, json.loads(output)) == (0, {"path": str(place), "code": "solution"})
    code, output = run("new", "--folder", place, "--json")
    assert (code, json.loads(output)["error"]) == (1, "exists")
    code, output = run("status", "--folder", place, "--json")
    assert (code, json.loads(output)["chosen"]) == (0, "solution")
    code, output = run("reset", "--folder", place, "--ready", "--json")
    kept = Path(json.loads(output)["kept"]["lab"])
    assert (code, kept.is_dir(), json.loads(run("status", "--folder", place, "--json")[1])["code"]) == (
        0,
        True,
        "starter",
    )


def test_the_command_line_tells_a_person_what_to_do(place: Path) -> None:
    """A lab that is not there, one that is there already, and what is in it."""
    assert "statelab workspace new" in run("status", "--folder", place)[1]
    run("new", "--folder", place)
    code, output = run("new", "--folder", place)
    assert code == 1
    assert "statelab workspace reset" in output
    assert "issue-001.json" in run("status", "--folder", place)[1]


def test_a_lessons_starter_is_begun_anew_by_the_same_command(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--lesson 22` renews that starter only; `--lesson 04` its starter and the lab."""
    renewed = []
    monkeypatch.setattr(generate, "reset", lambda lesson: renewed.append(lesson) or Path(f"aside-{lesson}"))
    assert json.loads(run("reset", "--lesson", "22", "--folder", place, "--json")[1]) == {
        "kept": {"starter": "aside-22"}
    }
    assert not place.exists()

    output = run("reset", "--lesson", "04", "--folder", place, "--json")[1]
    assert json.loads(output) == {"kept": {"starter": "aside-04", "lab": None}}
    assert renewed == ["22", "04"]
    assert place.is_dir()


def test_the_overlay_is_the_one_that_cp_copies(place: Path) -> None:
    """The button and the lesson's `cp -R` leave the same bytes."""
    lab_folder.new(place, "solution")
    by_hand = place.with_name("by-hand")
    shutil.copytree(place, by_hand, symlinks=True)
    lab_folder.lay_overlay(place, "solution")
    subprocess.run(["cp", "-R", f"{workspace.kit_root()}/assets/lesson-04-state/.", str(by_hand)], check=True)

    assert Lab(place).snapshot() == Lab(by_hand).snapshot()
