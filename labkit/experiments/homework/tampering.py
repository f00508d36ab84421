"""History changed behind its reader's back: what a plain log, a hash chain, a stored head and a signature each see."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from labkit.actions import solution_store
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from labkit.views import LogReader, Outcome
from solution.durable_log import CorruptLogError, DurableLog, Event, Head, Scan
from solution.durable_log.record import BEGINNING, encode_event, hash_of

AMOUNTS = [10, 20, 30, 40, 50]
Lines = list[bytes]

_NUMBER = re.compile(rb'"sequence":\d+')


async def _written(place: Path) -> tuple[Path, Path]:
    """Write the same payments to a plain log and to a chained one."""
    plain = place / "plain.jsonl"
    store = solution_store(plain)
    async with await DurableLog.open("payments", root=place, durability="os") as log:
        for amount in AMOUNTS:
            await store.append("paid", {"amount": amount})
            await log.append("paid", {"amount": amount})
    return plain, next((place / "payments").glob("0*.jsonl"))


def _a_digit(lines: Lines) -> Lines:
    return [line.replace(b'"amount":30', b'"amount":80') for line in lines]


def _two_swapped(lines: Lines) -> Lines:
    return _renumbered([lines[0], lines[1], lines[3], lines[2], lines[4]])


def _one_deleted(lines: Lines) -> Lines:
    return _renumbered([*lines[:2], *lines[3:]])


def _renumbered(lines: Lines) -> Lines:
    return [_NUMBER.sub(b'"sequence":%d' % number, line, count=1) for number, line in enumerate(lines, 1)]


CHANGES: dict[str, Callable[[Lines], Lines]] = {
    "a-digit": _a_digit,
    "two-swapped": _two_swapped,
    "one-deleted": _one_deleted,
}


async def alter_history() -> Table:
    """Change a digit; swap two lines and renumber; delete one and renumber. Read with and without a chain (C22-31)."""
    place = fresh_place("altered")
    plain, chained = await _written(place)
    rows: dict[str, dict[str, Cell]] = {}
    for name, change in CHANGES.items():
        altered = {log: place / f"{name}-{log.stem}.jsonl" for log in (plain, chained)}
        for log, copy in altered.items():
            copy.write_bytes(b"".join(change(log.read_bytes().splitlines(keepends=True))))
        report, found = LogReader(altered[plain]).read()[1], _damage(altered[chained])
        rows[name] = {
            "plain-reader": "accepted" if report.outcome is Outcome.WHOLE else "refused-word",
            "plain-events": len(report.events),
            "chain-reader": "refused-word" if found else "accepted",
            "chain-line": found,
        }
    return Table(rows)


def _damage(log: Path) -> int:
    """Return the line at which the chain's reader stops; 0 for none."""
    try:
        for _ in Scan(log):
            pass
    except CorruptLogError as damage:
        return damage.line or 0
    return 0


async def forge_history() -> Table:
    """Rebuild every hash behind a change; drop the last record whole; ask who notices (C22-32).

    The head (number and hash of the last event) was stored by somebody who cannot be reached from the log's folder,
    and signed with a key that is not in it.
    """
    place = fresh_place("forged")
    _, chained = await _written(place)
    events, head = _events(chained)
    key = b"kept by somebody else"
    signed = _signature(head, key)
    forged = {
        "untouched": events,
        "rebuilt": _rebuilt([msgspec.structs.replace(event, data={"amount": 80}) for event in events]),
        "end-dropped": events[:-1],
    }
    rows: dict[str, dict[str, Cell]] = {}
    for name, history in forged.items():
        copy = place / f"{name}.jsonl"
        copy.write_bytes(b"".join(encode_event(event) + b"\n" for event in history))
        reached = _events(copy)[1]
        rows[name] = {
            "chain-holds": _damage(copy) == 0,
            "head-holds": reached == head,
            "signature-holds": hmac.compare_digest(_signature(reached, key), signed),
        }
    return Table(rows)


def _events(log: Path) -> tuple[list[Event], Head]:
    scan = Scan(log)
    return list(scan), scan.head


def _rebuilt(events: list[Event]) -> list[Event]:
    """Return a history whose hashes fit, made the way that anybody can make one who can write the file."""
    previous, rebuilt = BEGINNING.hash, []
    for event in events:
        linked = msgspec.structs.replace(event, previous_hash=previous)
        previous = hash_of(encode_event(linked))
        rebuilt.append(msgspec.structs.replace(linked, event_hash=previous))
    return rebuilt


def _signature(head: Head, key: bytes) -> str:
    return hmac.new(key, msgspec.json.encode(head), hashlib.sha256).hexdigest()
