"""A log in segments: cut by size alone, or closed at a record and told of in a manifest, with a crash at every step."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from labkit import workspace
from labkit.experiments.homework.steps import take_steps
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from labkit.naive import split_by_size
from solution.durable_log import CorruptLogError, DurableLog, Scan
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import SessionFolder

_MARK_CHANGES = {"op": "change", "do": "slow", "seconds": 0, "times": None}


async def split_a_log(events: int = 12, size: int = 2048) -> Table:
    """Cut a log after so many bytes, and read the pieces one by one (C22-46)."""
    place = fresh_place("split")
    whole = place / "log.jsonl"
    shutil.copy(await _session(place, events) / f"{1:020d}.jsonl", whole)
    rows: dict[str, dict[str, Cell]] = {}
    for piece in split_by_size(whole, size):
        raw = piece.read_bytes()
        rows[piece.name] = {
            "bytes": len(raw),
            "starts-with-record": raw.startswith(b'{"v":'),
            "ends-with-record": raw.endswith(b"\n"),
            "verdict": _verdict(piece),
        }
    return Table(rows)


async def _session(root: Path, events: int) -> Path:
    async with await DurableLog.open("demo", root=root, durability="os") as log:
        await take_steps(log, events)
    return log.folder.path


def _verdict(piece: Path) -> str:
    scan = Scan(piece)
    try:
        for _ in scan.blocks():
            pass
    except CorruptLogError:
        return "corrupt-word"
    return f"{scan.report.verdict}-word"


async def crash_a_rotation(events: int = 12) -> Table:
    """Kill a writer before each step of a rotation, and in the middle of its write; then open and go on (C22-46)."""
    place = fresh_place("rotation")
    template = place / "template"
    template.mkdir(mode=0o700)
    await _session(template, events)
    steps = await asyncio.to_thread(_strike_everywhere, template, place)
    return Table({name: await _what_is_left(root) for name, root in steps.items()})


def _strike_everywhere(template: Path, place: Path) -> dict[str, Path]:
    """Rotate a copy undisturbed, then one copy for each step, killed there. Returns the copies, by the step's name."""
    with subprocess.Popen(
        [sys.executable, "-m", "labkit.experiments.homework.rotator"],
        cwd=workspace.kit_root(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:

        def rotate(name: str, *rules: dict[str, Any]) -> Path:
            assert child.stdin is not None
            assert child.stdout is not None
            root = place / name
            shutil.copytree(template, root)
            child.stdin.write(json.dumps({"root": str(root), "rules": rules}) + "\n")
            child.stdin.flush()
            child.stdout.readline()
            return root

        seen = json.loads((rotate("undisturbed", _MARK_CHANGES) / "operations.json").read_text("utf-8"))
        return {
            f"{number} · {step.name}": rotate(f"struck-{number}", step.rule)
            for number, step in enumerate(_steps(seen), start=1)
        }


class _Step(NamedTuple):
    name: str
    rule: dict[str, Any]


def _steps(seen: list[dict[str, Any]]) -> Iterator[_Step]:
    """Give where to strike: before each operation that changes the disk, writes to one file as one, and within that."""
    changes = [(entry["op"], _name(entry["path"])) for entry in seen if entry["did"] != "full"]
    for nth, (op, name) in enumerate(changes, start=1):
        if nth > 1 and (op, name) == changes[nth - 2]:
            continue
        yield _Step(f"{op} {name}", {"op": "change", "nth": nth, "do": "kill"})
        if op == "write":
            yield _Step(f"{op} ½ {name}", {"op": "change", "nth": nth, "do": "half,kill"})


def _name(path: str) -> str:
    """Return a file's name without the digits that only make it unique, or sort."""
    return re.sub(r"^\.(.+)\.[0-9a-f]{16}(\.tmp)$|^0+(?=[1-9])", r"\1\2", path.rpartition("/")[2])


async def _what_is_left(root: Path) -> dict[str, Cell]:
    folder = SessionFolder(root / "demo", "demo")
    closed, names = Segments.look(folder).closed, [path.name for path in folder.path.iterdir()]
    async with await DurableLog.open("demo", root=root, durability="os") as log:
        kept = len(await log.read())
        following = (await log.append("step", {"after": "the crash"})).sequence
    return {
        "manifest": "manifest-new" if closed else "manifest-old",
        "left-over": sum(name.endswith(".tmp") for name in names),
        "kept": kept,
        "next-number": following,
    }
