"""What each file of the spine is for: the overlay that brings them, a digest, facts, state, events, result, attempt."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from labkit import generate, lab_folder, workspace
from labkit.experiments.left_out import need_reference
from labkit.experiments.lesson_04 import prepared
from labkit.experiments.lesson_04.garden import TASK, Garden, environment
from labkit.experiments.lesson_04.scenes import Scene, Scenes, compare, fresh_folder, scene

_TESTS = 'python -m unittest discover -s loop_tests -p "test_*.py" -v'
_PAUSING = Path(__file__).with_name("pausing.py")


async def lay_the_overlay() -> Scenes:
    """Copy the overlay into two labs, once with the spine's bodies and once without, and run the control plane's tests (C04-04)."""
    place = fresh_folder("overlay")
    untouched = place / "untouched-starter" / "lesson_04"
    tree = next(tree for tree in generate.TREES if tree.target == "starter/lesson_04")
    for name, raw in generate.generated(workspace.kit_root(), tree).items():
        path = untouched / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)

    need_reference()

    def one(name: str, code: str) -> Scene:
        garden = Garden(prepared.copy_of("lesson-3", place / name, quick=False), [])
        garden.commit("fix: normalize search whitespace")
        lab_folder.lay_overlay(garden.root, code)
        step = garden.type(
            _TESTS, keep=("ERROR: ", "FAIL: ", "NotImplementedError: ", "Ran ", "FAILED", "OK")
        )
        garden.note("passed", step.out.count("... ok"))
        garden.note("missing", step.out.count("NotImplementedError: "))
        return Scene(name, tuple(garden.steps))

    sides = {"starter": str(untouched.parent), "solution": "solution"}
    return Scenes(tuple(await asyncio.gather(*(asyncio.to_thread(one, *side) for side in sides.items()))))


async def what_git_lists() -> Scene:
    """Commit the overlay, let a run make ``.loop/``, and ask Git what it sees (C04-05)."""

    def script(garden: Garden) -> None:
        garden.type("git status --short")
        garden.interrupt()
        garden.note(".loop", sorted(path.name for path in garden.loop.rglob("*") if path.is_file()))
        garden.type("git status --short")
        garden.type(f"git check-ignore -v .loop/tasks/{TASK}/state.json")

    return await scene("what-git-lists", script, "ready")


async def digests() -> Scenes:
    """Digest a task as it is, with its keys turned round, spaced out, and with one value changed (C04-06).

    Beside the two canonical digests stands the plain one of the bytes, as lesson 3 used it for the contract.
    """
    text = (workspace.kit_root() / "assets/lesson-04-state/tasks/inbox" / f"{TASK}.json").read_text("utf-8")
    task = json.loads(text)
    variants = {
        "as-it-is": text,
        "keys-turned": json.dumps(dict(reversed(task.items())), ensure_ascii=False),
        "spaced-out": json.dumps(task, indent=8),
        "one-value": json.dumps(task | {"title": "something else"}, ensure_ascii=False),
    }

    def script(garden: Garden) -> None:
        program = (
            "import json, sys; from issue_garden.state_store import canonical_digest; "
            "print(*(canonical_digest(json.loads(text)) for text in json.loads(sys.stdin.read())), sep='\\n')"
        )
        step = garden.quietly("python", "-c", program, told=json.dumps(list(variants.values())))
        for name, digest in zip(variants, step.out.split("\n"), strict=False):
            garden.note(name, digest)

    canonical = await compare("digests", script)
    plain = Garden(fresh_folder("digests-of-bytes"), [])
    for name, variant in variants.items():
        plain.note(name, "sha256:" + hashlib.sha256(variant.encode()).hexdigest())
    return Scenes((Scene("bytes", tuple(plain.steps)), *canonical.sides))


async def facts_before_and_after() -> Scene:
    """Hash ``facts.json`` after the claim, finish the round, hash it again (C04-07)."""

    def script(garden: Garden) -> None:
        for moment in ("claimed", "finished"):
            if moment == "finished":
                garden.run()
            garden.note(f"facts-{moment}", hashlib.sha256(garden.path("facts").read_bytes()).hexdigest())
        garden.note("facts-keys", sorted(garden.record("facts")))

    return await scene("facts", script, "claimed", "facts")


@dataclass(frozen=True, slots=True)
class Moment:
    """The disk right after a state was replaced: its phase, the inode of its file, and how far the log had grown.

    ``kept``: the log began with the very bytes that it had at the moment before.
    """

    phase: str
    inode: int
    last_event: str
    log_bytes: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Stepped:
    """One round, stopped at every change of its state."""

    moments: tuple[Moment, ...]

    @property
    def phases(self) -> list[str]:
        """The phases in their order."""
        return [moment.phase for moment in self.moments]

    @property
    def always_a_new_file(self) -> bool:
        """Whether ``state.json`` was another file at each moment than at the one before; numbers may come again later."""
        return all(one.inode != other.inode for one, other in pairwise(self.moments))

    @property
    def log_only_grew(self) -> bool:
        """Whether the log kept every earlier byte, always."""
        return all(moment.kept for moment in self.moments)

    def _repr_html_(self) -> str:
        from labkit.experiments.lesson_04.transcript import moments  # noqa: PLC0415 — as in Scenes

        return moments(self)


async def step_through_a_round() -> Stepped:
    """Hold a running round after each replacement of its state, and look at the files from outside (C04-08)."""
    need_reference()
    lab = await asyncio.to_thread(prepared.copy_of, "ready", fresh_folder("stepping"))
    return await asyncio.to_thread(_step, Garden(lab, []))


def _step(garden: Garden) -> Stepped:
    found: list[Moment] = []
    earlier = b""
    with subprocess.Popen(
        [sys.executable, str(_PAUSING), "state.json", "tools/run_once.py"], cwd=garden.root, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as round_:  # fmt: skip
        assert round_.stdin is not None
        assert round_.stderr is not None
        for _ in round_.stderr:
            log = garden.path("events").read_bytes()
            inode = garden.path("state").stat().st_ino
            found.append(
                Moment(
                    garden.record("state")["phase"],
                    inode,
                    garden.types()[-1],
                    len(log),
                    log.startswith(earlier),
                )
            )
            earlier = log
            round_.stdin.write("on\n")
            round_.stdin.flush()
    return Stepped(tuple(found))


async def only_the_result() -> Scene:
    """Carry nothing but the result of a finished task away, and read it there (C04-09)."""

    def script(garden: Garden) -> None:
        away = garden.beside / "somewhere-else"
        away.mkdir()
        shutil.copy(garden.path("result"), away)
        result = json.loads((away / f"{TASK}.json").read_bytes())
        garden.note("ls", sorted(path.name for path in away.iterdir()))
        garden.note("decision", f"{result['decision']} / {result['reason']}")
        garden.note("changes", result["changes"])
        garden.note("commands", {one["name"]: one["exit_code"] for one in result["commands"]})
        garden.note("attempt", result["attempt"])

    return await scene("only-the-result", script, "finished", quick=False)


async def boasting_agent() -> Scene:
    """Let an agent that repairs nothing report success, and open the attempt (C04-10)."""

    def script(garden: Garden) -> None:
        garden.run(*garden.agent("boaster"))
        attempt = garden.record("attempt")
        garden.note("attempt: agent", attempt["agent"])
        garden.note("attempt: evidence.changes", attempt["evidence"]["changes"]["files"])
        garden.note(
            "attempt: evidence.commands",
            {one["name"]: one["exit_code"] for one in attempt["evidence"]["commands"]},
        )
        garden.note("tasks/processing", garden.queue("processing"))

    return await scene("boasting-agent", script, "ready", quick=False)


async def endless_agent() -> Scene:
    """Give an agent one second; it has started a process in a session of its own, and neither of them ever ends."""

    def script(garden: Garden) -> None:
        garden.edit(garden.root / "loop.contract.json", agent_seconds=1)
        garden.commit("one second is enough")
        garden.run(*garden.agent("endless"))
        process = garden.record("attempt")["evidence"]["agent_process"]
        garden.note("agent_process", {name: process[name] for name in ("exit_code", "timed_out")})
        garden.note("grandchild", psutil.pid_exists(int((garden.beside / "helper.pid").read_text("utf-8"))))

    return await scene("endless-agent", script, "ready")
