"""What a reader holds in memory: a whole log, or a piece of it; and whether the size of the pieces changes what it finds."""

from __future__ import annotations

import asyncio
import io
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from labkit.experiments.homework.curves import Curves
from labkit.experiments.homework.steps import take_steps
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import CorruptLogError, DurableLog, Limits, Scan
from solution.durable_log.reading import open_log

CAP = 64 << 10
"""Bytes that a line may have for the reader with a cap."""


async def memory_of_reading(events: tuple[int, ...] = (1000, 4000, 16000)) -> Curves:
    """Read logs of growing length, all events at once and one after the other; count the memory in use at most (C22-44)."""
    place = fresh_place("memory")
    rows: dict[str, dict[str, Cell]] = {}
    for many in events:
        async with await DurableLog.open(f"log-{many}", root=place, durability="os") as log:
            await take_steps(log, many)
            whole, streamed = await _most_memory(lambda: _all(log)), await _most_memory(lambda: _each(log))
            size = next(log.folder.path.glob("0*.jsonl")).stat().st_size
        rows[f"{many:,}"] = {"file-kib": size >> 10, "whole-kib": whole >> 10, "streamed-kib": streamed >> 10}
    return Curves(rows, drawn=("whole-kib", "streamed-kib"))


async def _all(log: DurableLog) -> int:
    return len(await log.read())


async def _each(log: DurableLog) -> int:
    count = 0
    async for _ in log.stream():
        count += 1
    return count


async def _most_memory(read: Callable[[], Awaitable[int]]) -> int:
    """Return the bytes that Python had in use at most, beyond what it had before."""
    tracemalloc.start()
    try:
        await read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class _OneByteAtATime(io.RawIOBase):
    """A file whose every read gives one byte, as a slow pipe may."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(min(size, 1))


async def in_small_pieces(events: int = 20, endless: int = 8 << 20) -> Table:
    """Read a log a byte at a time; then one that goes on without a newline, without a cap and with one (C22-44)."""
    place = fresh_place("pieces")
    async with await DurableLog.open("log", root=place, durability="os") as log:
        await take_steps(log, events)
    file = next((place / "log").glob("0*.jsonl"))
    runaway = place / "runaway.jsonl"
    runaway.write_bytes(file.read_bytes() + b'{"v":1,"data":"' + b"x" * endless)
    capped = Limits(record_bytes=CAP, line_bytes=CAP)
    return await asyncio.to_thread(_read_in_pieces, file, runaway, capped)


def _read_in_pieces(file: Path, runaway: Path, capped: Limits) -> Table:
    expected = _offsets_of_lines(file)
    readers: dict[str, tuple[Path, Any, Limits]] = {
        "large-chunks": (file, lambda opened: opened, Limits()),
        "one-byte": (file, _OneByteAtATime, Limits()),
        "no-cap": (runaway, lambda opened: opened, Limits()),
        "cap": (runaway, lambda opened: opened, capped),
    }
    rows: dict[str, dict[str, Cell]] = {}
    for name, (path, pieces, limits) in readers.items():
        with open_log(path) as opened:
            scan = Scan(cast("IO[bytes]", pieces(opened)), limits=limits, name=path.name)
            offsets, most = _scanned(scan)
        rows[name] = {
            "events": len(offsets),
            "offsets-exact": offsets == expected,
            "most-kib": most >> 10,
            "verdict": f"{scan.report.verdict}-word",
            "bad-line": scan.report.line or "–",
        }
    return Table(rows)


def _offsets_of_lines(file: Path) -> list[int]:
    offsets, at = [], 0
    for line in file.read_bytes().splitlines(keepends=True):
        offsets.append(at)
        at += len(line)
    return offsets


def _scanned(scan: Scan) -> tuple[list[int], int]:
    """Return the offset of each event, and the bytes of memory in use at most."""
    offsets: list[int] = []
    tracemalloc.start()
    try:
        with suppress(CorruptLogError):  # the scan's report has it
            for block in scan.blocks():
                offsets += block.offsets()
        return offsets, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
