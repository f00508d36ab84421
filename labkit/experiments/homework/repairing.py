"""A torn tail taken off by the command, a damaged middle left alone, and one report that all tools share."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from labkit.experiments.homework.commands import statelab_log
from labkit.experiments.homework.half_written import SEGMENT, killed_append
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import CorruptLogError, Scan

EVENTS = 4
_SHORTER = re.compile(r"^0+(?=[1-9])")
FIELDS = {
    "verdict": "verdict",
    "events": "events",
    "last_sequence": "last-sequence",
    "good_bytes": "good-bytes",
    "torn_bytes": "torn-bytes",
    "line": "bad-line",
    "offset": "bad-offset",
    "log_hash": "log-hash",
    "schema_version": "version",
}
"""What the read report says of a log, besides the file's name and the reason in words; and the columns for it."""


def _torn(place: Path) -> Path:
    """Kill a writer in the middle of a line. Returns the session's folder."""
    root = place / "torn"
    root.mkdir(mode=0o700)
    return killed_append(root, EVENTS)


def _corrupt(torn: Path) -> Path:
    """Copy a session, and change a digit in line 2 of the copy. Returns its folder."""
    session = torn.parent.with_name("corrupt") / torn.name
    shutil.copytree(torn, session)
    log = _log(session)
    log.write_bytes(log.read_bytes().replace(b'"number":2', b'"number":7'))
    return session


def _log(session: Path) -> Path:
    return next(session.glob(SEGMENT))


# --- Repair ---


async def repair_logs() -> Table:
    """Repair a torn log, and one that is damaged in its middle besides, with the command; list what is there (C22-52)."""
    return await asyncio.to_thread(_repair_logs)


def _repair_logs() -> Table:
    torn = _torn(fresh_place("repair"))
    corrupt = _corrupt(torn)
    return Table({"torn-log": _repaired(torn), "corrupt-log": _repaired(corrupt)})


def _repaired(session: Path) -> dict[str, Cell]:
    log = _log(session)
    original, there = log.read_bytes(), {path.name for path in session.iterdir()}
    done = statelab_log("repair", session.name, "--yes", "--json", folder=session.parent)
    names = {path.name for path in session.iterdir()}
    copies = [path for path in session.iterdir() if path.name.startswith(f"{log.name}.torn-")]
    audit = session / "repairs.jsonl"
    record = json.loads(audit.read_bytes()) if audit.exists() else {}
    return {
        "exit-code": done.returncode,
        "new-files": ", ".join(sorted(_SHORTER.sub("", name) for name in names - there)) or "–",
        "cut-bytes": len(original) - log.stat().st_size,
        "cut-at": record.get("offset", "–"),
        "copy-whole": [path.read_bytes() for path in copies] == [original],
        "audited": record.get("sha256") == hashlib.sha256(original).hexdigest(),
        "unchanged": log.read_bytes() == original,
    }


# --- One report ---


async def one_report(damage: str = "torn") -> Table:
    """Let reader, inspector and repairer look at one file, `torn` or `corrupt`; then replay it (C22-53)."""
    return await asyncio.to_thread(_one_report, damage)


def _one_report(damage: str) -> Table:
    session = _torn(fresh_place("report"))
    if damage == "corrupt":
        session = _corrupt(session)
    scan = Scan(_log(session))
    state: Cell = "no-state"
    with suppress(CorruptLogError):
        state = sum(event.data["number"] for event in scan)
    inspector = json.loads(statelab_log("inspect", session.name, "--json", folder=session.parent).stdout)
    repairer = json.loads(statelab_log("repair", session.name, "--json", folder=session.parent).stdout)
    reports = {
        "reader": json.loads(msgspec.json.encode(scan.report)),
        "inspector": inspector,
        "repairer": repairer.get("report", repairer),
    }
    rows = {name: _shown(report) for name, report in reports.items()}
    return Table(rows | {"replay": {"sum": state}})


def _shown(report: dict[str, Any]) -> dict[str, Cell]:
    shown = {column: report[field] for field, column in FIELDS.items()}
    return shown | {"verdict": f"{report['verdict']}-word", "log-hash": report["log_hash"][:12] + "…"}
