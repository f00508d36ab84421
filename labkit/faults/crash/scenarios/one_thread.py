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
    """Run `work` to its end on a new event loop whose worker threads are this one."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(OneThread())
        return runner.run(work)
