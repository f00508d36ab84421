"""`gradescope/<name>.json`: one submission as the `results.json` that Gradescope's autograder expects.

All text goes out as `text`, the one output format of theirs that renders nothing: what a student's code says is never
their markup.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grader.intake import reason
from grader.report.rows import Row, both, next_step, points, problem
from grader.report.student_text import legible
from grader.report.words import VERDICTS, lesson_name, say

if TYPE_CHECKING:
    from grader.report.rows import Test
    from grader.report.words import Language


def gradescope_json(row: Row, language: Language) -> str:
    """Give the file's text. A row that the grader failed at is hidden from the student until it was graded again."""
    failed_us = row["verdict"] == "grader-error"
    results: dict[str, Any] = {
        "score": points(row)[0],
        "output": _head(row, language),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "hidden" if failed_us else "visible",
        "stdout_visibility": "hidden",
        "tests": [
            _test(f"{number}.{place}", test, language)
            for number, lesson in row["lessons"].items()
            for place, test in enumerate(lesson["tests"], 1)
        ],
        "extra_data": {
            "verdict": row["verdict"],
            "isolation": row["isolation"],
            "lessons": {
                number: {key: lesson[key] for key in ("ok", "complete", "required", "extended", "rubric")}
                for number, lesson in row["lessons"].items()
            },
        },
    }
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def _head(row: Row, language: Language) -> str:
    lines = []
    if said := problem(row):
        lines.append(getattr(said, language))
    if row["verdict"] == "grader-error":
        lines.append(say("our-fault", language))
    for number, lesson in row["lessons"].items():
        answers = {key: say("yes" if lesson[key] else "no", language) for key in ("ok", "complete")}
        standing = say("standing", language, **answers, **lesson["points"])
        lines.append(f"{getattr(lesson_name(number), language)}: {standing}")
    lines += [
        f"{say('left-out', language)}: {entry['name']} ({getattr(reason(entry['why']), language)})"
        for entry in row["left_out"]
    ]
    return legible("\n".join(lines))


def _test(number: str, test: Test, language: Language) -> dict[str, Any]:
    passed = test["status"] == "pass"
    group = "required" if test["required"] else "extended"
    return {
        "name": f"{test['id']} {getattr(both(test['title']), language)}",
        "number": number,
        "score": test["points"]["earned"],
        "max_score": 0 if test["guard"] else test["points"]["worth"],
        "status": "passed" if passed else "failed",
        "output": "" if passed else _said(test, language),
        "tags": [group, test["dimension"], *test["rules"]],
        "visibility": "visible",
        "extra_data": {"reason": test["reason"], "guard": test["guard"], "core": test["core"]},
    }


def _said(test: Test, language: Language) -> str:
    lines = [getattr(VERDICTS[test["reason"]], language)]
    if test["message"]:
        lines.append(getattr(both(test["message"]), language))
    if test["place"]:
        lines.append(say("place", language, place=test["place"]))
    if step := next_step(test):
        lines.append(say("hint", language, hint=getattr(step, language)))
    return legible("\n".join(lines))
