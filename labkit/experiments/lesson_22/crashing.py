"""Real processes, killed for real."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from labkit import actions, workspace
from labkit.experiments.agents import UNFINISHED
from labkit.experiments.bench import LOG, NO_ANSWER, Call, Seen, Side, fresh_folder, side_of
from labkit.experiments.left_out import ReferenceMissingError
from labkit.views import LogReader, task_state


class Agent:
    """A child process that does one thing for each word it is told (``labkit/experiments/agents.py``)."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder = folder
        self.calls: list[Call] = []
        self._child = subprocess.Popen(
            [sys.executable, "-m", "labkit.experiments.agents", kind, str(folder)],
            cwd=workspace.kit_root(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, word: str) -> None:
        """Tell it one word and wait until it is done. Raises: RuntimeError when it ended instead."""
        answer = ""
        if self._child.stdin and self._child.stdout:
            with contextlib.suppress(BrokenPipeError):  # it died before it could hear; no answer says so too
                self._child.stdin.write(f"{word}\n")
                self._child.stdin.flush()
            answer = self._child.stdout.readline().strip()
        if answer.startswith(UNFINISHED):
            raise ReferenceMissingError(answer.removeprefix(UNFINISHED))
        if answer != "done":
            raise RuntimeError(f"agent {self._child.pid}: ended before {word!r} was done; run the cell again")
        self.calls.append(Call(word, answer))

    def kill(self) -> None:
        """End it at once: no handler runs, nothing is flushed."""
        with self._child:
            self._child.kill()
        self.calls.append(Call("SIGKILL", NO_ANSWER))

    def side(self, name: str) -> Side:
        """Return what it did, and what lies in its folder now."""
        return side_of(name, self.calls, self.folder)


@contextlib.contextmanager
def _agent(kind: str, folder: Path) -> Iterator[Agent]:
    folder.mkdir(exist_ok=True)
    agent = Agent(kind, folder)
    try:
        yield agent
    finally:
        agent.kill()


def kill_two_agents(steps: int = 3) -> Seen:
    """Let one agent remember its steps and another log them; kill both (C22-01)."""
    place = fresh_folder("killed")
    sides = []
    for kind in ("memory", "log"):
        with _agent(kind, place / kind) as agent:
            for _ in range(steps):
                agent.do("step")
        sides.append(agent.side(kind))
    return Seen(tuple(sides))


async def crash_around_effect() -> Seen:
    """Kill an agent after it logged a call: once just before the mail went out, once just after (C22-26)."""
    place = fresh_folder("around-effect")
    sides = []
    for name, words in {"before": ["call"], "after": ["call", "effect"]}.items():
        folder = place / name
        folder.mkdir()
        made = ("todo_created", {"todo_id": "todo-1", "title": "mail"})
        started = ("todo_started", {"todo_id": "todo-1", "expected_from": "pending"})
        actions.write_events(folder / LOG, made, started)
        with _agent("log", folder) as agent:
            for word in words:
                agent.do(word)
        unknown = task_state(LogReader(folder / LOG).read()[1].events).tasks[0].unknown_calls
        agent.calls.append(Call("replay().unknown_calls", list(unknown)))
        sides.append(agent.side(name))
    return Seen(tuple(sides))
