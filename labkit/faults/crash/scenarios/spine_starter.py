"""The state spine that you are writing: `starter/`, or what LAB_TARGET names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labkit import workspace
from labkit.faults.crash.scenarios import spine
from labkit.faults.crash.scenarios.spine import PROMISES, prepare, work

__all__ = ["PROMISES", "prepare", "recover", "work"]

spine.CODE[0] = workspace.lesson_source("04")


def recover(folder: Path) -> dict[str, Any]:
    """Recover as the solution's does; from an empty folder, run a whole round: that says whether there is one."""
    if not any(folder.iterdir()):
        prepare(folder)
    return spine.recover(folder)
