"""The trusted end of the line to one child: what it may answer, how much, and until when (docs/grader-pipe.md)."""

from __future__ import annotations

import asyncio
import json
import math
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from grader.plain_text import printable
from grader.suites.check import Text

if TYPE_CHECKING:
    from grader.sandbox import Child, ForkedChild

Reason = Literal["timeout", "memory", "crash", "tamper", "missing-file", "syntax-error", "import-error"]


class ChildLost(Exception):  # noqa: N818 - what the pipe has to say about a student's child, in its own word
    """The child cannot be asked any more. `reason` is the grader's word (G6), `seen` what was seen of it.

    `then` is what to do next, where it is not what this reason has for everyone.
    """

    def __init__(self, reason: Reason, seen: Text, then: Text | None = None) -> None:
        super().__init__(f"{reason}: {seen.en}")
        self.reason = reason
        self.seen = seen
        self.then = then


class ChannelMisused(Exception):  # noqa: N818
    """A check spoke to a child that was replaced: a fault of the grader."""


@dataclass(slots=True)
class Allowance:
    """How many bytes one reply may have. It grows with what was sent: a fixed cap would refuse a good store."""

    reply_bytes: int = 1 << 20

    def sent(self, count: int) -> None:
        """Take note of bytes that the child was given; each may come back as an escape of six."""
        self.reply_bytes += 8 * count


class Channel(asyncio.Protocol):
    """Sends one line per turn of the loop, takes one reply per question, and trusts nothing that comes back."""

    def __init__(self, child: Child | ForkedChild, call_seconds: float, allowance: Allowance) -> None:
        self._child = child
        self._call_seconds = call_seconds
        self._allowance = allowance
        self._transport: asyncio.Transport | None = None
        self._turn: list[str] = []
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._received = bytearray()
        self._closed = False
        self.lost: ChildLost | None = None
        self._ready = self._ask(0)

    async def begin(self) -> dict[str, Any]:
        """Take over our end of the socket; give what the child says first, once its code is loaded or has failed to."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=self._child.channel)
        reply: dict[str, Any] = await self._ready
        return reply

    # --- what a check sends ---

    def new_id(self) -> int:
        """Give a number that was not used on this line."""
        self._last_id += 1
        return self._last_id

    def post(self, **operation: Any) -> None:
        """Put one operation on the line of this turn. It is written down now: later changes to it do not count."""
        if self._closed:
            raise ChannelMisused("this child was replaced by lab.restart(); open the store anew")
        text = json.dumps(operation, allow_nan=False, separators=(",", ":"))
        self._allowance.sent(len(text))
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._turn.append(text)

    def ask(self, id_: int, seconds: float | None = None, **operation: Any) -> asyncio.Future[Any]:
        """Post an operation that is answered once, within `seconds` (default: one call's). Failure: ChildLost."""
        self.post(id=id_, **operation)
        answer = self._ask(id_)
        timer = answer.get_loop().call_later(seconds or self._call_seconds, self._overdue, id_)
        answer.add_done_callback(lambda _: timer.cancel())
        return answer

    def close(self) -> None:
        """End the child for good."""
        self._closed = True
        self.lose("crash", Text("子进程已被结束", "the child was ended"))

    def lose(self, reason: Reason, seen: Text, then: Text | None = None) -> None:
        """Give the child up: kill it and fail everything it still owes. The first reason counts."""
        if self.lost is None:
            self.lost = ChildLost(reason, seen, then)
            self._child.kill()
            if self._transport is not None:
                self._transport.abort()
            else:
                self._child.channel.close()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(self.lost)
                answer.exception()  # not everything is awaited, and asyncio would complain about it
        self._asked.clear()

    def forged(self) -> ChildLost:
        """Give the child up for a reply of a shape that the host does not make; give the reason to raise."""
        self.lose("tamper", _NO_REPLY)
        return self.lost or ChildLost("tamper", _NO_REPLY)

    def _ask(self, id_: int) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        self._asked[id_] = answer
        if self.lost is not None:
            self.lose(self.lost.reason, self.lost.seen)
        return answer

    def _end_turn(self) -> None:
        """One line is one turn of our loop: the child makes these calls back to back, as one process would."""
        line = f"[{','.join(self._turn)}]\n"
        self._turn.clear()
        if self._transport is not None and self.lost is None:
            self._transport.write(line.encode())

    def _overdue(self, id_: int) -> None:
        if id_ in self._asked:
            self.lose("timeout", Text("有一次调用迟迟没有结果", "a call was not answered in time"))

    # --- what the child answers ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take whole lines; one that grows past everything that was sent is no reply."""
        first, *others = data.split(b"\n")
        self._received += first
        for piece in others:
            line, self._received = self._received, bytearray(piece)
            if self.lost is None:
                self._take(line)
        if len(self._received) > self._allowance.reply_bytes:
            self.lose("tamper", _TOO_LARGE)

    def connection_lost(self, _error: Exception | None) -> None:
        """Find out why the line ended before we ended it."""
        if self.lost is None:
            self.lose(*self._last_word())

    def _take(self, line: bytearray) -> None:
        try:
            reply = _parse(line)
        except (ValueError, RecursionError):
            self.lose("tamper", _NO_REPLY)
            return
        answer = self._asked.pop(reply["id"], None)
        if answer is None:
            self.lose("tamper", _UNASKED)
        elif not answer.done():
            answer.set_result(reply)

    def _last_word(self) -> tuple[Reason, Text]:
        """Say how the child ended. Waits a moment: the line may close before the process is gone."""
        code = self._child.ended_by_itself()
        if code is None:
            return "crash", Text("子进程关掉了与评分器的通道", "the child closed its channel to the grader")
        if -code == signal.SIGXCPU:
            return "timeout", Text("处理器时间用完了", "the processor time was used up")
        if code < 0:
            return "crash", Text(f"子进程被信号 {-code} 结束", f"the child was ended by signal {-code}")
        return "crash", Text(
            f"子进程中途自行退出（退出码 {code}）", f"the child ended by itself half-way (exit code {code})"
        )


_TOO_LARGE = Text("一次答复远大于发给它的全部内容", "a reply was far larger than everything that was sent")
_NO_REPLY = Text("通道上出现了不是答复的内容", "something that is no reply stood on the channel")
_UNASKED = Text(
    "通道上出现了没有人问过、或重复的答复", "a reply stood on the channel that nobody had asked for"
)


def _parse(line: bytearray) -> dict[str, Any]:
    """Read one reply, {"id", "ok"} or {"id", "err"}. Raises: ValueError or RecursionError for anything else."""
    reply = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    if type(reply) is not dict or type(reply.get("id")) is not int or len(reply) != 2:
        raise ValueError("no reply")
    if "ok" in reply:
        return reply
    error: Any = reply.get("err")
    if not is_error(error):
        raise ValueError("no reply")
    shown = {name: printable(error[name]) for name in ("text", "where", "when")}
    return {"id": reply["id"], "err": error | shown | {"types": [printable(name) for name in error["types"]]}}


def is_error(error: Any) -> bool:
    """Say whether this has the shape of an error that a child describes."""
    if type(error) is not dict or error.keys() != {"types", "attrs", "text", "where", "when"}:
        return False
    types, attrs = error["types"], error["attrs"]
    texts = [error["text"], error["where"], error["when"], *(types if type(types) is list else [None])]
    return type(attrs) is dict and all(type(text) is str for text in texts)


def _refuse(_token: str) -> NoReturn:
    raise ValueError("no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("no JSON")
    return number
