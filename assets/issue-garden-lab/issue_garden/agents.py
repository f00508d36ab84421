"""The agents: whoever does the work. Each returns a report, which is its word and never evidence (P10, P14)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from issue_garden.contract import Contract
from issue_garden.processes import Finished, find_program, run_program
from issue_garden.task import Task


@dataclass(frozen=True)
class AgentReport:
    """What an agent says about its own work, and, kept apart, how its process ended (None: it had none).

    ``status``: changed, unchanged, stopped, or whatever word a command uses. ``cause`` says why it stopped.
    """

    kind: str
    status: str
    summary: str
    cause: str | None = None
    process: Finished | None = None

    def words(self) -> dict[str, str | None]:
        """The agent's own account, as it stands in an attempt."""
        return {"kind": self.kind, "status": self.status, "summary": self.summary, "cause": self.cause}


class Agent(Protocol):
    """Does a task in the lab folder, once."""

    @property
    def kind(self) -> str:
        """The adapter's name."""

    def run(self, lab: Path, task: Task, contract: Contract, inherit: tuple[int, ...]) -> AgentReport:
        """Work on ``task``; ``inherit`` are descriptors that a process of the agent keeps open."""


SOURCE = Path("src", "search.mjs")
LESSON_2_FORM = b'.replaceAll(" ", "")'
LESSON_3_FORM = rb'.replace(/\s+/gu, "")'
LESSON_4_FORM = rb'.replace(/[\s\p{P}]+/gu, "")'

# Which form of `normalizeText` a task starts from and which one satisfies it, by the test that accepts it.
_KNOWN_WORK = {
    "acceptance/fullwidth-space.test.mjs": (LESSON_2_FORM, LESSON_3_FORM),
    "acceptance/punctuation-search.test.mjs": (LESSON_3_FORM, LESSON_4_FORM),
}


@dataclass(frozen=True)
class SimulatedAgent:
    """Edits one line of ``src/search.mjs``, always in the same way, so that a lesson can be repeated."""

    kind: str = "simulated"

    def run(self, lab: Path, task: Task, contract: Contract, inherit: tuple[int, ...]) -> AgentReport:
        """Widen the normalisation rule by one step, or stop when the step before it is missing."""
        if task.acceptance not in _KNOWN_WORK:
            return self._stopped(
                "unknown_task", "模拟 Agent 不会做这项任务 (the simulated agent does not know this task)"
            )
        before, after = _KNOWN_WORK[task.acceptance]
        source = (lab / SOURCE).read_bytes() if (lab / SOURCE).is_file() else b""
        if after in source:
            return AgentReport(self.kind, "unchanged", "已经是要求的样子 (it is already as asked)")
        if source.count(before) != 1:
            return self._stopped(
                "baseline_missing",
                "normalizeText() 没有上一步的形式，不在未知的基础上改 "
                "(normalizeText() lacks the form of the step before; nothing is built on an unknown base)",
            )
        # Written in place, as editors and agents do: if this process dies here, half a file may be left.
        (lab / SOURCE).write_bytes(source.replace(before, after))
        return AgentReport(
            self.kind, "changed", "扩展了 normalizeText() 的归一化规则 (widened the rule in normalizeText())"
        )

    def _stopped(self, cause: str, summary: str) -> AgentReport:
        return AgentReport(self.kind, "stopped", summary, cause)


@dataclass(frozen=True)
class CommandAgent:
    """Any coding agent's command line.

    ``{task}`` in an argument stands for the task's file and ``{prompt}`` for the prompt, which is given on standard
    input as well. If the last line printed is a JSON object with texts ``status`` and ``summary``, these are its
    words; otherwise the end of its output is its summary.
    """

    argv: tuple[str, ...]
    kind: str = "command"

    def startable(self, lab: Path) -> bool:
        """Whether there is such a program; asked before a task is claimed for it."""
        return find_program(self.argv[0], lab, os.environ) is not None

    def run(self, lab: Path, task: Task, contract: Contract, inherit: tuple[int, ...]) -> AgentReport:
        """Run the command within the contract's time; its whole process tree has ended when this returns."""
        task_file, prompt = f"tasks/processing/{task.id}.json", prompt_for(task, contract)
        done = run_program(
            [argument.replace("{task}", task_file).replace("{prompt}", prompt) for argument in self.argv],
            cwd=lab,
            seconds=contract.agent_seconds,
            output_bytes=contract.output_bytes,
            stdin=prompt.encode(),
            inherit=inherit,
        )
        status, summary = _words(done.output)
        return AgentReport(self.kind, status, summary, process=done)


def prompt_for(task: Task, contract: Contract) -> str:
    """What a coding agent is told: the goal, the test that accepts it, and the boundary."""
    return (
        f"{task.title}\n\n{task.goal}\n\n"
        f"Acceptance test: {task.acceptance}\n"
        f"You may change only: {', '.join(contract.allowed_paths)}\n"
        f"At most {contract.max_files} files and {contract.max_lines} lines. Do not stage or commit.\n"
    )


def _words(output: str) -> tuple[str, str]:
    lines = [line for line in output.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    try:
        said: Any = json.loads(last)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and all(isinstance(said.get(key), str) for key in ("status", "summary")):
        return _sayable(said["status"]), _sayable(said["summary"])
    return "ended", "\n".join(lines[-5:])[-2_000:]


def _sayable(text: str) -> str:
    """An agent's words end up in a JSON file: a lone surrogate in them must not keep the evidence from being saved."""
    return text[:2_000].encode("utf-8", "backslashreplace").decode()
