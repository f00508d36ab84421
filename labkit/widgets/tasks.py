"""Work that a click begins: kept until it is done, its failure told, never lost in the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Tasks:
    """The unfinished work of one widget. ``failed(what, error)`` is told what went wrong, in place of a traceback."""

    def __init__(self, failed: Callable[[str, BaseException], None]) -> None:
        self._failed = failed
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> asyncio.Task[None]:
        """Begin a piece of work and return its task. Raises: RuntimeError when no event loop is running."""
        task = asyncio.get_running_loop().create_task(self._run(work, what))
        self._running.add(task)  # the event loop itself keeps only a weak reference
        task.add_done_callback(self._running.discard)
        return task

    async def settled(self) -> None:
        """Wait until nothing is running any more, what was begun meanwhile included."""
        while self._running:
            await asyncio.wait(self._running)

    def cancel(self) -> None:
        """Drop everything that is still running."""
        for task in self._running:
            task.cancel()

    async def _run(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 — a learner's store may raise anything; the status line says it
            self._failed(what, error)
