"""diskcache's Cache holding one value: it keeps its state in SQLite, whose writes the recorder does not see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from diskcache import Cache

from labkit.faults.crash.promises import STATE_FILE

PROMISES = STATE_FILE


def work(folder: Path, events: int, acknowledge: Callable[[int], object]) -> None:
    """Set the numbers from 1 to `events` under one key."""
    with Cache(str(folder / "cache")) as cache:
        for number in range(1, events + 1):
            cache["n"] = number
            acknowledge(number)


def recover(folder: Path) -> dict[str, Any]:
    """Get the value with a cache newly opened; a miss is no state."""
    with Cache(str(folder / "cache")) as cache:
        value = cache.get("n")
    return {"read": [] if value is None else [value], "error": None}
