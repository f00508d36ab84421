"""`report.html`: the class as one file that needs nothing else, read offline and without trust in what it shows.

Everything a student chose goes into the page as text: into the template, which escapes, and into a block of JSON, in
which no character can end the block. The page's one script and one style sheet are named by their hashes in its
content security policy, which allows nothing else and no request. The script builds the matrix from the JSON; without
it, the same rows stand in the page to be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.intake import reason
from grader.outcome import GRAVEST_FIRST
from grader.report.notebooks import STATUSES
from grader.report.page_words import PAGE
from grader.report.rows import Lesson, Row, Test, both, figure, lesson_verdict, points
from grader.report.student_text import legible, one_line
from grader.report.words import DIMENSIONS, VERDICTS, lesson_name
from grader.suites import JUDGED
from grader.suites.check import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.report.words import Language

HERE = Path(__file__).parent
GLYPHS = {
    "": "✓",
    "fail": "✗",
    "not-implemented": "○",
    "timeout": "T",
    "memory": "M",
    "crash": "C",
    "tamper": "!",
    "missing-file": "∅",
    "syntax-error": "S",
    "import-error": "I",
    "grader-error": "?",
}
"""Reason of a test -> its sign in the matrix. Colour only repeats what the sign says."""


class Inline(NamedTuple):
    """Text that stands in the page, and its name in the content security policy."""

    text: str
    source: str


class Words(Text):
    """A text with one place to fill in."""

    __slots__ = ()

    def of(self, value: str) -> Text:
        """Fill it in, in both languages."""
        return Text(self.zh.format(value), self.en.format(value))


class _Texts:
    """Every text once, by number from 1: most students fail alike. 0 is no text."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, said: dict[str, str] | None) -> int:
        if not said:
            return 0
        text = Text(legible(said["zh"]), legible(said["en"]))
        if text not in self._numbers:
            self.all.append(text)
            self._numbers[text] = len(self.all)
        return self._numbers[text]


def report_html(
    rows: Sequence[Row], names: Sequence[str], calibration: Sequence[Row], isolation: str, language: Language
) -> str:
    """Give the page. It opens in `language`; its reader may choose the other one. `names` are the rows' file names."""
    data = page_data(rows, names, language)
    return (
        _templates()
        .get_template("report.html.jinja")
        .render(
            data=_as_json(data),
            script=_inline("report.js"),
            style=_inline("report.css"),
            calibration=calibration,
            isolation=isolation,
            language=language,
            words={key: Words(*text) for key, text in PAGE.items()},
            verdicts=VERDICTS,
            dimensions=DIMENSIONS,
            glyphs=GLYPHS,
            lessons=data["lessons"],
            names=data["names"],
            tests=data["tests"],
            people=data["people"],
            reasons=data["reasons"],
            texts=[Text(*text) for text in data["texts"]],
        )
    )


def page_data(rows: Sequence[Row], names: Sequence[str], language: Language) -> dict[str, Any]:
    """Give what the page's script works on. A text is a pair (zh, en), or its number in `texts`."""
    texts = _Texts()
    tests = _tests(rows)
    order = {number: [test["id"] for test in found] for number, found in tests.items()}
    people = [_person(row, name, order, texts) for row, name in zip(rows, names, strict=True)]
    seen = {mark for person in people for lesson in person["lessons"].values() for mark in lesson["marks"]}
    return {
        "language": language,
        "lessons": list(tests),
        "names": {number: lesson_name(number) for number in tests},
        "tests": tests,
        "people": people,
        "reasons": [reason for reason in GLYPHS if reason in seen],
        "glyphs": GLYPHS,
        "verdictOrder": [*GRAVEST_FIRST[::-1], "ok", "complete"],
        "verdicts": VERDICTS,
        "dimensions": DIMENSIONS,
        "words": PAGE,
        "texts": texts.all,
    }


def _tests(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """Describe every test once, by lesson, required ones first. Its hint comes from a row that missed it."""
    found: dict[str, dict[str, dict[str, Any]]] = {number: {} for number in JUDGED}
    for row in rows:
        for number, lesson in row["lessons"].items():
            for test in lesson["tests"]:
                if test["id"] not in found[number]:
                    found[number][test["id"]] = _described(test)
                if test["hint"]:
                    found[number][test["id"]]["hint"] = both(test["hint"])
    return {
        number: sorted(tests.values(), key=lambda test: not test["required"])
        for number, tests in found.items()
        if tests
    }


def _described(test: Test) -> dict[str, Any]:
    kinds = {key: test[key] for key in ("id", "rules", "dimension", "required", "core", "guard")}
    return {**kinds, "title": both(test["title"]), "worth": figure(test["points"]["worth"]), "hint": None}


def _person(row: Row, name: str, order: dict[str, list[str]], texts: _Texts) -> dict[str, Any]:
    earned, worth = points(row)
    return {
        "key": name,
        "name": one_line(row["submission"]) or "–",
        "student": one_line(row["student"]),
        "handedIn": one_line(row["handed_in"]),
        "verdict": row["verdict"],
        "isolation": row["isolation"],
        "points": [earned, worth],
        "seconds": row["seconds"],
        "content": row["content"][:16],
        "problem": texts.number(row["problem"]),
        "notes": [texts.number(note) for note in row["notes"]],
        "notebooks": [_notebook(notebook) for notebook in row["notebooks"]],
        "leftOut": [(one_line(entry["name"]), reason(one_line(entry["why"]))) for entry in row["left_out"]],
        "lessons": {
            number: _lesson(lesson, order[number], texts) for number, lesson in row["lessons"].items()
        },
    }


def _notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """Lay out what a notebook showed when it was executed; cells count from 1."""
    errors = [(error["cell"], one_line(f"{error['name']} {error['text']}")) for error in notebook["errors"]]
    return {"name": one_line(notebook["name"]), "status": STATUSES[notebook["status"]], "errors": errors}


def _lesson(lesson: Lesson, order: list[str], texts: _Texts) -> dict[str, Any]:
    """Lay one lesson out by the tests' order; a test that this row has not is a fault of the grader."""
    by_id = {test["id"]: test for test in lesson["tests"]}
    absent = {"reason": "grader-error", "message": None, "place": ""}
    tests = [by_id.get(test_id, absent) for test_id in order]
    return {
        "verdict": lesson_verdict(lesson),
        "ok": lesson["ok"],
        "complete": lesson["complete"],
        "seed": lesson["seed"],
        "points": [_number(lesson["points"][end]) for end in ("earned", "worth")],
        **{group: [lesson[group][end] for end in ("passed", "total")] for group in ("required", "extended")},
        "rubric": {name: [score["passed"], score["total"]] for name, score in lesson["rubric"].items()},
        "marks": [test["reason"] for test in tests],
        "messages": [texts.number(test["message"]) for test in tests],
        "places": {at: one_line(test["place"]) for at, test in enumerate(tests) if test["place"]},
    }


def _number(value: float) -> float:
    """Give 10 for 10.0, so that it is shown as 10."""
    return int(value) if value == int(value) else round(value, 2)


def _as_json(data: dict[str, Any]) -> str:
    """Write JSON that may stand in a script element: nothing in it can end the element, or begin a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


@cache
def _inline(name: str) -> Inline:
    text = (HERE / name).read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).digest()
    return Inline(text, f"sha256-{base64.b64encode(digest).decode()}")


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters.update(figure=figure, line=one_line)
    return made
