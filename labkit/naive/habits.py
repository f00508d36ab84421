"""Stores with a habit that looks like good care: to prepare first, to overlook blank lines, to quote what is wrong."""

from __future__ import annotations

import asyncio
import json

from labkit.naive.plain import PlainStore, record
from solution.lesson_22 import SessionEvent
from solution.lesson_22.session_store import scan


class PreparingStore(PlainStore):
    """Mistake: awaits something before it takes a place in line. Who prepares faster is written first."""

    def append(self, type: str, data: object) -> asyncio.Task[SessionEvent]:  # noqa: A002
        """Prepare the data, then append; the more text, the longer it takes."""
        return asyncio.get_running_loop().create_task(self._prepare_and_append(type, data))

    async def _prepare_and_append(self, type_: str, data: object) -> SessionEvent:
        for _word in str(data).split():
            await asyncio.sleep(0)
        event, line = record(len(self._read_now()) + 1, type_, data)
        self._write_now(line)
        return event


class BlankSkippingStore(PlainStore):
    """Lenient: overlooks blank lines. No append ever wrote one, so whoever did was not the store."""

    def _read_now(self) -> list[SessionEvent]:
        pieces = self.path.read_bytes().split(b"\n")
        return list(scan(b"".join(piece + b"\n" for piece in pieces if piece.strip()), self.path).events)


class EchoingStore(PlainStore):
    """Mistake: quotes the line that it cannot read. Errors travel into logs, reports and prompts, and the line with them."""

    def _read_now(self) -> list[SessionEvent]:
        events = []
        for number, line in enumerate(self.path.read_text("utf-8").split("\n")[:-1], start=1):
            try:
                events.append(SessionEvent(**json.loads(line)))
            except ValueError as error:
                raise ValueError(f"line {number}: cannot parse {line!r}") from error
        return events
