"""What a store promises of a crash, as small named functions, and the table of who promises what (docs/crash-lab.md).

A promise is judged from two plain values: the facts, which the recording knows, and the report, which the recovery gave.
It is judged only where it means something: of a recovery that did not end, nothing but that is said; of a history that
could not be read, nothing but that.
"""

# ruff: noqa: D401 - the docstring of a promise is what is promised

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from labkit.faults.crash.spine_promises import SPINE_PROMISES

AFTER_CRASH = "after-crash"
"""The value that a recovery appends once it has read."""

Report = Mapping[str, Any]
"""What a scenario's `recover` gave, as JSON: `read`, `error` and `after`, or what the promises of its store look at.

`ended`, in words, says that there is no answer: the recovery hung, or its process died.
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the run that the crash ended.

    attempted     every value that the whole run says is done, in this order: a run without a crash does them all
    acknowledged  those that had been said to be done when the crash came
    refused       those that were said to have failed: such a value may be there, or not, and leaves no hole
    """

    attempted: tuple[Any, ...]
    acknowledged: tuple[Any, ...]
    refused: tuple[Any, ...] = ()


Promise = Callable[[Facts, Report], bool]
"""Says whether the promise was kept."""


def recovery_ends(_facts: Facts, report: Report) -> bool:
    """The recovery gives an answer: it neither hangs nor takes its process down."""
    return not report.get("ended")


def work_ends(_facts: Facts, report: Report) -> bool:
    """The work itself comes to an end when the disk says no: it does not try for ever, and does not take its process down."""
    return not report.get("ended")


def readable(_facts: Facts, report: Report) -> bool:
    """The reader accepts whatever the crash left: it is no damage, but the end of an unfinished run."""
    return report.get("read") is not None


def acknowledged_survive(facts: Facts, report: Report) -> bool:
    """What was said to be done is there, as often as it was said."""
    read = report.get("read")
    said = facts.acknowledged
    return read is None or all(read.count(value) >= said.count(value) for value in said)


def nothing_invented(facts: Facts, report: Report) -> bool:
    """What is there was appended, and no more often than it was."""
    read = report.get("read") or []
    return all(read.count(value) <= facts.attempted.count(value) for value in read)


def contiguous(facts: Facts, report: Report) -> bool:
    """There is no hole: what is there is a beginning of what was appended, in its order."""
    read = report.get("read") or []
    known = [value for value in read if value in facts.attempted]
    due = [value for value in facts.attempted if value not in facts.refused or value in known]
    return known == due[: len(known)]


def goes_on(_facts: Facts, report: Report) -> bool:
    """Work goes on: the store is opened anew and appends, and what was read is still there, with the new one behind it."""
    read = report.get("read")
    return read is None or report.get("after") == [*read, AFTER_CRASH]


def saved_survives(facts: Facts, report: Report) -> bool:
    """A state file holds the last state that was said to be saved, or a later one: never an older one."""
    read, last = report.get("read"), facts.acknowledged[-1:]
    if read is None or not last:
        return True
    return bool(read) and read[0] in (*last, *_not_yet_said(facts))


def _not_yet_said(facts: Facts) -> tuple[Any, ...]:
    """Return what was attempted after the last that was said; equal values may come several times."""
    begin = 0
    for value in facts.acknowledged:
        if value in facts.attempted[begin:]:
            begin = facts.attempted.index(value, begin) + 1
    return facts.attempted[begin:]


def in_step(_facts: Facts, report: Report) -> bool:
    """Files that speak of the same thing say the same."""
    read = report.get("read") or []
    return all(value == read[0] for value in read)


PROMISES: dict[str, Promise] = {
    "recovery-ends": recovery_ends,
    "work-ends": work_ends,
    "readable": readable,
    "acknowledged-survive": acknowledged_survive,
    "nothing-invented": nothing_invented,
    "contiguous": contiguous,
    "goes-on": goes_on,
    "saved-survives": saved_survives,
    "in-step": in_step,
    **SPINE_PROMISES,
}
"""Name -> promise."""

LOG = ("recovery-ends", "readable", "acknowledged-survive", "nothing-invented", "contiguous", "goes-on")
"""What an event log promises."""
STATE_FILE = ("recovery-ends", "readable", "saved-survives")
"""What a file that holds the newest state promises."""

_OF_WHAT_IS_READ = frozenset((*LOG, *STATE_FILE, "in-step")) - {"recovery-ends", "readable"}
"""Promises that say nothing where nothing could be read: whoever names one promises `readable` with it."""

OF_WHAT_WAS_SAID = frozenset({"acknowledged-survive", "saved-survives"})
"""Promises that nothing can break while nothing was said to be done."""

ALL_MODELS = ("kill", "ordered", "weak", "fail")
_PROCESS_ONLY = ("kill", "fail")

PROMISED: dict[str, tuple[str, ...]] = {
    "naive": _PROCESS_ONLY,
    "starter": _PROCESS_ONLY,
    "lesson": _PROCESS_ONLY,
    "durable-os": _PROCESS_ONLY,
    "durable-fsync": ALL_MODELS,
    "durable-group": ALL_MODELS,
    "spine-starter": ALL_MODELS,
    "spine": ALL_MODELS,
    "spine-closed": ALL_MODELS,
    "spine-resumed": ALL_MODELS,
}
"""Store -> the models under which its promises hold. A scenario of your own promises what it names under all."""


def promised(store: str, model: str) -> bool:
    """Say whether what `store` promises covers `model`."""
    return model in PROMISED.get(store, ALL_MODELS)


def broken(names: tuple[str, ...], facts: Facts, report: Report) -> tuple[str, ...]:
    """Return the promises of `names` that were not kept, in this order. Raises: LookupError for a name that is none."""
    if not recovery_ends(facts, report):
        return ("recovery-ends",)
    found = tuple(name for name in names if not promise(name)(facts, report))
    if not found and _OF_WHAT_IS_READ.intersection(names) and not readable(facts, report):
        return ("readable",)
    return found


def promise(name: str) -> Promise:
    """Return a promise by its name. Raises: LookupError that lists those there are."""
    try:
        return PROMISES[name]
    except KeyError:
        raise LookupError(
            f"PROMISES: no promise is called {name!r}; choose from {', '.join(PROMISES)}"
        ) from None


def table() -> str:
    """Return who promises what under which model, as Markdown: docs/crash-lab.md shows it."""
    rows = [
        f"| `{store}` | {' | '.join('yes' if model in models else '–' for model in ALL_MODELS)} |"
        for store, models in PROMISED.items()
    ]
    heads = [f"| store | {' | '.join(f'`{model}`' for model in ALL_MODELS)} |", "| --- " * 5 + "|"]
    return "\n".join([*heads, *rows])
