"""Where a program stands after a restart: by all of its history, or by a checkpoint; and what it must not do again."""

from __future__ import annotations

import time
from pathlib import Path

from labkit.experiments.homework.curves import Curves
from labkit.experiments.homework.steps import take_steps
from labkit.experiments.homework.tables import Cell, fresh_place
from labkit.naive import replay_and_act
from solution.durable_log import Checkpoints, DurableLog, Event, Limits, Replayed, replay

BEHIND = 50
"""Events that follow the newest checkpoint when the program is started again."""
SMALL_SEGMENTS = Limits(segment_bytes=1 << 20)
"""To prove that a checkpoint is of this log, its event is looked up, and the one segment that holds it is read for that."""
MAIL = {"to": "team", "subject": "released"}


class _Outbox:
    """The world outside the log: a file with a line for each mail that was really sent."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def send(self) -> None:
        self.send_now()

    def send_now(self) -> None:
        with self._path.open("a", encoding="utf-8") as mails:
            mails.write(f"{MAIL['to']}: {MAIL['subject']}\n")

    def sent(self) -> int:
        return len(self._path.read_text("utf-8").splitlines())


async def restart(events: tuple[int, ...] = (100, 1_000, 10_000, 100_000)) -> Curves:
    """Send a mail, let the log grow, restart again and again: by full replay and from a checkpoint (C22-56).

    Each restart wants the mail sent, as it cannot know whether it was. Beside it, a program that acts while it replays.
    """
    place = fresh_place("restart")
    ours, naive = _Outbox(place / "mails.txt"), _Outbox(place / "mails-of-the-naive.txt")
    async with await _opened(place) as log:
        await Replayed(state=0).effects.once(log, "mail", MAIL, ours.send)
        await log.append("mail_sent", MAIL)
    naive.send_now()
    rows: dict[str, dict[str, Cell]] = {}
    for many in events:
        async with await _opened(place) as log:
            await take_steps(log, many - await log.version())
        full, seconds = await _restarted(place, ours)
        async with await _opened(place) as log:
            await log.checkpoint(full)
            await take_steps(log, BEHIND)
            replay_and_act([event.type async for event in log.stream()], naive.send_now)
        behind, shorter = await _restarted(place, ours, from_checkpoint=True)
        rows[f"{many:,}"] = {
            "full-ms": 1000 * seconds,
            "checkpoint-ms": 1000 * shorter,
            "replayed": behind.head.sequence - behind.begun_at,
            "mails": ours.sent(),
            "mails-naive": naive.sent(),
        }
    return Curves(rows, drawn=("full-ms", "checkpoint-ms"))


async def _opened(place: Path) -> DurableLog:
    return await DurableLog.open("demo", root=place, durability="os", limits=SMALL_SEGMENTS)


async def _restarted(
    place: Path, outbox: _Outbox, *, from_checkpoint: bool = False
) -> tuple[Replayed, float]:
    """Open the log, replay it, and see to it that the mail was sent. Returns where it stands, and the replay's seconds."""
    async with await _opened(place) as log:
        started = time.perf_counter()
        checkpoints = Checkpoints(log.folder) if from_checkpoint else None
        replayed = await replay(log, _count, 0, checkpoints=checkpoints)
        seconds = time.perf_counter() - started
        await replayed.effects.once(log, "mail", MAIL, outbox.send)
    return replayed, seconds


def _count(state: int, _event: Event) -> int:
    return state + 1
