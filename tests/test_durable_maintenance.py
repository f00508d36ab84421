"""Checkpoints, retention, compression and backups of a log that is open and appended to (E12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from solution.durable_log import writer
from solution.durable_log.active_file import ActiveFile
from solution.durable_log.backup import restore
from solution.durable_log.checkpoint import Checkpoints, Replayed, replay
from solution.durable_log.contract import Event
from solution.durable_log.effects import Effects
from solution.durable_log.errors import (
    EventsRemovedError,
    InDoubtError,
    LogClosedError,
    RefusedError,
    RetentionError,
)
from solution.durable_log.limits import Limits
from solution.durable_log.log import DurableLog
from solution.durable_log.verification import verify_session


def run(tmp_path: Path, story: Callable[[DurableLog], Awaitable[Any]], **how: Any) -> Any:
    """Tell a story with an open log of small segments; it verifies at the end."""

    async def told() -> Any:
        async with await DurableLog.open("a", root=tmp_path, limits=Limits(segment_bytes=4000), **how) as log:
            result = await story(log)
        assert verify_session(log.folder).verdict == "sound"
        return result

    return asyncio.run(told())


def count(state: int, _event: Event) -> int:
    return state + 1


async def fill(log: DurableLog, number: int) -> None:
    for _ in range(number // 5):
        await asyncio.gather(*(log.append("t", {"x": "y" * 100}) for _ in range(5)))


def sequences(events: list[Event]) -> list[int]:
    return [event.sequence for event in events]


def test_a_checkpoint_closes_the_segment_at_its_event(tmp_path: Path) -> None:
    """So that what it covers can go as a whole, and its place in the log is known without reading."""

    async def story(log: DurableLog) -> None:
        await fill(log, 20)
        replayed = await replay(log, count, 0)
        path = await log.checkpoint(replayed)
        await log.checkpoint(replayed)
        await fill(log, 5)

        again = await replay(log, count, 0, checkpoints=Checkpoints(log.folder))
        assert (path.stem, again.begun_at, again.state, again.head.sequence) == (f"{20:020d}", 20, 25, 25)
        assert (log.folder.path / f"{21:020d}.jsonl").exists()

    run(tmp_path, story)


def test_a_checkpoint_behind_which_the_log_went_on_is_saved_all_the_same(tmp_path: Path) -> None:
    """It only closes no segment: events behind it stand there already."""

    async def story(log: DurableLog) -> None:
        await fill(log, 5)
        replayed = await replay(log, count, 0)
        await fill(log, 5)
        await log.checkpoint(replayed)

        again = await replay(log, count, 0, checkpoints=Checkpoints(log.folder))
        assert (again.begun_at, again.state) == (5, 10)

    run(tmp_path, story)


def test_a_state_that_is_refused_leaves_the_log_open(tmp_path: Path) -> None:
    """The state is the caller's to mend; appends go on."""

    async def story(log: DurableLog) -> None:
        await fill(log, 5)
        with pytest.raises(RefusedError):
            await log.checkpoint(Replayed(state={1, 2}))
        await fill(log, 5)
        assert await log.version() == 10

    run(tmp_path, story)


def test_old_segments_go_beside_appends(tmp_path: Path) -> None:
    """Covered and confirmed; what is asked for and gone is an error, numbers go on, and so they do after reopening."""

    async def story(log: DurableLog) -> None:
        await fill(log, 40)
        await log.checkpoint(await replay(log, count, 0))
        with pytest.raises(RetentionError):
            await log.remove_before(41, confirmed=False)
        appends = [log.append("t", number) for number in range(5)]
        removed = await log.remove_before(41, confirmed=True)
        await asyncio.gather(*appends)

        assert removed[-1].last == 40
        with pytest.raises(EventsRemovedError):
            await log.read()
        assert sequences(await log.read(after=40)) == [41, 42, 43, 44, 45]
        replayed = await replay(log, count, 0, checkpoints=Checkpoints(log.folder))
        assert (replayed.state, replayed.begun_at) == (45, 40)

    async def later(log: DurableLog) -> int:
        return (await log.append("t", 1)).sequence

    run(tmp_path, story)
    assert run(tmp_path, later) == 46


def test_compression_beside_appends_changes_no_answer(tmp_path: Path) -> None:
    """Reads, ids and verification are the same while segments are replaced underneath."""

    async def story(log: DurableLog) -> None:
        first = await log.append("t", 1, event_id="mine")
        await fill(log, 60)
        working = asyncio.create_task(log.compress())
        while not working.done():
            await fill(log, 5)
            events = await log.read()
            assert sequences(events) == [*range(1, len(events) + 1)]
        assert await working >= 2
        assert await log.append("t", 1, event_id="mine") == first
        assert (await log.verify()).verdict == "sound"

    run(tmp_path, story)


@pytest.mark.parametrize("meanwhile", ["rotate", "rotate and compress"])
def test_a_read_under_way_gets_all_that_was_committed_when_it_began(tmp_path: Path, meanwhile: str) -> None:
    """The active segment of its beginning may be closed and compressed before the read comes to it."""

    async def story(log: DurableLog) -> None:
        await fill(log, 30)
        seen = []
        async for event in log.stream():
            seen.append(event.sequence)
            if len(seen) == 1:
                await log.append("t", "later")
                await log.rotate()
                if meanwhile != "rotate":
                    await log.compress()
        assert seen[:30] == [*range(1, 31)]

    run(tmp_path, story)


def test_a_read_that_a_removal_overtakes_says_what_is_gone(tmp_path: Path) -> None:
    """No damage, and no alert: the events were removed on purpose while the read was on its way to them."""
    alerts: list[Exception] = []

    async def story(log: DurableLog) -> None:
        await fill(log, 60)
        await log.checkpoint(await replay(log, count, 0))
        with pytest.raises(EventsRemovedError, match="up to 60"):
            async for event in log.stream():
                if event.sequence == 1:
                    await log.remove_before(61, confirmed=True)

    run(tmp_path, story, alert=alerts.append)
    assert alerts == []


def test_a_backup_beside_appends_is_restored_and_goes_on(tmp_path: Path) -> None:
    """Every append called before it is in it."""

    async def story(log: DurableLog) -> int:
        await fill(log, 30)
        before = [log.append("t", number) for number in range(5)]
        copying = asyncio.create_task(log.back_up(tmp_path / "copy"))
        await fill(log, 10)
        await asyncio.gather(*before)
        return (await copying).last_sequence

    head = run(tmp_path / "root", story)
    restore(tmp_path / "copy", tmp_path / "fresh")

    async def later(log: DurableLog) -> tuple[int, int]:
        return len(await log.read()), (await log.append("t", 1)).sequence

    assert head >= 35
    assert run(tmp_path / "fresh", later) == (head, head + 1)


def test_two_programs_that_do_not_know_of_each_other_do_an_effect_once(tmp_path: Path) -> None:
    """Each has replayed before either began: the log itself says that the second is late."""

    async def story(log: DurableLog) -> None:
        one, other = Effects(), Effects()
        done: list[str] = []

        async def act() -> None:
            done.append("one")
            with pytest.raises(InDoubtError):
                await other.once(log, "send", {"to": "a"}, act)

        assert await one.once(log, "send", {"to": "a"}, act) is True
        assert done == ["one"]
        assert (await replay(log, count, 0)).effects.begun == set()

    run(tmp_path, story)


def test_a_removal_that_fails_closes_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which manifest the disk holds is known again after reopening; then the removal is finished."""

    def fail(_file: object) -> None:
        raise OSError(5, "disk error")

    async def story() -> None:
        log = await DurableLog.open("a", root=tmp_path, limits=Limits(segment_bytes=4000))
        await fill(log, 20)
        await log.checkpoint(await replay(log, count, 0))
        with monkeypatch.context() as patch:
            patch.setattr("solution.durable_log.segment_file.SegmentFile.remove", fail)
            with pytest.raises(OSError, match="disk"):
                await log.remove_before(21, confirmed=True)
        with pytest.raises(LogClosedError):
            await log.append("t", 1)
        await log.close()

    async def later(log: DurableLog) -> list[int]:
        await log.append("t", 1)
        return sequences(await log.read(after=20))

    asyncio.run(story())
    assert run(tmp_path, later) == [21]
    assert sorted(path.name for path in (tmp_path / "a").glob("*.jsonl")) == [f"{21:020d}.jsonl"]


def test_a_removal_waits_for_a_compression(tmp_path: Path) -> None:
    """Which would otherwise bring back, compressed, a segment that the manifest does not know any more."""

    async def story(log: DurableLog) -> None:
        await fill(log, 100)
        await log.checkpoint(await replay(log, count, 0))
        compressing = asyncio.create_task(log.compress())
        while log._compressing is None:  # noqa: ASYNC110 - the very next turns
            await asyncio.sleep(0)
        compressing.cancel()  # the thread goes on all the same
        await log.remove_before(101, confirmed=True)
        assert [path.name for path in log.folder.path.glob("0*.jsonl*")] == [f"{101:020d}.jsonl"]
        await log.append("t", 1)

    run(tmp_path, story)


def test_compressions_take_turns(tmp_path: Path) -> None:
    """Two at once would take away each other's files."""

    async def story(log: DurableLog) -> None:
        await fill(log, 100)
        counts = await asyncio.gather(*(log.compress() for _ in range(3)))
        assert counts[0] > 0
        assert counts[1:] == [0, 0]

    run(tmp_path, story)


def test_a_stream_that_begins_while_a_segment_is_closed_sees_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest is ahead of the writer for a moment: the places that it knows are those of the old file."""
    made, go_on = threading.Event(), threading.Event()

    class Slow(ActiveFile):
        def __init__(self, path: Path, size: int) -> None:
            super().__init__(path, size)
            made.set()
            go_on.wait()

    async def story(log: DurableLog) -> None:
        await fill(log, 5)
        monkeypatch.setattr(writer, "ActiveFile", Slow)
        rotating = asyncio.create_task(log.rotate())
        await asyncio.to_thread(made.wait)
        streams = [log.stream(), log.stream(after=3), log.stream(after=5)]
        first = [await anext(stream) for stream in streams[:2]]
        nothing = asyncio.create_task(anext(streams[2], None))
        await asyncio.sleep(0)
        go_on.set()
        await rotating
        await fill(log, 10)
        rest = [sequences([event async for event in stream]) for stream in streams[:2]]
        assert sequences(first) == [1, 4]
        assert rest == [[2, 3, 4, 5], [5]]
        assert await nothing is None
        assert log.metrics.corruptions == 0

    run(tmp_path, story)


@pytest.mark.parametrize("what", ["checkpoint", "remove_before", "compress"])
def test_a_closed_log_changes_nothing(tmp_path: Path, what: str) -> None:
    """As for appends."""

    async def story() -> None:
        log = await DurableLog.open("a", root=tmp_path)
        await log.close()
        with pytest.raises(LogClosedError):
            if what == "checkpoint":
                await log.checkpoint(Replayed(state=1))
            elif what == "compress":
                await log.compress()
            else:
                await log.remove_before(9, confirmed=True)

    asyncio.run(story())
