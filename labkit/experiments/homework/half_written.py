"""A record of which half is on the disk: the writer is really paused between the two halves, or killed there."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from labkit import actions, workspace
from labkit.experiments.homework.steps import take_steps
from labkit.faults import file_layer
from solution.durable_log import DurableLog

WRITER = Path(__file__).with_name("writer.py")
"""Run as a program, never imported: `python -m` would warn the learner of a module that is loaded twice."""
UNDER_LAYER = Path(file_layer.__file__).with_name("under_layer.py")
SEGMENT = "0*.jsonl"
SYNCS = ["fsync", "fdatasync"]
SLOW_SECONDS = 0.01
"""How long a sync takes on the disk underneath: long enough that the log writes beside the event loop."""


@asynccontextmanager
async def paused_append(root: Path, events: int) -> AsyncIterator[DurableLog]:
    """Store `events` events in the session `demo`, and hold the next append when half of its line is on the disk.

    It is answered after `file_layer.release()`, or when the block ends.
    """
    rules = [
        {"op": SYNCS, "match": SEGMENT, "do": "slow", "seconds": SLOW_SECONDS, "times": None},
        {"op": "write", "match": SEGMENT, "do": "half", "nth": events + 1},
        {"op": "write", "match": SEGMENT, "do": "hold", "nth": events + 2},
    ]
    with actions.disturbed(root, *rules):
        async with await DurableLog.open("demo", root=root, durability="fsync") as log:
            await take_steps(log, events)
            segment = next(log.folder.path.glob(SEGMENT))
            whole = segment.stat().st_size
            append = log.append("step", {"number": events})
            while segment.stat().st_size == whole and not append.done():  # noqa: ASYNC110 - the disk tells
                await asyncio.sleep(0)
            try:
                yield log
            finally:
                file_layer.release()
                await append


def killed_append(root: Path, events: int) -> Path:
    """Let a process store `events` events and kill it when half of the next line is on the disk. Returns the session's folder."""
    rule = {"op": "write", "match": SEGMENT, "do": "half,kill", "nth": events + 1}
    plan = {"root": str(root), "rules": [rule], "log": os.devnull}
    command = [str(UNDER_LAYER), json.dumps(plan), str(WRITER), str(root), "demo", "os", str(events + 1)]
    subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(workspace.kit_root())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return root / "demo"
