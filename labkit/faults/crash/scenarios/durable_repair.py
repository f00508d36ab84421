"""`durable_log`, opened on the torn tail that a crash left: it mends it and goes on, and another crash may come in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import durable_log
from labkit.faults.crash.scenarios.one_thread import run

PROMISES = LOG
_SOUND, _TORN, _LOST_BYTES = 3, 4, 40

recover = partial(durable_log.recover, level="fsync")


def prepare(folder: Path) -> None:
    """Leave a log whose last record is torn, and a manifest that knows nothing of it."""
    durable_log.work(folder, _SOUND, lambda _: None, "fsync")
    session = folder / durable_log.SESSION
    manifest = (session / "manifest.json").read_bytes()
    run(_append(folder, _TORN, lambda _: None))
    (session / "manifest.json").write_bytes(manifest)
    log = max(session.glob("0*.jsonl"))
    log.write_bytes(log.read_bytes()[:-_LOST_BYTES])


def work(folder: Path, events: int, acknowledge: Callable[[int], object]) -> None:  # noqa: ARG001 - two are enough
    """Open it, which mends it, and append twice. What the first process appended counts from the beginning."""
    for number in range(1, _SOUND + 1):
        acknowledge(number)
    run(_append(folder, _TORN + 1, acknowledge))
    run(_append(folder, _TORN + 2, acknowledge))


async def _append(folder: Path, number: int, acknowledge: Callable[[int], object]) -> None:
    async with await durable_log.open_log(folder, "fsync") as log:
        await log.append("event", {"n": number})
        acknowledge(number)
