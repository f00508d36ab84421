"""What the pipe keeps of one process's timing: turns, awaits, cancelling."""

from __future__ import annotations

import asyncio
import json

import pytest

from grader.lab import Cancelled
from tests.piped import on_pipe

RACY = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        number = len(self.events()) + 1
        await asyncio.sleep(0)
        with self.path.open("a") as file:
            file.write(json.dumps([number, type, data]) + "\\n")
        return SessionEvent(number, type, data)
"""

QUEUE = """
class JsonlSessionStore(Plain):
    '''Starts at the call; the event loop turns before each write.'''

    def __init__(self, path):
        super().__init__(path)
        self.last = None

    def append(self, type, data):
        before, self.last = self.last, asyncio.get_running_loop().create_future()
        return asyncio.ensure_future(self.later(before, self.last, type, data))

    async def later(self, before, mine, type, data):
        try:
            if before is not None:
                await asyncio.shield(before)
            return self.write(type, data)
        finally:
            mine.set_result(None)
"""


def types_on_disk(lab, name="events.jsonl"):
    return [json.loads(line)[1] for line in lab.disk(name).splitlines()]


def test_calls_of_one_turn_race_every_time():
    """Two calls made in one turn of the grader's loop meet in the child as they would in one process."""

    async def body(lab):
        doubled = 0
        for round_ in range(20):
            store = lab.store(f"{round_}.jsonl")
            both = await asyncio.gather(store.append("a", 1), store.append("b", 2))
            doubled += [event.sequence for event in both] == [1, 1]
        return doubled

    assert on_pipe(RACY, body) == 20


def test_a_slow_parent_does_not_hide_a_race():
    """Blocking work of the grader between two calls is no turn of its loop, so the child makes no turn either."""

    async def body(lab):
        store = lab.store()
        first = store.append("a", 1)
        sum(range(300_000))
        second = store.append("b", 2)
        return [(await first).sequence, (await second).sequence]

    assert on_pipe(
        RACY.replace("async def append", "async def slowly")
        + """
    def append(self, type, data):
        return asyncio.ensure_future(self.slowly(type, data))
""",
        body,
    ) == [1, 1]


def test_a_turn_of_the_grader_is_a_turn_of_the_child():
    """Calls in two turns are apart by at least one turn of the child's loop."""

    async def body(lab):
        store = lab.store()
        first = store.append("a", 1)
        for _ in range(3):
            await asyncio.sleep(0)
        second = store.append("b", 2)
        return [(await first).sequence, (await second).sequence]

    assert on_pipe(
        RACY.replace("async def append", "async def slowly")
        + """
    def append(self, type, data):
        return asyncio.ensure_future(self.slowly(type, data))
""",
        body,
    ) == [1, 2]


def test_a_coroutine_begins_when_it_is_awaited():
    """With `async def append`, awaiting the second call first stores it first: the await is its own message."""

    async def body(lab):
        store = lab.store()
        first, second = store.append("first", 1), store.append("second", 2)
        await second
        await first
        return types_on_disk(lab)

    assert on_pipe("class JsonlSessionStore(Plain): pass", body) == ["second", "first"]


def test_a_task_begins_when_it_is_called():
    """A store that starts its work at the call keeps call order, whatever is awaited first."""

    async def body(lab):
        store = lab.store()
        first, second = store.append("first", 1), store.append("second", 2)
        await second
        await first
        return types_on_disk(lab)

    assert on_pipe(QUEUE, body) == ["first", "second"]


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_cancelling_a_queued_call_keeps_the_others_in_order(turns):
    """A cancel takes its place among the calls of its turn; the neighbours are neither dropped nor swapped."""

    async def body(lab):
        orders = []
        for round_ in range(10):
            store = lab.store(f"{round_}.jsonl")
            handles = [store.append(name, 1) for name in "abcde"]
            for _ in range(turns):
                await asyncio.sleep(0)
            handles[3].cancel()
            late = store.append("f", 1)
            results = await asyncio.gather(*handles, late, return_exceptions=True)
            lines = lab.disk(f"{round_}.jsonl").splitlines()
            orders.append(("".join(json.loads(line)["type"] for line in lines), results[3]))
        return orders

    for order, cancelled in on_pipe(None, body):
        begun = turns > 0 and not isinstance(
            cancelled, Cancelled
        )  # the child's loop may be further on by then
        assert order == ("abcdef" if begun else "abcef")


def test_a_call_cancelled_before_its_first_step_is_answered():
    """A future that is cancelled in the turn of its call still ends, as Cancelled."""

    async def body(lab):
        handle = lab.store().append("a", 1)
        handle.cancel()
        with pytest.raises(Cancelled):
            await handle

    on_pipe(QUEUE, body)


def test_a_coroutine_cancelled_before_it_is_awaited_never_begins():
    """Cancelling what was called and never awaited leaves the disk alone."""

    async def body(lab):
        store = lab.store()
        handle = store.append("a", 1)
        handle.cancel()
        with pytest.raises(Cancelled):
            await handle
        await store.append("b", 2)
        return types_on_disk(lab)

    assert on_pipe("class JsonlSessionStore(Plain): pass", body) == ["b"]


def test_who_stops_waiting_cancels():
    """A task of the grader that is cancelled while it waits cancels the student's future, as in one process."""

    async def body(lab):
        store = lab.store()
        handle = store.append("never", 1)
        waiting = asyncio.ensure_future(asyncio.wait_for(handle, 0.01))
        with pytest.raises(TimeoutError):
            await waiting
        with pytest.raises(Cancelled):
            await handle

    on_pipe(
        """
class JsonlSessionStore(Plain):
    def append(self, type, data):
        return asyncio.get_running_loop().create_future()
""",
        body,
    )


def test_a_cancel_after_the_answer_changes_nothing():
    """A call that has ended keeps its event."""

    async def body(lab):
        handle = lab.store().append("a", 1)
        event = await handle
        handle.cancel()
        await asyncio.sleep(0)
        assert await handle == event

    on_pipe(QUEUE, body)


def test_a_store_may_be_awaited_twice():
    """The second await of one handle gets the same event and writes nothing."""

    async def body(lab):
        handle = lab.store().append("a", 1)
        assert await handle == await handle
        return types_on_disk(lab)

    assert on_pipe("class JsonlSessionStore(Plain): pass", body) == ["a"]
