"""Runs rounds of a lab, each in a process of its own that may be told to die at a chosen file operation.

    python -I round_child.py LAB_WITH_THE_CODE

Standard library only. It loads the lab's own code once, with the file layer underneath, and forks for every order, so
that a round costs a fork instead of an interpreter. An order is one JSON line on stdin, its outcome one on stdout:

    {"lab": PATH, "do": "round", "agent": "simulated", "interrupt": false, "rules": [RULE, ...], "ledger": PATH}
    {"lab": PATH, "do": "close", "id": "issue-002", "text": "why", "rules": [], "ledger": PATH}
    -> {"signal": 9, "exit_code": null, "answer": null, "log": [OPERATION, ...]}

`rules` and `log` are file_layer's. Every start of an agent appends one byte to `ledger`, which lies outside the lab:
whatever is killed, that count is true. The log of a killed round is lost with it. POSIX only, since it forks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

_spec = importlib.util.spec_from_file_location("file_layer", Path(__file__).with_name("file_layer.py"))
assert _spec is not None
assert _spec.loader is not None
layer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(layer)


class CountedAgent:
    """The simulated agent, or one that only claims to have worked; it signs the ledger before it begins."""

    kind = "simulated"

    def __init__(self, name: str, ledger: str) -> None:
        self.name, self.ledger = name, ledger

    def run(self, lab: Path, task: Any, contract: Any, inherit: tuple[int, ...]) -> Any:
        """Sign, then work."""
        from issue_garden.agents import AgentReport, SimulatedAgent  # noqa: PLC0415 - the lab's, found at run time

        with open(self.ledger, "ab", buffering=0) as ledger:  # noqa: PTH123 - as plain as can be
            ledger.write(b"x")
        if self.name == "simulated":
            return SimulatedAgent().run(lab, task, contract, inherit)
        with (lab / "src" / "search.mjs").open("a", encoding="utf-8") as source:
            source.write("// looked at it\n")
        return AgentReport(self.kind, "changed", "everything works")


def carry_out(order: dict[str, Any]) -> int:
    """Do one order in this process and print the lab's own answer; the exit code is the lab's."""
    from issue_garden.answers import answer_of, print_answer  # noqa: PLC0415
    from issue_garden.closing import close_task  # noqa: PLC0415
    from issue_garden.stateful_round import run_round  # noqa: PLC0415

    lab = Path(order["lab"])
    layer.arm(order["rules"], lab)
    if order["do"] == "close":
        return int(print_answer(answer_of(lambda: close_task(lab, order["id"], order["text"]))))
    agent = CountedAgent(order["agent"], order["ledger"])
    return int(
        print_answer(answer_of(lambda: run_round(lab, agent, interrupt_after_claim=order["interrupt"])))
    )


def in_a_fork(order: dict[str, Any]) -> dict[str, Any]:
    """Fork, let the child carry the order out, and say how it ended."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            code = 70
            try:
                code = carry_out(order)
                os.write(log.fileno(), json.dumps(layer.log()).encode())
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        printed, seen = (_content(file.fileno()) for file in (out, log))
    return {
        "signal": -status if status < 0 else None,
        "exit_code": status if status >= 0 else None,
        "answer": json.loads(printed) if printed and status >= 0 else None,
        "log": json.loads(seen) if seen else [],
    }


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def main() -> None:
    """Load the lab's code under the layer, then serve orders until stdin ends."""
    sys.dont_write_bytecode = True
    layer.install()
    sys.path.insert(0, sys.argv[1])
    import issue_garden.closing  # noqa: PLC0415
    import issue_garden.stateful_round  # noqa: F401, PLC0415

    for line in sys.stdin:
        print(json.dumps(in_a_fork(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
