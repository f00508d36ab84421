"""What Git says about the lab, asked so that nobody's own settings change the answer. It only looks."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from issue_garden.answers import blocked

# A file's type in Git's octal modes: 100644 and 100755 are files, 120000 is a symbolic link, 160000 a repository.
REGULAR = "100"
ABSENT = "000000"
GIT_SECONDS = 60

# What tools leave behind on any run. Anything else that is ignored only since the agent began was hidden by it; so was
# node_modules: npm looks there for programs first, and a `node` of the agent's own would pass every test.
_LEFT_BY_TOOLS = {".loop", "__pycache__", ".venv", ".ipynb_checkpoints"}

# Written here, a filter, a clock not to be trusted or modes not to be looked at hide an edit from Git.
_SETTINGS_FILES = ("config", "config.worktree", "info/attributes")


@dataclass(frozen=True)
class Change:
    """One path that differs from HEAD. ``digest`` tells two looks apart; None where there is no readable file.

    ``kind``: modified, added, deleted, untracked, mode_changed, type_changed, unmerged, or hidden, for a path that Git
    was told to take as unchanged. ``mode`` is Git's octal mode of what stands in the folder now, ``000000`` when nothing
    does.
    """

    path: str
    kind: str
    mode: str
    digest: str | None


@dataclass(frozen=True)
class GitLook:
    """The lab at one moment: HEAD, all that differs from it, and the paths that Git was told to ignore.

    ``settings`` are digests of the repository's own settings, which decide what Git can see.
    """

    head: str
    changes: frozenset[Change]
    ignored: frozenset[str]
    settings: tuple[str | None, ...]


@dataclass(frozen=True)
class Measure:
    """Size of the tracked changes: lines removed and added by path (None: binary), and the diff as text bytes."""

    lines: dict[str, tuple[int, int] | None]
    diff: bytes


def look(lab: Path) -> GitLook:
    """Ask for HEAD and every difference, tracked and untracked; renames count as a deletion and an addition.

    A path under ``assume-unchanged`` or ``skip-worktree`` is a difference by itself: nobody can tell what it holds.
    """
    seen = glance(lab)
    return replace(seen, changes=seen.changes | _hidden(lab))


def glance(lab: Path) -> GitLook:
    """Look with one Git process, and take what the index hides as it is."""
    output = _git(
        lab, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignored=matching",
        "--no-renames", "--ignore-submodules=none",
    )  # fmt: skip
    head, changes, ignored = "", [], []
    for record in filter(None, output.split(b"\0")):
        mark, _, rest = record.partition(b" ")
        if mark == b"#":
            key, _, value = rest.partition(b" ")
            head = value.decode() if key == b"branch.oid" else head
        elif mark == b"!":
            ignored.append(_text(rest))
        else:
            changes.append(_change(lab, mark, rest))
    if head in ("", "(initial)"):
        advice = "先提交一次，再运行 (make a first commit, then run again)"
        raise blocked(
            "environment",
            "no_commit",
            f"Git: 这个仓库还没有提交 (this repository has no commit yet); {advice}",
        )
    settings = tuple(_digest_of(lab / ".git" / name) for name in _SETTINGS_FILES)
    return GitLook(head, frozenset(changes), frozenset(ignored), settings)


def _change(lab: Path, mark: bytes, rest: bytes) -> Change:
    """Read one record of ``git status --porcelain=v2``: its modes are of HEAD, of the index, of the folder."""
    if mark == b"?":
        path = _text(rest)
        return Change(
            path, "untracked", _mode_of(lab / os.fsdecode(rest)), _digest_of(lab / os.fsdecode(rest))
        )
    if mark == b"u":
        *_, name = rest.split(b" ", 9)
        return Change(_text(name), "unmerged", ABSENT, None)
    _, _, in_head, _, now, _, _, name = rest.split(b" ", 7)
    kind = _kind(in_head.decode(), now.decode())
    return Change(_text(name), kind, now.decode(), _digest_of(lab / os.fsdecode(name)))


def _hidden(lab: Path) -> frozenset[Change]:
    """Return the paths whose state Git was told not to look at: lower case is assume-unchanged, S skip-worktree."""
    records = filter(None, _git(lab, "ls-files", "-v", "-z").split(b"\0"))
    marked = [record[2:] for record in records if record[:1].islower() or record[:1] == b"S"]
    return frozenset(
        Change(_text(name), "hidden", ABSENT, _digest_of(lab / os.fsdecode(name))) for name in marked
    )


def _kind(in_head: str, now: str) -> str:
    if now == ABSENT:
        return "deleted"
    if in_head == ABSENT:
        return "added"
    if in_head[:3] != now[:3]:
        return "type_changed"
    return "mode_changed" if in_head != now else "modified"


def _mode_of(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "120000"
    if stat.S_ISREG(mode):
        return "100755" if mode & 0o100 else "100644"
    return "160000"  # a repository of its own, which Git lists as one folder


def _digest_of(path: Path) -> str | None:
    try:
        if path.is_symlink():
            return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
        if not path.is_file():
            return None
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return None


def measure(lab: Path, head: str) -> Measure:
    """Count removed and added lines of every tracked change since ``head``, and take the diff; the queue is left out.

    Since the commit that the round began on: what an agent committed by itself still stands in the evidence.
    """
    output = _git(
        lab, "diff", "--numstat", "--patch", "-z", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
        head, "--", ".", ":(exclude)tasks",
    )  # fmt: skip
    # With -z the counts are ended by NUL each, and one more NUL stands before the patch.
    counts, _, diff = output.partition(b"\0\0")
    lines: dict[str, tuple[int, int] | None] = {}
    for record in filter(None, counts.split(b"\0")):
        added, removed, name = record.split(b"\t", 2)
        lines[_text(name)] = None if added == b"-" else (int(removed), int(added))
    return Measure(lines, diff)


def changed_since(before: GitLook, after: GitLook) -> list[Change]:
    """What the agent did: everything that differs between two looks, in either direction.

    A path that was a change before and is none now was changed as well (put back as HEAD has it).
    """
    now = {change.path for change in after.changes}
    undone = [Change(c.path, "modified", c.mode, None) for c in before.changes if c.path not in now]
    hidden = [Change(path, "untracked", ABSENT, None) for path in _newly_ignored(before, after)]
    return sorted([*(after.changes - before.changes), *undone, *hidden], key=lambda change: change.path)


def _newly_ignored(before: GitLook, after: GitLook) -> Iterator[str]:
    for path in after.ignored - before.ignored:
        if not _LEFT_BY_TOOLS.intersection(path.rstrip("/").split("/")):
            yield path


def outside_queue(look_now: GitLook) -> list[str]:
    """Changed paths that are not the runner's own moves of tasks; empty means clean enough to begin."""
    return sorted(change.path for change in look_now.changes if not change.path.startswith("tasks/"))


def _text(raw: bytes) -> str:
    # A name that is no UTF-8 must still be sayable in JSON.
    return raw.decode("utf-8", "backslashreplace")


def _git(lab: Path, *arguments: str) -> bytes:
    """Run one Git command on the lab's own repository, never on one further up.

    Naming the repository and the work tree means: no discovery, no ``core.worktree``, no ownership question.
    """
    git = shutil.which("git")
    if git is None:
        advice = "安装 Git，再运行 (install Git, then run again)"
        raise blocked(
            "environment", "git_missing", f"Git: 找不到 git 命令 (there is no git command); {advice}"
        )
    if not (lab / ".git").exists():
        advice = "在实验文件夹里建立仓库并提交 (make a repository in the lab folder and commit)"
        reason = "实验文件夹自己的 .git 不在 (the lab folder has no .git of its own)"
        raise blocked("environment", "repository_missing", f"{lab}: {reason}; {advice}")
    settings = [part for setting in _FIXED_SETTINGS for part in ("-c", setting)]
    command = [git, f"--git-dir={lab / '.git'}", f"--work-tree={lab}", *settings, *arguments]
    try:
        done = subprocess.run(
            command, cwd=lab, env=_git_environment(), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=GIT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise blocked(
            "environment", "git_failed", _git_message(f"超过 {GIT_SECONDS} 秒 (took over {GIT_SECONDS} s)")
        ) from None
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise blocked(
            "environment", "git_failed", _git_message(words[0] if words else f"exit {done.returncode}")
        )
    return done.stdout


def _git_message(reason: str) -> str:
    return f"Git: {reason}; 在实验文件夹里运行 git status 看看 (run git status in the lab folder to see)"


# Settings of the lab's own repository could start programs, or hide files, when one only wants to look.
_FIXED_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    f"core.excludesFile={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.bigFileThreshold=8m",  # larger than that is binary: a diff of it would only fill memory
    "diff.autoRefreshIndex=false",  # looking must not rewrite the index, and `git diff` asks no lock for that
)


def _git_environment() -> dict[str, str]:
    """The environment without any ``GIT_*`` of the caller, and without the settings of person and machine."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",  # a replaced tree would stand for HEAD's, edits included
        "GIT_OPTIONAL_LOCKS": "0",  # looking must not rewrite the index
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
