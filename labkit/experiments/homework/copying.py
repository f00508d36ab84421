"""A session copied while its writer works: file by file, as `cp` does, and as a backup."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from labkit import actions
from labkit.experiments.homework.half_written import paused_append
from labkit.experiments.homework.steps import take_steps
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from labkit.faults import file_layer
from solution.durable_log import CorruptLogError, DurableLog, SessionFolder, back_up, verify_session


async def copy_a_living_session(events: int = 5) -> Table:
    """Copy in the middle of an append, and across a rotation: by hand, and by backup; then verify the copies (C22-48)."""
    place = fresh_place("copies")
    live, other = place / "live", place / "rotating"
    for root in (live, other):
        root.mkdir(mode=0o700)
    async with paused_append(live, events) as log:
        by_hand, by_backup = _copy(place, "by-hand-append"), _copy(place, "backup-append")
        copy_files(log.folder.path, by_hand)
        back_up(log.folder, by_backup)
    rows = {"by-hand-append": await _verified(by_hand), "backup-append": await _verified(by_backup)}
    async with await _begun(other, events) as log:
        for name, copy, held in (
            ("by-hand-rotation", copy_files, "manifest.json"),
            ("backup-rotation", _back_up, "0*.jsonl"),
        ):
            target = _copy(place, name)
            await _copied_across_a_rotation(log, copy, target, held)
            rows[name] = await _verified(target)
    return Table(rows)


def copy_files(session: Path, target: Path) -> None:
    """Copy a folder's files in the order of their names, as `cp session/* target/` does."""
    target.mkdir(mode=0o700)
    for path in sorted(session.iterdir()):
        shutil.copy(path, target)


def _back_up(session: Path, target: Path) -> None:
    back_up(SessionFolder(session, session.name), target)


def _copy(place: Path, name: str) -> Path:
    """Return where a copy goes: a session's folder is called by its id, whatever the copy is called."""
    (place / name).mkdir(mode=0o700)
    return place / name / "demo"


async def _begun(root: Path, events: int) -> DurableLog:
    log = await DurableLog.open("demo", root=root, durability="os")
    await take_steps(log, events)
    return log


async def _copied_across_a_rotation(
    log: DurableLog, copy: Callable[[Path, Path], None], target: Path, held: str
) -> None:
    """Pause a copy before it opens the file `held`; meanwhile the writer appends, closes its segment and goes on."""
    with actions.disturbed(log.folder.path, {"op": "open", "match": held, "do": "hold"}):
        copying = asyncio.create_task(asyncio.to_thread(copy, log.folder.path, target))
        while not (copying.done() or _anybody_held()):  # noqa: ASYNC110 - the file layer tells, no event does
            await asyncio.sleep(0)
        await log.append("step", {"while": "copying"})
        await log.rotate()
        await log.append("step", {"after": "the rotation"})
        file_layer.release()
        await copying


def _anybody_held() -> bool:
    return any(entry["did"].startswith("hold") for entry in file_layer.log())


async def _verified(copy: Path) -> dict[str, Cell]:
    """Prove a copy as it lies there, then open what can be opened, as after a loss of the original."""
    report = verify_session(SessionFolder(copy, "demo"))
    try:
        async with await DurableLog.open("demo", root=copy.parent) as log:
            kept: Cell = len(await log.read())
    except CorruptLogError:
        kept = "refused-word"
    return {
        "verdict": f"{report.verdict}-word",
        "events": report.events,
        "torn-bytes": report.torn_bytes,
        "kept": kept,
        "said": report.reason or "–",
    }
