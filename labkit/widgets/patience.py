"""A learner's code beside the kernel's event loop: it may be slow, loop for ever or call exit; the kernel stays free."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

PATIENCE_SECONDS = 6.0
"""How long to wait; a little longer than a read may take by itself (``labkit.views.read_report``)."""


class GaveUpError(Exception):
    """The code did not come to an end by itself, or left the program. Its text is for the learner."""


async def beside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` on an event loop of its own, in a daemon thread, and return what it returns.

    Raises: whatever the work raises; GaveUpError when it leaves by ``exit`` or takes longer than ``PATIENCE_SECONDS``.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[Any], None], outcome: object) -> None:
        with suppress(RuntimeError):  # the kernel's loop ended first: nobody is left to tell
            loop.call_soon_threadsafe(lambda: None if result.done() else settle(outcome))

    def run() -> None:
        try:
            tell(result.set_result, asyncio.run(work()))
        except Exception as error:  # noqa: BLE001 — whatever it is, it is the waiting caller's
            tell(result.set_exception, error)
        except SystemExit as left:
            tell(result.set_exception, GaveUpError(t("patience.left", code=left.code)))

    thread = threading.Thread(target=run, name="learner's code", daemon=True)
    thread.start()
    try:
        await asyncio.wait({result}, timeout=PATIENCE_SECONDS)
        if not result.done():
            _stop(thread)
            raise GaveUpError(t("patience.gave-up", seconds=round(PATIENCE_SECONDS)))
        return result.result()
    finally:
        result.cancel()  # the caller may have been cancelled: what still comes is nobody's


def _stop(thread: threading.Thread) -> None:
    """Make a Python loop that never ends raise SystemExit at its next step. A blocking system call is left waiting."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    )
