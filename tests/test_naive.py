"""The naive stores: each makes the one mistake that its docstring names, where a notebook shows it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from labkit import actions, naive
from solution.lesson_22 import CorruptLogError

if TYPE_CHECKING:
    from pathlib import Path

FULL_DISK = {"op": "write", "nth": 1, "do": "ENOSPC"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store of this test writes."""
    return tmp_path / "log.jsonl"


def disk(path: Path) -> list[tuple[int, str, Any]]:
    """The records on disk, as they stand there."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [(record["sequence"], record["type"], record["data"]) for record in records]


def test_poisoned_one_failure_fails_every_later_call(path: Path) -> None:
    """The disk is well again and nothing is written: the second caller gets the first one's error."""

    async def run() -> None:
        store = naive.PoisonedStore(path)
        with actions.disturbed(path.parent, FULL_DISK), pytest.raises(OSError, match="No space left"):
            await store.append("a", None)
        with pytest.raises(OSError, match="No space left"):
            await store.append("b", None)

    asyncio.run(run())
    assert path.read_bytes() == b""


def test_hole_a_failed_write_burns_its_number(path: Path) -> None:
    """1, failure, then 3: the hole is found by the next strict read."""

    async def run() -> None:
        store = naive.HoleStore(path)
        await store.append("a", None)
        with actions.disturbed(path.parent, FULL_DISK), pytest.raises(OSError, match="No space left"):
            await store.append("b", None)
        await store.append("c", None)
        with pytest.raises(CorruptLogError) as found:
            await store.read()
        assert found.value.line == 2

    asyncio.run(run())
    assert [number for number, _, _ in disk(path)] == [1, 3]


def test_caching_numbers_a_line_twice_that_somebody_else_added(path: Path) -> None:
    """The number in memory is stale as soon as another writer was there."""

    async def run() -> None:
        mine, other = naive.CachingStore(path), naive.CachingStore(path)
        await mine.append("a", None)
        await other.append("b", None)
        await mine.append("c", None)

    asyncio.run(run())
    assert [number for number, _, _ in disk(path)] == [1, 2, 2]


def test_late_stores_what_the_caller_changed_meanwhile(path: Path) -> None:
    """The data on disk is that of later, not that of the call."""

    async def run() -> None:
        data = {"status": "was"}
        call = naive.LateStore(path).append("a", data)
        data["status"] = "became"
        await call

    asyncio.run(run())
    assert disk(path) == [(1, "a", {"status": "became"})]


def test_coroutine_order_is_that_of_the_awaits(path: Path) -> None:
    """Called a, b; awaited b, a: b is first on disk."""

    async def run() -> None:
        store = naive.CoroutineStore(path)
        first, second = store.append("a", None), store.append("b", None)
        await second
        await first

    asyncio.run(run())
    assert [type_ for _, type_, _ in disk(path)] == ["b", "a"]


def test_gluing_makes_one_bad_line_of_two_records(path: Path) -> None:
    """The torn bytes and the new record stand on one line."""
    torn = b'{"sequence":1,"type":"a","data":1}\n{"seq'
    path.write_bytes(torn)
    asyncio.run(naive.GluingStore(path).append("b", None))

    assert path.read_bytes().startswith(torn + b'{"sequence":2')


def read(store: Any) -> list[int]:
    return [event.sequence for event in asyncio.run(store.read())]


def test_skipping_returns_a_history_with_a_hole(path: Path) -> None:
    """The bad line is not there, and nobody is told."""
    asyncio.run(actions.make_sample_log(path))
    actions.damage_line(path, 2)

    assert read(naive.SkippingStore(path)) == [1, 3, 4, 5, 6, 7, 8]


def test_rising_accepts_a_gap_and_refuses_a_repetition(path: Path) -> None:
    """1 and 3 pass; 1 and 1 do not."""
    line = '{{"sequence":{},"type":"a","data":1}}\n'.format
    path.write_text(line(1) + line(3))
    assert read(naive.RisingStore(path)) == [1, 3]

    path.write_text(line(1) + line(1))
    with pytest.raises(ValueError, match="line 2"):
        read(naive.RisingStore(path))


def test_newline_drops_a_record_that_lacks_only_its_newline(path: Path) -> None:
    """Whole, and not counted: the stricter protocol."""
    asyncio.run(actions.make_sample_log(path))
    path.write_bytes(path.read_bytes()[:-1])

    assert len(read(naive.NewlineStore(path))) == 7


def test_hopeful_forks_the_numbers_after_one_read_error(path: Path) -> None:
    """A disk error is taken for no history, and the third record is number 1 again."""

    async def run() -> None:
        store = naive.HopefulStore(path)
        await store.append("a", None)
        await store.append("b", None)
        with actions.disturbed(path.parent, {"op": "read", "do": "EIO"}):
            await store.append("c", None)

    asyncio.run(run())
    assert [number for number, _, _ in disk(path)] == [1, 2, 1]


def test_split_cuts_a_record_in_two(path: Path) -> None:
    """The pieces are the log, byte for byte, and the first cut goes through a line."""
    asyncio.run(actions.make_sample_log(path))
    pieces = [piece.read_bytes() for piece in naive.split_by_size(path, 200)]

    assert b"".join(pieces) == path.read_bytes()
    assert {len(piece) for piece in pieces[:-1]} == {200}
    assert not pieces[0].endswith(b"\n")


def test_acting_while_replaying_does_it_again() -> None:
    """One mail in the history is one more mail at every restart."""
    mails: list[str] = []
    for _restart in range(3):
        naive.replay_and_act(["started", "mail_sent", "step"], lambda: mails.append("mail"))

    assert len(mails) == 3


def test_own_queue_holds_back_nobody_else(path: Path) -> None:
    """Two stores on one log, each with a queue: both count before either writes."""

    async def run() -> None:
        stores = naive.OwnQueueStore(path), naive.OwnQueueStore(path)
        with actions.disturbed(path.parent, {"op": "write", "do": "hold", "until": 2}):
            await asyncio.gather(*(store.append("a", None) for store in stores))

    asyncio.run(run())
    assert path.read_bytes().count(b'"sequence":1,') == 2


def test_every_mistake_is_named() -> None:
    """The first word of each docstring says that it is one, or that it is only a stricter or a more lenient choice."""
    stores = {name: getattr(naive, name) for name in naive.__all__}
    said = {name: store.__doc__.partition(":")[0] for name, store in stores.items()}

    assert set(said.values()) == {"Mistake", "Lenient", "Stricter, and not wrong"}
