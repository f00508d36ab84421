"""Looking at a damaged log that holds secrets, with the command that anybody would use."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from labkit.experiments import cards
from labkit.experiments.homework.commands import statelab_log
from labkit.experiments.homework.tables import fresh_place
from solution.durable_log import DurableLog
from solution.durable_log.secrets import keep

TOKEN = "sk-this-is-a-secret-0042"  # noqa: S105 - planted, to be searched for


@dataclass(frozen=True, slots=True)
class Looked:
    """What ``statelab log inspect`` printed, how it ended, and the file's SHA-256 before and after."""

    command: str
    printed: str
    exit_code: int
    before: str
    after: str

    def _repr_html_(self) -> str:
        hashes = f"SHA-256 {self.before[:16]}… → {self.after[:16]}…"
        shown = f"$ {self.command}\n{self.printed}\n{hashes}"
        return f"{cards.STYLE}<div class='seen'><section><pre>{escape(shown)}</pre></section></div>"


async def inspect_with_secrets() -> Looked:
    """Damage a log whose events hold a token, and inspect it (C22-51)."""
    root = fresh_place("inspected")
    async with await DurableLog.open("demo", root=root, durability="os", secrets=keep) as log:
        for number in range(1, 6):
            await log.append("tool_called", {"token": TOKEN, "number": number})
    file = next((root / "demo").glob("0*.jsonl"))
    file.write_bytes(file.read_bytes().replace(b'"number":3', b'"number":8'))
    return await asyncio.to_thread(_inspect, file)


def _inspect(file: Path) -> Looked:
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    done = statelab_log("inspect", file.name, folder=file.parent)
    after = hashlib.sha256(file.read_bytes()).hexdigest()
    return Looked(
        f"statelab log inspect {file.name}", done.stdout + done.stderr, done.returncode, before, after
    )
