"""The lab over the pipe: the same face as in process, with the student's code in a child (law 4, G1, G11)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from typing import TYPE_CHECKING, Any

from grader import rungs, sandbox, tree
from grader.channel import Allowance, Channel, ChildLost
from grader.interface import Interface
from grader.lab import Event, as_told, rebuild_error
from grader.suites.check import Text
from grader.work_folder import MAX_FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path
    from random import Random

    from grader.channel import Reason
    from grader.lab import Rule
    from grader.sandbox import Box, Child, ForkedChild, Nursery


class Children:
    """The running children of one submission: one plain, one with the fault layer, each started when needed.

    Where they are forks there is one at a time: checks of one kind are best run one after the other.
    `out_of_play` is set once nothing more can be learnt: the code does not load, cheated, or used up its time.
    """

    def __init__(
        self, box: Box, package: str, host: Path = rungs.HOST, interface: Interface | None = None
    ) -> None:
        self.box = box
        self.interface = interface or Interface({})
        self._host = host
        self.allowance = Allowance()
        self.out_of_play: ChildLost | None = None
        self._package = package
        self._running: dict[bool, Channel] = {}
        self._nursery: Nursery | None = None
        self._ends_at = time.monotonic() + box.limits.submission_seconds
        self._timeouts = 0

    @property
    def seconds_left(self) -> float:
        """How much of the submission's wall clock is left."""
        return max(0.0, self._ends_at - time.monotonic())

    async def get(self, *, faults: bool) -> Channel:
        """Give the running child, or start one.

        Raises: ChildLost when the code does not load or is out of play; OSError when this machine starts no child.
        """
        running = self._running.get(faults)
        if running is not None and running.lost:  # between two checks: nobody was told of it yet
            self.take_note(running.lost)
            running = None
        if self.out_of_play:
            raise self.out_of_play
        if running is None:
            try:
                running = self._running[faults] = await self._start(faults=faults)
            except ChildLost as lost:
                self.out_of_play = lost
                raise
        return running

    def end(self, *, faults: bool) -> None:
        """End the running child of this kind, if there is one."""
        if running := self._running.pop(faults, None):
            running.close()

    def end_spoilt(self, *, faults: bool) -> None:
        """End a child in which something unexpected happened, unless no student's code ran in that process."""
        running = self._running.get(faults)
        if self._host != rungs.SPINE_HOST or (running and running.lost):
            self.end(faults=faults)

    def close(self) -> None:
        """End every child."""
        for faults in (True, False):
            self.end(faults=faults)
        if self._nursery:
            self._nursery.end()
            self._nursery = None

    def take_note(self, lost: ChildLost) -> None:
        """Remember how a child was lost: some ends are final for the whole submission."""
        self._timeouts += lost.reason == "timeout"
        if lost.reason not in ("crash", "memory", "timeout") or self._timeouts >= self.box.limits.timeouts:
            self.out_of_play = ChildLost("timeout", _NOT_RUN) if lost.reason == "timeout" else lost

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """Put something into the work folder. Raises: ChildLost when there is no room because the student filled it."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT) and self.box.is_full:
                raise self.full() from None
            raise

    def full(self) -> ChildLost:
        """Say that the work folder is full."""
        most = self.box.limits.work_mib
        seen = Text(f"工作目录写满了（上限 {most} MiB）", f"the work folder is full (limit: {most} MiB)")
        return ChildLost("crash", seen, _WRITE_LESS)

    def lose(self, lost: ChildLost) -> None:
        """Give up the whole submission, from outside: every child is ended, and what it still owes fails."""
        self.out_of_play = lost
        for channel in self._running.values():
            channel.lose(lost.reason, lost.seen, lost.then)

    async def _start(self, *, faults: bool) -> Channel:
        child = self._child(faults=faults)
        channel = Channel(child, self.box.limits.call_seconds, self.allowance)
        try:
            reply = await asyncio.wait_for(channel.begin(), self.box.limits.start_seconds)
        except TimeoutError:
            channel.close()
            raise ChildLost("timeout", _SLOW_IMPORT) from None
        except BaseException:  # also when the whole run is being ended: no child may stay
            channel.close()
            raise
        if "err" in reply:
            channel.close()
            raise _load_failure(reply["err"])
        return channel

    def _child(self, *, faults: bool) -> Child | ForkedChild:
        """Start a child: a fork where that is safe, which takes a tenth of the time of a new interpreter."""
        if self._host != rungs.HOST or not sandbox.can_fork(self.box):
            return sandbox.start(self.box, self._package, faults=faults, host=self._host)
        self.end(faults=not faults)
        if self._nursery is None or self._nursery.is_over:
            self._nursery = sandbox.start_nursery(self.box, self._package)
        self.box.check_running()
        return self._nursery.start(faults=faults)


_NOT_RUN = Text("前面的测试超时太多，这一项没有运行", "not run: too many tests before it ran out of time")
_WRITE_LESS = Text("只写课程要求的文件。", "Write only the files that the lesson asks for.")
_SLOW_IMPORT = Text("导入代码迟迟没有结束", "importing the code did not end in time")


def _load_failure(error: dict[str, Any]) -> ChildLost:
    """Name what kept the code from loading. Nothing was drawn yet, so its own words may be shown."""
    types = error["types"]
    reason: Reason = (
        "syntax-error" if "SyntaxError" in types else "memory" if "MemoryError" in types else "import-error"
    )
    place = f"{error['where']}: " if error["where"] else ""
    what = f"{place}{types[0] if types else 'error'}: {error['text']}"
    return ChildLost(reason, Text(what, what))


class PipedLab:
    """See `grader.lab.Lab`. `folder` is where the child sees it; the grader looks below its own end of `folder.parent`.

    `heard_freely` says whether the child was asked for JSON of any shape: it can answer anything then.
    """

    heard_freely = False

    def __init__(
        self, children: Children, channel: Channel, folder: Path, draw: Random, *, faults: bool
    ) -> None:
        self.folder = children.box.place.work / folder.name
        self.draw = draw
        self.interface = children.interface
        self._root = folder.parent
        self._children = children
        self._channel = channel
        self._faults = faults
        # A store may own a thread, and the check before had many: nobody can call those any more.
        channel.post(op="forget", id=channel.new_id())

    def store(self, name: str = "events.jsonl") -> PipedStore:
        """Open a new instance; what its constructor raises comes from the first await."""
        return PipedStore(self._channel, self.folder / name)

    def disk(self, name: str = "events.jsonl") -> bytes:
        """Look at what is on disk now, from outside the child."""
        return tree.read(self._root, self._below(name), MAX_FILE_BYTES)

    def mode(self, name: str) -> int:
        """Look at the rights of a file or folder."""
        return tree.mode(self._root, self._below(name))

    def plant(self, name: str, raw: bytes) -> None:
        """Put a file of these bytes in the folder; it belongs to the child's user, like the folders around it."""
        box = self._children.box
        with self._children.room():
            tree.plant(self._root, self._below(name), raw, box.place.user)
        self._children.allowance.sent(len(raw))

    def names(self) -> list[str]:
        """List the files below the folder."""
        return tree.names(self._root, self.folder.name)

    def lost(self) -> ChildLost | None:
        """Say whether the child was lost meanwhile, unnoticed by the check: then its answers count for nothing."""
        return self._channel.lost

    def _below(self, name: str) -> str:
        return f"{self.folder.name}/{name}"

    async def restart(self) -> None:
        """Kill the process and start another: nothing in memory survives, nothing is flushed."""
        self._children.end(faults=self._faults)
        self._channel = await self._children.get(faults=self._faults)

    async def arm(self, rules: Sequence[Rule]) -> None:
        """Arm faults below the folder."""
        plain = [dict(rule) for rule in rules]
        await self._channel.ask(self._channel.new_id(), op="arm", rules=plain, folder=str(self.folder))

    async def disarm(self) -> list[dict[str, Any]]:
        """Lift the faults and tell what was seen; that is the child's word."""
        self.heard_freely = True
        seen: list[dict[str, Any]] = value_of(
            self._channel, await self._channel.ask(self._channel.new_id(), op="disarm"), list
        )
        return seen

    async def scenario(self, source: str, given: Any = None) -> Any:
        """Run trusted source beside the student's code."""
        self.heard_freely = True
        answer = self._channel.ask(
            self._channel.new_id(),
            self._children.box.limits.check_seconds,
            op="scenario",
            source=source,
            folder=str(self.folder),
            given=given,
        )
        return as_told(value_of(self._channel, await answer, object))


class PipedStore:
    """See `grader.lab.Store`."""

    def __init__(self, channel: Channel, path: Path) -> None:
        self._channel = channel
        self._id = channel.new_id()
        channel.post(op="open", id=self._id, path=str(path))

    def append(self, type: str, data: object) -> PipedHandle:  # noqa: A002 - the lesson's own parameter name
        """Call the student's `append` in this turn, after what was called before."""
        return PipedHandle(self._channel, self._call("append", type, data))

    async def read(self) -> list[Event]:
        """Await the student's `read`."""
        answer = self._channel.ask(self._call("read"), op="await")
        return [_event(self._channel, found) for found in value_of(self._channel, await answer, list)]

    def _call(self, method: str, *arguments: object) -> int:
        id_ = self._channel.new_id()
        self._channel.post(op="call", id=id_, on=self._id, m=method, a=arguments)
        return id_


class PipedHandle:
    """See `grader.lab.Handle`. Awaiting is a message of its own: a coroutine begins only when it is awaited."""

    def __init__(self, channel: Channel, id_: int) -> None:
        self._channel = channel
        self._id = id_
        self._answer: asyncio.Future[Any] | None = None

    def __await__(self) -> Generator[Any, Any, Event]:
        """Wait for the event."""
        return self._wait().__await__()

    async def _wait(self) -> Event:
        if self._answer is None:
            self._answer = self._channel.ask(self._id, op="await")
        try:
            reply = await asyncio.shield(self._answer)  # a second await gets the same answer
        except asyncio.CancelledError:
            self.cancel()  # who stops waiting for a future cancels it
            raise
        return _event(self._channel, value_of(self._channel, reply, list))

    def cancel(self) -> None:
        """Cancel the student's awaitable, in its place among the calls of this turn."""
        self._channel.post(op="cancel", id=self._id)


def value_of(channel: Channel, reply: dict[str, Any], kind: type) -> Any:
    """Give what was answered, or raise what the student's code raised; another shape than `kind` is forged."""
    if "err" in reply:
        told = reply["err"]
        error = rebuild_error(told["types"], told["attrs"], told["text"])
        error.add_note(told["where"])
        raise error
    if not isinstance(reply["ok"], kind):
        raise channel.forged()
    return reply["ok"]


def _event(channel: Channel, found: Any) -> Event:
    if not isinstance(found, list) or len(found) != 3:
        raise channel.forged()
    return Event(*found)
