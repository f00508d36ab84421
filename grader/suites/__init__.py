"""The suites: one per lesson, run by any transport against any folder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.suites.check import Suite

LESSONS = ("22", "04")


def load_suite(lesson: str) -> Suite:
    """Give the suite of one lesson (`"22"`), its checks in the order in which they are shown."""
    if lesson not in LESSONS:
        raise LookupError(f"lesson {lesson}: no suite; choose one of {', '.join(LESSONS)}")
    suite: Suite = import_module(f"grader.suites.lesson_{lesson}").suite
    return suite
