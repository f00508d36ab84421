"""The state spine, interrupted by choice after its claim; a second run goes on and ends the round."""

from __future__ import annotations

from pathlib import Path

from labkit.faults.crash.scenarios import spine
from labkit.faults.crash.scenarios.spine import PROMISES, Acknowledge, prepare, recover

__all__ = ["PROMISES", "prepare", "recover", "work"]


def work(folder: Path, events: int, acknowledge: Acknowledge) -> None:  # noqa: ARG001 - as in spine
    """Claim, stop there, and go on."""
    with spine.tools().border():
        spine.say(acknowledge, spine.run_round(folder, acknowledge, interrupt=True))
        spine.say(acknowledge, spine.run_round(folder, acknowledge))
