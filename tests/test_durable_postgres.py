"""What is PostgreSQL's own: many writers, lost connections, set-up. The common promises are in the conformance suite."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import sql

from solution.durable_log import CorruptLogError, OutcomeUnknownError, PlaceError, UnknownVersionError
from solution.durable_log.postgres_store import FORMAT_VERSION, PostgresStore
from tests.durable_stores import Postgres
from tests.postgres_server import PostgresServer, postgres  # noqa: F401 - a fixture

KIT = Path(__file__).resolve().parents[1]
_NUMBER = itertools.count(1)


@pytest.fixture
def schema() -> str:
    return f"own{next(_NUMBER)}"


@pytest.fixture
def admin(postgres):  # noqa: F811
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        yield connection


def test_many_processes_write_one_session(postgres, schema, tmp_path):  # noqa: F811
    """Four processes append at once: every number once, each writer's events in its order."""
    kind = Postgres(tmp_path, postgres.conninfo, schema, tmp_path)
    body = "sys.stdin.readline()\nawait asyncio.gather(*[store.append('t', [sys.argv[0], n]) for n in range(50)])"
    children = [kind.child(body.replace("sys.argv[0]", str(number))) for number in range(4)]
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    errors = [child.communicate()[1] for child in children]

    async def read():
        async with await kind.open() as store:
            return await store.read(), (await store.verify()).verdict

    events, verdict = asyncio.run(read())
    assert errors == [""] * 4
    assert ([event.sequence for event in events], verdict) == (list(range(1, 201)), "sound")
    for number in range(4):
        assert [event.data[1] for event in events if event.data[0] == number] == list(range(50))


def test_many_begin_at_once(postgres, schema):  # noqa: F811
    """Tables and session are made once, however many are the first."""

    async def begin():
        stores = await asyncio.gather(
            *[PostgresStore.open(postgres.conninfo, "tea", schema=schema) for _ in range(8)]
        )
        done = await asyncio.gather(*[store.append("t", n) for n, store in enumerate(stores)])
        await asyncio.gather(*[store.close() for store in stores])
        return sorted(event.sequence for event in done)

    assert asyncio.run(begin()) == list(range(1, 9))


async def until(admin, query, *parameters):
    """Ask until there is an answer; the server decides how soon."""
    while not (found := admin.execute(query, parameters).fetchone()):  # noqa: ASYNC110 - it has no asyncio.Event
        await asyncio.sleep(0)
    return found[0]


WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = %s AND query ~ %s"


def test_a_connection_that_dies_before_the_commit_loses_nothing(postgres, schema, admin):  # noqa: F811
    """The server ends the writer's backend in the middle of its transaction: the store connects anew and stores once."""

    async def append():
        async with await PostgresStore.open(postgres.conninfo, "tea", schema=schema) as store:
            with psycopg.connect(postgres.conninfo) as holder:
                holder.execute(sql.SQL("SELECT 1 FROM {} FOR UPDATE").format(sql.Identifier(schema, "heads")))
                waiting = [store.append("t", n) for n in range(3)]
                pid = await until(admin, WAITS, "Lock", "FOR UPDATE")
                admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
                await until(
                    admin, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = %s)", pid
                )
            return await asyncio.gather(*waiting), await store.read()

    done, events = asyncio.run(append())
    assert [event.sequence for event in done] == [1, 2, 3]
    assert events == done


@pytest.fixture
def commits_that_hang(admin):
    """Let every commit wait for a standby that does not exist: it is on the disk, and nobody is told."""
    admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    admin.execute("SELECT pg_reload_conf()")

    def end():
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")

    yield end
    end()


HANGS = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


async def opened_then_hanging(conninfo, schema, admin, request):
    """Open a store while commits still answer, then let them hang."""
    store = await PostgresStore.open(conninfo, "tea", schema=schema)
    end = request.getfixturevalue("commits_that_hang")
    await until(admin, "SELECT 1 WHERE current_setting('synchronous_standby_names') = 'nobody'")
    return store, end


def test_a_commit_whose_answer_is_lost_is_found_again(postgres, schema, admin, request):  # noqa: F811
    """The events are on the disk, the connection dies before the answer: they are given back, not stored twice."""

    async def append():
        store, end = await opened_then_hanging(postgres.conninfo, schema, admin, request)
        waiting = [store.append("t", "named", event_id="x"), store.append("t", "unnamed")]
        pid = await until(admin, HANGS)
        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
        end()
        done = await asyncio.gather(*waiting)
        events = await store.read()
        await store.close()
        return done, events

    done, events = asyncio.run(append())
    assert events == done
    assert [event.data for event in events] == ["named", "unnamed"]


def test_an_outcome_that_stays_unknown_is_told_and_repeating_is_safe(postgres, schema, admin, request):  # noqa: F811
    """With no server to ask, the store says that it does not know; the same id, later, gives the first record."""

    async def append():
        store, end = await opened_then_hanging(postgres.conninfo, schema, admin, request)
        store._reconnect_seconds = 0
        waiting = store.append("t", "hunter2", event_id="x")
        pid = await until(admin, HANGS)
        store._conninfo = "host=/nowhere password=hunter2"
        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
        with pytest.raises(OutcomeUnknownError, match="same event id") as caught:
            await waiting
        end()
        await store.close()
        assert "hunter2" not in repr(caught.value)
        assert caught.value.__suppress_context__
        async with await PostgresStore.open(postgres.conninfo, "tea", schema=schema) as again:
            event = await again.append("t", "hunter2", event_id="x")
            return event, await again.read()

    event, events = asyncio.run(append())
    assert events == [event]


def test_a_server_that_is_not_there_is_told_without_its_address(schema):
    """Neither password nor host of the connection string is in the error."""
    with pytest.raises(OSError, match="cannot be reached") as caught:
        asyncio.run(
            PostgresStore.open("host=/nowhere password=hunter2", "tea", schema=schema, reconnect_seconds=0)
        )

    assert not any(word in repr(caught.value) for word in ("hunter2", "nowhere"))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(("level", "setting"), [("os", "off"), ("fsync", "on"), ("group", "on")])
def test_each_level_has_its_setting(postgres, schema, level, setting):  # noqa: F811
    """A commit waits for the server's disk unless `os` was declared; also on a connection made anew."""

    async def settings():
        async with await PostgresStore.open(
            postgres.conninfo, "tea", schema=schema, durability=level
        ) as store:
            found = []
            for _ in range(2):
                connection = await store._writer()
                found.append((await (await connection.execute("SHOW synchronous_commit")).fetchone())[0])
                await connection.close()
            return found

    assert asyncio.run(settings()) == [setting, setting]


def test_a_stream_is_of_one_moment(postgres, schema):  # noqa: F811
    """What is committed while somebody reads is in the next read."""

    async def stream():
        async with await PostgresStore.open(postgres.conninfo, "tea", schema=schema) as store:
            await asyncio.gather(*[store.append("t", n) for n in range(600)])
            seen = 0
            async for _ in store.stream():
                seen += 1
                if seen == 1:
                    await store.append("t", "late")
            return seen, await store.version()

    assert asyncio.run(stream()) == (600, 601)


def test_a_newer_format_is_refused_untouched(postgres, schema, admin):  # noqa: F811
    """Row 83: tables of a newer program are named with both versions, and stay as they are."""

    async def open_it(session):
        async with await PostgresStore.open(postgres.conninfo, session, schema=schema):
            pass

    asyncio.run(open_it("tea"))
    names = {table: sql.Identifier(schema, table) for table in ("format", "heads")}
    admin.execute(sql.SQL("UPDATE {format} SET version = {new}").format(**names, new=FORMAT_VERSION + 8))
    with pytest.raises(UnknownVersionError, match=rf"version {FORMAT_VERSION + 8}.* {FORMAT_VERSION};"):
        asyncio.run(open_it("cup"))

    assert admin.execute(sql.SQL("SELECT session FROM {heads}").format(**names)).fetchall() == [("tea",)]


@pytest.mark.parametrize(
    "schema", ['odd"; DROP SCHEMA public; --', "%s", "{version}", "", "a b", "x" * 64, "a\0", "é"]
)
def test_a_schema_has_a_plain_name(schema):
    """What would need quoting, or PostgreSQL would cut short, is refused before anybody connects."""
    with pytest.raises(PlaceError, match="schema"):
        asyncio.run(PostgresStore.open("host=/nowhere", "tea", schema=schema))


def test_nothing_is_appended_behind_rows_that_nobody_recorded(postgres, schema, admin):  # noqa: F811
    """Where a row already has the next number, the append says so, and quotes neither row nor key."""

    async def append():
        async with await PostgresStore.open(postgres.conninfo, "tea", schema=schema) as store:
            await store.append("t", "hunter2", event_id="hunter2")
            events = sql.Identifier(schema, "events")
            admin.execute(
                sql.SQL("INSERT INTO {} SELECT session, 2, '\\x00', line FROM {}").format(events, events)
            )
            with pytest.raises(CorruptLogError, match="rows behind") as caught:
                await store.append("t", 2)
            return repr(caught.value), (await store.verify()).verdict

    told, verdict = asyncio.run(append())
    assert "hunter2" not in told
    assert verdict == "corrupt"


@pytest.mark.parametrize("kill", ["the process", "its group"])
def test_the_server_of_the_tests_ends_with_them(kill, postgres):  # noqa: F811 - asks for its presence
    """Also when the tests are killed, alone or with all that they started, no server is left behind."""
    program = (
        "from tests.postgres_server import PostgresServer, find_programs\nimport sys\n"
        "server = PostgresServer(find_programs())\nprint(server.pid, server.folder, flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=KIT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        pid, folder = child.stdout.readline().split()
        server = psutil.Process(int(pid))
        everything = [server, *server.children(recursive=True)]
        if kill == "its group":
            os.killpg(child.pid, signal.SIGTERM)
        else:
            child.send_signal(signal.SIGKILL)
    _, left = psutil.wait_procs(everything, timeout=60)

    assert left == []
    PostgresServer.remove(Path(folder))
