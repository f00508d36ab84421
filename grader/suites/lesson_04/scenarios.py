"""Questions to the student's functions and to what they stand on, sent as text and run beside them, never over here.

Each scenario is `def name(lab, given)`, complete in itself but for `ending`, and returns plain JSON: `lab` is the lab's
folder, where it runs. It only tells what happened; the check that sent it judges, by the disk where it can.
"""

# ruff: noqa: PLC0415 - the imports belong to the lab, and are made there
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import inspect
import json
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def source_of(scenario: Callable[..., Any]) -> str:
    """Give the text to send: the modules imported above, `ending`, the scenario under its name."""
    imports = [f"import {name}" for name, value in globals().items() if isinstance(value, ModuleType)]
    head = ["from __future__ import annotations", "from pathlib import Path", *imports]
    functions = [inspect.getsource(function) for function in (ending, scenario)]
    return "\n\n".join(["\n".join(head), *functions, f"scenario = {scenario.__name__}\n"])


def ending(call: Any) -> dict[str, Any]:
    """Tell how a call ends: what it gave, or the names of what it raised."""
    try:
        return {"gave": call()}
    except NotImplementedError:
        raise
    except Exception as error:  # noqa: BLE001 - told, whatever it is
        names = [kind.__name__ for kind in type(error).__mro__]
        answer = getattr(error, "answer", None)
        cause = getattr(answer or error, "cause", None)
        return {"raised": names, "cause": cause, "exit": answer and answer.exit_code}


# --- lessons 2 and 3 ---


def load_contracts(lab: Any, given: Any) -> Any:
    """Load the contract as each of these texts; tell its digest and fields, or why it was refused."""
    from issue_garden.contract import load_contract

    def load() -> Any:
        contract = load_contract(lab)
        return [contract.digest, list(contract.allowed_paths), contract.max_lines]

    told = []
    for text in given:
        (lab / "loop.contract.json").write_text(text, "utf-8")
        told += [ending(load), ending(load)]
    return told


def judge_ids(lab: Any, given: Any) -> Any:
    """Tell which ids are accepted, and what loading a task under another file's name gives."""
    from issue_garden.task import id_problem, load_task

    told = [id_problem(task_id) is None for task_id in given["ids"]]
    return [told, ending(lambda: load_task(lab, "inbox", given["file"]).id)]


def list_inbox(lab: Any, _given: Any) -> Any:
    """Tell the inbox in order."""
    from issue_garden.task import list_queue

    return list_queue(lab, "inbox")


def boundary_after(lab: Any, given: Any) -> Any:
    """Write files as an agent would, and tell what the boundary says of each."""
    from issue_garden.agents import AgentReport
    from issue_garden.contract import load_contract
    from issue_garden.git_view import look
    from issue_garden.judging import gather_evidence
    from issue_garden.task import load_task

    task, contract, before = load_task(lab, "inbox", given["file"]), load_contract(lab), look(lab)
    for name, text in given["files"].items():
        (lab / name).write_text(text, "utf-8")
    evidence = gather_evidence(lab, contract, task, before, AgentReport("test", "stopped", "written"))
    return [[error.cause, error.path] for error in evidence.boundary_errors]


def verify_once(lab: Any, given: Any) -> Any:
    """Run the contract's commands; tell name, exit code, output and verdict of each."""
    from issue_garden.contract import load_contract
    from issue_garden.task import load_task
    from issue_garden.verification import verify

    results = verify(lab, load_contract(lab), load_task(lab, "inbox", given))
    return [[found.name, found.exit_code, found.output, found.passed] for found in results]


def claim_success(lab: Any, given: Any) -> Any:
    """Run lesson 3's round with an agent that says that all is done; tell the decision."""
    from issue_garden.agents import AgentReport
    from issue_garden.one_round import run_one_round

    class ClaimingAgent:
        kind = "claiming"

        def run(self, lab: Any, task: Any, contract: Any, inherit: Any) -> Any:  # noqa: ARG002
            with (lab / "src" / "search.mjs").open("a", encoding="utf-8") as source:
                source.write(given)
            return AgentReport(self.kind, "changed", "all tests pass")

    answer = run_one_round(lab, ClaimingAgent())
    return [answer.decision, answer.reason, answer.cause]


# --- the state store ---


def digests(_lab: Any, given: Any) -> Any:
    """Tell the digest of each text's value."""
    from issue_garden.state_store import canonical_digest

    return [canonical_digest(json.loads(text)) for text in given]


def odd_digests(_lab: Any, _given: Any) -> Any:
    """Tell how the digest of what is no JSON ends."""
    from issue_garden.state_store import canonical_digest

    odd = [float("nan"), {"a": [float("inf")]}, {1: "a"}, {"a": {None: 1}}, {"a": {1, 2}}]
    return [ending(lambda value=value: canonical_digest(value)) for value in odd]


def save(_lab: Any, given: Any) -> Any:
    """Save each value in turn, [path, value]; tell how each ends."""
    from issue_garden.state_store import atomic_write_json

    os.umask(0o002)
    return [
        ending(lambda path=path, value=value: atomic_write_json(Path(path), value)) for path, value in given
    ]


def publish(_lab: Any, given: Any) -> Any:
    """Publish each value in turn, [path, value]; tell how each ends."""
    from issue_garden.state_store import publish_json

    return [ending(lambda path=path, value=value: publish_json(Path(path), value)) for path, value in given]


def at_once(_lab: Any, given: Any) -> Any:
    """Save or publish values at one path from as many threads at once; tell how each ends."""
    from issue_garden import state_store

    write, told, unwritten = getattr(state_store, given["call"]), {}, []

    def one(number: int) -> None:
        try:
            told[number] = ending(lambda: write(Path(given["path"]), given["values"][number]))
        except NotImplementedError as error:
            unwritten.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(given["values"]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if unwritten:
        raise unwritten[0]
    return [told.get(number) for number in range(len(threads))]


def race_of_processes(_lab: Any, given: Any) -> Any:
    """Let two processes, let go at one moment, publish at each path; tell for each path who says that it won."""
    from issue_garden.state_store import publish_json

    begin, won = os.pipe(), [os.pipe(), os.pipe()]
    children = []
    for number, (_, tell) in enumerate(won):
        child = os.fork()
        if child == 0:
            os.close(begin[1])
            os.read(begin[0], 1)  # until the parent closes its end
            for at, path in enumerate(given["paths"]):
                value = given["values"][number]
                if "gave" in ending(lambda path=path, value=value: publish_json(Path(path), value)):
                    os.write(tell, bytes([at]))
            os._exit(0)
        children.append(child)
    for end in (*begin, *(tell for _, tell in won)):
        os.close(end)
    for child in children:
        os.waitpid(child, 0)
    return [list(os.read(read, 1000)) for read, _ in won]


def append(_lab: Any, given: Any) -> Any:
    """Append each event in turn, [path, type, fields]; tell how each ends."""
    from issue_garden.state_store import append_event

    return [
        ending(lambda path=path, kind=kind, fields=fields: append_event(Path(path), kind, **fields))
        for path, kind, fields in given
    ]


def history(_lab: Any, given: Any) -> Any:
    """Read a log; tell the types of its events."""
    from issue_garden.state_store import read_events

    return ending(lambda: read_events(Path(given)).types)
