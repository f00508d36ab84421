"""Stores that lose the race for the next number."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from labkit.naive.plain import PlainStore, record

if TYPE_CHECKING:
    import os

    from solution.lesson_22.event_line import SessionEvent


class UnsafeStore(PlainStore):
    """Mistake: awaits between reading the last number and writing the next. Everyone may read before anyone writes."""

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event under a number that may already be taken."""
        events = await self.read()
        event, line = record(len(events) + 1, type, data)
        await self._write(line)
        return event


class LuckyStore(PlainStore):
    """Mistake: the same two steps, right only because no ``await`` stands between them. A thread breaks it."""

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event; on one event loop nobody can come between, by luck and not by design."""
        event, line = record(len(self._read_now()) + 1, type, data)
        self._write_now(line)
        return event


class WriteLockedStore(PlainStore):
    """Mistake: the lock guards the write and not the number. Whole lines, one after the other, all numbered 1."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._lock = asyncio.Lock()

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event under a number that was chosen outside the lock."""
        events = await self.read()
        event, line = record(len(events) + 1, type, data)
        async with self._lock:
            await self._write(line)
        return event


class CoroutineStore(PlainStore):
    """Mistake: ``async def append``. Nothing runs until it is awaited, so the order is that of the awaits."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._lock = asyncio.Lock()

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event, numbered and written under one lock, whenever this coroutine is first awaited."""
        async with self._lock:
            event, line = record(len(await self.read()) + 1, type, data)
            await self._write(line)
            return event


class OwnQueueStore(PlainStore):
    """Mistake: a queue in this process alone, and the newline as a write of its own. Another process steps in between."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._lock = asyncio.Lock()

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event under the number that follows the lines counted a moment ago."""
        async with self._lock:
            event, line = record(await asyncio.to_thread(self._count) + 1, type, data)
            await self._write(line.removesuffix(b"\n"))
            await self._write(b"\n")
            return event

    def _count(self) -> int:
        return self.path.read_bytes().count(b"\n") if self.path.exists() else 0
