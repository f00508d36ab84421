"""Writing again, and writing late: an event id that makes a retry safe, an expected version that stops old knowledge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from labkit import actions
from labkit.experiments.asking import Answer, answer_to
from labkit.experiments.homework.on_disk import lines, records
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import DurableLog

WRITTEN_AND_FAILED = {"op": ["fsync", "fdatasync"], "match": "0*.jsonl", "do": "full,EIO", "nth": 2}
"""The first sync of the log comes when it is opened; the second does its work, and reports an error all the same."""
BALANCE = 100


async def retry_after_failure(ids: Sequence[str] = ("payment-7",) * 3) -> Table:
    """Append with a disk that does its work and reports an error; open again and retry (C22-42).

    First without an id; then each of three attempts, with an opening of its own, under one of `ids`.
    """
    place = fresh_place("retry")
    rows: dict[str, dict[str, Cell]] = {}
    attempts: dict[str, Sequence[str | None]] = {"without-id": (None, None), "with-id": ids}
    for name, (first_id, *more) in attempts.items():
        session = place / name
        with actions.disturbed(place, WRITTEN_AND_FAILED):
            first = await _pay(session, first_id)
        rows[name] = {"first-try": first.short, "then-on-disk": len(lines(session))}
        retries = [(await _pay(session, event_id)).short for event_id in more]
        rows[name] |= dict(zip(("retry", "another-retry"), [*retries, "–"], strict=False))
        rows[name] |= {"on-disk": len(lines(session)), "paid": _paid(session), "said": first.said}
    return Table(rows)


async def _pay(session: Path, event_id: str | None) -> Answer:
    """Open the session, as a restarted program does, and append the payment."""
    async with await DurableLog.open(session.name, root=session.parent, durability="fsync") as log:
        return await answer_to(log.append("paid", {"amount": 80}, event_id=event_id))


def _paid(session: Path) -> int:
    return sum(record["data"]["amount"] for record in records(session) if record["type"] == "paid")


async def two_decide_at_once(amount: int = 80) -> Table:
    """Let two agents read one balance and then both spend of it, without an expected version and with one (C22-43)."""
    place = fresh_place("versions-expected")
    rows: dict[str, dict[str, Cell]] = {}
    for name in ("no-version", "with-version"):
        async with await DurableLog.open(name, root=place, durability="os") as log:
            await log.append("received", {"amount": BALANCE})
            both_know, answers = asyncio.Barrier(2), list[Answer]()
            agents = (
                _spend(log, both_know, answers, amount, versioned=name == "with-version") for _ in range(2)
            )
            await asyncio.gather(*agents)
        earlier, later = answers
        rows[name] = {
            "earlier": earlier.short,
            "later": later.short,
            "on-disk": len(lines(place / name)),
            "balance": BALANCE - _paid(place / name),
            "said": later.said,
        }
    return Table(rows)


async def _spend(
    log: DurableLog, both_know: asyncio.Barrier, answers: list[Answer], amount: int, *, versioned: bool
) -> None:
    """Read, decide on what was read, and append the decision when the other agent has read as well."""
    history = await log.read()
    await both_know.wait()
    known = history[-1].sequence if versioned else None
    answers.append(await answer_to(log.append("paid", {"amount": amount}, expected_version=known)))
