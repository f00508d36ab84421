"""What a check is: an async function over a `Lab`, with its id, its title in two languages and its rules."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from labkit.workspace import HOMEWORK

Dimension = Literal[
    "concurrency",
    "recovery",
    "integrity",
    "diagnosis",
    "claim",
    "resume",
    "evidence",
    "durability",
    "containment",
]
DIMENSIONS: dict[str, tuple[Dimension, ...]] = {
    "22": ("concurrency", "recovery", "integrity", "diagnosis"),
    "04": ("claim", "resume", "evidence", "durability"),
    HOMEWORK: ("durability", "containment", "integrity", "recovery"),
}
"""What the rubric of a lesson counts by, in the order in which it is shown."""

Body = Callable[[Any], Awaitable[None]]
"""A check's function. It gets the lab of its lesson: `grader.lab.Lab`, or `grader.spine.SpineLab` for lesson 04."""


class Text(NamedTuple):
    """One sentence for a learner, in both languages."""

    zh: str
    en: str


class CheckFailed(Exception):  # noqa: N818 - a verdict, not a fault of the grader
    """The rule was tried and does not hold. `message` says rule, deed, expected, found and next step.

    The next step is left empty here; the check's own hint stands in for it when the failure is shown.
    """

    def __init__(self, message: Text) -> None:
        super().__init__(message.en)
        self.message = message


@dataclass(frozen=True, slots=True)
class Check:
    """One test of a suite. Its title is the learner's: the docstring's two lines, zh then en."""

    id: str
    title: Text
    rules: tuple[str, ...]
    dimension: Dimension
    hint: Text
    required: bool
    core: bool  # `complete` asks for it, beside every required check
    guard: bool  # the untouched starter passes it already: breaking it costs, passing earns nothing
    faults: bool  # arms faults underneath the file layer: the child is started with that layer in place
    run: Body


@dataclass(slots=True)
class Suite:
    """The checks of one lesson, in the order in which they are shown."""

    lesson: str
    checks: list[Check] = field(default_factory=list)

    def check(
        self,
        check_id: str,
        *,
        rules: tuple[str, ...],
        dimension: Dimension,
        hint: Text,
        required: bool = False,
        core: bool = False,
        guard: bool = False,
        faults: bool = False,
    ) -> Callable[[Body], Body]:
        """Register the decorated function. Its docstring is two lines: the title in Chinese, in English."""

        def register(run: Body) -> Body:
            if not re.fullmatch(rf"{self.lesson}-[0-9a-z-]+", check_id):
                raise ValueError(f"{check_id}: a check of lesson {self.lesson} is named {self.lesson}-...")
            if any(check.id == check_id for check in self.checks):
                raise ValueError(f"{check_id}: two checks have this id")
            self.checks.append(
                Check(
                    id=check_id,
                    title=_title(check_id, run.__doc__),
                    rules=rules,
                    dimension=dimension,
                    hint=hint,
                    required=required,
                    core=core,
                    guard=guard,
                    faults=faults,
                    run=run,
                )
            )
            return run

        return register

    @property
    def required(self) -> list[Check]:
        """The checks that decide `ok`."""
        return [check for check in self.checks if check.required]

    @property
    def extended(self) -> list[Check]:
        """The checks that are shown and counted apart."""
        return [check for check in self.checks if not check.required]

    def find(self, check_id: str) -> Check:
        """Give the check with this id; `LookupError` names the id that is unknown."""
        for check in self.checks:
            if check.id == check_id:
                return check
        raise LookupError(f"{check_id}: lesson {self.lesson} has no check of this id")


def _title(check_id: str, docstring: str | None) -> Text:
    lines = [line.strip() for line in (docstring or "").splitlines() if line.strip()]
    if len(lines) != 2:
        raise ValueError(
            f"{check_id}: its docstring has to be two lines, the title in Chinese and in English"
        )
    return Text(*lines)
