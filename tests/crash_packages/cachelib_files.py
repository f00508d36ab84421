"""cachelib's FileSystemCache holding one value that never expires: each is set, and is then said to be saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cachelib import FileSystemCache

from labkit.faults.crash.promises import STATE_FILE

PROMISES = STATE_FILE


def work(folder: Path, events: int, acknowledge: Callable[[int], object]) -> None:
    """Set the numbers from 1 to `events` under one key."""
    cache = _open(folder)
    for number in range(1, events + 1):
        if cache.set("n", number):
            acknowledge(number)


def recover(folder: Path) -> dict[str, Any]:
    """Get the value with a cache newly opened; None, the cache's word for a miss, is no state."""
    try:
        value = _open(folder).get("n")
    except Exception as error:  # noqa: BLE001 - which one it is, is the answer
        return {"read": None, "error": type(error).__name__}
    return {"read": [] if value is None else [value], "error": None}


def _open(folder: Path) -> FileSystemCache:
    return FileSystemCache(str(folder / "cache"), default_timeout=0)
