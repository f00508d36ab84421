"""jsonlines as an event log: each event is written, flushed, and then said to be done; read strictly, as is the default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonlines

from labkit.faults.crash.promises import AFTER_CRASH, LOG

PROMISES = LOG


def work(folder: Path, events: int, acknowledge: Callable[[int], object]) -> None:
    """Append the numbers from 1 to `events` with one writer."""
    with jsonlines.open(folder / "events.jsonl", "a", flush=True) as log:
        for number in range(1, events + 1):
            log.write({"n": number})
            acknowledge(number)


def recover(folder: Path) -> dict[str, Any]:
    """Read; append one more with a writer newly opened; read again."""
    report: dict[str, Any] = {"read": None, "error": None, "after": None}
    path = folder / "events.jsonl"
    try:
        report["read"] = _read(path)
        with jsonlines.open(path, "a", flush=True) as log:
            log.write({"n": AFTER_CRASH})
        report["after"] = _read(path)
    except jsonlines.Error as error:
        report["error"] = type(error).__name__
    return report


def _read(path: Path) -> list[Any]:
    if not path.exists():
        return []
    with jsonlines.open(path) as log:
        return [event["n"] for event in log]
