"""DurableLog in one process: order, failures that are taken back, cancellation, loops, limits, metrics (E1, E3, E5, E6, E14)."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, cast

import pytest

from solution.durable_log import (
    ConflictError,
    CorruptLogError,
    Durability,
    DurableLog,
    DurableLogError,
    Event,
    EventsRemovedError,
    Head,
    IdReusedError,
    LimitError,
    Limits,
    LogClosedError,
    QueueFullError,
    RefusedError,
    Scan,
    TornTailError,
)
from solution.durable_log.checkpoint import Checkpoints, Replayed

LEVELS: tuple[Durability, ...] = ("os", "fsync", "group")
SESSION = "build-7"


def with_log(root: Path, work: Callable[[DurableLog], Awaitable[Any]], **how: Any) -> Any:
    """Open the log, do some work with it on an event loop, and close it."""

    async def whole() -> Any:
        async with await DurableLog.open(SESSION, root=root, **how) as log:
            return await work(log)

    return asyncio.run(whole())


def history(root: Path, **how: Any) -> list[Event]:
    return cast("list[Event]", with_log(root, lambda log: log.read(), **how))


def active(root: Path) -> Path:
    return max((root / SESSION).glob("*.jsonl"), key=lambda path: path.name if path.stem.isdigit() else "")


@pytest.mark.parametrize("durability", LEVELS)
def test_calls_keep_their_order(tmp_path: Path, durability: Durability) -> None:
    """Appends are numbered and stored in the order of the calls, awaited in whatever order."""

    async def work(log: DurableLog) -> None:
        calls = [log.append("t", number) for number in range(150)]
        for call in reversed(calls):
            await call
        assert [(await call).sequence for call in calls] == list(range(1, 151))

    with_log(tmp_path, work, durability=durability)
    assert [event.data for event in history(tmp_path)] == list(range(150))


@pytest.mark.parametrize("durability", LEVELS)
def test_many_callers_each_get_their_own_event(tmp_path: Path, durability: Durability) -> None:
    """A hundred callers at once lose nothing, share no number, and each gets the event of its own data."""

    async def work(log: DurableLog) -> None:
        async def caller(name: int) -> None:
            for turn in range(5):
                assert (await log.append("t", [name, turn])).data == [name, turn]

        await asyncio.gather(*(caller(name) for name in range(100)))

    with_log(tmp_path, work, durability=durability)
    assert len({tuple(event.data) for event in history(tmp_path)}) == 500


def test_one_caller_lets_others_have_their_turn(tmp_path: Path) -> None:
    """A caller that appends without end does not keep the event loop from everybody else."""

    async def work(log: DurableLog) -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        for number in range(1000):
            await log.append("t", number)
        beside.cancel()
        assert turns > 20

    with_log(tmp_path, work, durability="os")


@pytest.mark.parametrize("durability", LEVELS)
def test_cancelling_one_wait_harms_no_append(tmp_path: Path, durability: Durability) -> None:
    """Whoever stops waiting stops waiting alone: every append that was called is stored, in the order of the calls."""

    async def work(log: DurableLog) -> None:
        await log.append("t", -1)
        calls = [log.append("t", number) for number in range(60)]
        for call in calls[::3]:
            call.cancel()
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in done[:4]] == [True, False, False, True]

    with_log(tmp_path, work, durability=durability)
    assert [event.data for event in history(tmp_path)] == list(range(-1, 60))


def test_data_is_taken_at_the_call(tmp_path: Path) -> None:
    """Later changes of what was handed over, or of what came back, change nothing."""

    async def work(log: DurableLog) -> None:
        data = {"a": [1]}
        first, second = log.append("t", data), log.append("t", data)
        data["a"].append(2)
        (await first).data["a"].append(3)
        assert (await second).data == {"a": [1]}

    with_log(tmp_path, work, durability="group")
    assert [event.data for event in history(tmp_path)] == [{"a": [1]}] * 2


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Members(dict[str, int]):
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
ALTERED = [
    *(
        float("nan"),
        float("inf"),
        (1,),
        {1},
        b"x",
        {1: 2},
        {None: 1},
        {True: 1},
        1j,
        object(),
        Colour.RED,
        Level.LOW,
    ),
    *(
        Members(a=1),
        [Members()],
        {"a": {"b": (1,)}},
        "\ud83d\ude00",
        CYCLE,
        {Colour.RED: 1},
        bytearray(b"x"),
        ...,
    ),
]


@pytest.mark.parametrize("data", ALTERED, ids=lambda data: type(data).__name__)
def test_what_would_be_altered_is_refused(tmp_path: Path, data: Any) -> None:
    """A value that JSON would silently alter is refused, nothing is written, and the next append has its number."""

    async def work(log: DurableLog) -> None:
        bad, good = log.append("t", data), log.append("t", "good")
        with pytest.raises(RefusedError):
            await bad
        assert (await good).sequence == 1

    with_log(tmp_path, work, durability="group")
    assert [event.data for event in history(tmp_path)] == ["good"]


EXACT: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**53 + 1,
        2**64,
        -(2**63) - 1,
        10**4000,
        0.0,
        -0.0,
        1.0,
        1e16,
        5e-324,
        1.7e308,
    ),
    *(
        "",
        'a\u2028\u2029\x85\x7f\x00\n\r\t"\\/',
        "\ud83d",
        "x\udcb2é茶🍵",
        {"\ude00k": {"": []}},
        [[[]], {}],
        {"b": 1, "a": 2},
    ),
]


def test_what_is_stored_comes_back_exactly(tmp_path: Path) -> None:
    """Read gives what append was given, types, signs and order of keys included, and so does append itself."""

    async def work(log: DurableLog) -> None:
        given = [await log.append("t", data) for data in EXACT]
        assert [repr(event.data) for event in given] == [repr(data) for data in EXACT]

    with_log(tmp_path, work)
    assert [repr(event.data) for event in history(tmp_path)] == [repr(data) for data in EXACT]


@pytest.mark.parametrize(
    "type_", ["", " ", " t", "t\n", "x" * 201, None, 1, b"t", Colour.RED, ["t"]], ids=repr
)
def test_a_type_is_a_plain_name(tmp_path: Path, type_: Any) -> None:
    """A type that is blank, padded, too long or no string is refused."""

    async def work(log: DurableLog) -> None:
        await log.append("red", 1)
        with pytest.raises(RefusedError):
            await log.append(type_, 1)

    with_log(tmp_path, work)


def test_too_large_and_too_deep_are_refused(tmp_path: Path) -> None:
    """A record over its limit, and data nested deeper than allowed, are refused; at the limit they are stored."""

    def nested(levels: int) -> Any:
        return [] if levels == 1 else [nested(levels - 1)]

    async def work(log: DurableLog) -> None:
        await log.append("t", nested(100))
        await log.append("t", {"text": "[" * 1000})
        for data in (nested(101), nested(900), ["x" * 5000]):
            with pytest.raises(LimitError):
                await log.append("t", data)
        assert await log.version() == 2

    with_log(tmp_path, work, limits=Limits(record_bytes=5000))
    with pytest.raises(ValueError, match="line_bytes"):
        Limits(record_bytes=100, line_bytes=50)


def test_a_retry_gives_the_first_event(tmp_path: Path) -> None:
    """The same id gives the first event: at once, while it is still being written, after a restart, over segments."""

    async def first(log: DurableLog) -> tuple[Event, Event]:
        calls = [log.append("t", {"a": 1, "b": 2}, event_id="a") for _turn in range(3)]
        one, *others = await asyncio.gather(*calls)
        assert others == [one, one]
        return one, await log.append("t", "other")

    one, made = with_log(tmp_path, first)

    async def later(log: DurableLog) -> None:
        for _turn in range(2):
            assert await log.append("t", {"b": 2, "a": 1}, event_id="a", expected_version=0) == one
            assert await log.append("t", "other", event_id=made.event_id) == made
            for type_, data in (
                ("t", {"a": 1, "b": 2.0}),
                ("t", {"a": True, "b": 2}),
                ("u", {"a": 1, "b": 2}),
            ):
                with pytest.raises(IdReusedError):
                    await log.append(type_, data, event_id="a")
            await log.append("t", None)
            await log.rotate()
        assert await log.version() == 4

    with_log(tmp_path, later)


def test_an_id_like_a_made_one_is_kept_apart(tmp_path: Path) -> None:
    """A caller may choose an id that looks like one the writer makes, for whatever sequence."""

    async def work(log: DurableLog) -> None:
        ids = ["0123456789abcdef-9", "0123456789abcdef-2", "0123456789abcdef-1"]
        events = [await log.append("t", name, event_id=name) for name in ids]
        assert [event.sequence for event in events] == [1, 2, 3]
        assert [await log.append("t", name, event_id=name) for name in ids] == events

    with_log(tmp_path, work)
    with_log(tmp_path, work)


def test_a_stale_writer_is_refused(tmp_path: Path) -> None:
    """`expected_version` refuses a writer whose knowledge is old, and counts what was called before it."""

    async def work(log: DurableLog) -> None:
        calls = [log.append("t", number, expected_version=number) for number in range(3)]
        assert [(await call).sequence for call in calls] == [1, 2, 3]
        with pytest.raises(ConflictError) as caught:
            await log.append("t", 3, expected_version=2)
        assert (caught.value.expected, caught.value.actual) == (2, 3)
        assert log.metrics.conflicts == 1

    with_log(tmp_path, work)


@pytest.mark.parametrize("durability", LEVELS)
def test_a_full_queue_waits_or_refuses(tmp_path: Path, durability: Durability) -> None:
    """Ten thousand appends that nobody awaits: no more than the limit wait at once, or the rest is refused."""
    limits = Limits(waiting=100)

    async def work(log: DurableLog) -> list[Any]:
        calls = [log.append("t", number) for number in range(600)]
        return await asyncio.gather(*calls, return_exceptions=True)

    async def measured(log: DurableLog) -> list[Any]:
        done = await work(log)
        assert log.metrics.most_waiting <= 100
        return done

    done = with_log(tmp_path / "w", measured, durability=durability, limits=limits)
    assert [event.sequence for event in done] == list(range(1, 601))
    refused = with_log(tmp_path / "r", work, durability=durability, limits=limits, when_full="refuse")
    assert {type(one) for one in refused} == {Event, QueueFullError}
    assert [event.sequence for event in history(tmp_path / "r")] == list(
        range(1, 1 + sum(type(one) is Event for one in refused))
    )


@pytest.mark.parametrize(
    "refused",
    [{"expected_version": 99}, {"event_id": "of another event"}, {}],
    ids=["conflict", "id-reused", "queue-full"],
)
def test_a_refused_append_leaves_nothing_in_memory(tmp_path: Path, refused: dict[str, Any]) -> None:
    """An error holds its traceback, and that the future which holds the error: a circle, and it is collected."""

    def futures() -> int:
        gc.collect()
        return sum(isinstance(one, asyncio.Future) for one in gc.get_objects())

    async def work(log: DurableLog) -> None:
        await log.append("t", 0, event_id="of another event")
        before, refusals = futures(), 0
        for _turn in range(20):
            answers = await asyncio.gather(
                *(log.append("t", 1, **refused) for _ in range(4)), return_exceptions=True
            )
            refusals += sum(isinstance(one, DurableLogError) for one in answers)
        del answers
        # All four of each turn; only a full queue may be emptied in between by a quick writer.
        assert refusals == 80 if refused else refusals > 0
        assert futures() - before < 10

    with_log(tmp_path, work, limits=Limits(waiting=1), when_full="refuse")


def test_reading_sees_what_was_called_before(tmp_path: Path) -> None:
    """`read` and `version` stand in line behind the appends; `stream` gives what is committed, and may give less."""

    async def work(log: DurableLog) -> None:
        for _turn in range(3):
            calls = [log.append("t", number) for number in range(40)]
            assert len(await log.read()) == await log.version() == (await calls[-1]).sequence
        assert [event.sequence async for event in log.stream(after=115)] == [116, 117, 118, 119, 120]
        assert [event.sequence for event in await log.read(after=119)] == [120]
        assert await log.read(after=120) == await log.read(after=500) == []

    with_log(tmp_path, work, durability="group")


def test_reading_from_any_place(tmp_path: Path) -> None:
    """`after` may lie in any segment, at any event: what comes is the rest."""

    async def work(log: DurableLog) -> None:
        for number in range(1, 1400):
            await log.append("t", number)
            if number in (300, 700):
                await log.rotate()
        for after in (0, 1, 255, 256, 257, 299, 300, 301, 699, 700, 701, 955, 956, 957, 1398, 1399):
            events = await log.read(after=after, verify_chain=bool(after % 2))
            assert [event.data for event in events] == list(range(after + 1, 1400))

    with_log(tmp_path, work, durability="os")


def test_segments_begin_by_themselves(tmp_path: Path) -> None:
    """A full segment is closed while appends go on; numbers, chain, ids and reads go over the borders."""
    limits = Limits(segment_bytes=20_000)

    async def work(log: DurableLog) -> None:
        for start in range(0, 600, 50):
            await asyncio.gather(
                *(log.append("t", "x" * 50, event_id=f"id-{start + one}") for one in range(50))
            )
        assert log.metrics.rotations >= 5
        assert (await log.append("t", "x" * 50, event_id="id-3")).sequence == 4

    with_log(tmp_path, work, durability="os", limits=limits)

    async def later(log: DurableLog) -> None:
        assert [event.sequence for event in await log.read()] == list(range(1, 601))
        assert (await log.append("t", "x" * 50, event_id="id-599")).sequence == 600
        assert (await log.verify()).verdict == "sound"

    with_log(tmp_path, later, limits=limits)


def test_another_loop_or_thread_is_told(tmp_path: Path) -> None:
    """A log belongs to one event loop: a call from another, or from a thread without one, says so at once."""

    async def work(log: DurableLog) -> None:
        problems: list[str] = []

        async def elsewhere() -> None:
            await log.append("t", 1)

        def in_thread(start: Callable[[], object]) -> None:
            try:
                start()
            except RuntimeError as problem:
                problems.append(str(problem))

        for start in (lambda: asyncio.run(elsewhere()), lambda: log.append("t", 1)):
            thread = threading.Thread(target=in_thread, args=(start,))
            thread.start()
            thread.join()
        assert "another event loop" in problems[0]
        assert len(problems) == 2
        assert await log.version() == 0

    with_log(tmp_path, work)


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    """Closing finishes what was called, twice is harmless, and an append behind it is refused."""

    async def whole() -> None:
        log = await DurableLog.open(SESSION, root=tmp_path)
        calls = [log.append("t", number) for number in range(20)]
        await log.close()
        await log.close()
        assert [(await call).sequence for call in calls] == list(range(1, 21))
        with pytest.raises(LogClosedError):
            await log.append("t", 1)

    asyncio.run(whole())


def test_damage_calls_the_alarm(tmp_path: Path) -> None:
    """Damage found at opening, reading or verifying is told to the alert hook, counted, and never continued."""
    heard: list[CorruptLogError] = []
    with_log(tmp_path, lambda log: asyncio.gather(*(log.append("t", number) for number in range(9))))
    sound = active(tmp_path).read_bytes()

    async def work(log: DurableLog) -> None:
        active(tmp_path).write_bytes(sound.replace(b'"data":4', b'"data":5'))
        with pytest.raises(CorruptLogError):
            await log.read()
        assert (await log.verify()).line == 5
        assert (log.metrics.corruptions, len(heard)) == (2, 2)

    with_log(tmp_path, work, alert=heard.append)
    with pytest.raises(CorruptLogError):
        with_log(tmp_path, work, alert=heard.append)
    assert [damage.line for damage in heard] == [5, 5, 5]


def test_a_cut_tail_is_found_by_the_recorded_head(tmp_path: Path) -> None:
    """Whole records cut from the end, which no chain can miss, are missed by the head that closing recorded."""
    with_log(tmp_path, lambda log: asyncio.gather(*(log.append("t", number) for number in range(5))))
    lines = active(tmp_path).read_bytes().splitlines(keepends=True)
    for kept in range(5):
        active(tmp_path).write_bytes(b"".join(lines[:kept]))
        with pytest.raises(CorruptLogError, match="cut"):
            history(tmp_path)


def test_a_torn_tail_is_mended_or_refused(tmp_path: Path) -> None:
    """Cut at every byte and opened again: the tail is gone or refused as asked, kept aside, and the next append follows."""
    with_log(tmp_path, lambda log: log.append("t", 1))
    manifest = (tmp_path / SESSION / "manifest.json").read_bytes()
    first = active(tmp_path).read_bytes()
    with_log(tmp_path, lambda log: log.append("t", 2))
    whole = active(tmp_path).read_bytes()
    for cut in range(len(first), len(whole), 7):
        torn = whole[:cut]
        active(tmp_path).write_bytes(torn)
        (tmp_path / SESSION / "manifest.json").write_bytes(manifest)
        if cut not in (len(first), len(whole)):
            with pytest.raises(TornTailError):
                history(tmp_path, on_torn="refuse")
            assert active(tmp_path).read_bytes() == torn
        with_log(tmp_path, lambda log: log.append("t", 3))
        events = list(Scan(active(tmp_path)))

        assert [event.data for event in events] == ([1, 2, 3] if cut == len(whole) - 1 else [1, 3])
        if cut != len(first):
            assert (tmp_path / SESSION / f"{active(tmp_path).name}.torn-{len(first)}").read_bytes()[
                :1
            ] == b"{"


def test_files_are_private(tmp_path: Path) -> None:
    """Whatever the umask, the folder is 0700 and every file in it 0600."""
    old = os.umask(0o022)
    try:
        with_log(tmp_path / "root", lambda log: log.append("t", 1))
        with active(tmp_path / "root").open("ab") as file:
            file.write(b'{"torn')
        with_log(tmp_path / "root", lambda log: log.append("t", 1))
    finally:
        os.umask(old)
    folder = tmp_path / "root" / SESSION

    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()} == {0o600}


def test_metrics_tell_what_happened(tmp_path: Path) -> None:
    """Appends, bytes, latencies, syncs, refusals and mended tails are counted; a snapshot stays as it is."""

    async def work(log: DurableLog) -> None:
        await asyncio.gather(*(log.append("t", number) for number in range(40)))
        with pytest.raises(RefusedError):
            await log.append("t", (1,))
        before = log.metrics.snapshot()
        assert (before.appends, sum(before.latency), before.refused) == (40, 40, 1)
        assert before.bytes_written == active(tmp_path).stat().st_size
        assert 0 < before.latency_below(0.5) <= before.latency_below(1.0)
        await log.append("t", 1)
        assert (before.appends, log.metrics.appends) == (40, 41)

    with_log(tmp_path, work)
    with active(tmp_path).open("ab") as file:
        file.write(b'{"torn')

    async def later(log: DurableLog) -> None:
        assert log.metrics.torn_recoveries == 1
        assert log.metrics.replay_seconds > 0

    with_log(tmp_path, later)


def test_old_segments_are_compressed_and_removed_beside_appends(tmp_path: Path) -> None:
    """Closed segments are compressed while appends go on, and removed under the writer's lock; reads see both."""

    async def work(log: DurableLog) -> None:
        for number in range(1, 31):
            await log.append("t", number, event_id=f"id-{number}")
            if number % 10 == 0:
                await log.rotate()
        done, *_events = await asyncio.gather(log.compress(), *(log.append("t", 0) for _turn in range(20)))
        assert done == 3
        assert [event.data for event in await log.read()] == [*range(1, 31), *[0] * 20]
        assert (await log.append("t", 7, event_id="id-7")).sequence == 7
        head = Head(20, (await log.read(after=20))[0].previous_hash)
        Checkpoints(log.folder).save(Replayed(state=None, head=head))
        await log.remove_before(20, confirmed=True)
        with pytest.raises(EventsRemovedError):
            await log.read()
        assert [event.sequence for event in await log.read(after=20)] == list(range(21, 51))
        assert (await log.append("t", 1)).sequence == 51

    with_log(tmp_path, work)
