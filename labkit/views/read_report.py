"""What a log says when it is read: the kit's report, a learner's answer, and whether the two agree."""

from __future__ import annotations

import asyncio
import inspect
import json
import stat
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from labkit.words import t
from solution.lesson_22 import CorruptLogError
from solution.lesson_22.event_line import NotAnEventError, NotJsonError, decode_line
from solution.lesson_22.session_store import scan

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from solution.lesson_22 import SessionEvent

PATIENCE_SECONDS = 5.0
"""How long a learner's ``read`` may take before the view says that no answer came."""


LARGEST_BYTES = 64 * 1024 * 1024
"""A larger log is not looked at here; the engineering version streams it."""


class Outcome(StrEnum):
    """How a read ended."""

    WHOLE = "whole"
    TORN = "torn"
    CORRUPT = "corrupt"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ReadReport:
    """The kit's verdict on one file. Offsets and sizes in bytes, ``line`` 1-based and physical.

    ``events`` are those before the first fault; ``good_bytes`` is where they end. ``reason`` says what is wrong with
    ``line``, or what the operating system answered; it never holds a byte of the file.
    """

    outcome: Outcome
    size: int = 0
    events: tuple[SessionEvent, ...] = ()
    good_bytes: int = 0
    torn_bytes: int = 0
    missing_newline: bool = False
    line: int | None = None
    reason: str = ""


class LogReader:
    """Reads one log again and again. Lines that were judged before and are unchanged are not parsed twice.

    That keeps a slider over a 1 MB log fluent; the report is the one that ``scan`` gives for the whole file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sound = b""
        self._events: tuple[SessionEvent, ...] = ()
        self._line_ends: list[int] = []

    def read(self) -> tuple[bytes, ReadReport]:
        """Return the bytes on disk and the report on exactly these bytes. Never raises for what the disk says."""
        try:
            if refusal := _refusal(self.path.stat()):
                return b"", ReadReport(Outcome.UNREADABLE, reason=refusal)
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return b"", ReadReport(Outcome.ABSENT)
        except OSError as error:
            return b"", ReadReport(Outcome.UNREADABLE, reason=error.strerror or type(error).__name__)
        return raw, self._judge_known(raw) or self._judge_anew(raw)

    def _judge_known(self, raw: bytes) -> ReadReport | None:
        """Judge a file whose ended lines are all known to be sound; None when they are not."""
        ended = raw.rfind(b"\n") + 1
        if not raw.startswith(self._sound[:ended]) or ended > len(self._sound):
            return None
        events, tail = self._events[: bisect_right(self._line_ends, ended)], raw[ended:]
        if not tail:
            return ReadReport(Outcome.WHOLE, len(raw), events, ended)
        try:
            last = decode_line(tail)
        except NotJsonError:
            return ReadReport(Outcome.TORN, len(raw), events, ended, torn_bytes=len(tail))
        except NotAnEventError:
            return None
        if last.sequence != len(events) + 1:
            return None
        return ReadReport(Outcome.WHOLE, len(raw), (*events, last), len(raw), missing_newline=True)

    def _judge_anew(self, raw: bytes) -> ReadReport:
        try:
            found = scan(raw, self.path)
        except CorruptLogError as error:
            good = sum(len(line) + 1 for line in raw.split(b"\n")[: error.line - 1])
            before = scan(raw[:good], self.path)
            return ReadReport(
                Outcome.CORRUPT, len(raw), before.events, good, line=error.line, reason=error.reason
            )
        self._remember(raw, found.events)
        outcome = Outcome.TORN if found.torn else Outcome.WHOLE
        return ReadReport(
            outcome, len(raw), found.events, found.good_bytes, len(found.torn), found.missing_newline
        )

    def _remember(self, raw: bytes, events: tuple[SessionEvent, ...]) -> None:
        self._sound = raw[: raw.rfind(b"\n") + 1]
        self._line_ends = list(accumulate(len(line) + 1 for line in self._sound.split(b"\n")[:-1]))
        self._events = events[: len(self._line_ends)]


def _refusal(status: os.stat_result) -> str:
    """Say why a file is not even opened: a pipe would hold whoever reads it, and a huge log all memory."""
    if not (
        stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    ):  # a folder gives the system's own reason
        return t("report.not-a-file")
    if stat.S_ISREG(status.st_mode) and status.st_size > LARGEST_BYTES:
        return t("report.too-large", size=status.st_size, most=LARGEST_BYTES)
    return ""


class Answered(StrEnum):
    """How somebody's ``read`` ended."""

    EVENTS = "events"
    CORRUPT = "corrupt"
    UNFINISHED = "unfinished"
    FAILED = "failed"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a store's own ``read`` said about a file: its events, or the line it stopped at, or its failure."""

    how: Answered
    events: tuple[Any, ...] = ()
    line: int | None = None
    message: str = ""


async def ask(open_store: Callable[[Path], Any], path: Path) -> Answer:
    """Let a learner's store read the file. Whatever it does becomes an answer; nothing escapes but cancellation."""
    try:
        events = open_store(path).read()
        if inspect.isawaitable(events):
            # Awaited here, in no task of its own: exit() would end the loop from there.
            async with asyncio.timeout(PATIENCE_SECONDS):
                events = await events
        return Answer(Answered.EVENTS, tuple(events))
    except NotImplementedError as error:
        return Answer(Answered.UNFINISHED, message=str(error))
    except TimeoutError:
        return Answer(Answered.SILENT)
    except (Exception, SystemExit) as error:  # noqa: BLE001 — a learner's code may do anything; the view shows it
        line = getattr(error, "line", None)
        if type(error).__name__ == CorruptLogError.__name__ and isinstance(line, int):
            return Answer(Answered.CORRUPT, line=line, message=str(getattr(error, "reason", "")))
        return Answer(Answered.FAILED, message=f"{type(error).__name__}: {error}")


def agree(report: ReadReport, answer: Answer) -> bool | None:
    """Whether the answer is the kit's verdict; None when there is nothing to compare yet."""
    if answer.how in (Answered.UNFINISHED, Answered.SILENT):
        return None
    if answer.how is Answered.CORRUPT:
        return report.outcome is Outcome.CORRUPT and answer.line == report.line
    if answer.how is Answered.FAILED:
        return report.outcome is Outcome.UNREADABLE
    return report.outcome not in (Outcome.CORRUPT, Outcome.UNREADABLE) and _same(report.events, answer.events)


def _same(ours: tuple[SessionEvent, ...], theirs: tuple[Any, ...]) -> bool:
    try:
        return [_plain(event) for event in ours] == [_plain(event) for event in theirs]
    except (AttributeError, TypeError, ValueError):  # theirs are no events, or hold what JSON has not
        return False


def _plain(event: Any) -> str:
    """Return an event as text, in which 1, 1.0 and True differ as they do on disk."""
    return json.dumps([event.sequence, event.type, event.data], sort_keys=True)
