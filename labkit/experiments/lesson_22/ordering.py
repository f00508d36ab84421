"""Who comes first: the race for a number, the queue that ends it, and the moment that fixes the order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit import actions
from labkit.experiments.bench import NO_ANSWER, Bench, Seen, compare
from labkit.naive import CoroutineStore, LateStore, LuckyStore, PreparingStore, UnsafeStore, WriteLockedStore


@dataclass(frozen=True, slots=True)
class Race:
    """Three appends at once: what each store left on disk, and by store who read and wrote when."""

    seen: Seen
    steps: dict[str, list[actions.Step]]


async def race_for_a_number() -> Race:
    """Call ``append`` for a, b and c before awaiting any; underneath, everyone waits until all have read (C22-09)."""
    steps: dict[str, list[actions.Step]] = {}

    async def script(bench: Bench) -> None:
        # Two of them are sure to fill the barrier, however slow the machine; the others only pass it by and by.
        sure = bench.folder.name in ("UnsafeStore", "WriteLockedStore")
        ran = steps[bench.folder.name] = await actions.race(bench.store, hold=10 if sure else 0.1)
        for step in ran:
            if step.kind == "call":
                bench.note(f"append({step.lane!r}, None)", step.number)

    naive = {store.__name__: store for store in (LuckyStore, UnsafeStore, WriteLockedStore)}
    return Race(await compare("race", script, **naive), steps)


async def hundred_at_once() -> Seen:
    """Call ``append`` a hundred times before awaiting any, on a disk whose first write is slow (C22-10).

    The one call noted answers with the numbers in the order in which the appends *finished*.
    """

    async def script(bench: Bench) -> None:
        async def all_at_once() -> list[int]:
            finished: list[int] = []

            def note(done: asyncio.Future[Any]) -> None:
                if not done.cancelled() and not done.exception():
                    finished.append(done.result().sequence)

            waiting = [asyncio.ensure_future(bench.store.append(f"step_{n}", None)) for n in range(1, 101)]
            for call in waiting:
                call.add_done_callback(note)
            await asyncio.gather(*waiting)
            return finished

        with bench.fault("write", "slow"):
            await bench.call("100 × append", all_at_once)

    return await compare("hundred-at-once", script)


async def awaited_backwards() -> Seen:
    """Call for a, then for b; await b first, then a (C22-11)."""

    async def script(bench: Bench) -> None:
        first = bench.store.append("a", "a long story, told in many words")
        second = bench.store.append("b", "b")
        bench.note("c1 = append('a', …); c2 = append('b', …)", NO_ANSWER)
        await bench.call("await c2", lambda: second)
        await bench.call("await c1", lambda: first)

    return await compare(
        "awaited-backwards", script, CoroutineStore=CoroutineStore, PreparingStore=PreparingStore
    )


async def changed_while_queued() -> Seen:
    """Append under a type with white space around it, and change the data before its turn comes (C22-20)."""

    async def script(bench: Bench) -> None:
        data = {"note": "as it was at the call"}
        waiting = bench.store.append(" todo ", data)
        data["note"] = "CHANGED LATER"
        await bench.call("append(' todo ', data); data['note'] = …", lambda: waiting)

    return await compare("changed-while-queued", script, LateStore=LateStore)


async def not_json() -> Seen:
    """Append four values that JSON does not have, then a good one (C22-19)."""
    cycle: list[object] = []
    cycle.append(cycle)
    refused = {"cycle": cycle, "set": {1, 2}, "NaN": float("nan"), "lone surrogate": "\ud83d"}

    async def script(bench: Bench) -> None:
        for what, data in refused.items():
            await bench.append("bad", data, shown=what)
        await bench.append("good", {"n": 1})

    return await compare("not-json", script)


async def reader_changes_its_copy() -> Seen:
    """Read, change the nested data of the event that was returned, and read again (C22-21)."""

    async def script(bench: Bench) -> None:
        await bench.append("step", {"items": ["bread"]})
        mine = await bench.store.read()
        mine[0].data["items"].append("MINE")
        bench.note("mine = read(); mine[0].data", mine[0].data)
        await bench.call("read()[0].data", lambda: _data_of_first(bench.store.read))

    return await compare("readers-copy", script)


async def _data_of_first(read: Callable[[], Any]) -> Any:
    return (await read())[0].data
