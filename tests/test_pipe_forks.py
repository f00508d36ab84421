"""Children are forks of one process that never loads their code: nothing of one child reaches the next."""

from __future__ import annotations

import asyncio
import fcntl
import os

import pytest

from grader import rungs, sandbox
from grader.channel import ChildLost
from grader.proxy import Children
from tests.piped import box_of, lab_of, on_pipe

pytestmark = pytest.mark.skipif(
    not rungs.strongest_rung().isolated and not os.environ.get("CI"),
    reason="no rung here on which a box has a namespace of its own",
)

PLAIN = "class JsonlSessionStore(Plain): pass"
TELLS = """
import json, sys
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        {deed}
        return SessionEvent(1, type, data)
"""


def told(deed, *, restarts=1):
    """Give what a store's deed tells, as an event's data, before and after restarts."""

    async def body(lab):
        found = [(await lab.store().append("a", None)).data]
        for _ in range(restarts):
            await lab.restart()
            found.append((await lab.store().append("a", None)).data)
        return found

    return on_pipe(TELLS.format(deed=deed), body)


def test_what_a_child_leaves_in_memory_is_gone_with_it():
    """A module of the library that one child changed is as before in the next."""
    deed = "data = hasattr(json, 'leaked'); json.leaked = True; json.dumps = None"
    assert told(deed, restarts=2) == [False, False, False]


def test_a_restart_is_a_fork_of_the_same_process():
    """Not another interpreter: that would take ten times as long."""
    first, second = told("data = [os.getppid(), os.getpid()]")
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_what_a_child_started_ends_with_it():
    """A process that detached itself from everything is gone before the next child begins: its lock is free."""
    source = """
import fcntl, subprocess, sys
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        lock = open("lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"],
                         start_new_session=True, pass_fds=[lock.fileno()])
        return self.write(type, data)
"""

    async def run(box):
        children = Children(box, "lesson_22")
        lab = await lab_of(children)
        await lab.store().append("a", 1)
        lock = os.open(box.work / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        await lab.restart()
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(lock)
        children.close()

    with box_of(source) as box:
        asyncio.run(run(box))


@pytest.mark.parametrize("place", ["mem", "fd/3", "environ", "maps"])
def test_a_child_cannot_look_into_what_it_is_forked_from(place):
    """The process that the next child comes from shows nobody its memory or its line."""
    deed = f"""
        try:
            open(f"/proc/{{os.getppid()}}/{place}", "r+b" if {place!r} == "mem" else "rb").read(1)
            data = "read"
        except (PermissionError, FileNotFoundError) as error:
            data = error.__class__.__name__
    """
    assert told(deed.strip(), restarts=0) == ["PermissionError"]


def test_a_child_sees_itself_as_any_process_does():
    """Only the process above is closed to looks: a child's own descriptors are its own."""
    assert told("data = len(os.listdir('/proc/self/fd')) > 2", restarts=0) == [True]


def test_a_child_that_kills_what_it_is_forked_from_is_a_crash_and_no_more():
    """Everything in the box ends; the next check gets another process."""

    async def run(box):
        children = Children(box, "lesson_22")
        lab = await lab_of(children)
        with pytest.raises(ChildLost) as lost:
            await lab.store().append("a", 1)
        children.take_note(lost.value)
        children.end(faults=False)
        again = await (await lab_of(children)).store("other").read()
        children.close()
        return lost.value.reason, again

    with box_of(TELLS.format(deed="os.kill(os.getppid(), 9); import time; time.sleep(600)")) as box:
        assert asyncio.run(run(box)) == ("crash", [])


def test_both_kinds_of_children_are_forks_of_one_process_one_at_a_time():
    """A child with the file layer in place takes the place of the plain one, and the layer is in no other."""
    deed = "data = [os.getppid(), open.__module__]"

    async def run(box):
        children = Children(box, "lesson_22")
        found, channels = [], []
        for faults in (False, True, False):
            lab = await lab_of(children, faults=faults)
            found.append((await lab.store().append("a", None)).data)
            channels.append(await children.get(faults=faults))
        children.close()
        return found, [channel.lost is not None for channel in channels[:2]]

    with box_of(TELLS.format(deed=deed)) as box:
        (plain, layered, again), lost = asyncio.run(run(box))
    assert plain == again
    assert (layered[0], layered[1] != plain[1]) == (plain[0], True)
    assert lost == [True, True]


def test_where_a_box_cannot_end_all_each_child_is_an_interpreter_of_its_own(monkeypatch):
    """Without a namespace and without a user of its own, killing all others would reach the grader."""
    monkeypatch.setattr(sandbox, "can_fork", lambda box: False)
    first, second = told("data = os.getppid()")
    assert isinstance(first, int)
    assert isinstance(second, int)
    assert told("data = hasattr(json, 'leaked'); json.leaked = True") == [False, False]
