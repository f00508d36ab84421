"""What the store knows after something went wrong: nothing, so that it looks at the disk again before it writes."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from grader.lab import Event
from grader.suites.lesson_22.drawn import line, log
from solution.lesson_22 import CorruptLogError, JsonlSessionStore, session_store
from tests.child_process import KIT, answer_of, run_child

E1, E2, E3 = (Event(number, "t", {}) for number in (1, 2, 3))
DAMAGE = {"garbage": b"garbage\n", "gap": line(E3), "duplicate": line(E1), "blank": b"\n", "no event": b"[]"}

FAULT_SWEEP = """
import asyncio
from lesson_22 import JsonlSessionStore
path = folder / "log.jsonl"
E1, E2 = ('{"sequence":%d,"type":"t","data":{}}\\n' % n for n in (1, 2))
async def repaired(rules):
    for old in folder.iterdir():
        old.unlink()
    store = JsonlSessionStore(path)
    await store.append("t", {})
    with path.open("a") as file:
        file.write(tail)
    layer.arm(rules, root=folder)
    try:
        told = (await store.append("t", {})).sequence
    except OSError as error:
        told = error.strerror
    layer.disarm()
    operations = [[entry["op"], entry["did"] != "full"] for entry in layer.log()]
    if told != 2:
        assert (await store.append("t", {})).sequence == 2
    return told, operations
outcomes = []
for tail in ("{", '{"sequence":2,"type":"t","data":'):
    _, operations = asyncio.run(repaired([]))
    for nth, (op, _) in enumerate(operations, start=1):
        for part in ["", "short,"] if op == "write" else [""]:
            told, seen = asyncio.run(repaired([{"op": "*", "nth": nth, "do": part + "EIO"}]))
            copies = [copy.read_text() == tail for copy in folder.glob("*.torn-*")]
            outcomes.append([op, told, path.read_text() == E1 + E2, bool(copies) and all(copies)])
answer(outcomes)
"""


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_log_is_refused_at_every_append(tmp_path: Path, damage: bytes):
    """A store that has written before refuses a log that was damaged meanwhile, however often it is asked."""
    path = tmp_path / "log.jsonl"

    async def refused() -> list[int]:
        store, lines = JsonlSessionStore(path), []
        await store.append("t", {})
        path.write_bytes(log([E1]) + damage)
        for _ in range(3):
            with pytest.raises(CorruptLogError) as caught:
                await store.append("t", {})
            lines.append(caught.value.line)
        return lines

    assert asyncio.run(refused()) == [2, 2, 2]
    assert path.read_bytes() == log([E1]) + damage


def test_a_repair_may_fail_at_any_operation(tmp_path: Path):
    """Whichever operation of a repair fails, the next append by the same store mends the tail and numbers on."""
    outcomes = answer_of(run_child(FAULT_SWEEP, tmp_path, imports=(KIT / "solution",)))

    assert {op for op, *_ in outcomes} >= {"stat", "read", "open", "write", "fsync", "ftruncate"}
    assert [outcome for outcome in outcomes if outcome[2:] != [True, True]] == []


class _Interrupt:
    """Traces the store's file and raises KeyboardInterrupt at its `nth` line, as Ctrl-C may at any.

    Not at a `with` on its way out or between two lines of a `finally`: there Python itself promises nothing.
    """

    SPARED = ("_write_next", "_keep_torn_bytes", "_sync_folder")

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != session_store.__file__ or frame.f_code.co_name in self.SPARED:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self


def _interrupted(path: Path, nth: int) -> tuple[bool, BaseException | None]:
    """Append once with an interrupt at line `nth`, then again; say whether there was one, and what the caller saw."""
    store = JsonlSessionStore(path)

    async def both() -> list[Any]:
        return await asyncio.gather(store.append("t", {}), store.append("t", {}))

    async def disturbed() -> Any:
        results.append(store.append("t", {"interrupted": True}))
        sys.settrace(_Interrupt(nth))
        await asyncio.sleep(0)

    results: list[asyncio.Future[Any]] = []
    with asyncio.Runner() as runner:
        runner.run(both())
        with path.open("ab") as file:
            file.write(b'{"torn')
        try:
            runner.run(disturbed())
        except KeyboardInterrupt:
            happened = True
        else:
            happened = False
        finally:
            sys.settrace(None)
        runner.run(both())
    return happened, results[0].exception()


def test_an_interrupt_at_any_line_leaves_a_history(tmp_path: Path):
    """Ctrl-C at any line of an append: its caller is told, the log stays a history, the store goes on."""
    for nth in itertools.count(1):
        path = tmp_path / f"{nth}.jsonl"
        happened, seen = _interrupted(path, nth)

        events = asyncio.run(JsonlSessionStore(path).read())
        assert len(events) in (4, 5)
        if not happened:
            break
        assert isinstance(seen, KeyboardInterrupt)
    assert nth > 40


def test_an_append_that_its_loop_dropped_is_reported(tmp_path: Path):
    """Appends that never began because their loop closed are named when the store is used again; cancelled ones are not."""
    store, told = JsonlSessionStore(tmp_path / "log.jsonl"), []

    async def leave_waiting() -> None:
        store.append("t", 1).cancel()
        store.append("t", 2)

    async def go_on() -> int:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: told.append(context["message"])
        )
        return (await store.append("t", 3)).sequence

    loop = asyncio.new_event_loop()
    task = loop.create_task(leave_waiting())
    task.add_done_callback(lambda _: loop.stop())
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()

    assert asyncio.run(go_on()) == 1
    assert len(told) == 1
    assert "never began" in told[0]


@pytest.mark.parametrize("deed", ["read", "append"])
def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path, deed: str):
    """A path that is a pipe is an error at once: its bytes may never come."""
    path = tmp_path / "log.jsonl"
    os.mkfifo(path)
    store = JsonlSessionStore(path)

    async def ask() -> object:
        return await (store.read() if deed == "read" else store.append("t", {}))

    with pytest.raises(OSError, match="not a regular file"):
        asyncio.run(ask())


def test_a_disk_that_takes_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A write of zero bytes, again and again, fails the append and leaves nothing behind."""
    store = JsonlSessionStore(tmp_path / "log.jsonl")

    async def append() -> int:
        return (await store.append("t", {})).sequence

    with monkeypatch.context() as full:
        full.setattr(session_store.os, "write", lambda _fd, _data: 0)
        with pytest.raises(OSError, match="takes no bytes"):
            asyncio.run(append())

    assert store.path.read_bytes() == b""
    assert asyncio.run(append()) == 1
