"""Stores whose queue, number or data is taken at the wrong moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from labkit.naive.plain import PlainStore, record

if TYPE_CHECKING:
    import os

    from solution.lesson_22.event_line import SessionEvent


class _ChainedStore(PlainStore):
    """Each append waits for the one called before it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._last: asyncio.Task[SessionEvent] | None = None

    def append(self, type: str, data: object) -> asyncio.Task[SessionEvent]:  # noqa: A002
        """Take a place in the chain at the call."""
        self._last = asyncio.get_running_loop().create_task(self._after(self._last, type, data))
        return self._last

    async def _after(
        self, previous: asyncio.Task[SessionEvent] | None, type_: str, data: object
    ) -> SessionEvent:
        if previous:
            with contextlib.suppress(Exception):  # an earlier failure belongs to its own caller
                await asyncio.shield(previous)
        return await self._append(type_, data)

    async def _append(self, type_: str, data: object) -> SessionEvent:
        raise NotImplementedError


class PoisonedStore(_ChainedStore):
    """Mistake: waits for the previous append with a bare ``await``. One failure fails every later call."""

    async def _after(
        self, previous: asyncio.Task[SessionEvent] | None, type_: str, data: object
    ) -> SessionEvent:
        if previous:
            await previous
        return await self._append(type_, data)

    async def _append(self, type_: str, data: object) -> SessionEvent:
        event, line = record(len(await self.read()) + 1, type_, data)
        await self._write(line)
        return event


class HoleStore(_ChainedStore):
    """Mistake: counts before it writes. A failed write burns its number, and the next one leaves a hole."""

    _number = 0

    async def _append(self, type_: str, data: object) -> SessionEvent:
        if not self._number:
            self._number = len(await self.read())
        self._number += 1
        event, line = record(self._number, type_, data)
        await self._write(line)
        return event


class CachingStore(_ChainedStore):
    """Mistake: trusts the number in memory for ever. A line that somebody else added is numbered twice."""

    _number: int | None = None

    async def _append(self, type_: str, data: object) -> SessionEvent:
        if self._number is None:
            self._number = len(await self.read())
        event, line = record(self._number + 1, type_, data)
        await self._write(line)
        self._number += 1
        return event


class LateStore(_ChainedStore):
    """Mistake: turns data into JSON when its turn comes. What the caller changed meanwhile is what gets stored."""

    async def _append(self, type_: str, data: object) -> SessionEvent:
        events = await self.read()
        event, line = record(len(events) + 1, type_, data)
        await self._write(line)
        return event
