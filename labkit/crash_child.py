"""Explores the crashes of a store for somebody who is watching: says in a file how far it is, until it is asked to end.

    python -m labkit.crash_child '{"store": "naive", "model": "weak", "events": 10, "switches": {...}}'

Exit code 0 when the exploration ended by itself or was asked to; 2 when it could not be done, with the reason on stderr.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from labkit import crash_actions
from labkit.crash_actions import Explored, Settings, Switches
from labkit.faults.crash.explorer import explore
from labkit.faults.crash.recovery import CrashLabError

if TYPE_CHECKING:
    from labkit.faults.crash.explorer import Exploration, Progress


def main(plan: str) -> None:
    """Explore what `plan` says. Raises: SystemExit with a message when that cannot be done."""
    given = json.loads(plan)
    settings = Settings(**{**given, "switches": Switches(**given["switches"])})
    began = time.monotonic()

    def tell(progress: Progress) -> None:
        crash_actions.say(settings, _so_far(progress, time.monotonic() - began))

    try:
        crash_actions.say(settings, Explored())
        told = explore(
            settings.store,
            settings.model,
            events=settings.events,
            limit=settings.limit,
            switches=settings.switches,
            on_progress=tell,
            stop=lambda: crash_actions.is_asked_to_end(settings),
        )
        crash_actions.say(settings, _ended(told))
    except (CrashLabError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    finally:
        crash_actions.forget_end(settings)


def _so_far(progress: Progress, seconds: float) -> Explored:
    return Explored(
        explored=progress.explored,
        tried=progress.tried,
        possible=progress.possible,
        kinds=progress.broken,
        seconds=seconds,
    )


def _ended(told: Exploration) -> Explored:
    return Explored(
        ended=True,
        steps=told.steps,
        explored=told.explored,
        tried=told.tried,
        possible=told.possible,
        kinds=len(told.broken),
        found=tuple(one.id for one in told.broken),
        states=sum(told.counts),
        verdict=told.verdict,
        complete=told.complete,
        stopped=told.stopped,
        unseen=tuple((one.what, one.where) for one in told.unseen),
        seconds=told.seconds,
    )


if __name__ == "__main__":
    main(sys.argv[1])
