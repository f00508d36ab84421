"""Reading beside a writer that is in the middle of a line: what is committed now, or what will be when it is done."""

from __future__ import annotations

import asyncio

from labkit.experiments.homework.half_written import paused_append
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from labkit.faults import file_layer
from solution.durable_log import DurableLog, verify_session


async def read_beside_a_writer(events: int = 5) -> Table:
    """Pause an append when half of its line is on the disk; read in three ways, then let it go on (C22-45)."""
    place = fresh_place("beside")
    async with paused_append(place, events) as log:
        stream = len([event async for event in log.stream()])
        rows: dict[str, dict[str, Cell]] = {
            "stream": {"events": stream, "waited": False},
            "outside-now": _seen_from_outside(log),
        }
        reading = asyncio.create_task(log.read())
        await asyncio.wait([reading], timeout=0.05)
        waited = not reading.done()
        file_layer.release()
        rows["read"] = {"events": len(await reading), "waited": waited}
        rows["outside-later"] = _seen_from_outside(log)
    return Table(rows)


def _seen_from_outside(log: DurableLog) -> dict[str, Cell]:
    """Say what the files hold for a reader that knows nothing of the writer."""
    report = verify_session(log.folder)
    return {"events": report.events, "waited": False, "torn-bytes": report.torn_bytes}
