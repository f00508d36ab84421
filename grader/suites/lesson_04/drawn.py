"""What the grader draws afresh for every run: tasks, words, values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

ACCEPTANCE = "acceptance/punctuation-search.test.mjs"


def word(draw: Random) -> str:
    """Draw a text that occurs nowhere else: a stem and six hexadecimal digits."""
    return f"{draw.choice(('fern', 'moss', 'reed', 'sage', 'vine'))}-{draw.getrandbits(24):06x}"


def task(draw: Random, **fields: Any) -> dict[str, Any]:
    """Draw a task that the simulated agent can do."""
    return {
        "id": word(draw),
        "title": f"标题 {word(draw)}",
        "goal": f'{word(draw)} “目标” \\ "goal"\n{word(draw)}',
        "acceptance": ACCEPTANCE,
        **fields,
    }


def value(draw: Random) -> dict[str, Any]:
    """Draw a JSON object. Its shape is always the same, so that no verdict hangs on the luck of the draw."""
    return {
        word(draw): {"b": [1, 2.5, True, None, {"z": word(draw), "a": draw.randrange(10**6)}], "a": {}},
        "text": f'{word(draw)} 摘要 "naïve" \\ 🧪\n',
        "count": draw.randrange(1000, 10**9),
        "share": draw.randrange(1, 1000) / 8,
    }


def shuffled(draw: Random, content: Any) -> Any:
    """Give the same JSON value with the keys of every object in another order."""
    if isinstance(content, dict):
        keys = list(content)
        draw.shuffle(keys)
        return {key: shuffled(draw, content[key]) for key in (*keys[1:], *keys[:1])}
    return [shuffled(draw, item) for item in content] if isinstance(content, list) else content


def event(sequence: int, kind: str, **fields: Any) -> bytes:
    """Write one line of a log."""
    value = {"sequence": sequence, "type": kind, "at": "2026-03-01T00:00:00.000Z", **fields}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
