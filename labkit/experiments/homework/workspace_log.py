"""A log that lies where a project's own scripts may write, and a place that `durable_log` does not accept."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

from labkit.actions import solution_store
from labkit.experiments.homework import project_script
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from labkit.views import LogReader, Outcome
from solution.durable_log import CorruptLogError, DurableLog, PlaceError, Scan

STEPS = [("started", {"task": "release"}), ("approval_asked", {"command": "deploy"})]


async def forge_an_approval() -> Table:
    """Let a project's script approve a command, in a plain log and in a chained one; then put a session there (C22-49)."""
    place = fresh_place("workspace-log")
    project, outside = place / "project", place / "outside"
    logs = project / ".agent"
    logs.mkdir(parents=True)
    await asyncio.to_thread(_git_init, project)
    plain = solution_store(logs / "plain.jsonl")
    async with await DurableLog.open("demo", root=outside, durability="os") as log:
        for type_, data in STEPS:
            await plain.append(type_, data)
            await log.append(type_, data)
    chained = logs / "chained.jsonl"
    shutil.copy(next(log.folder.path.glob("0*.jsonl")), chained)
    await asyncio.to_thread(_run_script, project)
    shutil.copytree(log.folder.path, logs / "demo")
    rows = {
        "plain-log": _believed(*_read_plain(plain.path)),
        "chained-log": _believed(*_read_chained(chained)),
        "session-new": await _opened("new", logs),
        "session-moved": await _opened("demo", logs),
    }
    await asyncio.to_thread(_git_init, outside)
    return Table(rows | {"repository-later": await _opened("demo", outside)})


def _git_init(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True, capture_output=True)


def _run_script(project: Path) -> None:
    script = shutil.copy(project_script.__file__, project / "build.py")
    subprocess.run([sys.executable, "-I", script], check=True, capture_output=True)


def _read_plain(log: Path) -> tuple[bool, list[str]]:
    report = LogReader(log).read()[1]
    return report.outcome is Outcome.WHOLE, [event.type for event in report.events]


def _read_chained(log: Path) -> tuple[bool, list[str]]:
    types: list[str] = []
    try:
        types += [event.type for event in Scan(log)]
    except CorruptLogError:
        return False, types
    return True, types


def _believed(accepted: bool, types: list[str]) -> dict[str, Cell]:  # noqa: FBT001 - the reader's word
    return {
        "answer": "accepted" if accepted else "refused-word",
        "events": len(types),
        "approved": "approved" in types,
    }


async def _opened(session: str, root: Path) -> dict[str, Cell]:
    try:
        async with await DurableLog.open(session, root=root, durability="os") as log:
            return _believed(True, [event.type for event in await log.read()])  # noqa: FBT003
    except PlaceError:
        return {"answer": "refused-word", "events": 0, "approved": False}
