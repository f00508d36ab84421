"""The state spine, killed before its Nth sync and run again, or closed: nothing may be built on what was left unsynced.

N stands in the place of the number of events. After the kill the machine stays up, so the second run sees all that the first
did; then the power goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.faults.crash.scenarios import spine
from labkit.faults.crash.scenarios.spine import PROMISES, Acknowledge, prepare, recover
from labkit.faults.crash.spine_tools import replaced

__all__ = ["PROMISES", "prepare", "recover", "work"]


class Killed(BaseException):
    """Ends a run as a kill would, as far as nothing but temporary files is tidied up on the way out."""


def work(folder: Path, events: int, acknowledge: Acknowledge) -> None:
    """Run a round that dies before its sync number `events`, then another; what that leaves to a person is closed."""
    with spine.tools().border():
        try:
            with killed_before_sync(events):
                spine.say(acknowledge, spine.run_round(folder, acknowledge))
        except Killed:
            answer = spine.run_round(folder, acknowledge)
            spine.say(acknowledge, answer)
            if answer["reason"] in spine.FOR_A_PERSON:
                spine.say(acknowledge, spine.close(folder))


@contextmanager
def killed_before_sync(number: int) -> Iterator[None]:
    """Let `os.fsync` end the run in the place of its call of this number, 1-based."""
    real, left = os.fsync, number

    def fsync(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        real(descriptor)

    with replaced(os, "fsync", fsync):
        yield
