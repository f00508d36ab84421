"""The suites: one per lesson and one for the homework, run by any transport against any folder.

The homework is nobody's duty, so it is judged where it is asked for by name, and counted apart from its lesson.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from labkit.workspace import HOMEWORK

if TYPE_CHECKING:
    from grader.suites.check import Suite

LESSONS = ("22", "04")
"""What is judged when nothing is asked for by name."""
JUDGED = (*LESSONS, HOMEWORK)
"""Everything that can be asked for."""
_PACKAGES = {**{lesson: f"lesson_{lesson}" for lesson in LESSONS}, HOMEWORK: "homework"}


def load_suite(lesson: str) -> Suite:
    """Give the suite of one lesson (`"22"`) or of the homework, its checks in the order in which they are shown."""
    suite: Suite = import_module(f"grader.suites.{package_of(lesson)}").suite
    return suite


def package_of(lesson: str) -> str:
    """Name the package that holds a suite, and the one below `mutants` that holds its mutants."""
    if lesson not in _PACKAGES:
        raise LookupError(f"lesson {lesson}: no suite; choose one of {', '.join(JUDGED)}")
    return _PACKAGES[lesson]
