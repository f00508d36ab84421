"""Two processes on one log: what is left of their records without a lock, and with one (C22-38)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from labkit.experiments.homework.children import children
from labkit.experiments.homework.tables import Cell, Table, fresh_place

LOGS = {"no-lock": "events.jsonl", "locked": "demo/00000000000000000001.jsonl"}

_NUMBER = re.compile(rb'"sequence":(\d+)')
_JOINT = re.compile(rb'.{0,20}(?<=\}){"sequence":\d+,.{0,10}')


def two_writers(events: int = 100) -> Table:
    """Let two processes append so many events each to the same log, without a lock and with one; judge every line."""
    place = fresh_place("rivals")
    rows: dict[str, dict[str, Cell]] = {}
    for kind, log in LOGS.items():
        folder = place / kind
        folder.mkdir(mode=0o700)
        _together(kind, folder, events)
        rows[kind] = {"appended": 2 * events, **judged((folder / log).read_bytes(), 2 * events)}
    return Table(rows)


def _together(kind: str, folder: Path, events: int) -> None:
    """Start two writers, let them go at once, and wait for both. Raises: RuntimeError when one of them failed."""
    with children(2, "rival", kind, folder, events) as pair:
        for one in pair:
            one.hear()  # ready
        for one in pair:
            one.tell("go")
        for one in pair:
            one.hear()  # done


def judged(log: bytes, appended: int) -> dict[str, Cell]:
    """Count what is wrong with the lines of a log to which so many events were appended.

    A record is spoiled when it shares its line with another, or its number with another line.
    """
    lines = [_NUMBER.findall(line) for line in log.removesuffix(b"\n").split(b"\n")]
    held = Counter(number for numbers in lines for number in numbers)
    sound = sum(len(numbers) == 1 and held[numbers[0]] == 1 for numbers in lines)
    return {
        "doubled": held.total() - len(held),
        "spliced": sum(len(numbers) > 1 for numbers in lines),
        "empty-lines": lines.count([]),
        "spoiled-percent": round(100 * (1 - sound / appended)),
        "for-example": _example(log),
    }


def _example(log: bytes) -> str:
    """Return the place where one record ends and another begins on the same line; a dash where there is none."""
    joint = _JOINT.search(log)
    return f"…{joint[0].decode()}…" if joint else "–"
