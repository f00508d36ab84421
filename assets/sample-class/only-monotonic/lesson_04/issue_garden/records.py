"""The three records behind a claimed task: claim, facts, state. Given; docs/formats-spine.md has every field.

``parse`` refuses what is not exactly such a record with ``BadFileError``; ``as_object`` is what gets written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from issue_garden.json_files import BadFileError, require_fields
from issue_garden.task import id_problem

PHASES = {
    "active": ("claiming", "claimed", "agent_running", "agent_finished"),
    "completed": ("finished",),
    "rejected": ("finished",),
    "closed": ("finished",),
}

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEAD = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def now_utc() -> str:
    """Return this moment as ``YYYY-MM-DDThh:mm:ss.mmmZ``; ``isoformat`` alone would end in ``+00:00``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Claim:
    """Who took which task, and what it was taken with. Published once, never changed."""

    task_id: str
    file_name: str
    task_digest: str
    contract_digest: str
    head: str
    claimed_at: str
    runner_pid: int

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Claim:
        """Check a claim read from disk."""
        _check(cls, value, file_name=_is_text, runner_pid=_is_count)
        return cls(**value)


@dataclass(frozen=True)
class Facts:
    """The task as it was when it was claimed, and the ground it stood on."""

    task_id: str
    task: dict[str, Any]
    task_digest: str
    contract_digest: str
    head: str
    recorded_at: str

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Facts:
        """Check facts read from disk; whether they agree with the claim is the resume's question."""
        _check(cls, value, task=lambda task: isinstance(task, dict))
        return cls(**value)


@dataclass(frozen=True)
class State:
    """How far a task has come: one status, one phase that belongs to it, and the round."""

    task_id: str
    status: str
    phase: str
    round: int
    updated_at: str

    @classmethod
    def parse(cls, value: dict[str, Any]) -> State:
        """Check a state read from disk."""
        _check(cls, value, status=lambda status: status in list(PHASES), phase=_is_text, round=_is_count)
        if value["phase"] not in PHASES[value["status"]]:
            raise BadFileError(
                "bad_value", "phase 与 status 不相配 (its phase does not belong to its status)"
            )
        return cls(**value)

    @property
    def resumable(self) -> bool:
        """Whether a later process may go on from here: owned, and no agent started."""
        return (self.status, self.phase) == ("active", "claimed")


Record = Claim | Facts | State


def as_object(record: Record) -> dict[str, Any]:
    """Return a record as it is written."""
    return dict(vars(record))


def new_claim(task_id: str, file_name: str, digests: dict[str, str]) -> Claim:
    """Make the claim of this process; ``digests`` holds task_digest, contract_digest and head."""
    return Claim(task_id, file_name, **digests, claimed_at=now_utc(), runner_pid=os.getpid())


def _check(kind: type[Record], value: dict[str, Any], **tests: Callable[[Any], bool]) -> None:
    require_fields(value, tuple(field.name for field in fields(kind)))
    for name, content in value.items():
        test = tests.get(name) or _TESTS[name]
        if not test(content):
            raise BadFileError("bad_value", f"字段 {name} 的值不对 (the field {name} has a wrong value)")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1  # True equals 1 in Python, and counts nothing


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


_TESTS: dict[str, Callable[[Any], bool]] = {
    "task_id": lambda value: isinstance(value, str) and id_problem(value) is None,
    "task_digest": _matches(_DIGEST),
    "contract_digest": _matches(_DIGEST),
    "head": _matches(_HEAD),
    "claimed_at": _matches(_TIME),
    "recorded_at": _matches(_TIME),
    "updated_at": _matches(_TIME),
}
