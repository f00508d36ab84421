"""Bytes of a log as rows to look at: offset, hex, text, and what each byte is worth."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from labkit.views.read_report import Outcome, ReadReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROW_BYTES = 16
WINDOW_BYTES = 960
"""How many bytes around the point of interest are drawn. The counts are always those of the whole file."""

_NAMED = {0x0A: "⏎", 0x0D: "␍", 0x09: "␉", 0x00: "␀", 0x20: "·"}
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class Mark(StrEnum):
    """What the read report says about a byte."""

    GOOD = "good"
    TORN = "torn"
    DAMAGED = "damaged"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Cell:
    """One character with all its bytes, or a single byte that is part of none."""

    hex: str
    glyph: str
    name: str
    mark: Mark
    changed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Up to 16 bytes. ``offset`` counts bytes from 0; ``line`` is set, 1-based, where a line begins."""

    offset: int
    line: int | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ByteView:
    """The window ``start`` to ``end`` (bytes) around ``focus``, and the counts of bytes for the whole file."""

    size: int
    start: int
    end: int
    focus: int
    rows: tuple[Row, ...]
    counts: Mapping[Mark, int]
    changed_bytes: int


def byte_view(
    raw: bytes, report: ReadReport, *, focus: int | None = None, before: bytes | None = None
) -> ByteView:
    """Show ``raw`` around the byte ``focus`` (default: its end), marked as ``report`` judges it.

    ``before`` is what the file held at the last action: bytes that differ from it, or are new, are marked changed.
    """
    focus = len(raw) if focus is None else focus
    start, end = _window(raw, focus)
    marks = _Marks(raw, report, before)
    first_line = raw.count(b"\n", 0, start) + 1
    return ByteView(
        size=len(raw),
        start=start,
        end=end,
        focus=focus,
        rows=tuple(_rows(raw, start, end, first_line, marks)),
        counts=marks.counts(),
        changed_bytes=marks.count_changed(),
    )


def standing(before: bytes, now: bytes) -> bytes:
    """Return what of ``before`` an append left standing: all of it, or the whole lines in front of what was cut."""
    if now.startswith(before):
        return before
    common = next((at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(now))
    return before[: before.rfind(b"\n", 0, common) + 1]


def _window(raw: bytes, focus: int) -> tuple[int, int]:
    """Return the bytes to draw: whole lines where they are short enough, whole characters always."""
    start = max(0, min(focus - WINDOW_BYTES * 2 // 3, len(raw) - WINDOW_BYTES))
    end = min(len(raw), start + WINDOW_BYTES)
    if start:
        line_start = raw.rfind(b"\n", max(0, start - 4 * ROW_BYTES), start) + 1
        start = line_start or start
    return _character_edge(raw, start, -1), _character_edge(raw, end, 1)


class _Marks:
    """What each byte is worth, by offset."""

    def __init__(self, raw: bytes, report: ReadReport, before: bytes | None) -> None:
        self._raw, self._before = raw, before
        self._good_end = report.good_bytes
        self._torn = report.outcome is Outcome.TORN
        self._damaged_end = report.good_bytes
        if report.outcome is Outcome.CORRUPT:
            newline = raw.find(b"\n", report.good_bytes)
            self._damaged_end = len(raw) if newline < 0 else newline + 1

    def at(self, offset: int) -> Mark:
        if offset < self._good_end:
            return Mark.GOOD
        if self._torn:
            return Mark.TORN
        return Mark.DAMAGED if offset < self._damaged_end else Mark.UNREAD

    def counts(self) -> dict[Mark, int]:
        rest = len(self._raw) - self._damaged_end
        return {
            Mark.GOOD: self._good_end,
            Mark.TORN: rest if self._torn else 0,
            Mark.DAMAGED: self._damaged_end - self._good_end,
            Mark.UNREAD: 0 if self._torn else rest,
        }

    def changed(self, start: int, end: int) -> bool:
        return self._before is not None and self._raw[start:end] != self._before[start:end]

    def count_changed(self) -> int:
        if self._before is None or self._before == self._raw:
            return 0
        common = min(len(self._raw), len(self._before))
        both = (int.from_bytes(side[:common]) for side in (self._raw, self._before))
        differences = (next(both) ^ next(both)).to_bytes(common)  # one big XOR: 1 MB in milliseconds
        return len(self._raw) - differences.count(0)


def _rows(raw: bytes, start: int, end: int, line: int, marks: _Marks) -> Iterator[Row]:
    cells: list[Cell] = []
    row_start, begins_line = start, start == 0 or raw[start - 1 : start] == b"\n"
    for at, size in _characters(raw, start, end):
        if cells and at + size - row_start > ROW_BYTES:
            yield Row(row_start, line if begins_line else None, tuple(cells))
            cells, row_start, begins_line = [], at, False
        cells.append(_cell(raw, at, size, marks))
        if raw[at] == 0x0A:
            yield Row(row_start, line if begins_line else None, tuple(cells))
            cells, row_start, begins_line, line = [], at + size, True, line + 1
    if cells:
        yield Row(row_start, line if begins_line else None, tuple(cells))


def _characters(raw: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield offset and size of each whole UTF-8 character; a byte that belongs to none stands alone."""
    at = start
    while at < end:
        size = _announced_size(raw[at])
        try:
            raw[at : at + size].decode()
            whole = at + size <= len(raw)
        except UnicodeDecodeError:
            whole = False
        size = size if whole else 1
        yield at, size
        at += size


def _character_edge(raw: bytes, at: int, step: int) -> int:
    """Move off the middle of a character, which is three bytes away at most; bytes that form none stay."""
    for edge in (at, at + step, at + 2 * step, at + 3 * step):
        if not 0 < edge < len(raw) or raw[edge] & 0xC0 != 0x80:
            return edge
    return at


def _announced_size(lead: int) -> int:
    if lead < 0xC0:
        return 1
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _cell(raw: bytes, at: int, size: int, marks: _Marks) -> Cell:
    piece = raw[at : at + size]
    glyph, name = _glyph(piece)
    return Cell(piece.hex(" ").upper(), glyph, name, marks.at(at), marks.changed(at, at + size))


def _glyph(piece: bytes) -> tuple[str, str]:
    """Return what to show for a character, and its Unicode name where that is worth knowing."""
    if len(piece) == 1 and piece[0] in _NAMED:
        return _NAMED[piece[0]], ""
    try:
        character = piece.decode()
    except UnicodeDecodeError:
        return _UNKNOWN, ""
    if len(piece) == 1:
        return (character, "") if character.isprintable() else (_UNKNOWN, "")
    name = f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
    return (character if character.isprintable() and not unicodedata.combining(character) else _UNKNOWN), name
