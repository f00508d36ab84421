"""One function per click on lesson 04's lab: which command really runs there, and what a hand changes behind its back.

Nothing is shown here and nothing is judged. What came of an action is for the disk to say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from labkit import lab_folder, workspace
from labkit.faults.round_sweep import MARK_CHANGES
from labkit.node import UnfitNodeError, find_node
from labkit.owned_child import Ended, OwnedChild, Spoken

_UNDER_LAYER = Path(__file__).with_name("faults") / "under_layer.py"
_STATELAB = (sys.executable, "-c", "from labkit.cli import main; main()")


@dataclass(frozen=True, slots=True)
class Answer:
    """What an action on the lab came to.

    ``exit_code`` is None when a signal ended the command (``signal``), or none was run. ``json`` is the one object that was
    printed, else ``{}``; ``lines`` are the last lines printed. ``struck`` is the operation at which a crash came, as in the
    log of ``labkit/faults/file_layer.py``. ``paths`` are what a change by hand touched. ``refused`` says why nothing was
    done at all; empty when something was.
    """

    exit_code: int | None = None
    signal: int | None = None
    json: dict[str, Any] = field(default_factory=dict)
    lines: tuple[Spoken, ...] = ()
    dropped_lines: int = 0
    struck: dict[str, Any] | None = None
    paths: tuple[str, ...] = ()
    refused: str = ""

    @property
    def decision(self) -> str | None:
        """The decision, None when nothing was decided."""
        return self.json.get("decision")

    @property
    def reason(self) -> str | None:
        """The decision's reason."""
        return self.json.get("reason")

    @property
    def cause(self) -> str | None:
        """The cause of a decision that needs a second look."""
        return self.json.get("cause")

    @property
    def message(self) -> str:
        """What the answer says to a person."""
        return str(self.json.get("message", ""))

    @property
    def said(self) -> tuple[str | None, str | None, str | None]:
        """Decision, reason and cause."""
        return self.decision, self.reason, self.cause


@dataclass(frozen=True, slots=True)
class Command:
    """A command: how a person would type it, what really runs, where, and where a layer underneath leaves its log."""

    shown: str
    argv: tuple[str, ...]
    folder: Path
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """Whose code a lab runs: ``holds`` solution, starter, edited, none (no overlay yet) or no-repository (no .git of its own).

    ``made_for`` is starter, solution or unknown; ``problem`` says what could not be told.
    """

    holds: str
    made_for: str
    problem: str = ""


def code_of(lab: Path) -> Code | None:
    """Look whose code stands in a lab; None where there is no lab."""
    if not lab.is_dir():
        return None
    if not (lab / ".git").exists():
        return Code("no-repository", "unknown")
    try:
        return Code(lab_folder.code_in(lab), lab_folder.made_for(lab))
    except (lab_folder.LabFolderError, workspace.WorkspaceError, OSError) as error:
        return Code("edited", "unknown", str(error))


def code_to_lay(lab: Path, wanted: str | None = None) -> str:
    """Return what a fresh lab is made from: what is wanted, else what the old one was made from, else the learner's choice.

    Starter or solution; any other code is laid down by the grader only.
    """
    code = code_of(lab)
    candidates = (wanted, code and code.made_for, workspace.target(), lab_folder.CODES[0])
    return next(one for one in candidates if one in lab_folder.CODES)


def lay_overlay(lab: Path, code: str) -> None:
    """Copy lesson 4's files into a lab, as the lesson's `cp -R` does. Raises: LabFolderError, WorkspaceError."""
    lab_folder.lay_overlay(lab, code)


# --- Commands ---


def round_command(lab: Path, *, interrupt: bool = False) -> Command:
    """Return the lesson's command: one round, or with ``interrupt`` its claim only."""
    words = ("tools/run_once.py", *(("--simulate-interruption-after-claim",) if interrupt else ()))
    return Command(" ".join(("python", *words)), (sys.executable, *words), lab)


@contextmanager
def crashing_command(lab: Path, number: int, *, halfway: bool = False) -> Iterator[Command]:
    """Give a round that is killed at its ``number``th operation that changes the disk, counted from 1.

    Before it, or ``halfway``, when it is a write. The log of the layer is removed at the end of the block.
    """
    rule = {"op": "change", "nth": number, "do": "half,kill" if halfway else "none,kill"}
    with _under_layer(lab, rule, f"python tools/run_once.py  # SIGKILL @ {number}") as command:
        yield command


@contextmanager
def rehearsal(lab: Path) -> Iterator[Command]:
    """Give a round in a copy of the lab that marks in its log what changes the disk. The copy goes with the block."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-", ignore_cleanup_errors=True) as folder:
        copy = shutil.copytree(lab, Path(folder) / lab.name, symlinks=True)
        with _under_layer(copy, MARK_CHANGES, "python tools/run_once.py") as command:
            yield command


@contextmanager
def _under_layer(lab: Path, rule: dict[str, Any], shown: str) -> Iterator[Command]:
    with tempfile.TemporaryDirectory(prefix="file-layer-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log.json"
        plan = json.dumps({"root": str(lab), "rules": [rule], "log": str(log)})
        yield Command(shown, (sys.executable, str(_UNDER_LAYER), plan, "tools/run_once.py"), lab, log)


def new_command(lab: Path, code: str) -> Command:
    """Return the kit's command that lays a lab down, ready for the lesson's third step."""
    return _workspace_command("new", lab, code)


def reset_command(lab: Path, code: str) -> Command:
    """Return the kit's command that sets a lab aside under its time and lays a fresh one down."""
    return _workspace_command("reset", lab, code)


def _workspace_command(verb: str, lab: Path, code: str) -> Command:
    words = ("workspace", verb, "--code", code, "--ready", "--json")
    folder = ("--folder", str(lab))
    return Command(" ".join(("statelab", *words)), (*_STATELAB, *words, *folder), workspace.kit_root())


def begin(command: Command, heard: Callable[[OwnedChild], object]) -> OwnedChild:
    """Start a command; ``heard`` is told whenever it has printed something. Raises: OSError when it cannot be started."""
    child = OwnedChild(command.shown, command.argv, command.folder, environment(), lambda: heard(child))
    return child


def answer_of(ended: Ended, command: Command) -> Answer:
    """Read what a command came to."""
    return Answer(
        exit_code=ended.exit_code,
        signal=ended.signal,
        json=_object(ended.out),
        lines=ended.lines,
        dropped_lines=ended.dropped_lines,
        struck=next((entry for entry in changes(command) if entry["did"].endswith("kill")), None),
    )


def changes(command: Command) -> list[dict[str, Any]]:
    """Return the entries of a layer's log that a rule marked; none where there is no layer, or it left no log."""
    try:
        entries = json.loads(command.log.read_bytes()) if command.log else []
    except (OSError, ValueError):
        return []
    return [entry for entry in entries if entry["did"] != "full"]


def _object(out: bytes) -> dict[str, Any]:
    """Return the one JSON object that was printed. Something else, or more than one, is no answer."""
    try:
        value = json.loads(out)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@cache
def environment() -> dict[str, str]:
    """Return what a learner's terminal has, with the kit's Node in front. A wish for an unfit Node is left to the lab to name."""
    try:
        node = find_node()
    except UnfitNodeError:
        node = None
    if node is None:
        return dict(os.environ)
    return os.environ | {"PATH": os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])}


# --- A hand behind the runner's back ---


@dataclass(frozen=True, slots=True)
class Tampering:
    """One change by hand: its kind, the paths that it touched (below the lab, or HEAD), and what it takes to undo it.

    ``before`` and ``after`` hold the bytes of each of these paths, None for no file; ``heads`` the commits, when HEAD moved.
    """

    kind: str
    paths: tuple[str, ...]
    before: dict[Path, bytes | None]
    after: dict[Path, bytes | None]
    heads: tuple[str, ...] = ()


def tamper(lab: Path, kind: str) -> Tampering:
    """Change one thing that a checkpoint rests on.

    Raises: LookupError for a kind that is not in TAMPERINGS; ValueError when the lab has nothing of that kind to change;
    OSError from the disk; LabFolderError from Git.
    """
    if kind not in TAMPERINGS:
        raise LookupError(f"tamper: no kind {kind!r}; choose one of {', '.join(TAMPERINGS)}")
    return TAMPERINGS[kind](Hand(lab, kind))


def put_back(lab: Path, done: Tampering) -> None:
    """Undo a tampering, byte for byte.

    Raises: ValueError when what it changed has changed again since; OSError from the disk; LabFolderError from Git.
    """
    moved_on = [path.name for path, content in done.after.items() if _content(path) != content]
    moved_on += ["HEAD"] if done.heads and _head_of(lab) != done.heads[-1] else []
    if moved_on:
        raise ValueError(f"{moved_on[0]}: has changed since; reset the lab instead")
    if done.heads:
        lab_folder.git(lab, "reset", "--soft", "--quiet", done.heads[0])
    for path, content in done.before.items():
        _put(path, content)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _put(path: Path, content: bytes | None) -> None:
    """Write a file in place, as an editor does, or remove it (None)."""
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(content)


def _head_of(lab: Path) -> str:
    return lab_folder.git(lab, "rev-parse", "HEAD").strip()


class Hand:
    """Somebody with an editor: changes files of the task at hand, and remembers what stood there."""

    def __init__(self, lab: Path, kind: str) -> None:
        self.lab, self.kind = lab, kind
        self._before: dict[Path, bytes | None] = {}

    @property
    def task_id(self) -> str:
        """The task that was begun, else the one last remembered, else the first that waits."""
        begun = sorted((self.lab / "tasks" / "processing").glob("*.json"))
        known = sorted(self.lab.glob(".loop/tasks/*/"), key=lambda path: path.stat().st_mtime_ns)
        waiting = sorted((self.lab / "tasks" / "inbox").glob("*.json"))
        found = [*(path.stem for path in begun[:1]), *(path.name for path in known[-1:])]
        found += [path.stem for path in waiting[:1]]
        if not found:
            raise ValueError(f"{self.kind}: there is no task in this lab; reset it")
        return found[0]

    def task_file(self) -> Path:
        """Find the file of the task at hand in whatever queue it is."""
        return self.existing(*(f"tasks/{queue}/{self.task_id}.json" for queue in lab_folder.QUEUES))

    def record(self, name: str) -> Path:
        """Find a record of the task at hand: claim, facts, state or events."""
        places = {"claim": f"claims/{self.task_id}.json", "events": f"tasks/{self.task_id}/events.jsonl"}
        return self.existing(f".loop/{places.get(name) or f'tasks/{self.task_id}/{name}.json'}")

    def existing(self, *names: str) -> Path:
        """Return the first of some paths below the lab that is a file. Raises: ValueError when none is."""
        for name in names:
            if (self.lab / name).is_file():
                return self.lab / name
        raise ValueError(f"{self.kind}: there is no {names[0]}; interrupt a round first")

    def object_in(self, path: Path) -> dict[str, Any]:
        """Return what a JSON file holds. Raises: ValueError when that is no object."""
        value = _object(path.read_bytes())
        if not value:
            raise ValueError(f"{self.kind}: {path.name} holds no JSON object; put it back, or reset the lab")
        return value

    def put(self, path: Path, content: bytes | None) -> None:
        """Write or remove a file, and remember what stood there."""
        self._before.setdefault(path, _content(path))
        _put(path, content)

    def set(self, path: Path, **fields: Any) -> Tampering:
        """Change fields of a JSON file and keep the rest as it is."""
        value = self.object_in(path) | fields
        self.put(path, json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n")
        return self.done()

    def move(self, source: Path, target: Path) -> Tampering:
        """Give a file another name."""
        self.put(target, source.read_bytes())
        self.put(source, None)
        return self.done()

    def remove(self, path: Path) -> Tampering:
        """Remove a file."""
        self.put(path, None)
        return self.done()

    def done(self, *heads: str) -> Tampering:
        """Close the account; ``heads`` are the commits before and after, when HEAD moved."""
        names = tuple(path.relative_to(self.lab).as_posix() for path in self._before) or ("HEAD",)
        after = {path: _content(path) for path in self._before}
        return Tampering(self.kind, names, self._before, after, heads)


def _task(hand: Hand) -> Tampering:
    path = hand.task_file()
    return hand.set(path, title=f"{hand.object_in(path).get('title')} (v2)")


def _task_name(hand: Hand) -> Tampering:
    path = hand.task_file()
    return hand.move(path, path.with_name(f"{path.stem}-new.json"))


def _task_spacing(hand: Hand) -> Tampering:
    path = hand.task_file()
    fields = dict(reversed(hand.object_in(path).items()))
    hand.put(path, json.dumps(fields, ensure_ascii=False, indent=8).encode() + b"\n")
    return hand.done()


def _contract(hand: Hand) -> Tampering:
    path = hand.existing("loop.contract.json")
    return hand.set(path, max_lines=41)


def _head(hand: Hand) -> Tampering:
    before = _head_of(hand.lab)
    lab_folder.git(hand.lab, "commit", "--quiet", "--allow-empty", "-m", "somebody else commits")
    return hand.done(before, _head_of(hand.lab))


def _tree(hand: Hand) -> Tampering:
    hand.put(hand.lab / "src" / "notes.mjs", b"// left behind\n")
    return hand.done()


def _phase(phase: str) -> Callable[[Hand], Tampering]:
    return lambda hand: hand.set(hand.record("state"), status="active", phase=phase)


def _delete(name: str) -> Callable[[Hand], Tampering]:
    return lambda hand: hand.remove(hand.record(name))


def _half_state(hand: Hand) -> Tampering:
    path = hand.record("state")
    raw = path.read_bytes()
    hand.put(path, raw[: len(raw) // 2])
    return hand.done()


def _event_type(hand: Hand) -> Tampering:
    path = hand.record("events")
    hand.put(path, path.read_bytes().replace(b'"claim_completed"', b'"agent_started"', 1))
    return hand.done()


def _event_time(hand: Hand) -> Tampering:
    path = hand.record("events")
    hand.put(path, re.sub(rb'"at":"\d{4}', b'"at":"1999', path.read_bytes(), count=1))
    return hand.done()


def _back_to_inbox(hand: Hand) -> Tampering:
    path = hand.task_file()
    return hand.move(path, hand.lab / "tasks" / "inbox" / path.name)


TAMPERINGS: dict[str, Callable[[Hand], Tampering]] = {
    "task": _task,
    "task-name": _task_name,
    "task-spacing": _task_spacing,
    "contract": _contract,
    "head": _head,
    "tree": _tree,
    "phase-claiming": _phase("claiming"),
    "phase-agent_running": _phase("agent_running"),
    "phase-agent_finished": _phase("agent_finished"),
    "delete-claim": _delete("claim"),
    "delete-facts": _delete("facts"),
    "delete-state": _delete("state"),
    "half-state": _half_state,
    "event-type": _event_type,
    "event-time": _event_time,
    "back-to-inbox": _back_to_inbox,
}
"""What a learner may do behind the runner's back, by the name under which ``words.toml`` describes it."""
