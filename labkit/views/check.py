"""What ``statelab verify --json`` found, as rows to show: titles, reasons, and hints that are opened one by one."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.words import catalogue, language, t
from labkit.workspace import HOMEWORK, HOMEWORK_FILE

if TYPE_CHECKING:
    from pathlib import Path

STEPS = {
    "scan": ("S12", "S14", "S15", "S16"),
    "mend": ("S11",),
    "read": ("S13", "S17"),
    "append": ("S1", "S3", "S7", "S8"),
    "write": ("S2", "S6", "S9", "S10", "S18"),
    "encode": ("S4", "S5"),
    "lines": ("H1", "H2", "H3", "H4", "H5"),
    "session": ("H6", "H7"),
    "sealed": ("H8", "H9", "H10"),
}
"""Which part of the lesson's code keeps which rules; names as in ``words.toml``."""


@dataclass(frozen=True, slots=True)
class TestRow:
    """One test: how it went (``mark`` and ``verdict``), its title, rules, message, and the hints in their order."""

    mark: str
    verdict: str
    title: str
    rules: str
    message: str
    hints: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TestGroup:
    """Required or extended tests, with a heading that says how many passed."""

    heading: str
    passed: int
    rows: tuple[TestRow, ...]


@dataclass(frozen=True, slots=True)
class CheckView:
    """One lesson's outcome. ``ok`` means that every required test passed."""

    ok: bool
    untouched: bool
    groups: tuple[TestGroup, ...]


def check_view(outcome: dict[str, Any], lesson: str, part: str | None = None) -> CheckView:
    """Lay out the JSON of ``verify``, or one ``part`` of it: the tests of one dimension.

    Raises: LookupError, TypeError when it is not of that shape.
    """
    tests = [
        test for test in outcome["lessons"][lesson]["tests"] if part is None or test["dimension"] == part
    ]
    required = [test for test in tests if test["required"]]
    extended = [test for test in tests if not test["required"]]
    groups = tuple(
        _group(name, tests) for name, tests in (("required", required), ("extended", extended)) if tests
    )
    # Guards pass on code that nobody has touched yet, so they say nothing about it.
    untouched = all(test["reason"] == "not-implemented" for test in required if not test.get("guard"))
    return CheckView(all(test["status"] == "pass" for test in required), untouched, groups)


def _group(name: str, tests: list[dict[str, Any]]) -> TestGroup:
    passed = sum(test["status"] == "pass" for test in tests)
    heading = t("check.score", title=t(f"check.{name}"), passed=passed, total=len(tests))
    return TestGroup(heading, passed, tuple(_row(test) for test in tests))


def _row(test: dict[str, Any]) -> TestRow:
    reason = test["reason"] if test["reason"] == "not-implemented" else test["status"]
    passed = test["status"] == "pass"
    return TestRow(
        mark="good" if passed else "quiet" if reason == "not-implemented" else "bad",
        verdict=t(f"check.{reason}"),
        title=test["title"][language()],
        rules=t("check.rules", rules=", ".join(test["rules"])),
        message="" if passed or not test["message"] else test["message"][language()],
        hints=() if passed else tuple(_hints(test)),
    )


def _hints(test: dict[str, Any]) -> list[tuple[str, str]]:
    rules = [f"{rule}: {t(f'rule.{rule}')}" for rule in test["rules"] if f"rule.{rule}" in catalogue()]
    steps = [t(f"step.{step}") for step, kept in STEPS.items() if set(kept) & set(test["rules"])]
    where = [t("check.place", place=test["place"])] if test["place"] else []
    texts = ("\n".join(rules), (test["hint"] or {}).get(language(), ""), "\n".join([*where, *steps]))
    return [(t(f"check.hint-{level}"), text) for level, text in enumerate(texts, start=1) if text]


def solution_diff(yours: Path, solution: Path, lesson: str) -> str:
    """Return how a learner's files of one lesson differ from the solution's, as a unified diff; empty when they do not.

    The homework lies in its lesson's folder: neither shows the answers of the other.
    """
    pieces: list[str] = []
    for path in sorted(solution.rglob("*.py")):
        if (path.name == HOMEWORK_FILE) != (lesson == HOMEWORK):
            continue
        name = path.relative_to(solution)
        mine = yours / name
        before = mine.read_text("utf-8").splitlines(keepends=True) if mine.is_file() else []
        after = path.read_text("utf-8").splitlines(keepends=True)
        names = (f"{yours.parent.name}/{name.as_posix()}", f"{solution.parent.name}/{name.as_posix()}")
        pieces += difflib.unified_diff(before, after, *names)
    return "".join(pieces)
