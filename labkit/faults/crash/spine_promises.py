"""What the state spine promises of a crash beyond what every store does; a report is what `scenarios/spine.py` gives.

Each is judged by what the files say before and after the next run, never by that run's own word.
"""

# ruff: noqa: D401 - the docstring of a promise is what is promised

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.faults.crash.promises import Facts, Report


def state_whole(_facts: Facts, report: Report) -> bool:
    """Every record, task file and log is whole or absent, before the next run and after it."""
    return not any(seen["damaged"] for seen in _looks(report))


def task_once(_facts: Facts, report: Report) -> bool:
    """The task is in exactly one queue, before the next run and after it."""
    return all(len(seen["places"]) == 1 for seen in _looks(report))


def agent_at_most_once(facts: Facts, report: Report) -> bool:
    """The agent was started at most once for the one claim, by the run that crashed and by those after it."""
    before = sum("agent" in value for value in facts.acknowledged)
    return before + int(report.get("started", 0)) <= 1


def explained(_facts: Facts, report: Report) -> bool:
    """A task in processing has its claim and facts, and the next run answers; what it leaves to a person has a cause."""
    begun = [seen for seen in _looks(report) if "processing" in seen["places"]]
    answer = report.get("answer") or {"decision": "blocked", "cause": None}
    silent = answer["decision"] in ("blocked", "refused") and not answer["cause"]
    return not silent and all({"claim", "facts"} <= set(seen["records"]) for seen in begun)


def way_out(_facts: Facts, report: Report) -> bool:
    """What is left to a person can be closed, and then nothing is in the way of the next task."""
    closed = report.get("closed")
    return closed is None or closed == {"decisions": ["closed", "idle"], "places": ["closed"]}


def _looks(report: Report) -> list[Mapping[str, Any]]:
    """Give what was seen before the next run and after it; nothing where the recovery did not come to look."""
    return [seen for seen in (report.get("before"), report.get("after")) if isinstance(seen, Mapping)]


SPINE_PROMISES: dict[str, Callable[[Facts, Report], bool]] = {
    "state-whole": state_whole,
    "task-once": task_once,
    "agent-at-most-once": agent_at_most_once,
    "explained": explained,
    "way-out": way_out,
}
"""Name -> promise."""
