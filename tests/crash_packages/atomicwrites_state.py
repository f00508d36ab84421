"""atomicwrites as a state file: each state replaces the one before, and is then said to be saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atomicwrites import atomic_write

from labkit.faults.crash.promises import STATE_FILE

PROMISES = STATE_FILE


def work(folder: Path, events: int, acknowledge: Callable[[int], object]) -> None:
    """Save the numbers from 1 to `events`, one state after the other."""
    for number in range(1, events + 1):
        with atomic_write(folder / "state.json", overwrite=True, encoding="utf-8") as file:
            json.dump({"n": number}, file)
        acknowledge(number)


def recover(folder: Path) -> dict[str, Any]:
    """Read the state; no file is no state."""
    path = folder / "state.json"
    try:
        return {"read": [json.loads(path.read_text("utf-8"))["n"]] if path.exists() else [], "error": None}
    except ValueError as error:
        return {"read": None, "error": type(error).__name__}
