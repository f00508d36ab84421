"""Lesson 22's store against bare loops that do the same work, byte for byte and check for check.

Whole logs are timed in processor seconds of this process, so that other programs on the machine do not count: nothing
here waits for a disk. The windows of a few milliseconds are wall clock, the least of several.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from solution.lesson_22 import JsonlSessionStore, SessionEvent
from tests.benchmarks.measure import Row, Spread, in_random_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from random import Random

TYPE = "tool_result"
FIELDS = {"sequence", "type", "data"}
WORDS = ("tea", "water", "kettle", "leaf", "cup", "minute", "steam", "pour", "茶", "水", "壶", "杯")
WINDOW = 50
"""Appends timed at once at each size of the log: few, so that the smallest log stays small."""


def make_data(count: int, draw: Random) -> list[dict[str, Any]]:
    """Make the data of `count` events; a record of them is about 200 bytes long."""
    return [
        {
            "todo_id": f"todo-{number % 97:03d}",
            "call_id": f"call-{number:07d}",
            "ok": number % 5 != 0,
            "milliseconds": draw.randrange(10**5) / 10,
            "output": " ".join(draw.choices(WORDS, k=16)),
        }
        for number in range(1, count + 1)
    ]


# --- Append ---


def append_bare(path: Path, data: list[dict[str, Any]]) -> float:
    """Time `json.dumps` and one unbuffered write for each event."""
    path.unlink(missing_ok=True)
    start = time.process_time()
    with path.open("ab", buffering=0) as file:
        for sequence, one in enumerate(data, start=1):
            event = {"sequence": sequence, "type": TYPE, "data": one}
            file.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return time.process_time() - start


def append_awaited(path: Path, data: list[dict[str, Any]]) -> float:
    """Time the store, each append awaited before the next is called."""
    path.unlink(missing_ok=True)

    async def all_of_it() -> float:
        store = JsonlSessionStore(path)
        start = time.process_time()
        for one in data:
            await store.append(TYPE, one)
        return time.process_time() - start

    return asyncio.run(all_of_it())


def compare_appends(folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random) -> Iterable[Row]:
    """Append all of `data` both ways, as often as there are rounds."""
    bare, store = folder / "bare.jsonl", folder / "store.jsonl"
    ways = {"bare": lambda: append_bare(bare, data), "store": lambda: append_awaited(store, data)}
    ratios = [seconds["bare"] / seconds["store"] for seconds in in_random_order(ways, rounds, draw)]
    if bare.read_bytes() != store.read_bytes():
        raise AssertionError(
            "append: the bare loop and the store wrote different bytes; compare their records"
        )
    yield Row(
        "append, awaited one by one",
        "json.dumps + one unbuffered write",
        "×",
        Spread.of(ratios),
        at_least=0.3,
    )


def compare_sizes(
    folder: Path, data: list[dict[str, Any]], sizes: list[int], rounds: int, draw: Random
) -> Iterable[Row]:
    """Append to logs of growing size: the cost of one append must not depend on what is there."""
    stores = {size: JsonlSessionStore(folder / f"{size}.jsonl") for size in sizes}
    for size, store in stores.items():
        asyncio.run(_fill(store, data, size))
    ways = {str(size): partial(_time_window, store, data) for size, store in stores.items()}
    results = list(in_random_order(ways, rounds, draw))
    for size in sizes[1:]:
        cost = Spread.of([seconds[str(size)] / seconds[str(sizes[0])] for seconds in results])
        yield Row(f"cost of an append to {size:,} events", f"to {sizes[0]:,} events", "×", cost, at_most=1.5)


async def _fill(store: JsonlSessionStore, data: list[dict[str, Any]], size: int) -> None:
    for start in range(0, size, len(data)):
        await asyncio.gather(*[store.append(TYPE, one) for one in data[: size - start]])


def _time_window(store: JsonlSessionStore, data: list[dict[str, Any]]) -> float:
    """Time a few appends, several times over; the least is the one that nothing else on the machine disturbed."""

    async def window() -> float:
        start = time.perf_counter()
        for one in data[:WINDOW]:
            await store.append(TYPE, one)
        return time.perf_counter() - start

    return min(asyncio.run(window()) for _ in range(5))


# --- Read ---


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("doubled key")
    return members


def _refuse(_token: str) -> NoReturn:
    raise ValueError("not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("overflow")
    return number


def _levels(text: str) -> int:
    level = deepest = 0
    for bracket in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        level += (bracket in "[{") - (bracket in "]}")
        deepest = max(deepest, level)
    return deepest


def read_bare(path: Path) -> list[SessionEvent]:
    """Read a log in one loop with the format's checks: text, JSON, doubled keys, depth, shape, types, number."""
    decode = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite).decode
    events = []
    for due, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        text = line.decode()
        if text.count("[") + text.count("{") > 101 and _levels(text) > 101:
            raise ValueError(f"line {due}: too deep")
        value = decode(text)
        if not isinstance(value, dict) or value.keys() != FIELDS:
            raise ValueError(f"line {due}: shape")
        sequence, type_ = value["sequence"], value["type"]
        if type(sequence) is not int or sequence != due or not isinstance(type_, str) or not type_.strip():
            raise ValueError(f"line {due}: number or type")
        events.append(SessionEvent(sequence, type_, value["data"]))
    return events


def compare_reads(folder: Path, data: list[dict[str, Any]], rounds: int, draw: Random) -> Iterable[Row]:
    """Read the same log both ways, as often as there are rounds."""
    path = folder / "read.jsonl"
    append_bare(path, data)
    if read_bare(path) != asyncio.run(JsonlSessionStore(path).read()):
        raise AssertionError("read: the bare loop and the store give different events; compare their checks")
    ways = {
        "bare": lambda: _seconds(lambda: read_bare(path)),
        "store": lambda: _seconds(lambda: asyncio.run(JsonlSessionStore(path).read())),
    }
    ratios = [seconds["bare"] / seconds["store"] for seconds in in_random_order(ways, rounds, draw)]
    yield Row("read", "a bare loop with the same checks", "×", Spread.of(ratios), at_least=0.9)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
