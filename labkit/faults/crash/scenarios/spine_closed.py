"""The state spine with an agent that only claims to have worked: its round is rejected, and a person closes the task."""

from __future__ import annotations

from pathlib import Path

from labkit.faults.crash.scenarios import spine
from labkit.faults.crash.scenarios.spine import PROMISES, Acknowledge, prepare, recover

__all__ = ["PROMISES", "prepare", "recover", "work"]


def work(folder: Path, events: int, acknowledge: Acknowledge) -> None:  # noqa: ARG001 - as in spine
    """Run a round that is rejected, and close its task."""
    with spine.tools().border():
        spine.say(acknowledge, spine.run_round(folder, acknowledge, boasting=True))
        spine.say(acknowledge, spine.close(folder))
