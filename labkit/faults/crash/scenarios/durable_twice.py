"""`durable_log`, killed before its Nth sync and opened again; then the power goes: nothing may rest on what was left unsynced.

N stands in the place of the number of events. After the kill the machine stays up, so the second process sees all that
the first one did. The root lies two folders deep, and the first process makes them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import durable_log
from labkit.faults.crash.scenarios.one_thread import run
from solution.durable_log import lock

PROMISES = LOG
_EVENTS = 3


class Killed(BaseException):
    """Ends a process as a kill would, as far as nothing but temporary files is tidied up on the way out."""


def work(folder: Path, events: int, acknowledge: Callable[[int], object]) -> None:
    """Append in a process that dies before its sync number `events`; then what is there counts, and the rest is appended."""
    said: list[int] = []

    def say(number: int) -> None:
        said.append(number)
        acknowledge(number)

    with contextlib.suppress(Killed), killed_before_sync(events):
        durable_log.work(_root(folder), _EVENTS, say, "fsync")
    for held in list(lock._held_here):  # noqa: SLF001 - the kernel does it where a process really dies
        held.release()

    async def go_on() -> None:
        async with await durable_log.open_log(_root(folder), "fsync") as log:
            there = [event.data["n"] for event in await log.read()]
            for number in there:
                if number not in said:
                    acknowledge(number)
            for number in range(len(there) + 1, _EVENTS + 1):
                await log.append("event", {"n": number})
                acknowledge(number)

    run(go_on())


def recover(folder: Path) -> dict[str, Any]:
    """Read, append, read again."""
    return durable_log.recover(_root(folder), "fsync")


def _root(folder: Path) -> Path:
    return folder / "state" / "sessions"


@contextmanager
def killed_before_sync(number: int) -> Iterator[None]:
    """Let the sync of this number, 1-based, and all behind it, end the process in their place."""
    left = number

    def dying(real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            real(descriptor)

        return sync

    with mock.patch.multiple(os, fsync=dying(os.fsync), fdatasync=dying(os.fdatasync)):
        yield
