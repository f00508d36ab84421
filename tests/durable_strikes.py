"""Carries out one change of a session, in a process of its own that may be told to fail or die at a file operation.

    python -I durable_strikes.py KIT

An order is one JSON line on stdin, its outcome one on stdout; it forks for each, as labkit/faults/round_child.py does.

    {"root": PATH, "do": "rotate", "rules": [RULE, ...]}
    -> {"signal": 9, "answer": null, "log": [OPERATION, ...]}

`do` is a name of durable_changes.CHANGES; the answer is "done" or the name of the error that came out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

KIT = Path(sys.argv[1])

_spec = importlib.util.spec_from_file_location("file_layer", KIT / "labkit/faults/file_layer.py")
assert _spec is not None
assert _spec.loader is not None
layer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(layer)


def carry_out(order: dict[str, Any]) -> str:
    from tests.durable_changes import CHANGES  # noqa: PLC0415 - after the layer was put underneath

    root = Path(order["root"])
    act = CHANGES[order["do"]](root)
    layer.arm(order["rules"], root)  # what came before was preparation
    try:
        act()
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        return type(error).__name__
    return "done"


def in_a_fork(order: dict[str, Any]) -> dict[str, Any]:
    """Fork, let the child carry the order out, and say how it ended."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            try:
                answer = carry_out(order)
                os.write(out.fileno(), json.dumps({"answer": answer, "log": layer.log()}).encode())
            finally:
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        printed = os.pread(out.fileno(), os.fstat(out.fileno()).st_size, 0)
    ended = json.loads(printed) if printed else {"answer": None, "log": []}
    return {"signal": -status if status < 0 else None, **ended}


def main() -> None:
    sys.dont_write_bytecode = True
    layer.install()
    sys.path.insert(0, str(KIT))
    import tests.durable_changes  # noqa: F401, PLC0415 - once, so that a fork costs no import

    for line in sys.stdin:
        print(json.dumps(in_a_fork(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
