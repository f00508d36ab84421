"""What the grader draws afresh for every run of the homework, and the lines that it plants (docs/formats.md)."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random


def word(draw: Random) -> str:
    """Draw a text that occurs nowhere else: a stem and six hexadecimal digits."""
    return f"{draw.choice(('note', 'file', 'step', 'item', 'unit'))}_{draw.getrandbits(24):06x}"


def some_lines(draw: Random, count: int) -> list[str]:
    """Draw `count` lines of text, each with its newline; characters of one to four bytes."""
    return [f"{word(draw)} 读取 naïve 🧪 {draw.getrandbits(32)}\n" for _ in range(count)]


def some_payload(draw: Random) -> bytes:
    """Draw one line of JSON: escapes beside plain characters, a real number, and what only looks like the end of a line."""
    data = {"type": word(draw), "text": f"é 读取 {word(draw)}", "share": draw.randrange(1, 1000) / 8}
    escaped = json.dumps({"path": f"é\\{word(draw)}"})
    return f"{json.dumps(data, ensure_ascii=False)[:-1]},\r\u2028{escaped[1:]}".encode()


def sealed(payload: bytes) -> bytes:
    """Write the line of one payload, with its newline, as a writer does."""
    digits = f"{zlib.crc32(payload):08x}"
    return digits.encode() + b" " + payload + b"\n"


def sealed_log(payloads: Iterable[bytes]) -> bytes:
    """Write a whole log."""
    return b"".join(map(sealed, payloads))
