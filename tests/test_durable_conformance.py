"""One suite for every store (E17): JSON lines, SQLite and PostgreSQL keep each promise; the snapshot fails what it must.

A promise is a coroutine that takes a kind of store over an empty place. Its docstring is its title.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import itertools
import json
import math
import signal
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import msgspec
import pytest

from solution.durable_log import (
    ConflictError,
    CorruptLogError,
    IdReusedError,
    LimitError,
    Limits,
    LogClosedError,
    PlaceError,
    QueueFullError,
    RefusedError,
    SecretError,
    UnknownVersionError,
)
from solution.durable_log.contract import GENESIS
from solution.durable_log.record import encode_event, hash_of
from solution.durable_log.schemas import Schema, Schemas
from tests.durable_stores import JsonLines, Kind, Postgres, Snapshot, Sqlite, Stored
from tests.postgres_server import PostgresServer, postgres  # noqa: F401 - a fixture

SECRET = "hunter2-correct-horse-battery"
PLANTED = "planted-horse-battery-staple"

Promise = Callable[[Kind], Awaitable[None]]
PROMISES: dict[str, Promise] = {}


def promise(check: Promise) -> Promise:
    PROMISES[check.__name__] = check
    return check


def numbers(events) -> list[int]:
    return [event.sequence for event in events]


# --- Order and numbers ---


@promise
async def appends_are_stored_in_the_order_of_their_calls(kind):
    """A hundred callers at once: each event has a number of its own, in the order of the calls."""
    async with aclosing_store(await kind.open()) as store:
        done = await asyncio.gather(*[store.append("t", {"n": n}) for n in range(100)])
        events = await store.read()

    assert numbers(events) == list(range(1, 101))
    assert [event.data["n"] for event in events] == list(range(100))
    assert events == done


@promise
async def a_refused_append_takes_no_number(kind):
    """Between two good appends a bad one leaves neither a gap nor a trace."""
    async with aclosing_store(await kind.open()) as store:
        first, bad, last = await asyncio.gather(
            store.append("t", 1), store.append("t", math.nan), store.append("t", 2), return_exceptions=True
        )

        assert isinstance(bad, RefusedError)
        assert numbers([first, last]) == [1, 2]
        assert [event.data for event in await store.read()] == [1, 2]


@promise
async def cancelling_one_append_harms_no_other(kind):
    """Who stops waiting takes nothing from those behind: they are stored in their order, without a gap."""
    async with aclosing_store(await kind.open()) as store:
        waiting = [asyncio.ensure_future(store.append("t", n)) for n in range(9)]
        waiting[4].cancel()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        events = await store.read()

    assert numbers(events) == list(range(1, len(events) + 1))
    assert [event for event in events if event.data != 4] == [*done[:4], *done[5:]]


@promise
async def what_waits_is_bounded(kind):
    """With room for ten, 500 calls that nobody awaits are stored in order or refused with a clear word."""
    async with aclosing_store(await kind.open(limits=Limits(waiting=10))) as store:
        calls = [store.append("t", n) for n in range(500)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        events = await store.read()

    stored = [event for event in done if not isinstance(event, QueueFullError)]
    assert 10 <= len(stored) <= 500
    assert events == stored
    assert numbers(events) == list(range(1, len(events) + 1))


# --- Data ---

VALUES = [
    *(None, True, False, 0, 1, -1, 1.0, 0.0, -0.0, 0.1, 1e16, 1e-7, 5e-324, 1.7976931348623157e308),
    *(2**63 - 1, -(2**63), 2**64 - 1, 2**64 + 1, -(2**70), 10**300),
    *("", "plain", "NUL \0 and \x1f", "line\nline\r\n", "\u2028\u2029\u0085", 'quote " back \\ slash /'),
    *("茶 🍵 é e\u0301", "\ufeff", "\ud83d alone", "\udcb2"),
    *([], {}, [[]], {"": {"": []}}, {"\0": "\u2028"}, {"b": 1, "a": 2}, {"\ud800": 1}),
    {"type": "t", "sequence": 9, "event_hash": "x", "v": 99},
]


@promise
async def data_comes_back_as_it_was(kind):
    """Every JSON value, its types and the order of its keys, is read as it was given, at once and after reopening."""
    deep = "leaf"
    for _ in range(99):
        deep = [deep]
    values = [*VALUES, deep, "长" * 200_000]
    async with aclosing_store(await kind.open()) as store:
        done = [await store.append("t", value) for value in values]
        events = await store.read()
    async with aclosing_store(await kind.open()) as store:
        again = await store.read()

    for found in (done, events, again):
        assert [repr(event.data) for event in found] == [repr(value) for value in values]


class Text(str):
    __slots__ = ()


NOT_JSON = [
    *(math.nan, math.inf, -math.inf, (), (1,), set(), b"bytes", bytearray(), object(), Text("x")),
    *(
        dt.datetime.now(dt.UTC),
        decimal.Decimal(1),
        {1: "a"},
        {None: 1},
        {"a": [(1,)]},
        [math.nan],
    ),
    msgspec.structs.force_setattr,
]


@promise
async def what_is_not_json_is_refused(kind):
    """Whatever JSON would alter is refused, nothing of it is stored, and the next append works."""
    async with aclosing_store(await kind.open()) as store:
        for value in NOT_JSON:
            with pytest.raises(RefusedError):
                await store.append("t", value)
        cyclic: list[object] = []
        cyclic.append(cyclic)
        with pytest.raises(LimitError):
            await store.append("t", cyclic)
        await store.append("t", "good")

        assert [event.data for event in await store.read()] == ["good"]


@promise
async def what_is_too_large_is_refused(kind):
    """Over the limits of size and depth nothing is stored; up to them everything is."""
    async with aclosing_store(await kind.open(limits=Limits(record_bytes=2000, depth=3))) as store:
        for value in ("x" * 2000, [[[[]]]]):
            with pytest.raises(LimitError):
                await store.append("t", value)
        await store.append("t", [[["x" * 1500]]])

        assert numbers(await store.read()) == [1]


@promise
async def data_is_taken_at_the_call(kind):
    """What the caller changes afterwards changes nothing, neither in the store nor in what it gives back."""
    async with aclosing_store(await kind.open()) as store:
        data = {"list": [1]}
        append = store.append("t", data)
        data["list"].append(2)
        event = await append
        data["list"].append(3)
        (read,) = await store.read()

    assert event.data == read.data == {"list": [1]}


@promise
async def names_are_checked(kind):
    """A type that is blank, padded or too long, an id that is empty or too long, and what is no text are refused."""
    async with aclosing_store(await kind.open()) as store:
        for type_ in ("", " ", " t", "t\n", "t" * 201, 5, None):
            with pytest.raises(RefusedError):
                await store.append(type_, 1)
        for field in ("event_id", "causation_id", "correlation_id"):
            for one in ("", "x" * 201, 5):
                with pytest.raises(RefusedError):
                    await store.append("t", 1, **{field: one})
        odd = "'; DROP TABLE events; -- \0 \u2028 %s {schema} ? \" 茶 \ud800"
        event = await store.append(
            odd.replace(" \ud800", ""), 1, event_id=odd, causation_id=odd, correlation_id=odd
        )

        assert (event.event_id, event.causation_id, event.correlation_id) == (odd, odd, odd)
        assert await store.read() == [event]
        assert await store.append(event.type, 1, event_id=odd) == event


# --- Again, and too late ---


@promise
async def an_id_is_stored_once(kind):
    """Rows 76 and 77: the same id gives the first record back, also when all of them come at once."""
    async with aclosing_store(await kind.open()) as store:
        first = await store.append("t", {"a": 1, "b": 2}, event_id="x")
        many = await asyncio.gather(*[store.append("t", {"b": 2, "a": 1}, event_id="x") for _ in range(10)])
        new = await asyncio.gather(*[store.append("t", 5, event_id="y") for _ in range(10)])
        twin = await store.append("t", {"a": 1, "b": 2})

        assert many == [first] * 10
        assert new == [new[0]] * 10
        assert await store.read() == [first, new[0], twin]


@promise
async def an_id_belongs_to_one_event(kind):
    """The same id with another type or other data, also 1 for true or 1.0, is an error; nothing is stored."""
    async with aclosing_store(await kind.open()) as store:
        first = await store.append("t", [1], event_id="x")
        for type_, data in (("u", [1]), ("t", [2]), ("t", [True]), ("t", [1.0]), ("t", 1)):
            with pytest.raises(IdReusedError):
                await store.append(type_, data, event_id="x")

        assert await store.read() == [first]


@promise
async def an_id_is_remembered_after_reopening(kind):
    """A retry after a restart gives the first record, made-up id or the store's own."""
    async with aclosing_store(await kind.open()) as store:
        first = await store.append("t", {"a": 1}, event_id="x")
        own = await store.append("t", 2)
    async with aclosing_store(await kind.open()) as store:
        assert await store.append("t", {"a": 1}, event_id="x") == first
        assert await store.append("t", 2, event_id=own.event_id) == own
        with pytest.raises(IdReusedError):
            await store.append("t", {"a": 2}, event_id="x")
        assert numbers(await store.read()) == [1, 2]


@promise
async def a_stale_writer_is_refused(kind):
    """With another version than the last nothing is stored; of ten with the same, one wins."""
    async with aclosing_store(await kind.open()) as store:
        await store.append("t", 1, expected_version=0)
        for stale in (0, 2, 99):
            with pytest.raises(ConflictError) as caught:
                await store.append("t", 2, expected_version=stale)
            assert (caught.value.expected, caught.value.actual) == (stale, 1)
        racing = [store.append("t", n, expected_version=1) for n in range(10)]
        done = await asyncio.gather(*racing, return_exceptions=True)

        assert [isinstance(one, ConflictError) for one in done] == [False] + [True] * 9
        assert numbers(await store.read()) == [1, 2]


@promise
async def a_retry_is_answered_whatever_version_it_expects(kind):
    """An append that was stored before its answer was lost is found by its id, not refused by its version."""
    async with aclosing_store(await kind.open()) as store:
        first = await store.append("t", 1, event_id="x", expected_version=0)

        assert await store.append("t", 1, event_id="x", expected_version=0) == first


# --- Reading ---


@promise
async def a_read_sees_what_was_called_before(kind):
    """Appends that nobody awaited yet are in the answer, and the version counts them."""
    async with aclosing_store(await kind.open()) as store:
        waiting = [store.append("t", n) for n in range(20)]
        events = await store.read()
        more = [store.append("t", n) for n in range(20)]
        version = await store.version()

        assert (numbers(events), version) == (list(range(1, 21)), 40)
        assert await asyncio.gather(*waiting) == events
        await asyncio.gather(*more)


@promise
async def a_read_begins_where_it_is_told(kind):
    """Events behind a number, all at once or one by one; behind the last there are none."""
    async with aclosing_store(await kind.open()) as store:
        assert await store.read() == []
        assert await store.version() == 0
        events = [
            event
            for n in (0, 300)
            for event in await asyncio.gather(*[store.append("t", n) for _ in range(301)])
        ]
        for after in (0, 1, 499, 500, 501, 601, 602, 5000):
            assert await store.read(after=after) == events[after:]
            assert [event async for event in store.stream(after=after)] == events[after:]


@promise
async def a_stream_may_be_left_early(kind):
    """Who has seen enough stops; appends, reads and closing go on."""
    async with aclosing_store(await kind.open()) as store:
        await asyncio.gather(*[store.append("t", n) for n in range(510)])
        async with aclosing(store.stream()) as stream:
            async for event in stream:
                await store.append("t", "meanwhile")
                if event.sequence == 5:
                    break

        assert await store.version() == 515


@promise
async def reopening_goes_on_behind_the_last(kind):
    """After closing, the same events are there, and the next takes the next number and link."""
    written = []
    for n in range(3):
        async with aclosing_store(await kind.open()) as store:
            assert await store.read() == written
            written.append(await store.append("t", n))

    assert numbers(written) == [1, 2, 3]


@promise
async def sessions_are_apart(kind):
    """Two sessions in one place have their own numbers, ids and chains."""
    async with aclosing_store(await kind.open("tea")) as tea, aclosing_store(await kind.open("cup")) as cup:
        for n in range(3):
            await tea.append("t", n, event_id=f"{n}")
        other = await cup.append("u", "other", event_id="1")

        assert await cup.read() == [other]
        assert numbers([other]) == [1]
        assert numbers(await tea.read()) == [1, 2, 3]
        assert (await cup.verify()).verdict == (await tea.verify()).verdict == "sound"


@promise
async def an_unsafe_session_is_refused(kind):
    """Rows 86 to 90: an id that could mean another place is refused before anything is touched."""
    before = kind.all_bytes() if not isinstance(kind, Postgres) else b""
    for session in ("", "..", "../x", "/x", "a:b", "con", "x.", "é", "a b", "a\0", "x" * 81, "a'b", 5, None):
        with pytest.raises(PlaceError):
            await kind.open(session)

    assert isinstance(kind, Postgres) or kind.all_bytes() == before


@pytest.mark.parametrize("level", ["os", "fsync", "group"])
def test_every_store_has_every_level(level, tmp_path, postgres):  # noqa: F811
    """Each durability level stores and reads, and what one wrote another goes on with."""

    async def check(kind):
        for n, each in enumerate((level, "group")):
            async with aclosing_store(await kind.open(durability=each)) as store:
                await asyncio.gather(*[store.append("t", n) for _ in range(5)])
                assert numbers(await store.read()) == list(range(1, 5 * n + 6))

    for kind in kinds(tmp_path, postgres):
        asyncio.run(check(kind))


# --- The chain ---


@promise
async def every_event_is_bound_to_the_one_before(kind):
    """Each hash is over the stored bytes and each link is the hash before; the report ends with the last."""
    async with aclosing_store(await kind.open()) as store:
        events = await asyncio.gather(*[store.append("t", value) for value in VALUES])
        report = await store.verify()

    links = [GENESIS, *[event.event_hash for event in events]]
    assert [event.previous_hash for event in events] == links[:-1]
    assert [hash_of(encode_event(event)) for event in events] == links[1:]
    assert (report.verdict, report.events, report.last_sequence) == ("sound", len(events), len(events))
    assert report.log_hash == links[-1]


async def _written(kind: Kind) -> list[Stored]:
    """Write five events and close; give what is stored."""
    async with aclosing_store(await kind.open()) as store:
        for n in range(5):
            await store.append("t", {"note": f"{SECRET} {n}"})
    stored: list[Stored] = []
    kind.alter(lambda records: stored.extend(records) or records)
    return stored


async def _finds(kind: Kind, change: Callable[[list[Stored]], list[Stored]], history: list[bytes]) -> None:
    """Alter what is stored and see that nobody takes it for the history, nor says a word of it."""
    kind.alter(change)
    told: list[str] = []
    try:
        store = await kind.open()
    except CorruptLogError as refused:
        told.append(repr(refused))
    else:
        async with aclosing_store(store):
            report = await store.verify()
            assert report.verdict == "corrupt"
            told.append(repr(report))
            try:
                found = [encode_event(event) + b"\n" for event in await store.read()]
            except CorruptLogError as refused:
                told.append(repr(refused))
            else:
                assert found == history  # what was added behind the end is never read

    assert SECRET not in "".join(told)


def _with(record: Stored, old: bytes, new: bytes) -> Stored:
    assert old in record.line
    return record._replace(line=record.line.replace(old, new, 1))


def _rehashed(record: Stored, old: bytes, new: bytes) -> Stored:
    """Alter a record and mend its own hash: the link of the next one tells."""
    line = _with(record, old, new).line.rstrip(b"\n")
    head = line[: -len(b',"event_hash":""}') - 64]
    return record._replace(line=head + b',"event_hash":"' + hash_of(line).encode() + b'"}\n')


ALTERATIONS: dict[str, Callable[[list[Stored]], list[Stored]]] = {
    "a value altered": lambda r: [*r[:2], _with(r[2], b" 2", b" 3"), *r[3:]],
    "a value altered and its hash mended": lambda r: [*r[:2], _rehashed(r[2], b" 2", b" 3"), *r[3:]],
    "white space added": lambda r: [*r[:2], _with(r[2], b'"data":', b'"data": '), *r[3:]],
    "an unknown field added": lambda r: [*r[:2], _with(r[2], b'"data":', b'"extra":1,"data":'), *r[3:]],
    "a field taken away": lambda r: [*r[:2], _with(r[2], b'"causation_id":null,', b""), *r[3:]],
    "a number altered": lambda r: [*r[:2], _with(r[2], b'"sequence":3', b'"sequence":7'), *r[3:]],
    "the first altered": lambda r: [_with(r[0], b" 0", b" 9"), *r[1:]],
    "the last altered": lambda r: [*r[:4], _with(r[4], b" 4", b" 9")],
    "one in the middle deleted": lambda r: [*r[:2], *r[3:]],
    "the first deleted": lambda r: r[1:],
    "the last deleted": lambda r: r[:4],
    "all but the first deleted": lambda r: r[:1],
    "two swapped": lambda r: [*r[:2], r[3]._replace(sequence=3), r[2]._replace(sequence=4), r[4]],
    "lines of two swapped": lambda r: [
        *r[:2],
        r[2]._replace(line=r[3].line),
        r[3]._replace(line=r[2].line),
        r[4],
    ],
    "one doubled behind the last": lambda r: [*r, r[4]._replace(sequence=6, event_id=b'"6"')],
    "something else put there": lambda r: [*r[:2], r[2]._replace(line=b"no line at all\n"), *r[3:]],
    "a line emptied": lambda r: [*r[:2], r[2]._replace(line=b"\n"), *r[3:]],
    "an id altered": lambda r: [*r[:2], _with(r[2], b'"event_id":"', b'"event_id":"x'), *r[3:]],
}


@promise
async def what_was_altered_underneath_is_found(kind):
    """A changed, removed, added or moved record is damage, whatever was done to hide it; no error quotes it."""
    stored = await _written(kind)
    for what, change in ALTERATIONS.items():
        kind.alter(lambda _: list(stored))
        try:
            await _finds(kind, change, [record.line for record in stored])
        except (AssertionError, pytest.fail.Exception) as unseen:
            raise AssertionError(what) from unseen


@promise
async def verifying_changes_nothing(kind):
    """A damaged log is the same after it was verified and read as before."""
    await _written(kind)
    kind.alter(lambda r: [*r[:2], _with(r[2], b" 2", b" 3"), *r[3:]])
    seen: list[list[Stored]] = []
    kind.alter(lambda records: seen.append(list(records)) or records)
    with suppress(CorruptLogError):
        async with aclosing_store(await kind.open()) as store:
            assert (await store.verify()).verdict == "corrupt"
    kind.alter(lambda records: seen.append(list(records)) or records)

    assert seen[0] == seen[1]


# --- Versions and secrets ---


class Order(msgspec.Struct, forbid_unknown_fields=True):
    items: list[str]


SCHEMAS = Schemas(Schema("order", Order, lambda data: {"items": [data["item"]]}))


@promise
async def old_data_is_read_as_todays(kind):
    """Rows 83 and 84: old versions are brought up, the stored lines stay, and what is newer than known stops the read."""
    async with aclosing_store(await kind.open()) as store:
        await store.append("order", {"item": "tea"})
    lines: list[list[Stored]] = []
    async with aclosing_store(await kind.open(schemas=SCHEMAS)) as store:
        await store.append("order", {"items": ["cup"]})
        with pytest.raises(RefusedError):
            await store.append("order", {"item": "cup"})
        found = [(event.v, event.data) for event in await store.read()]
        assert (await store.verify()).verdict == "sound"
    assert found == [(2, {"items": ["tea"]}), (2, {"items": ["cup"]})]
    kind.alter(lambda records: lines.append(list(records)) or records)
    with pytest.raises(UnknownVersionError, match=r"version 2.* 1|1.*version 2"):
        async with aclosing_store(await kind.open()) as store:
            await store.read()
    kind.alter(lambda records: lines.append(list(records)) or records)

    assert lines[0] == lines[1]
    assert [b'"v":%d' % v in record.line for v, record in zip((1, 2), lines[0], strict=True)] == [True, True]


@promise
async def no_secret_is_written(kind):
    """Hidden, refused or encrypted, a planted secret is in no byte of the store, and in no error or report."""
    planted = [
        {"h": {"Authorization": f"Bearer {PLANTED}"}, "l": [{"apiKey": PLANTED}]},
        {"env": {"FOO": PLANTED}},
        f"curl -u ada:{PLANTED} redis://ada:{PLANTED}@localhost/?token={PLANTED}",
        json.dumps({"password": PLANTED}),
        {f"password={PLANTED}": 1},
    ]
    told = []
    async with aclosing_store(await kind.open()) as store:
        for n, data in enumerate(planted):
            event = await store.append("t", data, event_id=str(n))
            assert await store.append("t", data, event_id=str(n)) == event
            told.append(repr(event))
        for names in ({"type": f"token={PLANTED}"}, {"type": "t", "event_id": f"password={PLANTED}"}):
            with pytest.raises(SecretError) as caught:
                await store.append(data=1, **names)
            told.append(repr(caught.value))
        told.append(repr(await store.verify()))

    assert PLANTED not in "".join(told)
    assert PLANTED.encode() not in kind.all_bytes()


# --- Other processes, and the end ---


@promise
async def a_second_process_never_takes_the_same_number(kind):
    """Rows 62 and 64: another process is refused with a clear word, or its events get numbers of their own."""
    async with aclosing_store(await kind.open()) as store:
        child = kind.child(
            """
say("open")
sys.stdin.readline()
for n in range(100): await store.append("theirs", n)
await store.close()
"""
        )
        opened = await asyncio.to_thread(child.stdout.readline)
        theirs = asyncio.create_task(asyncio.to_thread(child.communicate, "go\n"))
        ours = await asyncio.gather(*[_one_by_one(store) for _ in range(2)])
        _, error = await theirs
        events = await store.read()

    stored = [event.type for event in events]
    assert numbers(events) == list(range(1, len(events) + 1))
    assert stored.count("ours") == sum(ours)
    assert (stored.count("theirs"), error) == (100, "") if opened else "LogLockedError" in error
    async with aclosing_store(await kind.open()) as store:
        assert (await store.verify()).verdict == "sound"


async def _one_by_one(store) -> int:
    for n in range(50):
        await store.append("ours", n)
    return 50


@promise
async def what_was_answered_survives_the_writers_death(kind):
    """A writer killed in the middle of appending: every event it was told of is there, and the next goes on behind."""
    told: set[int] = set()
    for answers in (1, 7, 30):
        child = kind.child(
            """
while True:
    for event in await asyncio.gather(*[store.append("t", "x" * 3000) for _ in range(3)]): say(event.sequence)
"""
        )
        with child:
            lines = [await asyncio.to_thread(child.stdout.readline) for _ in range(answers)]
            child.send_signal(signal.SIGKILL)
            # not communicate(), which passes over what readline() has read ahead
            rest = await asyncio.to_thread(child.stdout.read)
            assert not child.stderr.read()
        told |= {int(line) for line in (*lines, *rest.splitlines(keepends=True)) if line.endswith("\n")}
        async with aclosing_store(await kind.open()) as store:
            last = await store.version()
            told.add((await store.append("mine", 1)).sequence)
            found = numbers(await store.read())

        assert found == list(range(1, last + 2))
        assert told <= set(found)


@promise
async def closing_finishes_what_was_called(kind):
    """Appends that wait are stored before the store closes; afterwards nothing is taken; closing twice is allowed."""
    store = await kind.open()
    waiting = [asyncio.ensure_future(store.append("t", n)) for n in range(50)]
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    done = await asyncio.gather(*waiting)
    with pytest.raises(LogClosedError):
        await store.append("t", "late")
    await store.close()
    async with aclosing_store(await kind.open()) as store:
        events = await store.read()

    assert events == done
    assert numbers(events) == list(range(1, 51))


# --- Who is held to it ---


class aclosing_store:  # noqa: N801 - reads like contextlib's
    """Closes a store at the end, also one that is no context manager."""

    def __init__(self, store):
        self.store = store

    async def __aenter__(self):
        return self.store

    async def __aexit__(self, *_):
        await self.store.close()


_SCHEMA = itertools.count(1)


def kinds(folder, server: PostgresServer) -> list[Kind]:
    made = [JsonLines(folder / "lines"), Sqlite(folder / "sqlite"), Snapshot(folder / "snapshot")]
    made.insert(2, Postgres(folder, server.conninfo, f"t{next(_SCHEMA)}", server.folder / "data"))
    for kind in (made[0], made[1], made[3]):
        kind.folder.mkdir(mode=0o700)
    return made[:3]


@pytest.fixture(params=["jsonl", "sqlite", "postgres"])
def kind(request, tmp_path) -> Kind:
    if request.param == "jsonl":
        return JsonLines(tmp_path)
    if request.param == "sqlite":
        return Sqlite(tmp_path)
    server = request.getfixturevalue("postgres")
    return Postgres(tmp_path, server.conninfo, f"t{next(_SCHEMA)}", server.folder / "data")


@pytest.mark.parametrize("name", PROMISES)
def test_the_store_keeps(name, kind):
    """Every promise of the contract, by its own title."""
    asyncio.run(PROMISES[name](kind))


SNAPSHOT_FAILS = {
    "what_is_not_json_is_refused": "json.dumps alters tuples and keys, and writes NaN",
    "a_refused_append_takes_no_number": "NaN is written, and no other program can read it",
    "what_waits_is_bounded": "there are no limits",
    "what_is_too_large_is_refused": "there are no limits",
    "data_is_taken_at_the_call": "the caller's own objects are kept, and written again with the next event",
    "names_are_checked": "nobody looks at them",
    "an_id_belongs_to_one_event": "1, 1.0 and true are equal in Python",
    "sessions_are_apart": "one file holds one session",
    "every_event_is_bound_to_the_one_before": "there is no chain",
    "what_was_altered_underneath_is_found": "there is nothing to compare the file with",
    "verifying_changes_nothing": "the altered file is taken for sound",
    "old_data_is_read_as_todays": "there are no schemas",
    "no_secret_is_written": "nobody looks for them",
    "a_second_process_never_takes_the_same_number": "the last to write wins; the other's events are gone",
}
"""The promises that a whole-file snapshot cannot keep, and why. It must fail each of them, and no other."""
ONLY_WHEN_CUT = "what_was_answered_survives_the_writers_death"
"""The snapshot fails this one whenever the kill falls into a write: the cut below leaves nothing to chance."""


@pytest.mark.parametrize("name", [name for name in PROMISES if name != ONLY_WHEN_CUT])
def test_the_snapshot_fails_what_it_must(name, tmp_path):
    """A whole-file snapshot breaks the promises that are listed, and keeps the others: no line of the list is idle."""
    broken = None
    try:
        asyncio.run(PROMISES[name](Snapshot(tmp_path)))
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - how it fails differs
        broken = error

    assert (broken is not None) == (name in SNAPSHOT_FAILS), repr(broken)


def test_a_snapshot_that_is_cut_is_lost_whole(tmp_path):
    """Where a log loses the event in progress, a snapshot whose write was cut anywhere loses every event."""

    async def write(kind):
        async with aclosing_store(await kind.open()) as store:
            for n in range(3):
                await store.append("t", n)

    async def events_left(kind, whole):
        left = set()
        for cut in range(len(whole)):
            kind.path.write_bytes(whole[:cut])
            try:
                store = await kind.open()
            except CorruptLogError:
                left.add("nothing")
            else:
                left.add(len(await store.read()))
        return left

    kind = Snapshot(tmp_path)
    asyncio.run(write(kind))

    assert asyncio.run(events_left(kind, kind.path.read_bytes())) == {"nothing"}
