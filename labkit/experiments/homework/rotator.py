"""Writers that close their segment, each in a process of its own that may be killed in the middle of it.

python -m labkit.experiments.homework.rotator

For each order on stdin, a JSON line {"root": PATH, "rules": [RULE, ...]}, a process opens the session `demo`, puts the
file layer's rules underneath, and rotates; then `ended EXITCODE` is printed. What one did to the disk, when it got to the
end, is in ROOT/operations.json.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

from labkit.faults import file_layer
from solution.durable_log import DurableLog


async def rotate(root: Path, rules: list[dict[str, Any]]) -> None:
    """Rotate, and be gone without closing the log."""
    log = await DurableLog.open("demo", root=root, durability="os")
    file_layer.arm(rules, root)
    await log.rotate()
    file_layer.disarm()
    (root / "operations.json").write_text(json.dumps(file_layer.log()), "utf-8")
    os._exit(0)


def run(root: str, rules: list[dict[str, Any]]) -> None:
    """Carry an order out, with the file layer underneath."""
    file_layer.install()
    asyncio.run(rotate(Path(root), rules))


def main() -> None:
    """Start one process after the other; a fork, where there are forks, spares each the imports."""
    forks = "fork" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    for line in sys.stdin:
        order = json.loads(line)
        process = context.Process(target=run, args=(order["root"], order["rules"]))
        process.start()
        process.join()
        print("ended", process.exitcode, flush=True)


if __name__ == "__main__":
    main()
