"""One lab at work: commands as they are typed, what they answered, and what lies on disk afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit import workspace
from labkit.faults import file_layer
from labkit.node import find_node

TASK = "issue-002"
LAB = "issue-garden-lab"
NOTEBOOK = "04-state-spine"
QUEUES = ("inbox", "processing", "done", "closed")
PATIENCE_SECONDS = 30.0
"""How long one command may take before it is ended."""

_AGENTS = Path(__file__).with_name("agents")
_UNDER_LAYER = Path(file_layer.__file__).with_name("under_layer.py")


class UnfinishedError(NotImplementedError):
    """The learner's code, or that of a kit without the reference, says that a step is not written yet; the text names it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done. ``code`` is an exit code, negative for a signal; None for what is no program.

    ``out`` is what a program printed, ``answer`` the JSON object among it (empty: none), ``value`` what was found
    where no program was run.
    """

    text: str
    code: int | None = None
    out: str = ""
    answer: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    keep: tuple[str, ...] = ()

    @property
    def said(self) -> tuple[str | None, str | None, str | None]:
        """Decision, reason and cause of the answer; None for what it does not have."""
        return self.answer.get("decision"), self.answer.get("reason"), self.answer.get("cause")


class Garden:
    """A lab folder, and whatever stands beside it: agents' scripts, the world outside, records set aside."""

    def __init__(self, root: Path, steps: list[Step]) -> None:
        self.root, self.beside = root, root.parent
        self.loop = root / ".loop"
        self.steps = steps

    # --- Commands ---

    def run(self, *arguments: str) -> Step:
        """Type ``python tools/run_once.py`` and these arguments."""
        return self.type(shlex.join(["python", "tools/run_once.py", *arguments]))

    def interrupt(self) -> Step:
        """Claim, and end at the checkpoint."""
        return self.run("--simulate-interruption-after-claim")

    def type(self, line: str, *, keep: Iterable[str] = ()) -> Step:
        """Run a line as typed in the lab. ``keep`` names what makes a line of its output worth showing.

        Raises: UnfinishedError when the answer says that the exercise is not written yet.
        """
        return self._note(self._start(line, shlex.split(line), keep))

    def kill_at(self, rule: dict[str, Any], program: str = "tools/run_once.py") -> Step:
        """Run a round that a rule of the file layer kills (``labkit/faults/under_layer.py``)."""
        plan = {"root": str(self.root), "rules": [rule], "log": str(self.beside / "operations.json")}
        shown = program.removeprefix(f"{workspace.kit_root()}{os.sep}")
        step = self._start(
            f"python {shown}  ⚡ SIGKILL", ["python", str(_UNDER_LAYER), json.dumps(plan), program]
        )
        return self._note(step)

    def quietly(self, *words: str, told: str = "") -> Step:
        """Run a program of ours in the lab, tell it something, and do not note it.

        Raises: UnfinishedError when the learner's code in it is not written; RuntimeError with its last word.
        """
        step = self._start(words[-1], list(words), told=told)
        if step.code != 0:
            last = step.out.strip().splitlines()[-1:] or [f"exit code {step.code}"]
            if last[0].startswith("NotImplementedError: "):
                raise UnfinishedError(last[0].removeprefix("NotImplementedError: "))
            raise RuntimeError(last[0])
        return step

    def _note(self, step: Step) -> Step:
        self.steps.append(step)
        return step

    def _start(self, line: str, words: list[str], keep: Iterable[str] = (), told: str = "") -> Step:
        argv = [sys.executable if word == "python" else word for word in words]
        try:
            done = subprocess.run(
                argv, cwd=self.root, env=environment(), input=told.encode(), capture_output=True,
                timeout=PATIENCE_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{line}: no answer within {PATIENCE_SECONDS:.0f} s") from None
        out, complaint = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
        answer = _object_in(out)
        if answer.get("reason") == "not_implemented":
            raise UnfinishedError(answer.get("message", ""))
        return Step(line, done.returncode, out + complaint, answer, keep=tuple(keep))

    def agent(self, name: str, *arguments: str) -> tuple[str, ...]:
        """Return the arguments that make one of our scripts the agent; it stands beside the lab, outside any diff."""
        script = shutil.copyfile(_AGENTS / f"{name}.py", self.beside / f"{name}.py")
        return "--", "python", f"../{script.name}", *arguments

    def git(self, *arguments: str) -> str:
        """Ask Git without noting it. Raises: subprocess.CalledProcessError."""
        return subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment(), capture_output=True, text=True, check=True
        ).stdout

    def note(self, text: str, value: Any) -> None:
        """Note what was found."""
        self._note(Step(text, value=value))

    # --- What lies on disk ---

    def path(self, kind: str, task_id: str = TASK) -> Path:
        """Name a record: claim, result, facts, state, events, attempt or task."""
        if kind in ("claim", "result"):
            return self.loop / f"{kind}s" / f"{task_id}.json"
        if kind == "task":
            return self.root / "tasks" / self.places(task_id)[0] / f"{task_id}.json"
        names = {"events": "events.jsonl", "attempt": "attempts/round-001.json"}
        return self.loop / "tasks" / task_id / names.get(kind, f"{kind}.json")

    def record(self, kind: str, task_id: str = TASK) -> dict[str, Any]:
        """Read a record. Raises: OSError, ValueError."""
        return dict(json.loads(self.path(kind, task_id).read_bytes()))

    def types(self, task_id: str = TASK) -> list[str]:
        """Types of the events that are whole; none when there is no log."""
        path = self.path("events", task_id)
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [json.loads(line)["type"] for line in lines]

    def starts(self) -> int:
        """How many starts of an agent the log tells of."""
        return self.types().count("agent_started")

    def queue(self, name: str) -> list[str]:
        """File names of the tasks in one queue."""
        return sorted(path.name for path in (self.root / "tasks" / name).glob("*.json"))

    def places(self, task_id: str = TASK) -> list[str]:
        """Queues that hold the task's file."""
        return [name for name in QUEUES if f"{task_id}.json" in self.queue(name)]

    def snapshot(self) -> dict[str, str]:
        """Digest of every file but Git's own and the lock, whose content is for people."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.root.rglob("*")
            if path.is_file() and not {".git", "__pycache__"} & set(path.parts) and path.name != "runner.lock"
        }

    # --- Behind the runner's back ---

    def edit(self, path: Path, **fields: Any) -> None:
        """Change fields of a JSON file by hand."""
        path.write_text(
            json.dumps(json.loads(path.read_bytes()) | fields, ensure_ascii=False, indent=2), "utf-8"
        )

    def move(self, target: str, task_id: str = TASK) -> None:
        """Carry a task's file to another queue by hand."""
        path = self.path("task", task_id)
        path.rename(self.root / "tasks" / target / path.name)

    def put_task(self, task_id: str, *, file_name: str = "") -> None:
        """Hand in a task like issue-002 under another id."""
        source = workspace.kit_root() / "assets" / "lesson-04-state" / "tasks" / "inbox" / f"{TASK}.json"
        path = self.root / "tasks" / "inbox" / (file_name or f"{task_id}.json")
        path.write_text(json.dumps(json.loads(source.read_bytes()) | {"id": task_id}), "utf-8")

    def commit(self, message: str = "a change by hand") -> None:
        """Commit everything that Git does not ignore."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)


def environment() -> dict[str, str]:
    """Return the environment of a learner's terminal: Node found, and nothing in it that bends Git, Node or npm."""
    bends = ("GIT_", "NODE_", "NPM_", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(bends)}
    node = find_node()
    folders = [str(Path(node).parent)] if node else []
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    mine = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PYTHONUTF8": "1"}
    return kept | mine | {"PATH": path}


def _object_in(out: str) -> dict[str, Any]:
    try:
        found = json.loads(out)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
