"""Runs one Python program as `python PROGRAM` would, with the file layer underneath, and leaves a log of what it did.

    python under_layer.py '{"root": FOLDER, "rules": [RULE, ...], "log": FILE}' PROGRAM ARGUMENT...

Standard library only. `rules` and the log are file_layer's; the log is a JSON list, written to `FILE`, which lies outside
`root`, when the program ends, or in the last moment before a rule kills it.
"""

from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("file_layer", Path(__file__).with_name("file_layer.py"))
assert _spec is not None
assert _spec.loader is not None
layer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(layer)


def main() -> None:
    """Arm the layer and run the program in this process."""
    plan, sys.argv = json.loads(sys.argv[1]), sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).parent)  # where Python looks for a program's own modules

    def leave_log() -> None:
        Path(plan["log"]).write_text(json.dumps(layer.log()), "utf-8")

    layer.install()
    layer.arm(plan["rules"], plan["root"], leave_log)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        leave_log()


if __name__ == "__main__":
    main()
