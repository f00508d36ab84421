"""Comparisons that explain themselves: the rule, what was done, what was expected, what was found; zh and en.

A message never shows what the grader drew (types, data, texts): it speaks of numbers, counts, lines and classes.
Plain `assert` is not used in a suite: verdicts run without assertion rewriting.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from grader.lab import STUDENT_ERRORS, CorruptLog, Event, StudentError, canonical, is_students
from grader.suites.check import CheckFailed, Text
from grader.work_folder import OddFileError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from grader.lab import Lab, Store

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

_SHOWN_NUMBERS = 12
_NO_FAULT = Text("不出错", "no error")


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that is tried for one rule: said once, and every comparison explains itself with it."""

    rule: str
    zh: str
    en: str

    def failure(self, expected: Text, found: Text) -> CheckFailed:
        """Make the verdict that the rule does not hold; the caller raises it."""
        return CheckFailed(
            Text(
                f"{self.rule}：{self.zh}。应当：{expected.zh}；实际：{found.zh}。",
                f"{self.rule}: {self.en}. Expected: {expected.en}; found: {found.en}.",
            )
        )

    def require(self, holds: bool, expected: Text, found: Text) -> None:
        """Go on when it holds."""
        if not holds:
            raise self.failure(expected, found)

    async def gives(self, call: Awaitable[T]) -> T:
        """Await what has to succeed. A `NotImplementedError` stays what it is: the work is not done yet."""
        try:
            return await call
        except NotImplementedError:
            raise
        except STUDENT_ERRORS as error:
            raise self.failure(_NO_FAULT, show_error(_theirs(error))) from None

    async def refuses(self, call: Awaitable[Any], *kinds: type[E]) -> E:
        """Await what has to fail with one of `kinds`; give the error."""
        names = " / ".join("CorruptLogError" if kind is CorruptLog else kind.__name__ for kind in kinds)
        try:
            await call
        except NotImplementedError:
            raise
        except kinds as error:
            return _theirs(error)
        except STUDENT_ERRORS as error:
            found = show_error(_theirs(error))
        else:
            found = Text("没有报错", "nothing was raised")
        raise self.failure(Text(names, names), found)

    async def corrupt_at(self, call: Awaitable[Any], line: int, hidden: Iterable[str] = ()) -> CorruptLog:
        """Await a read that has to stop at `line`, say so in both languages, and echo nothing of `hidden`."""
        error = await self.refuses(call, CorruptLog)
        self.names_line(error, line)
        self.echoes_nothing(error, hidden)
        return error

    def names_line(self, error: CorruptLog, line: int) -> None:
        """Require that the error carries this line and says it in both languages."""
        expected = Text(f"指出第 {line} 行", f"it names line {line}")
        at = show_value(error.line)
        self.require(
            canonical(error.line) == str(line), expected, Text(f".line 是 {at.zh}", f".line is {at.en}")
        )
        for words in (f"第 {line} 行", f"line {line}"):
            pattern = rf"{re.escape(words)}(?!\d)"
            found = Text(f"消息里没有“{words}”", f'the message does not contain "{words}"')
            self.require(re.search(pattern, error.text) is not None, expected, found)

    def echoes_nothing(self, error: Exception, hidden: Iterable[str]) -> None:
        """Require that the error's text holds none of these pieces of event data."""
        leaked = any(piece in str(error) for piece in hidden)
        expected = Text("错误消息不回显事件数据", "the error message echoes no event data")
        self.require(not leaked, expected, Text("消息里出现了事件数据", "the message holds event data"))

    def same_events(
        self, found: Sequence[Event], expected: Sequence[Event], where: Text | None = None
    ) -> None:
        """Compare numbers first, then types, then data, each as canonical JSON."""
        at = where or Text("读到的事件", "the events read")
        wanted, got = [event.sequence for event in expected], [event.sequence for event in found]
        self.require(
            canonical(got) == canonical(wanted),
            Text(f"{at.zh}编号为 {_numbers(wanted).zh}", f"{at.en} are numbered {_numbers(wanted).en}"),
            _numbers(got),
        )
        for name, zh in (("type", "类型"), ("data", "数据")):
            for one, other in zip(found, expected, strict=True):
                self.require(
                    canonical(getattr(one, name)) == canonical(getattr(other, name)),
                    Text(
                        f"{at.zh}中第 {other.sequence} 个的{zh}与追加时相同",
                        f"in {at.en} the {name} of number {other.sequence} is what was appended",
                    ),
                    Text("不同", "it differs"),
                )

    def bytes_on_disk(self, lab: Lab, name: str = "events.jsonl") -> bytes:
        """Look at the file from outside; that it is missing, or no plain file, is a failure of the rule."""
        try:
            return lab.disk(name)
        except FileNotFoundError:
            found = Text("没有这个文件", "it is missing")
        except OddFileError:
            found = Text("它不是普通文件", "it is no plain file")
        raise self.failure(Text(f"磁盘上有文件 {name}", f"{name} is a file on disk"), found)

    def disk_holds(self, lab: Lab, expected: Sequence[Event], name: str = "events.jsonl") -> None:
        """Require exactly these records on disk, one ended line each, whatever their spacing and key order."""
        found = self.records(self.bytes_on_disk(lab, name))
        self.same_events(found, expected, Text("磁盘上的记录", "the records on disk"))

    async def appends(self, lab: Lab, events: Sequence[Event], name: str = "events.jsonl") -> Store:
        """Append these events one by one with a new store, and look at the disk after each acknowledgement; give the store."""
        store = lab.store(name)
        for event in events:
            returned = await self.gives(store.append(event.type, event.data))
            self.same_events([returned], [event], Text("返回的事件", "the event returned"))
            self.disk_holds(lab, events[: event.sequence], name)
        return store

    async def replays(self, lab: Lab, histories: Mapping[str, Sequence[Event]]) -> None:
        """Lose everything in memory, then read each log, by its name, and require exactly its events."""
        await lab.restart()
        for name, events in histories.items():
            self.same_events(await self.gives(lab.store(name).read()), events)

    def records(self, raw: bytes) -> list[Event]:
        """Take the bytes of a log apart; what is no whole record with its newline is a failure of the rule."""
        whole = Text(
            "磁盘上每行一条完整记录并以换行结束", "on disk each line is a whole record with its newline"
        )
        *ended, rest = raw.split(b"\n")
        self.require(
            not rest, whole, Text(f"末尾多出 {len(rest)} 字节", f"{len(rest)} bytes stand after the last one")
        )
        events = []
        for number, piece in enumerate(ended, start=1):
            event = _record(piece)
            if event is None:
                raise self.failure(whole, Text(f"第 {number} 行不是记录", f"line {number} is no record"))
            events.append(event)
        return events


def _theirs(error: E) -> E:
    """Give an error of the student's code; one of the same class that came from the grader's own goes on as it is."""
    if not is_students(error):
        raise error
    return error


def show_error(error: Exception) -> Text:
    """Say what was raised: its class, and its text without anything that may have been drawn."""
    if isinstance(error, CorruptLog):
        line = show_value(error.line)
        return Text(f"CorruptLogError（第 {line.zh} 行）", f"CorruptLogError (line {line.en})")
    name = error.name if isinstance(error, StudentError) else type(error).__name__
    text = redacted(error.text if isinstance(error, StudentError) else str(error))
    shown = f"{name}: {text}" if text else name
    return Text(shown, shown)


def show_outcome(outcome: Mapping[str, Any]) -> Text:
    """Say how a call of a scenario ended, from what `attempt` told of it."""
    if "hung" in outcome:
        return Text("一个调用再也没有结束", "one call never ended")
    if "error" in outcome:
        return Text(f"抛出 {outcome['error'][0]}", f"{outcome['error'][0]} was raised")
    return Text("没有报错", "nothing was raised")


def show_value(value: object) -> Text:
    """Say what a plain value is: numbers as they are, anything else by its kind."""
    if value is None:
        return Text("空", "nothing")
    if type(value) is int and abs(value) < 10**9:
        return Text(str(value), str(value))
    kind = type(value).__name__
    return Text(f"{kind} 类型的值", f"a value of type {kind}")


def redacted(text: str) -> str:
    """Cut from a message whatever could be a drawn value: quoted or bracketed parts and long numbers."""
    kept = re.sub(r"""'[^']*'|"[^"]*"|[{\[].*[}\]]|\d{4,}""", _keep_names, text, flags=re.DOTALL)
    line = " ".join(kept.split())
    return line if len(line) <= 160 else line[:159] + "…"


def _keep_names(match: re.Match[str]) -> str:
    return match.group() if re.fullmatch(r"""['"][A-Za-z_.]{1,40}['"]""", match.group()) else "…"


def _numbers(found: Sequence[object]) -> Text:
    if not found:
        return Text("（无）", "(none)")
    if list(found) == list(range(1, len(found) + 1)) and len(found) > 3:
        return Text(f"1 到 {len(found)}", f"1 to {len(found)}")
    shown = [show_value(number) for number in found[:_SHOWN_NUMBERS]]
    more = "…" if len(found) > _SHOWN_NUMBERS else ""
    return Text("、".join(text.zh for text in shown) + more, ", ".join(text.en for text in shown) + more)


def _record(piece: bytes) -> Event | None:
    try:
        value = json.loads(piece.decode())
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict or not {"sequence", "type", "data"} <= value.keys():
        return None
    return Event(value["sequence"], value["type"], value["data"])
