"""The crash proof: 100 events, a crash at every byte of the writing, and every byte of what was written damaged."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, cast

from labkit.experiments.homework.tables import fresh_place
from labkit.words import t
from solution.durable_log import CorruptLogError, DurableLog, Head, Scan
from solution.durable_log.record import BEGINNING


async def cut_and_flip(events: int = 100) -> dict[str, list[str]]:
    """Return a verdict for each byte: the log ends before it, and one bit of it is flipped (C22-54).

    What stands before the line in question is proved once; each verdict then is the reader's on the rest alone.
    """
    root = fresh_place("crash-proof")
    async with await DurableLog.open("proof", root=root, durability="os") as log:
        for number in range(events):
            await log.append("step", {"number": number})
    lines = next((root / "proof").glob("0*.jsonl")).read_bytes().splitlines(keepends=True)
    cuts, flips = [], []
    for line, after, head in _with_neighbours(lines):
        cuts += [_after_cut(line[:at], head) for at in range(len(line))]
        flips += [_after_flip(line, at, after, head) for at in range(len(line))]
    return {t("homework.cut-here"): [*cuts, "whole"], t("homework.flipped-here"): [*flips, "whole"]}


def _with_neighbours(lines: list[bytes]) -> Iterator[tuple[bytes, bytes, Head]]:
    """Give each line, the one behind it, and the proved head before it."""
    head = BEGINNING
    for line, after in zip(lines, [*lines[1:], b""], strict=True):
        yield line, after, head
        head = _read(line, head).head


def _read(raw: bytes, head: Head) -> Scan:
    scan = Scan(cast("IO[bytes]", io.BytesIO(raw)), before=head, name="log")
    for _ in scan.blocks():
        pass
    return scan


def _after_cut(rest: bytes, head: Head) -> str:
    """Judge a log that ends inside a line. A record that lacks only its newline counts."""
    try:
        scan = _read(rest, head)
    except CorruptLogError:
        return "refused"
    return "torn" if scan.report.torn_bytes else "whole"


def _after_flip(line: bytes, at: int, after: bytes, head: Head) -> str:
    flipped = line[:at] + bytes([line[at] ^ 1 << at % 8]) + line[at + 1 :]
    try:
        scan = _read(flipped + after, head)
    except CorruptLogError:
        return "refused"
    # With nothing behind it, a line whose newline was hit looks like one that was never finished.
    return "torn" if scan.report.torn_bytes and not after else "wrong"
