"""Runs asyncio code in one thread, so that what reaches the disk has one order, and a recording is the only one there is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class OneThread(ThreadPoolExecutor):
    """A pool without threads: what is submitted is done at once, by whoever submits it."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Do it now."""
        done: Future[Result] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whatever it was, it belongs to who waits for the future
            done.set_exception(error)
        return done


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end on a new event loop whose worker threads are this one. What it left unfinished is dropped."""
    # No Runner: it starts a thread to shut the pool down, and there is nothing in it.
    loop = asyncio.new_event_loop()
    loop.set_default_executor(OneThread())
    try:
        return loop.run_until_complete(work)
    finally:
        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left))
        loop.close()
