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
_TEXTS = (
    "读取配置",
    "naïve café",
    "a b\u2028c",
    "线上\u0085告警",
    'quote " and \\ slash',
    "tab\tand\nnewline",
    "🧪 test",
)


def word(draw: Random) -> str:
    """Draw a text that occurs nowhere else: a stem and six hexadecimal digits."""
    return f"{draw.choice(('note', 'file', 'step', 'item', 'unit'))}_{draw.getrandbits(24):06x}"


def some_type(draw: Random) -> str:
    """Draw an event type of the lesson's kind."""
    return f"{draw.choice(_DEEDS)}_{draw.getrandbits(24):06x}"


def some_data(draw: Random) -> Any:
    """Draw a small JSON value: every kind of leaf, characters of one to four bytes, separators that end no line."""
    leaf: Any = draw.choice(
        (
            draw.choice(_TEXTS) + word(draw),
            draw.randrange(10**6, 10**9),
            draw.randrange(-(10**6), 10**6) / 8,
            2**64 + draw.getrandbits(20),
            draw.choice((None, True, False, "", [], {})),
        )
    )
    return draw.choice(
        (
            lambda: {"todo_id": word(draw), "value": leaf},
            lambda: {"path": [word(draw), leaf], "ok": draw.choice((True, False)), "n": draw.randrange(1000)},
            lambda: [leaf, {"note": word(draw)}],
            lambda: word(draw),
        )
    )()


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
