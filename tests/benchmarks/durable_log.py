"""`durable_log` against bare loops, and how its cost grows with the log: the rows of "Speed and memory".

What no disk is waited for is timed in processor seconds of this process; syncs, reopening and whole commands in wall
clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from solution.durable_log import DurableLog, Event, Limits, Scan
from tests.benchmarks.event_log import TYPE, append_bare
from tests.benchmarks.measure import Row, Spread, in_random_order

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from solution.durable_log import Durability

KIT = Path(__file__).resolve().parents[2]
Clock = Callable[[], float]
_CALLERS = 100
_WINDOW = 50
_TOGETHER = 1000


def fresh(folder: Path) -> Path:
    """Give an empty folder, private, for one run."""
    place = folder / "log"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    return place


def append_one_by_one(
    folder: Path, data: list[dict[str, Any]], durability: Durability, clock: Clock = time.perf_counter
) -> float:
    """Time the public API, each append awaited before the next is called."""

    async def all_of_it() -> float:
        async with await DurableLog.open("tea", root=folder, durability=durability) as log:
            start = clock()
            for one in data:
                await log.append(TYPE, one)
            return clock() - start

    return asyncio.run(all_of_it())


def append_concurrently(
    folder: Path,
    data: list[dict[str, Any]],
    callers: int,
    durability: Durability,
    clock: Clock = time.perf_counter,
) -> float:
    """Time the public API with many callers, each of which awaits its own append before its next."""

    async def one_caller(log: DurableLog, share: list[dict[str, Any]]) -> None:
        for one in share:
            await log.append(TYPE, one)

    async def all_of_it() -> float:
        async with await DurableLog.open("tea", root=folder, durability=durability) as log:
            start = clock()
            await asyncio.gather(*[one_caller(log, data[first::callers]) for first in range(callers)])
            return clock() - start

    return asyncio.run(all_of_it())


def sync_bare(folder: Path, data: list[dict[str, Any]]) -> float:
    """Time `json.dumps`, one unbuffered write and one fsync for each event."""
    with (folder / "bare.jsonl").open("ab", buffering=0) as file:
        start = time.perf_counter()
        for sequence, one in enumerate(data, 1):
            event = {"sequence": sequence, "type": TYPE, "data": one}
            file.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            os.fsync(file.fileno())
        return time.perf_counter() - start


def compare_appends(folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random) -> Iterator[Row]:
    """Append with chain and without sync against the bare loop of lesson 22."""
    ways = {
        "bare": lambda: append_bare(fresh(folder) / "bare.jsonl", data),
        "callers": lambda: append_concurrently(fresh(folder), data, _CALLERS, "os", time.process_time),
        "one": lambda: append_one_by_one(fresh(folder), data, "os", time.process_time),
    }
    results = list(in_random_order(ways, rounds, draw))
    for way, name, target in (("callers", f"{_CALLERS} callers", 1.0), ("one", "one by one", 0.6)):
        ratio = Spread.of([seconds["bare"] / seconds[way] for seconds in results])
        yield Row(
            f"durable_log append, chain, {name}",
            "json.dumps + one unbuffered write",
            "×",
            ratio,
            at_least=target,
        )


# --- Read ---


def _read_stdlib(path: Path) -> list[Event]:
    """Read in one loop: strict UTF-8, `json.loads`, exact fields and types, the number that is due."""
    fields = Event.__struct_fields__
    types = (int, str, int, str, str, object, str, object, object, str, str)
    events = []
    for due, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        value = json.loads(line.decode())
        if tuple(value) != fields or value["sequence"] != due:
            raise ValueError(f"line {due}")
        if any(
            type(one) is not kind
            for one, kind in zip(value.values(), types, strict=True)
            if kind is not object
        ):
            raise ValueError(f"line {due}")
        events.append(Event(**value))
    return events


def compare_reads(folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random) -> Iterator[Row]:
    """Read one log with and without its chain against a loop of the standard library, and msgspec alone."""
    place = fresh(folder)
    append_concurrently(place, data, _CALLERS, "os")
    path = min((place / "tea").glob("*.jsonl"))  # a long log has more than one segment
    decode = msgspec.json.Decoder(Event).decode
    ways: dict[str, Callable[[], list[Event]]] = {
        "stdlib": lambda: _read_stdlib(path),
        "msgspec": lambda: [decode(line) for line in path.read_bytes().split(b"\n")[:-1]],
        "plain": lambda: list(Scan(path, verify_chain=False)),
        "chain": lambda: list(Scan(path)),
    }
    if len({tuple(event.event_hash for event in read()) for read in ways.values()}) != 1:
        raise AssertionError("read: the ways give different events; compare their checks")
    timed = {name: lambda read=read: _seconds(read) for name, read in ways.items()}
    results = list(in_random_order(timed, rounds, draw))
    for way, base, name, target in (
        ("plain", "stdlib", "a loop of the standard library with its checks", 3.0),
        ("plain", "msgspec", "msgspec decoding alone", 0.75),
        ("chain", "stdlib", "a loop of the standard library with its checks", 0.8),
    ):
        ratio = Spread.of([seconds[base] / seconds[way] for seconds in results])
        what = "with" if way == "chain" else "without"
        yield Row(f"durable_log read, {what} chain", name, "×", ratio, at_least=target)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# --- Growth ---


def compare_sizes(folder: Path, data: list[dict[str, Any]], sizes: list[int], streamed: int) -> Iterator[Row]:
    """Grow one log through `sizes` events: cost of an append at each, reopening the last, streaming `streamed` bytes."""
    place = fresh(folder)
    costs = asyncio.run(_grow(place, data, sizes))
    for size in sizes[1:]:
        cost = Spread.of([costs[size] / costs[sizes[0]]])
        base = f"to {sizes[0]:,} events"
        yield Row(f"durable_log, an append to {size:,} events", base, "×", cost, at_most=1.5)
    seconds = Spread.of([asyncio.run(_reopen(place)) for _ in range(3)])
    yield Row(f"durable_log, reopening {sizes[-1]:,} events", "wall clock", "s", seconds, at_most=1)
    memory, read = _stream_in_a_child(place, streamed)
    name = f"durable_log, streaming {read / 1e9:.2g} GB"
    yield Row(name, "most memory, interpreter included", "MB", Spread.of([memory / 1e6]), at_most=100)
    shutil.rmtree(place)


async def _grow(place: Path, data: list[dict[str, Any]], sizes: list[int]) -> dict[int, float]:
    costs: dict[int, float] = {}
    async with await DurableLog.open(
        "tea", root=place, durability="os", limits=Limits(waiting=_TOGETHER)
    ) as log:
        size = 0
        for target in sizes:
            while size < target:
                some = data[: min(_TOGETHER, target - size)]
                await asyncio.gather(*[log.append(TYPE, one) for one in some])
                size += len(some)
            costs[target] = min([await _window(log, data) for _ in range(9)])
            size += 9 * _WINDOW
    return costs


async def _window(log: DurableLog, data: list[dict[str, Any]]) -> float:
    start = time.perf_counter()
    for one in data[:_WINDOW]:
        await log.append(TYPE, one)
    return time.perf_counter() - start


async def _reopen(place: Path) -> float:
    start = time.perf_counter()
    log = await DurableLog.open("tea", root=place, durability="os")
    seconds = time.perf_counter() - start
    await log.close()
    return seconds


_STREAM = """
import asyncio, resource, sys
from pathlib import Path
from solution.durable_log import DurableLog
from solution.durable_log.record import encode_event
async def main(root, most):
    read = 0
    async with await DurableLog.open("tea", root=root, durability="os") as log:
        stream = log.stream()
        async for event in stream:
            read += len(encode_event(event)) + 1
            if read >= most: break
        await stream.aclose()
    status = Path("/proc/self/status")  # Linux counts what the parent held into ru_maxrss, and not here
    if status.exists():
        peak = int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak, read)
asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def _stream_in_a_child(place: Path, most: int) -> tuple[int, int]:
    """Give the most memory that a process held while it streamed up to `most` bytes, and how many these were."""
    words = [sys.executable, "-c", _STREAM, str(place), str(most)]
    said = subprocess.run(words, cwd=KIT, check=True, capture_output=True, text=True).stdout
    memory, read = map(int, said.split())
    return memory, read


# --- Foreign logs ---


def time_foreign(folder: Path, size: int, rounds: int, draw: Random) -> Row:
    """Time `statelab log inspect` on a file of another program, its start included; lines of about 2 KB."""
    path = fresh(folder) / "foreign.jsonl"
    words = [f"word{number}" for number in range(500)]
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            message = {
                "role": "assistant",
                "content": [{"type": "text", "text": " ".join(draw.choices(words, k=260))}],
            }
            lines = [
                json.dumps({"uuid": f"{draw.getrandbits(64):016x}", "n": number, "message": message})
                for number in range(500)
            ]
            file.write("\n".join(lines) + "\n")
    command = [sys.executable, "-c", "from labkit.cli import main; main(prog_name='statelab')"]
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(
            [*command, "log", "inspect", "--json", str(path)], cwd=KIT, check=True, stdout=subprocess.DEVNULL
        )
        rates.append(path.stat().st_size / 1e6 / (time.perf_counter() - start))
    path.unlink()
    return Row(
        "`statelab log inspect`, foreign JSONL",
        "wall clock, its start included",
        "MB/s",
        Spread.of(rates),
        at_least=150,
    )


def measure(
    folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random, *, quick: bool
) -> Iterator[tuple[str, Row | None]]:
    """Run every comparison with bare loops; yield each step's title before it begins, then its rows."""
    yield "durable_log append", None
    yield from (("append", row) for row in compare_appends(folder, data, rounds, draw))
    yield "durable_log read", None
    yield from (("read", row) for row in compare_reads(folder, data, rounds, draw))
    sizes = [1_000, 100_000] if quick else [1_000, 100_000, 10_000_000]
    yield f"durable_log grows to {sizes[-1]:,} events", None
    yield from (("sizes", row) for row in compare_sizes(folder, data, sizes, 10**7 if quick else 2 * 10**9))
    yield "statelab log inspect", None
    yield "inspect", time_foreign(folder, 10**8 if quick else 10**9, min(rounds, 3), draw)
