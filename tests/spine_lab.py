"""Labs for the tests of lesson 04: laid down by the kit's own command, run by the lesson's own commands."""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit import lab_folder
from labkit.node import find_node

TASK = "issue-002"
QUEUES = ("inbox", "processing", "done", "closed")
# Decides as the real three do, in a tenth of their time: the source has the form that the task asks for.
QUICK = [{"name": "acceptance", "argv": ["grep", "-q", "p{P}", "src/search.mjs"], "min_tests": 0}]


@dataclass(frozen=True)
class Ran:
    """How a tool ended: its exit code, the JSON object it printed (None: it printed none), and its stderr."""

    code: int
    answer: dict[str, Any]
    err: str

    @property
    def said(self) -> tuple[str, str, str | None]:
        """Decision, reason and cause."""
        return self.answer["decision"], self.answer["reason"], self.answer.get("cause")


class Lab:
    """A lab on disk, as a learner has it before the third step: lesson 3 and the overlay committed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def tool(self, name: str, *arguments: str, env: dict[str, str] | None = None) -> Ran:
        """Run `python tools/NAME ARGUMENTS` as a learner does."""
        done = subprocess.run(
            [sys.executable, f"tools/{name}", *arguments],
            cwd=self.root, env=environment() | (env or {}), capture_output=True, text=True, encoding="utf-8", timeout=120,
            check=False,
        )  # fmt: skip
        return Ran(done.returncode, json.loads(done.stdout), done.stderr)

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> Ran:
        """Run one round."""
        return self.tool("run_once.py", *arguments, env=env)

    def interrupt(self) -> None:
        """Claim, and end at the checkpoint."""
        assert self.run("--simulate-interruption-after-claim").code == 75

    def close(self, task_id: str = TASK, text: str = "not wanted any more") -> Ran:
        """Close a task."""
        return self.tool("close_task.py", task_id, "--reason", text)

    def git(self, *arguments: str) -> str:
        """Run Git with the lab's own settings."""
        env = environment() | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(
            ["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True
        ).stdout

    def commit(self) -> None:
        """Commit all there is."""
        self.git("add", "-A")
        self.git("commit", "-qm", "a change")

    def path(self, kind: str, task_id: str = TASK) -> Path:
        """Where a record stands: claim, result, facts, state, events or attempt."""
        loop = self.root / ".loop"
        places = {
            "claim": loop / "claims" / f"{task_id}.json",
            "result": loop / "results" / f"{task_id}.json",
        }
        names = {"events": "events.jsonl", "attempt": "attempts/round-001.json"}
        return places.get(kind) or loop / "tasks" / task_id / names.get(kind, f"{kind}.json")

    def record(self, kind: str, task_id: str = TASK) -> dict[str, Any]:
        """Read a record."""
        return dict(json.loads(self.path(kind, task_id).read_bytes()))

    def events(self) -> list[dict[str, Any]]:
        """Read the events that are whole."""
        return [json.loads(line) for line in self.path("events").read_bytes().split(b"\n")[:-1]]

    def types(self) -> list[str]:
        """Types of the events."""
        return [event["type"] for event in self.events()]

    def edit(self, file: Path | str, **fields: Any) -> None:
        """Change fields of a JSON file; None removes one."""
        path = self.root / file
        value = json.loads(path.read_bytes()) | fields
        path.write_text(json.dumps({k: v for k, v in value.items() if v is not None}), "utf-8")

    def put_task(self, task_id: str, **fields: Any) -> Path:
        """Put another task into the inbox: like issue-002, under its own id."""
        path = self.root / "tasks" / "inbox" / f"{task_id}.json"
        source = lab_folder.workspace.kit_root() / "assets/lesson-04-state/tasks/inbox/issue-002.json"
        path.write_text(json.dumps(json.loads(source.read_bytes()) | {"id": task_id} | fields), "utf-8")
        return path

    def places(self, task_id: str = TASK) -> list[str]:
        """Queues that hold the task's file."""
        return [q for q in QUEUES if (self.root / "tasks" / q / f"{task_id}.json").exists()]

    def move(self, source: str, target: str, task_id: str = TASK) -> None:
        """Move a task's file by hand."""
        name = f"{task_id}.json"
        (self.root / "tasks" / source / name).rename(self.root / "tasks" / target / name)

    def snapshot(self) -> dict[str, str]:
        """Digest of every file, but Git's own and the lock, whose content is information only."""
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not {".git", "__pycache__"} & set(path.parts) and path.name != "runner.lock"
        }


def environment() -> dict[str, str]:
    """The environment of a learner's terminal: Node found, byte code not hidden."""
    node = find_node()
    assert node, "Node >= 20 is needed; run make setup"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PATH": os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])}


@functools.cache
def template(*, quick: bool, code: str = "solution") -> Path:
    """A lab made once, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="spine-lab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lab_folder.new(folder / "lab", code, ready=True)
    if quick:
        lab = Lab(folder / "lab")
        lab.edit("loop.contract.json", verification=QUICK)
        lab.commit()
    Lab(folder / "lab").git("gc", "-q", "--prune=now")  # few files: it is copied hundreds of times
    return folder / "lab"


def agent_script(lab: Lab, source: str) -> tuple[str, ...]:
    """Arguments that make a piece of Python the agent; it stands outside the lab, so that no diff holds it."""
    script = lab.root.parent / "agent.py"
    script.write_text(source, "utf-8")
    return "--", sys.executable, str(script)
