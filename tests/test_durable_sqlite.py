"""What is SQLite's own: its file, its lock, its settings, its damage. The common promises are in the conformance suite."""

from __future__ import annotations

import asyncio
import errno
import random
import sqlite3
import stat
from contextlib import closing

import pytest

from solution.durable_log import (
    CorruptLogError,
    LogClosedError,
    LogLockedError,
    PlaceError,
    UnknownVersionError,
)
from solution.durable_log.sqlite_store import FORMAT_VERSION, SqliteStore

SECRET = "hunter2-correct-horse"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "private" / "sessions.db"


def run(path, use, **settings):
    """Open session tea, use the store, close it; give what `use` gave."""

    async def opened():
        async with await SqliteStore.open(path, "tea", **settings) as store:
            return await use(store)

    return asyncio.run(opened())


async def three(store):
    return await asyncio.gather(*[store.append("t", f"{SECRET} {n}") for n in range(3)])


def test_the_files_are_private(path):
    """Row 85: folder and database, with what SQLite lays beside it, are for their owner alone."""

    async def modes(store):
        await three(store)
        return {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}

    assert run(path, modes) == {"sessions.db": 0o600, "sessions.db-wal": 0o600, "sessions.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_database_lies_in_a_git_work_tree(tmp_path):
    """Where Git would see it, nothing is made."""
    (tmp_path / ".git").mkdir()
    with pytest.raises(PlaceError, match="inside the Git repository"):
        run(tmp_path / "x.db", three)

    assert [each.name for each in tmp_path.iterdir()] == [".git"]


def test_a_link_is_not_followed(tmp_path):
    """A link in the database's place leads nowhere."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    (tmp_path / "x.db").symlink_to(victim)
    with pytest.raises(OSError, match=r"x\.db"):
        run(tmp_path / "x.db", three)

    assert victim.read_bytes() == b""


@pytest.mark.parametrize(("level", "synchronous"), [("os", 1), ("fsync", 2), ("group", 2)])
def test_each_level_has_its_setting(path, level, synchronous):
    """NORMAL outlives the process, FULL a power cut; the log is written ahead in both."""

    async def settings(store):
        names = ("journal_mode", "synchronous")
        return [
            await store._run(lambda name=name: store._connected.execute(f"PRAGMA {name}").fetchone()[0])
            for name in names
        ]

    assert run(path, settings, durability=level) == ["wal", synchronous]


@pytest.mark.parametrize(("level", "commits"), [("fsync", 30), ("group", 1)])
def test_who_waits_together_is_committed_together(path, level, commits):
    """Under `group` those that wait share one commit; under `fsync` each has its own."""

    async def count(store):
        said: list[str] = []
        await store._run(lambda: store._connected.set_trace_callback(said.append))
        await asyncio.gather(*[store.append("t", n) for n in range(30)])
        return said.count("COMMIT")

    assert run(path, count, durability=level) == commits


def test_another_process_that_writes_too_long_is_named(path):
    """A busy database is told as such, nothing is stored, and once it is free the next append takes the number."""

    async def while_busy(store):
        await store.append("t", 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LogLockedError, match="nothing was stored"):
                await store.append("t", 2)
            other.execute("ROLLBACK")
        return (await store.append("t", 3)).sequence

    assert run(path, while_busy, busy_seconds=0) == 2


def test_a_full_disk_takes_nothing_and_harms_nothing(path):
    """Row 56: when there is no room, all that went in together fails; with room again the same number follows."""

    async def until_full(store):
        await store.append("t", 1)
        pages = await store._run(lambda: store._connected.execute("PRAGMA page_count").fetchone()[0])
        await store._run(lambda: store._connected.execute(f"PRAGMA max_page_count = {pages}").fetchall())
        together = [store.append("t", "small"), store.append("t", "x" * 100_000)]
        for error in await asyncio.gather(*together, return_exceptions=True):
            assert isinstance(error, OSError)
            assert error.errno == errno.ENOSPC
        await store._run(lambda: store._connected.execute("PRAGMA max_page_count = 100000").fetchall())
        event = await store.append("t", 2)
        return event.sequence, (await store.verify()).verdict

    assert run(path, until_full) == (2, "sound")


@pytest.mark.parametrize(
    "content", [b"no database at all", b"SQLite format 3\0" + bytes(200), random.Random(1).randbytes(9000)]
)
def test_what_is_no_database_is_refused_untouched(path, content):
    """Any other file in its place is damage, is told without its content, and keeps its bytes."""
    path.parent.mkdir(mode=0o700)
    path.write_bytes(content)
    with pytest.raises(CorruptLogError, match="no sound SQLite database"):
        run(path, three)

    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_untouched(path):
    """Tables that are not ours are not added to."""
    path.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE events (mine)")
    before = path.read_bytes()
    with pytest.raises(CorruptLogError, match="another program"):
        run(path, three)

    assert path.read_bytes() == before


def test_a_newer_format_is_refused_untouched(path):
    """Row 83: both versions are named, and the file keeps its bytes."""
    run(path, three)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version = {FORMAT_VERSION + 8}")
    before = path.read_bytes()
    with pytest.raises(UnknownVersionError, match=rf"version {FORMAT_VERSION + 8}.* {FORMAT_VERSION};"):
        run(path, three)

    assert path.read_bytes() == before


def test_flipped_bytes_of_the_file_are_found(path):
    """Any byte of any stored record, altered in the file itself: found, and nothing of it told."""
    run(path, three)
    whole = path.read_bytes()
    begin = whole.index(b'{"v":1')
    draw = random.Random(22)
    for at in draw.sample(range(begin, begin + 300), 25):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :])
        try:
            report = run(path, lambda store: store.verify())
        except CorruptLogError as refused:
            report = refused
        assert SECRET not in repr(report)
        assert isinstance(report, CorruptLogError) or report.verdict == "corrupt"


@pytest.mark.parametrize("size", [100, 4096, 5000, 8192, 12288])
def test_a_cut_file_is_damage(path, size):
    """A database that lost its end is no shorter history."""
    run(path, three)
    path.write_bytes(path.read_bytes()[:size])

    async def verdict(store):
        return (await store.verify()).verdict

    try:
        found = run(path, verdict)
    except CorruptLogError:
        found = "corrupt"
    assert found == "corrupt"


def test_nothing_is_appended_behind_rows_that_nobody_recorded(path):
    """Where a row already has a number that is due, the append says so; nothing that went in with it stays."""
    run(path, three)
    with closing(sqlite3.connect(path)) as thief, thief:
        thief.execute("INSERT INTO events SELECT session, 5, x'00', line FROM events WHERE sequence = 3")

    async def append(store):
        for error in await asyncio.gather(*[store.append("t", n) for n in (4, 5)], return_exceptions=True):
            assert isinstance(error, CorruptLogError)
            assert "rows behind" in str(error)
        return (await store.verify()).verdict

    assert run(path, append) == "corrupt"
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT sequence FROM events ORDER BY 1").fetchall() == [
            (1,),
            (2,),
            (3,),
            (5,),
        ]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM heads",
        "UPDATE heads SET sequence = 'three'",
        "UPDATE heads SET sequence = 2",
        "UPDATE heads SET hash = 'x'",
        "UPDATE events SET line = 'text' WHERE sequence = 3",
        "UPDATE events SET sequence = 'x' WHERE sequence = 3",
        "UPDATE events SET event_id = x'00' WHERE sequence = 3",
        "UPDATE events SET sequence = -1 WHERE sequence = 2",
        "UPDATE events SET line = x'' WHERE sequence = 1",
        "UPDATE events SET line = line || line WHERE sequence = 2",
    ],
)
def test_columns_that_do_not_fit_are_damage(path, damage):
    """Whatever SQL does to head and rows, types included, is found and told without data."""
    run(path, three)
    with closing(sqlite3.connect(path)) as thief, thief:
        thief.execute(damage)
    try:
        report = run(path, lambda store: store.verify())
    except CorruptLogError as refused:
        report = refused

    assert SECRET not in repr(report)
    assert isinstance(report, CorruptLogError) or report.verdict == "corrupt"


def test_many_sessions_share_a_file(path):
    """A hundred sessions, each with its own numbers and chain."""

    async def fill(number):
        async with await SqliteStore.open(path, f"s-{number}", durability="os") as store:
            await asyncio.gather(*[store.append("t", number) for _ in range(3)])
            return [(event.sequence, event.data) for event in await store.read()]

    async def all_of_them():
        return [await fill(number) for number in range(100)]

    assert asyncio.run(all_of_them()) == [[(n, number) for n in (1, 2, 3)] for number in range(100)]


def test_closing_ends_a_stream_that_is_under_way(path):
    """Who still reads when the store closes is told so, and so is who begins to read afterwards."""

    async def read_on(store):
        await asyncio.gather(*[store.append("t", n) for n in range(600)])
        stream = store.stream()
        await anext(stream)
        await store.close()
        with pytest.raises(LogClosedError):
            async for _ in stream:
                pass
        for late in (store.read(), anext(store.stream()), store.version(), store.verify()):
            with pytest.raises(LogClosedError):
                await late

    run(path, read_on)
