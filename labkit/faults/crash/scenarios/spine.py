"""The state spine: one round of the lesson's runner, from a task in the inbox to its result (docs/crash-lab.md).

`prepare` lays a small lab down, `work` runs the round with the runner as it is, `recover` runs it once more on what a
crash left. Git and Node are answered at the process border (`spine_tools`). Every start of an agent is acknowledged the
moment it happens, outside the lab: whatever a crash takes, that count is true.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.faults.crash.spine_look import QUEUES, borne_out, look
from labkit.faults.crash.spine_tools import StandIns

KIT = Path(__file__).resolve().parents[4]
ASSETS = KIT / "assets"
CODE = [KIT / "solution" / "lesson_04", ASSETS / "issue-garden-lab"]
"""Folders that hold the runner: the spine, and the code that is given. Whatever is earlier on the path goes before them."""
TASK = "issue-002"
PROMISES = (
    "state-whole",
    "task-once",
    "agent-at-most-once",
    "explained",
    "recovery-ends",
    "acknowledged-survive",
    "way-out",
)
_SOURCE = "src/search.mjs"
_FILES = {
    ".gitattributes": "issue-garden-lab",
    ".gitignore": "issue-garden-lab",
    "src/books.mjs": "issue-garden-lab",
    _SOURCE: "lesson-03-result",
    "acceptance/punctuation-search.test.mjs": "lesson-04-state",
    f"tasks/inbox/{TASK}.json": "lesson-04-state",
}
_SAID = ("completed", "rejected", "interrupted", "closed")
FOR_A_PERSON = ("unsafe_resume", "claim_exists", "needs_person")
"""Reasons for which a run stops until somebody has looked, and closed the task or carried on by hand."""

Acknowledge = Callable[[Any], object]


def prepare(folder: Path) -> None:
    """Lay the lab down: contract, source, test, one task in the inbox, and what passes for a repository."""
    for path, content in garden().items():
        _lay(folder / path, content)
    _lay(folder / ".git" / "config", b"")


def work(folder: Path, events: int, acknowledge: Acknowledge) -> None:  # noqa: ARG001 - a round has as many as it has
    """Run one round to its end."""
    with tools().border():
        say(acknowledge, run_round(folder, acknowledge))


def recover(folder: Path) -> dict[str, Any]:
    """Run the runner once more; where it leaves the task to a person, close it, and run again.

    `read` is what the lab bears out of all that may have been said, before and after. `before` and `after` are what it
    holds (`spine_look`), `answer` is the runner's decision, reason and cause, `error` the name of what it died of instead,
    `started` how many agents it started, and `closed` what came of closing: both decisions, and where the task is then.
    """
    started: list[Any] = []
    report: dict[str, Any] = {"before": look(folder, TASK), "answer": None, "error": None, "closed": None}
    try:
        with tools().border():
            report["answer"] = run_round(folder, started.append)
            report["after"] = look(folder, TASK)
            if report["answer"]["reason"] in FOR_A_PERSON:
                decisions = [close(folder)["decision"], run_round(folder, started.append)["decision"]]
                report["closed"] = {"decisions": decisions, "places": look(folder, TASK)["places"]}
    except NotImplementedError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a broken promise and no answer
        report["error"] = type(error).__name__
    report = {"after": look(folder, TASK)} | report | {"started": len(started)}
    still = borne_out(report["after"], TASK)
    return report | {"read": [value for value in borne_out(report["before"], TASK) if value in still]}


# --- The runner, whose code is loaded when it is first needed: underneath it the recorder's layer may lie ---


def run_round(
    folder: Path, signed: Acknowledge, *, boasting: bool = False, interrupt: bool = False
) -> dict[str, Any]:
    """Run a round whose agent signs before it begins, and return the runner's decision, reason and cause.

    Raises: NotImplementedError where the runner says that a step of it is not written yet.
    """
    _load()
    from issue_garden.answers import answer_of  # noqa: PLC0415
    from issue_garden.stateful_round import run_round as run  # noqa: PLC0415

    agent = SignedAgent(signed, boasting=boasting)
    answer = answer_of(lambda: run(folder, agent, interrupt_after_claim=interrupt))
    if answer.reason == "not_implemented":
        raise NotImplementedError(answer.message)
    return _plain(answer)


def close(folder: Path) -> dict[str, Any]:
    """Close the task as a person does, and return the answer."""
    _load()
    from issue_garden.answers import answer_of  # noqa: PLC0415
    from issue_garden.closing import close_task  # noqa: PLC0415

    return _plain(answer_of(lambda: close_task(folder, TASK, "after a crash")))


class SignedAgent:
    """The simulated agent, or one that only claims to have worked; it signs before it begins."""

    kind = "simulated"

    def __init__(self, sign: Acknowledge, *, boasting: bool) -> None:
        self.sign, self.boasting = sign, boasting

    def run(self, lab: Path, task: Any, contract: Any, inherit: tuple[int, ...]) -> Any:
        """Sign, then work."""
        from issue_garden.agents import AgentReport, SimulatedAgent  # noqa: PLC0415

        self.sign({"agent": task.id})
        if self.boasting:
            return AgentReport(self.kind, "changed", "everything works")
        return SimulatedAgent().run(lab, task, contract, inherit)


def say(acknowledge: Acknowledge, answer: dict[str, Any]) -> None:
    """Acknowledge what a runner prints when it is through; a refusal promises nothing."""
    if answer["decision"] in _SAID:
        acknowledge({"decision": answer["decision"], "task": TASK})


def _plain(answer: Any) -> dict[str, Any]:
    return {"decision": answer.decision, "reason": answer.reason, "cause": answer.cause}


def _load() -> None:
    sys.dont_write_bytecode = True
    sys.path += [str(folder) for folder in CODE if str(folder) not in sys.path]


# --- The lab ---


def garden() -> dict[str, bytes]:
    """Return every file of the lab's one commit, by path: the lesson's own, less what no round of it reads."""
    files = {path: (ASSETS / source / path).read_bytes() for path, source in _FILES.items()}
    contract = json.loads((ASSETS / "issue-garden-lab" / "loop.contract.json").read_bytes())
    contract["verification"] = contract["verification"][:1]  # one command decides as three would
    files["loop.contract.json"] = json.dumps(contract, indent=1).encode() + b"\n"
    return files | {f"tasks/{queue}/.gitkeep": b"" for queue in QUEUES}


@functools.cache
def tools() -> StandIns:
    """Return what stands in for Git and Node in this lab."""
    commit = garden()
    accepted = commit[_SOURCE].replace(rb".replace(/\s+/gu,", rb".replace(/[\s\p{P}]+/gu,")
    return StandIns(commit, accepted)


def _lay(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
