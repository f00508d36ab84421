"""What a record promises its reader: a version, a bounded size, and an order that owes nothing to any clock."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from labkit.experiments.asking import answer_to
from labkit.experiments.homework.on_disk import digest, lines, records
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import Blobs, DurableLog, Event, UnknownVersionError
from solution.durable_log.schemas import Schema, Schemas

HOUR_NS = 3_600_000_000_000


class Payment(msgspec.Struct, forbid_unknown_fields=True):
    """What every version of the event looks like; what `amount` counts is for the version to say."""

    amount: int


def upcast_v1_v2(data: dict[str, Any]) -> dict[str, Any]:
    """Version 1 counted whole units, version 2 counts hundredths."""
    return {"amount": data["amount"] * 100}


def _as_it_is(data: Any) -> Any:
    return data


YESTERDAY = Schemas(Schema("paid", Payment))
TODAY = Schemas(Schema("paid", Payment, upcast_v1_v2))


async def other_versions(newer: int = 99) -> Table:
    """Write with the first version of a program and with a much newer one; read both with today's, the second (C22-33)."""
    place = fresh_place("versions")
    rows: dict[str, dict[str, Cell]] = {}
    some_day = Schemas(Schema("paid", Payment, *[_as_it_is] * (newer - 1)))
    for name, program in (("older", YESTERDAY), ("newer", some_day)):
        async with await DurableLog.open(name, root=place, durability="os", schemas=program) as log:
            await log.append("paid", {"amount": 30})
        session, before = place / name, digest(place / name)
        (stored,) = records(session)
        cells: dict[str, Cell] = {"stored-v": stored["v"], "ignoring-v": stored["data"]["amount"]}
        async with await DurableLog.open(name, root=place, durability="os", schemas=TODAY) as log:
            try:
                (event,) = await log.read()
                cells |= {"read-v": event.v, "read-amount": event.data["amount"]}
            except UnknownVersionError as refusal:
                cells |= {"read-v": "refused-word", "read-amount": "refused-word", "said": str(refusal)}
        rows[name] = {**cells, "unchanged": digest(session) == before}
    return Table(rows)


async def big_content(kilobytes: int = 5000) -> Table:
    """Append a big text inside an event, then by reference, then the same reference again (C22-34)."""
    place = fresh_place("big-content")
    text = "x" * (kilobytes * 1000)
    rows: dict[str, dict[str, Cell]] = {}
    async with await DurableLog.open("demo", root=place, durability="os") as log:
        blobs, session = Blobs(log.folder), log.folder.path
        for name in ("directly", "by-reference", "once-more"):
            before = len(lines(session))
            page = text if name == "directly" else blobs.put(text.encode())
            answer = await answer_to(log.append("page_fetched", {"page": page}))
            cells: dict[str, Cell] = {
                "answer": answer.short,
                "line-bytes": len(b"".join(lines(session)[before:])),
            }
            rows[name] = {**cells, **_listed(log.folder.blobs_path), "said": answer.said}
    return Table(rows)


def _listed(folder: Path) -> dict[str, Cell]:
    contents = {path.name: path.read_bytes() for path in folder.glob("*")}
    return {
        "blob-files": len(contents),
        "blob-bytes": sum(map(len, contents.values())),
        "named-by-hash": all(name == hashlib.sha256(raw).hexdigest() for name, raw in contents.items())
        if contents
        else "–",
    }


async def clock_turned_back(hours: int = 1) -> Table:
    """Call two tools; the second finishes first, and before the first one does, the clock is turned back (C22-41)."""
    place = fresh_place("clock")
    async with await DurableLog.open("demo", root=place, durability="os") as log:
        quick_done = asyncio.Event()
        async with asyncio.TaskGroup() as tools:
            tools.create_task(_slow_tool(log, quick_done, hours))
            tools.create_task(_quick_tool(log, quick_done))
    return Table(_as_rows(records(place / "demo")))


async def _slow_tool(log: DurableLog, quick_done: asyncio.Event, hours: int) -> None:
    call = await log.append("tool_called", {"tool": "slow"}, correlation_id="round-1")
    await quick_done.wait()
    with clock_set_back(hours):
        await _finish(log, call)


async def _quick_tool(log: DurableLog, quick_done: asyncio.Event) -> None:
    await _finish(log, await log.append("tool_called", {"tool": "quick"}, correlation_id="round-1"))
    quick_done.set()


async def _finish(log: DurableLog, call: Event) -> None:
    await log.append("tool_result", call.data, causation_id=call.event_id, correlation_id=call.correlation_id)


@contextmanager
def clock_set_back(hours: int) -> Iterator[None]:
    """Turn back the clock that this process reads; the machine's is not ours to turn."""
    real = time.time_ns
    time.time_ns = lambda: real() - hours * HOUR_NS
    try:
        yield
    finally:
        time.time_ns = real


def _as_rows(stored: list[dict[str, Any]]) -> dict[str, dict[str, Cell]]:
    sequence_of = {record["event_id"]: record["sequence"] for record in stored}
    by_clock = sorted(stored, key=lambda record: record["occurred_at"])
    return {
        f"{record['type']} · {record['data']['tool']}": {
            "sequence": record["sequence"],
            "clock": record["occurred_at"],
            "caused-by": sequence_of.get(record["causation_id"], "–"),
            "place-by-clock": by_clock.index(record) + 1,
        }
        for record in stored
    }
