"""Events to fill a log with, where an experiment does not care what they say."""

from __future__ import annotations

from solution.durable_log import DurableLog


async def take_steps(log: DurableLog, count: int, *, first: int = 0) -> None:
    """Append `count` small events, numbered from `first` on in their data, each when the one before was answered."""
    for number in range(first, first + count):
        await log.append("step", {"number": number})
