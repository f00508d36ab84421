"""A class for the tests of the reports: made of findings, without running anyone's code."""

from __future__ import annotations

from random import Random
from typing import Any

from grader.intake import LeftOut
from grader.outcome import Finding, Outcome, conclude
from grader.settings import load_settings
from grader.suites import LESSONS, load_suite
from grader.suites.check import Text

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=alert(1)>",
    "</noscript><b>bold</b>{{ 7 * 7 }}",
    '=cmd|" /C calc"!A0',
    "\u202egnp.exe",
    "line\nbreak\tand\x00\x1b[31mcontrols\x85",
    "[link](javascript:alert(1)) `code` **bold** # head",
    "长" * 300,
    "e\u0301cole",
    "\u00e9cole",
    "Anna",
    "anna",
    "CON",
    "..",
    "a/../../etc",
    "👩\u200d💻 emoji",
    "half \udce9 of a byte, \ufffe",
    "' onclick=alert(1) x='",
    "&lt;b&gt; %0a ]]>",
)
"""Names as a class may bring them; each is what some form of report takes for its own language."""
REASONS = ("fail", "fail", "fail", "not-implemented", "timeout", "memory", "crash", "tamper", "import-error")
CALIBRATION = (("solution", 1.0), ("untouched starter", 0.0))


def make_row(name: str, share: float, draw: Random, **more: Any) -> dict[str, Any]:
    """Make a row that passed this share of the tests; what its tests say quotes its name, as an error message would."""
    lessons = {}
    for lesson in LESSONS:
        checks = load_suite(lesson).checks
        findings = [_finding(check.id, name, passed=draw.random() < share, draw=draw) for check in checks]
        lessons[lesson] = conclude(lesson, f"{draw.getrandbits(64):016x}", checks, findings, load_settings())
    outcome = Outcome(name, "bubblewrap", lessons, (LeftOut(f"{name}.pth", "unnamed"),) if share < 1 else ())
    shown = {"name": f"{name}.ipynb", "status": "error", "cells": 3, "done": 2}
    shown["errors"] = [{"cell": 2, "name": "AssertionError", "text": name}]
    added = {"student": "", "handed_in": name, "content": "ab" * 32, "seconds": 1.25, "notebooks": [shown]}
    return {**outcome.plain(), **added, **more}


def never_graded(name: str, verdict: str = "missing-file") -> dict[str, Any]:
    """Make a row of somebody who handed nothing in."""
    said = {"zh": "没有交作业", "en": "Nothing was handed in"}
    more = {
        "student": name,
        "handed_in": "",
        "problem": said,
    }
    return {**Outcome(name, "", {}).plain(), **more, "verdict": verdict}


def make_class(count: int, seed: int = 4) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make rows and calibration: hostile names first, then plain ones, one who handed nothing in."""
    draw = Random(seed)
    names = [*HOSTILE, *(f"student {number:03}" for number in range(count))][: count - 1]
    rows = [
        make_row(name, draw.choice((1.0, 0.95, 0.8, 0.3)), draw, student=f"s{at:04}")
        for at, name in enumerate(names)
    ]
    return [*rows, never_graded("nobody")], [make_row(name, share, draw) for name, share in CALIBRATION]


def _finding(check_id: str, name: str, *, passed: bool, draw: Random) -> Finding:
    if passed:
        return Finding(check_id, "pass")
    reason = draw.choice(REASONS)
    said = f"{name} {draw.randrange(100)}"
    return Finding(
        check_id,
        "fail",
        reason,
        Text(f"实际：{said}", f"found: {said}"),
        f"session_store.py:{draw.randrange(9)}",
    )


def small_class() -> list[dict[str, Any]]:
    """Make rows that no change of a suite touches: one with a miss of each kind, one the grader failed at, one absent."""
    mixed = _small_row("misses <b>", "fail", {"22": [
        _small_test("22-a", required=True),
        _small_test("22-b", required=True, reason="fail", message="S1: <i>expected</i> 1; found: `2`"),
        _small_test("22-c", reason="timeout", message="It did not end"),
        _small_test("22-d", reason="not-implemented"),
        _small_test("22-e", reason="timeout", message="It did not end"),
    ]})  # fmt: skip
    ours = _small_row("not our day", "grader-error", {"04": [
        _small_test("04-a", required=True, guard=True),
        _small_test("04-b", required=True, reason="grader-error", message="The grader failed"),
    ]})  # fmt: skip
    mixed["student"], ours["student"] = "=s1", "s2"
    mixed["left_out"] = [
        {"name": "conftest.py", "why": "unnamed"},
        {"name": "*.zip\n# x", "why": "unreadable (x)"},
    ]
    return [mixed, ours, never_graded("absent")]


def _small_test(test_id: str, reason: str = "", message: str = "", **kinds: bool) -> dict[str, Any]:
    status = "error" if reason == "grader-error" else "fail" if reason else "pass"
    guard = kinds.get("guard", False)
    return {
        "id": test_id,
        "title": {"zh": f"标题 {test_id}", "en": f"Title of {test_id}"},
        "rules": ["S1"],
        "dimension": "recovery" if test_id.startswith("22") else "claim",
        **{kind: kinds.get(kind, False) for kind in ("required", "core", "guard")},
        "status": status,
        "reason": reason,
        "message": {"zh": f"看到：{message}", "en": message} if message else None,
        "hint": {"zh": "看 <name>", "en": "Look at <name>"} if reason else None,
        "place": "session_store.py:7" if reason == "fail" else "",
        "points": {"earned": 0 if guard or reason else 10, "worth": 10},
    }


def _small_row(name: str, verdict: str, tests: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    added = {
        "student": "",
        "handed_in": f"{name}.zip",
        "problem": None,
        "notes": [],
        "notebooks": [
            {"name": "*a*.ipynb", "status": "error", "errors": [{"cell": 2, "name": "E", "text": "<x>"}]},
            {"name": "b.ipynb", "status": "ok", "errors": []},
        ],
        "content": "ab" * 32,
        "seconds": 1.25,
    }
    lessons = {number: _small_lesson(found) for number, found in tests.items()}
    outcome = {"schema": 1, "submission": name, "verdict": verdict, "isolation": "bubblewrap", "left_out": []}
    return {**outcome, **added, "lessons": lessons}


def _small_lesson(tests: list[dict[str, Any]]) -> dict[str, Any]:
    groups = {
        "required": [t for t in tests if t["required"]],
        "extended": [t for t in tests if not t["required"]],
    }
    return {
        "seed": "00ff",
        "verdict": "fail",
        "ok": False,
        "complete": False,
        "points": {
            end: sum(test["points"][end] for test in tests if not test["guard"])
            for end in ("earned", "worth")
        },
        **{name: _small_count(found) for name, found in groups.items()},
        "rubric": {tests[0]["dimension"]: _small_count(tests)},
        "tests": tests,
    }


def _small_count(tests: list[dict[str, Any]]) -> dict[str, int]:
    return {"passed": sum(test["status"] == "pass" for test in tests), "total": len(tests)}
