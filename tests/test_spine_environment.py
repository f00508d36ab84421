"""What a machine can do to a runner: missing tools, odd settings, refusing disks. Named as such, and nothing lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.child_process import run_child
from tests.spine_lab import TASK, Lab, environment

pytest_plugins = ["tests.spine_fixtures"]


def path_with(folder: Path, *programs: str) -> dict[str, str]:
    """A PATH on which there are these programs and no other."""
    folder.mkdir()
    for program in programs:
        found = shutil.which(program, path=environment()["PATH"])
        assert found
        (folder / program).symlink_to(found)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("programs", "cause"),
    [(("node", "npm"), "git_missing"), (("git", "npm"), "node_missing"), (("git", "node"), "npm_missing")],
)
def test_a_missing_tool_is_named_before_anything_is_claimed(real_lab, programs, cause):
    """Git, Node, npm: each by its own cause, with what to install."""
    before = real_lab.snapshot()
    ran = real_lab.run(env=path_with(real_lab.root.parent / "bin", *programs))

    assert (ran.code, ran.said) == (3, ("blocked", "environment", cause))
    assert real_lab.snapshot() == before


def test_a_node_that_is_too_old_is_named(real_lab):
    """Version 18 answers like a Node, and is none that the lab can use."""
    folder = real_lab.root.parent / "bin"
    env = path_with(folder, "git", "npm")
    (folder / "node").write_text("#!/bin/sh\necho v18.20.4\n", "utf-8")
    (folder / "node").chmod(0o755)
    ran = real_lab.run(env=env)

    assert ran.said == ("blocked", "environment", "node_too_old")
    assert "v18.20.4" in ran.answer["message"]


def test_a_lab_without_a_repository_of_its_own_is_named(lab):
    """Also inside another repository: that one is never asked instead."""
    shutil.rmtree(lab.root / ".git")
    assert lab.run().said == ("blocked", "environment", "repository_missing")
    subprocess.run(["git", "init", "-q", str(lab.root.parent)], check=True)

    assert lab.run().said == ("blocked", "environment", "repository_missing")
    assert lab.places() == ["inbox"]


def test_a_repository_gone_after_the_claim_is_named(claimed):
    """A resume looks, too."""
    shutil.rmtree(claimed.root / ".git")

    assert claimed.run().said == ("blocked", "environment", "repository_missing")


def test_a_repository_without_a_commit_is_named(lab):
    """There is no HEAD to hold on to."""
    shutil.rmtree(lab.root / ".git")
    lab.git("init", "-q")

    assert lab.run().said == ("blocked", "environment", "no_commit")


def test_a_broken_repository_is_named(lab):
    """Git's own first words are in the sentence."""
    (lab.root / ".git/HEAD").write_text("nonsense", "utf-8")
    ran = lab.run()

    assert ran.said == ("blocked", "environment", "git_failed")
    assert "fatal" in ran.answer["message"]


def test_a_work_tree_set_elsewhere_does_not_mislead(lab):
    """`core.worktree` in the lab's repository would let Git look at another folder."""
    (lab.root.parent / "other").mkdir()
    lab.git("config", "core.worktree", str(lab.root.parent / "other"))

    assert lab.run().said == ("completed", "verified", None)


HOSTILE_SETTINGS = """
[core]
    hooksPath = {folder}
    autocrlf = true
    excludesFile = {folder}/excludes
    attributesFile = {folder}/attributes
    fsmonitor = {folder}/pre-commit
    pager = false
    quotePath = true
[commit]
    gpgSign = true
    template = {folder}/no-such-template
[init]
    templateDir = {folder}
    defaultBranch = other
[status]
    showUntrackedFiles = no
    branch = true
    short = true
[diff]
    external = false
    noprefix = true
    renames = copies
[color]
    ui = always
[safe]
    directory =
"""


def hostile_home(folder: Path) -> dict[str, str]:
    """A person's own Git settings, each of which breaks a lab that listens to it."""
    folder.mkdir()
    (folder / ".gitconfig").write_text(HOSTILE_SETTINGS.format(folder=folder), "utf-8")
    (folder / "excludes").write_text("*.mjs\n*.json\n", "utf-8")
    (folder / "attributes").write_text("* text eol=crlf\n", "utf-8")
    for hook in ("pre-commit", "commit-msg", "post-commit"):
        (folder / hook).write_text("#!/bin/sh\nexit 1\n", "utf-8")
        (folder / hook).chmod(0o755)
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}


def test_a_persons_own_git_settings_change_nothing(lab):
    """Hooks, signing, line ends, ignore lists, external diffs, GIT_* variables: one answer, and the untracked is seen."""
    env = hostile_home(lab.root.parent / "home") | {
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere/index",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": "/nowhere",
        "GIT_EXTERNAL_DIFF": "false",
    }
    (lab.root / "src/new.mjs").write_text("//\n", "utf-8")
    assert lab.run(env=env).said == ("blocked", "unsafe_start", "dirty_tree")
    (lab.root / "src/new.mjs").unlink()

    ran = lab.run(env=env)
    assert ran.said == ("completed", "verified", None)
    assert ran.answer["changes"] == {"files": ["src/search.mjs"], "lines": 2}


def test_the_lessons_own_git_commands_work_under_such_settings(lab):
    """The lab's local settings win: commit, status and diff do and print what the lesson shows."""
    env = environment() | hostile_home(lab.root.parent / "home")

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=lab.root, env=env, capture_output=True, text=True, check=True
        ).stdout

    (lab.root / "src/new.mjs").write_text("// new\n", "utf-8")
    assert git("status", "--short") == "?? src/new.mjs\n"
    git("add", ".")
    git("commit", "-m", "feat: new")
    assert git("status", "--short") == ""
    assert git("show", "HEAD:src/new.mjs") == "// new\n"


def test_a_lab_owned_by_somebody_else_is_still_asked(lab):
    """Git's ownership question has no place here: the lab is named, not discovered."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    for path in (lab.root, lab.root / ".git"):
        os.chown(path, 12_345, 12_345)

    assert lab.run().said == ("completed", "verified", None)


def as_nobody(lab: Lab) -> Lab:
    """Root ignores file modes: give the lab to an ordinary user, and run as that one."""
    for folder in (lab.root, *lab.root.rglob("*")):
        os.chown(folder, 65_534, 65_534, follow_symlinks=False)
    for folder in lab.root.parents:
        if folder != Path("/") and folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o755) if "pytest" in str(folder) else None
    return lab


def run_as_nobody(lab: Lab):
    """Run a round as user 65534 by the system's own Python, which everyone may read."""
    return subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "tools/run_once.py"],
        cwd=lab.root, env=environment() | {"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("folder", [".", ".loop/tasks/issue-002", "tasks/processing", "tasks/done"])
def test_a_folder_that_cannot_be_written_is_named(claimed, folder):
    """Read-only, wherever: the cause, the path, and the state as it was."""
    as_nobody(claimed)
    if folder == ".":
        shutil.rmtree(claimed.root / ".loop")
        claimed.move("processing", "inbox")
    (claimed.root / folder).chmod(0o555)
    done = run_as_nobody(claimed)
    answer = json.loads(done.stdout)

    assert (done.returncode, answer["reason"], answer["cause"]) == (3, "environment", "not_writable"), (
        done.stderr
    )
    assert "Traceback" not in done.stderr


def limited(lab: Lab, limit_bytes: int) -> subprocess.CompletedProcess[bytes]:
    """Run a round that may write no file larger than this: a real short write, then a real error."""
    return subprocess.run(
        [sys.executable, "tools/run_once.py"], cwd=lab.root, env=environment(), capture_output=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes)),
    )  # fmt: skip


@pytest.mark.parametrize("limit_bytes", [0, 10, 100, 300, 700])
def test_a_disk_that_takes_no_more_is_named(lab, limit_bytes):
    """At whichever file it happens: exit 3, and no state file is half."""
    done = limited(lab, limit_bytes)
    answer = json.loads(done.stdout)

    assert (done.returncode, answer["reason"], answer["cause"]) == (3, "environment", "disk_full")
    for path in (lab.root / ".loop").rglob("*.json"):
        json.loads(path.read_bytes())
    assert len(lab.places()) == 1


@pytest.mark.parametrize("queue", ["inbox", "processing", "done", "closed"])
def test_a_queue_folder_that_is_gone_is_named(lab, queue):
    """Git drops empty folders: its placeholder was removed, and the folder with it."""
    shutil.rmtree(lab.root / "tasks" / queue)
    ran = lab.run()

    assert (ran.code, ran.said) == (3, ("blocked", "environment", "folder_missing"))
    assert f"tasks/{queue}" in ran.answer["message"]


@pytest.mark.parametrize("place", [".loop", ".loop/claims", ".loop/tasks", ".loop/runner.lock"])
@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_inside_the_state_is_not_followed(lab, place, target):
    """Records never land outside the lab."""
    elsewhere = lab.root.parent / "elsewhere"
    elsewhere.mkdir()
    (lab.root / place).parent.mkdir(exist_ok=True)
    (lab.root / place).symlink_to(lab.root.parent / target)
    ran = lab.run()

    assert (ran.code, ran.said) == (3, ("blocked", "environment", "unsafe_path"))
    assert list(elsewhere.iterdir()) == []
    assert lab.places() == ["inbox"]


def test_an_unknown_disk_error_keeps_its_own_words(lab):
    """EIO in the middle of a claim: named, exit 3."""
    source = """
import runpy
layer.arm([{"op": "fsync", "match": "*facts*", "do": "EIO"}], folder)
sys.argv = ["run_once.py"]
runpy.run_path(str(folder / "tools/run_once.py"), run_name="__main__")
"""
    done = run_child(source, lab.root, environment=environment())
    answer = json.loads(done.stdout)

    assert (done.returncode, answer["cause"]) == (3, "io_error")
    assert "Input/output error" in answer["message"]
    assert not lab.path("facts").exists()


def test_it_runs_from_any_folder(lab):
    """The tool finds its lab by itself, not by where it was started."""
    done = subprocess.run(
        [sys.executable, str(lab.root / "tools/run_once.py")],
        cwd="/",
        env=environment(),
        capture_output=True,
        check=True,
    )

    assert b'"completed"' in done.stdout
    assert lab.places(TASK) == ["done"]


def test_byte_code_beside_the_tools_is_no_change(lab):
    """With nothing set that hides it, Python writes `__pycache__`: ignored, and no dirty tree."""
    lab.run()

    assert list(lab.root.rglob("__pycache__"))
    assert "pycache" not in lab.git("status", "--short")


def test_ctrl_c_ends_a_round_without_a_traceback(lab):
    """The agent's tree is ended, and the next run says how far it had come."""
    script = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(300)\n"
    agent = lab.root.parent / "agent.py"
    agent.write_text(script, "utf-8")
    done = subprocess.run(
        [sys.executable, "tools/run_once.py", "--", sys.executable, str(agent)],
        cwd=lab.root, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert lab.run().said[2] == "phase_agent_running"


@pytest.mark.parametrize("where", [">/dev/full", ">&-"], ids=["full", "closed"])
def test_an_answer_that_nobody_can_read_is_a_persons_matter(lab, where):
    """A scheduler must not take a lost answer for a rejection: exit 3, one line on stderr, the decision on disk."""
    command = f"{sys.executable} tools/run_once.py --simulate-interruption-after-claim {where}"
    done = subprocess.run(
        command, shell=True, cwd=lab.root, env=environment(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 3
    assert done.stderr.startswith("stdout: ")
    assert "Traceback" not in done.stderr
    assert lab.record("state")["phase"] == "claimed"
