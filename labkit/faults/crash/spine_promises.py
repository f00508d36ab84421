"""What the state spine promises of a crash beyond what every store does; a report is what `scenarios/spine.py` gives.

Each is judged by what the files say before and after the next run, never by that run's own word.
"""

# ruff: noqa: D401 - the docstring of a promise is what is promised

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.faults.crash.promises import Facts, Report


def state_whole(_facts: Facts, report: Report) -> bool:
    """Every record, task file and log is whole or absent, before the next run and after it."""
    return not report["before"]["damaged"] and not report["after"]["damaged"]


def task_once(_facts: Facts, report: Report) -> bool:
    """The task is in exactly one queue, before the next run and after it."""
    return len(report["before"]["places"]) == len(report["after"]["places"]) == 1


def agent_at_most_once(facts: Facts, report: Report) -> bool:
    """The agent was started at most once for the one claim, by the run that crashed and by those after it."""
    before = sum("agent" in value for value in facts.acknowledged)
    return before + int(report["started"]) <= 1


def explained(_facts: Facts, report: Report) -> bool:
    """A task in processing has its claim and facts, and the next run answers; what it leaves to a person has a cause."""
    seen = (report["before"], report["after"])
    known = all({"claim", "facts"} <= set(s["records"]) for s in seen if "processing" in s["places"])
    answer = report["answer"]
    return (
        known
        and answer is not None
        and (answer["decision"] not in ("blocked", "refused") or bool(answer["cause"]))
    )


def way_out(_facts: Facts, report: Report) -> bool:
    """What is left to a person can be closed, and then nothing is in the way of the next task."""
    closed = report["closed"]
    return closed is None or closed == {"decisions": ["closed", "idle"], "places": ["closed"]}


SPINE_PROMISES: dict[str, Callable[[Facts, Report], bool]] = {
    "state-whole": state_whole,
    "task-once": task_once,
    "agent-at-most-once": agent_at_most_once,
    "explained": explained,
    "way-out": way_out,
}
"""Name -> promise."""
