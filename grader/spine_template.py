"""The labs that a submission of lesson 04 is judged in: the kit's own lab, with the student's two modules in it.

    code/lesson/    the lesson's contract, its task and its Node tests
    code/bench/     the same lab in few files, with an empty inbox and a contract whose commands only look (`look`)
    code/tools/     Node and npm, where the system's own folders do not have them

Built once, then copied for each submission; the copies are committed, so that the tree is clean. Nothing of the
solution is in their history: whatever stands in a lab, the student's code can read.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from grader import temporary
from labkit import lab_folder
from labkit.node import UnfitNodeError, find_node
from labkit.workspace import kit_root

if TYPE_CHECKING:
    from grader.intake import Handin

UNTOUCHED = "assets/sample-class/untouched-starter"
TASK = "issue-002"
PACKAGE = "issue_garden"
LOOKING = [
    {"name": "first", "argv": ["../look", "first"], "min_tests": 0},
    {"name": "second", "argv": ["../look", "second", "{acceptance}"], "min_tests": 0},
]
QUICK_LIMITS = {"agent_seconds": 60, "command_seconds": 30, "output_bytes": 2048}
_SYSTEM_FOLDERS = ("/usr/", "/bin/")
_LOOK = """\
#!/bin/sh
# A round runs this as its agent or as a command: it leaves a trace of each start, then does what it is ordered to do.
number=1
while [ -e "../seen/$1-$number" ]; do number=$((number + 1)); done
: > "../seen/$1-$number"
if [ -f "../orders/$1" ]; then . "../orders/$1"; fi
"""


class SpineUnready(OSError):  # noqa: N818 - said of this machine
    """A tool of the lab is missing or fails here: nobody's code can be judged. The text says what to do next."""


def lay_down(handin: Handin, code: Path) -> None:
    """Lay the labs of one submission below `code`. Raises: SpineUnready, OSError."""
    for kind in ("lesson", "bench"):
        shutil.copytree(templates() / kind, code / kind, symlinks=True)
    for name, raw in handin.files.items():
        (code / "lesson" / name).write_bytes(raw)
    (code / "bench" / PACKAGE).symlink_to(code / "lesson" / PACKAGE)
    for kind in ("lesson", "bench"):
        _commit(code / kind, "the submission's spine")
        _make_small(code / kind)
    (code / "look").write_text(_LOOK, encoding="utf-8")
    (code / "tools").mkdir()
    for name, text in tools().items():
        (code / "tools" / name).write_text(text, encoding="utf-8")
    _open_to_all(code)


@functools.cache
def templates() -> Path:
    """Build both labs, once a run; they are removed at its end."""
    root = temporary.make()
    atexit.register(temporary.remove, root)
    try:
        lab_folder.new(root / "lesson", str(kit_root() / UNTOUCHED), ready=True)
    except lab_folder.LabFolderError as error:
        raise SpineUnready(str(error)) from error
    bench = shutil.copytree(root / "lesson", root / "bench", symlinks=True)
    contract = json.loads((bench / "loop.contract.json").read_bytes())
    text = json.dumps(contract | QUICK_LIMITS | {"verification": LOOKING}, indent=2)
    (bench / "loop.contract.json").write_text(text, encoding="utf-8")
    (bench / "tasks" / "inbox" / f"{TASK}.json").unlink()
    for folder in ("loop_tests", PACKAGE):  # nothing runs the first; of the second, one copy is enough
        shutil.rmtree(bench / folder)
    _commit(bench, "a contract that looks")
    return root


@functools.cache
def node_home() -> Path | None:
    """Give the folder that Node is installed in, when it is not one of the system's that every box shows."""
    try:
        found = find_node()
        if found is None:
            return None
        program = Path(_output([found, "-p", "process.execPath"], Path.cwd()).strip()).resolve()
    except UnfitNodeError as error:
        raise SpineUnready(str(error)) from error
    return None if str(program).startswith(_SYSTEM_FOLDERS) else program.parents[1]


def programs() -> tuple[Path, ...]:
    """List the folders that a box shows so that Node can run in it."""
    home = node_home()
    return (home,) if home else ()


def tools() -> dict[str, str]:
    """Give the scripts that start Node and npm from `node_home`; none when the system's own are used."""
    home = node_home()
    if home is None:
        return {}
    node = home / "bin" / "node"
    npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return {"node": f'#!/bin/sh\nexec "{node}" "$@"\n', "npm": f'#!/bin/sh\nexec "{node}" "{npm}" "$@"\n'}


def _commit(lab: Path, message: str) -> None:
    _git(lab, "add", "--all")
    _git(lab, "commit", "--quiet", "--allow-empty", "-m", message)


def _make_small(lab: Path) -> None:
    """Keep the repository in a few files: it is copied and looked at dozens of times."""
    _git(lab, "repack", "-adnq")
    shutil.rmtree(lab / ".git" / "logs")
    (lab / ".git" / "COMMIT_EDITMSG").unlink()


def _git(lab: Path, *arguments: str) -> None:
    _output(["git", *arguments], lab)


def _output(command: list[str], folder: Path) -> str:
    """Run a tool without the caller's own settings for it; give what it printed. Raises: SpineUnready."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "NODE_"))}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        command, cwd=folder, env=kept | quiet, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        words = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[0]
        raise SpineUnready(f"{' '.join(command[:2])}: {words}; run it by hand to see more")
    return done.stdout


def _open_to_all(code: Path) -> None:
    """Let a child that is another user read everything, whatever the grader's umask."""
    for root, folders, names in os.walk(code):
        for name in folders:
            (Path(root) / name).chmod(0o755)
        for name in names:
            (Path(root) / name).chmod(0o755 if Path(root) in (code, code / "tools") else 0o644)
