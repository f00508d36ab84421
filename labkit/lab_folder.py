"""Lays the learner's lab down, looks at it, and renews it: `statelab workspace new | reset | status`.

The lab is a Git repository of its own below `workspace/`, where the kit's repository ignores it. It is staged beside
its place and moved there when it is whole, so half a lab is never seen. An old one is set aside, never deleted.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from labkit import generate, workspace
from labkit.node import OLDEST_NODE, UnfitNodeError, find_node

QUEUES = ("inbox", "processing", "done", "closed")
_LEFT_BEHIND = {"__pycache__", ".loop", ".DS_Store"}
EXERCISE = ("state_store.py", "stateful_round.py")
CODES = ("starter", "solution")

# Local settings win over a person's own: with these, the lesson's commands print and do the same everywhere.
_LOCAL_SETTINGS = {
    "user.name": "Issue Garden",
    "user.email": "learner@localhost",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "core.hooksPath": ".git/hooks",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.excludesFile": "",
    "core.attributesFile": "",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "color.ui": "auto",
    "color.status": "auto",
    "color.diff": "auto",
    "status.branch": "false",
    "status.showUntrackedFiles": "normal",
}
_CAUSES = {
    errno.ENOSPC: ("disk_full", "the disk is full; free some space, then run this again"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up; free some space, then run this again"),
    errno.EROFS: ("not_writable", "the file system is read-only; choose a folder that can be written"),
    errno.EACCES: ("not_writable", "permission is denied; choose a folder that can be written"),
    errno.EPERM: ("not_writable", "permission is denied; choose a folder that can be written"),
}


class LabFolderError(Exception):
    """The lab cannot be laid down or looked at. `cause` is one word for programs, the text says what to do next."""

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True)
class LabStatus:
    """What stands in a lab folder, read from disk alone.

    `code` says whose bodies the spine has: starter, solution, edited, or none before the overlay is laid down;
    `chosen` what the lab was made for. `changed` are the lines of `git status --short`. `queues` holds task file names;
    `tasks` maps a task id to "status/phase", or to "unreadable".
    """

    path: str
    exists: bool
    code: str
    chosen: str
    head: str | None
    changed: list[str]
    queues: dict[str, list[str]]
    tasks: dict[str, str]


def default_folder() -> Path:
    """Return where the learner's lab lives."""
    return workspace.kit_root() / "workspace" / "issue-garden-lab"


def new(lab: Path, code: str, *, ready: bool = False) -> None:
    """Lay a fresh lab down at `lab`, as the lesson finds it: one commit, and lesson 3's result not committed.

    With `ready`, as it is before the lesson's third step: that result and the overlay committed, too.
    Raises: LabFolderError when something is there already, a tool is missing, or the disk refuses.
    """
    if os.path.lexists(lab):
        raise LabFolderError(
            "exists", f"{lab}: is there already; use 'statelab workspace reset' to begin anew"
        )
    with _staged(lab, code, ready=ready) as staged:
        staged.rename(lab)


def reset(lab: Path, code: str, *, ready: bool = False) -> Path | None:
    """Set the lab aside under its name and the time, lay a fresh one down, and return where the old one is kept.

    The new one is whole before the old one moves; if anything fails the old one stays. None when there was none.
    Raises: LabFolderError as `new` does, and while a runner, or an agent that it started, still works in it.
    """
    with _staged(lab, code, ready=ready) as staged:
        aside = None
        if os.path.lexists(lab):
            _refuse_while_running(lab)
            aside = workspace.set_aside(lab)
        staged.rename(lab)
    return aside


def lay_overlay(lab: Path, code: str) -> None:
    """Copy lesson 4's overlay into a lab, as `cp -R` does; the spine's bodies are those of `code`.

    `code` is starter, solution, or a folder with a submission's lessons. Raises: LabFolderError, WorkspaceError.
    """
    with _named_disk_errors(lab):
        _copy_over(_asset("lesson-04-state"), lab)
        source = workspace.lesson_source("04", code) / "issue_garden"
        for path in sorted(source.glob("*.py")):
            shutil.copyfile(path, lab / "issue_garden" / path.name)


def status(lab: Path) -> LabStatus:
    """Look at a lab and change nothing. Raises: LabFolderError when Git is missing or the lab has no repository."""
    if not lab.is_dir():
        return LabStatus(
            str(lab), exists=False, code="none", chosen="none", head=None, changed=[], queues={}, tasks={}
        )
    if not (lab / ".git").exists():
        raise LabFolderError(
            "repository_missing",
            f"{lab}: has no .git of its own; use 'statelab workspace reset' to begin anew",
        )
    return LabStatus(
        path=str(lab),
        exists=True,
        code=code_in(lab),
        chosen=made_for(lab),
        head=git(lab, "rev-parse", "--short", "HEAD").strip(),
        changed=git(lab, "status", "--short").splitlines(),
        queues={
            queue: sorted(path.name for path in (lab / "tasks" / queue).glob("*.json")) for queue in QUEUES
        },
        tasks={path.parent.name: _phase(path) for path in sorted(lab.glob(".loop/tasks/*/state.json"))},
    )


def require_tools() -> None:
    """Say which tool of the lab is missing. Raises: LabFolderError."""
    if shutil.which("git") is None:
        raise LabFolderError("git_missing", "git: not found; install Git, then run this again")
    try:
        node = find_node()
    except UnfitNodeError as error:
        raise LabFolderError("node_unfit", str(error)) from None
    if node is not None:
        return
    if shutil.which("node") is None:
        raise LabFolderError(
            "node_missing", f"node: not found; install Node {OLDEST_NODE} or later, or run make setup"
        )
    raise LabFolderError(
        "node_too_old", f"node: too old; install Node {OLDEST_NODE} or later, or run make setup"
    )


@contextmanager
def _staged(lab: Path, code: str, *, ready: bool) -> Iterator[Path]:
    """Give a whole lab in a folder beside its place; what is still there at the end is removed."""
    require_tools()
    with _named_disk_errors(lab):
        lab.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(mkdtemp(prefix=f".{lab.name}.", dir=lab.parent))
        try:
            staged = staging / lab.name
            _build(staged, code, ready=ready)
            yield staged
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _build(lab: Path, code: str, *, ready: bool) -> None:
    lab.mkdir()
    _copy_over(_asset("issue-garden-lab"), lab)
    # No template: hooks and settings that a machine gives to new repositories are not part of the lesson.
    git(lab, "init", "--quiet", "--template=", "--initial-branch=main")
    for name, value in (_LOCAL_SETTINGS | {"statelab.code": code}).items():
        git(lab, "config", name, value)
    _commit(lab, "the garden before its first task")
    _copy_over(_asset("lesson-03-result"), lab)
    (lab / "tasks" / "inbox" / "issue-001.json").unlink()
    if ready:
        _commit(lab, "fix: normalize search whitespace")
        lay_overlay(lab, code)
        _commit(lab, "feat: add recoverable loop state")


def _commit(lab: Path, message: str) -> None:
    git(lab, "add", "--all")
    git(lab, "commit", "--quiet", "-m", message)


def _copy_over(source: Path, target: Path) -> None:
    """Copy contents, not modes: a kit that was unpacked read-only still gives a lab that can be edited.

    The first error ends it, with its number; copytree would go on, and forget the numbers.
    """
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if _LEFT_BEHIND.intersection(inside.parts):
            continue
        if path.is_dir():
            (target / inside).mkdir(exist_ok=True)
        else:
            shutil.copyfile(path, target / inside)


def _asset(name: str) -> Path:
    return workspace.kit_root() / "assets" / name


def git(lab: Path, *arguments: str) -> str:
    """Run Git in the lab's own repository, with the lab's settings only. Raises: LabFolderError with Git's first words."""
    program = shutil.which("git")
    if program is None:
        raise LabFolderError("git_missing", "git: not found; install Git, then run this again")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    ceiling = {"GIT_CEILING_DIRECTORIES": str(lab.parent)}
    done = subprocess.run(
        [program, "-c", f"safe.directory={lab}", *arguments],
        cwd=lab, env=kept | own | ceiling, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        words = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[0]
        cause = "disk_full" if "No space left" in done.stderr else "git_failed"
        raise LabFolderError(cause, f"{lab}: git {arguments[0]}: {words}; run it there by hand to see more")
    return done.stdout


@contextmanager
def _named_disk_errors(lab: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cause, advice = _CAUSES.get(error.errno or 0, ("io_error", f"{error.strerror}; look at the folder"))
        raise LabFolderError(cause, f"{error.filename or lab}: {advice}") from error


def made_for(lab: Path) -> str:
    """Return the code that a lab was made for: starter, solution, or unknown. Raises: LabFolderError."""
    return git(lab, "config", "--default", "unknown", "statelab.code").strip()


def code_in(lab: Path) -> str:
    """Return whose bodies the spine has: starter, solution, edited, or none before the overlay is laid down."""
    spine = [lab / "issue_garden" / name for name in EXERCISE]
    if not all(path.is_file() for path in spine):
        return "none"
    for code in CODES:
        source = workspace.lesson_source("04", code) / "issue_garden"
        if all(path.read_bytes() == (source / path.name).read_bytes() for path in spine):
            return code
    return "edited"


def _phase(state: Path) -> str:
    try:
        value = json.loads(state.read_bytes())
        return f"{value['status']}/{value['phase']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "unreadable"


def _refuse_while_running(lab: Path) -> None:
    """Ask the kernel, as the runner does; where it cannot be asked, Windows refuses to move an open folder by itself."""
    lock = lab / ".loop" / "runner.lock"
    if os.name == "nt" or not lock.is_file():
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    with lock.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabFolderError(
                "runner_active",
                f"{lab}: a runner or its agent is still at work; wait for it, then run this again",
            ) from None


# --- The door ---


@click.group(name="workspace", epilog="Example: statelab workspace status")
def main() -> None:
    """Lay down, look at and begin anew what you work on; old work is set aside, never deleted."""


def _options(command: Any) -> Any:
    folder = click.option(
        "--folder", type=click.Path(path_type=Path), help="Where the lab is (default: workspace/)."
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    return folder(as_json(command))


def _making_options(command: Any) -> Any:
    code = click.option(
        "--code", type=click.Choice(CODES), help="Whose spine (default: LAB_TARGET, else starter)."
    )
    ready = click.option("--ready", is_flag=True, help="With the overlay laid down and all committed.")
    return code(ready(command))


@main.command("new", epilog="Example: statelab workspace new --code solution")
@_making_options
@_options
def new_command(*, code: str | None, ready: bool, folder: Path | None, as_json: bool) -> None:
    """Lay lesson 04's lab down: a Git repository of its own."""
    lab = (folder or default_folder()).absolute()
    with _told(as_json=as_json):
        new(lab, code or workspace.target(), ready=ready)
        _tell({"path": str(lab), "code": code or workspace.target()}, f"{lab}: laid down", as_json=as_json)


@main.command("reset", epilog="Example: statelab workspace reset --lesson 22")
@click.option(
    "--lesson",
    type=click.Choice([*workspace.LESSON_FOLDERS, workspace.HOMEWORK]),
    help="A lesson's starter, too, or the homework's file.",
)
@_making_options
@_options
def reset_command(
    *, lesson: str | None, code: str | None, ready: bool, folder: Path | None, as_json: bool
) -> None:
    """Begin anew: the lab of lesson 04, or with --lesson that lesson's starter or the homework (04: both)."""
    lab = (folder or default_folder()).absolute()
    kept: dict[str, str | None] = {}
    with _told(as_json=as_json):
        if lesson:
            kept["starter"] = str(generate.reset(lesson))
        if lesson in (None, "04"):
            aside = reset(lab, code or workspace.target(), ready=ready)
            kept["lab"] = str(aside) if aside else None
        lines = [
            f"{what}: fresh; your work is kept in {where or 'nothing, there was none'}"
            for what, where in kept.items()
        ]
        _tell({"kept": kept}, "\n".join(lines), as_json=as_json)


@main.command("status", epilog="Example: statelab workspace status --json")
@_options
def status_command(*, folder: Path | None, as_json: bool) -> None:
    """Say what is in the lab."""
    lab = (folder or default_folder()).absolute()
    with _told(as_json=as_json):
        found = status(lab)
        _tell(asdict(found), _described(found), as_json=as_json)


def _described(found: LabStatus) -> str:
    if not found.exists:
        return f"{found.path}: not there yet; lay it down with 'statelab workspace new'"
    rows = [
        f"{found.path}: code {found.code} (made for {found.chosen}), commit {found.head}",
        *(f"  tasks/{queue}: {', '.join(names) or '-'}" for queue, names in found.queues.items()),
        *(f"  state of {task_id}: {phase}" for task_id, phase in found.tasks.items()),
        f"  not committed: {len(found.changed)} paths",
        *(f"    {line}" for line in found.changed),
    ]
    return "\n".join(rows)


def _tell(value: dict[str, Any], text: str, *, as_json: bool) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=1) if as_json else text)


@contextmanager
def _told(*, as_json: bool) -> Iterator[None]:
    """Turn what went wrong into a sentence, or JSON with its cause, and exit code 1."""
    try:
        yield
    except (LabFolderError, workspace.WorkspaceError, generate.GenerateError) as error:
        if as_json:
            cause = getattr(error, "cause", "workspace")
            click.echo(json.dumps({"error": cause, "message": str(error)}, ensure_ascii=False, indent=1))
        else:
            click.echo(f"Error: {error}", err=True)
        sys.exit(1)
