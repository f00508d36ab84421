"""A file as physical lines: only the byte 0A ends one, and none is held that is longer than the cap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 32 << 20
"""What a line may have before it is called too long to judge; a reader holds at most a few times as much."""


class Line(NamedTuple):
    """One physical line: its 1-based number, its offset and size in bytes (the newline not counted), and its bytes.

    `raw` is None for a line over the cap; then `only_nul` says whether it holds nothing but NUL bytes.
    `ended` is false for bytes behind the last newline.
    """

    number: int
    offset: int
    raw: bytes | None
    size: int
    ended: bool = True
    only_nul: bool = False


class Block(NamedTuple):
    """Whole lines that follow each other: the number and offset of the first, and all their bytes, each with its 0A."""

    number: int
    offset: int
    data: bytes

    def lines(self, raws: list[bytes]) -> Iterator[Line]:
        """Give the lines one by one; `raws` are their bytes."""
        number, offset = self.number, self.offset
        for raw in raws:
            yield Line(number, offset, raw, len(raw))
            number, offset = number + 1, offset + len(raw) + 1

    def raws(self) -> list[bytes]:
        """Give the bytes of each line."""
        lines = self.data.split(b"\n")
        lines.pop()
        return lines


def blocks(read: Callable[[int], bytes], max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Block | Line]:
    """Give a file's lines in blocks of about a chunk; alone the line that is over the cap, or that was not ended.

    `read(n)` gives at most n bytes, and b"" at the end.
    """
    number, offset = 1, 0
    begun = _Begun(max_line_bytes)
    while chunk := read(CHUNK_BYTES):
        first = chunk.find(b"\n")
        if first < 0:
            begun.add(chunk)
            continue
        end = chunk.rfind(b"\n") + 1
        if begun.size + first > max_line_bytes:
            begun.add(chunk[:first])
            yield begun.line(number, offset)
            number, offset = number + 1, offset + begun.size + 1
            data = chunk[first + 1 : end]
        else:
            data = begun.raw + chunk[:end] if begun.size else chunk[:end]
        if data:
            yield Block(number, offset, data)
            number, offset = number + data.count(b"\n"), offset + len(data)
        begun = _Begun(max_line_bytes)
        begun.add(chunk[end:])
    if begun.size:
        yield begun.line(number, offset)._replace(ended=False)


class _Begun:
    """A line in the making: its bytes as long as they are within the cap, its size always."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._only_nul = True
        self.size = 0

    @property
    def raw(self) -> bytes:
        return b"".join(self._parts)

    def add(self, part: bytes) -> None:
        self.size += len(part)
        self._only_nul = self._only_nul and not part.strip(b"\0")
        if self.size <= self._most:
            self._parts.append(part)
        else:
            self._parts.clear()

    def line(self, number: int, offset: int) -> Line:
        if self.size > self._most:
            return Line(number, offset, None, self.size, only_nul=self._only_nul)
        return Line(number, offset, self.raw, self.size)
