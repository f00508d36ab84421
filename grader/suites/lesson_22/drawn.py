"""What the grader draws afresh for every run, and the lines that it plants (docs/formats.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grader.lab import Event

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LOG = "events.jsonl"
WRITES = ["write", "writev", "pwrite", "pwritev"]
"""Every operation of the file layer that puts bytes into a file."""

_DEEDS = ("todo_created", "todo_started", "tool_called", "tool_result", "todo_blocked", "todo_completed")


def word(draw: Random) -> str:
    """Draw a text that occurs nowhere else: a stem and six hexadecimal digits."""
    return f"{draw.choice(('note', 'file', 'step', 'item', 'unit'))}_{draw.getrandbits(24):06x}"


def some_type(draw: Random) -> str:
    """Draw an event type of the lesson's kind."""
    return f"{draw.choice(_DEEDS)}_{draw.getrandbits(24):06x}"


def some_data(draw: Random) -> Any:
    """Draw a JSON value. Its shape is always the same, so that no verdict hangs on the luck of the draw."""
    return {
        "todo_id": word(draw),
        "text": f'{word(draw)} 读取 "naïve" \\ 🧪\n',
        "count": draw.randrange(1000, 10**9),
        "share": draw.randrange(1, 1000) / 8,
        "flags": [True, False, None, {}, []],
        "path": [word(draw), {"ok": draw.choice((True, False))}],
    }


def some_events(draw: Random, count: int) -> list[Event]:
    """Draw a history of `count` events, numbered from 1."""
    return [Event(number, some_type(draw), some_data(draw)) for number in range(1, count + 1)]


def line(event: Event) -> bytes:
    """Write the record of one event, with its newline, as a writer does."""
    return json.dumps(event.plain(), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def log(events: Sequence[Event]) -> bytes:
    """Write a whole log."""
    return b"".join(map(line, events))


def renumbered(event: Event, sequence: int) -> Event:
    """Give the same event another number."""
    return Event(sequence, event.type, event.data)


def after(events: Sequence[Event], kind: str, data: Any) -> list[Event]:
    """Give the history that one more append leads to."""
    return [*events, Event(len(events) + 1, kind, data)]
