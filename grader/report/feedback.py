"""`feedback/<name>.md`: what one student gets back, the next step first, in both languages.

Every sentence in it is there for the student: no other submission, no hidden input, no event data (G9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.intake import reason
from grader.report.notebooks import STATUSES
from grader.report.rows import (
    Lesson,
    Row,
    Test,
    alike,
    both,
    figure,
    first_missed,
    missed,
    next_step,
    problem,
    who,
)
from grader.report.student_text import markdown
from grader.report.words import DIMENSIONS, VERDICTS, lesson_name, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.report.words import Language


def feedback_md(row: Row, language: Language) -> str:
    """Give the whole file: first in the language that was asked for, then in the other one."""
    other: Language = "en" if language == "zh" else "zh"
    parts = ["\n".join(_in_one_language(row, spoken)) for spoken in (language, other)]
    return "\n\n---\n\n".join(parts) + "\n"


def _in_one_language(row: Row, language: Language) -> Iterator[str]:
    yield f"# {say('feedback', language, name=markdown(who(row)))}"
    if said := problem(row):
        yield f"\n{markdown(getattr(said, language))}"
    if row["verdict"] == "grader-error":
        yield f"\n{say('our-fault', language)}"
    if not said:  # what was never graded has missed every test, and nothing is to be learnt from their names
        for number, lesson in row["lessons"].items():
            yield from _lesson(number, lesson, language)
    yield from _notebooks(row, language)
    if row["left_out"]:
        yield f"\n## {say('left-out', language)}\n"
        for entry in row["left_out"]:
            why = getattr(reason(entry["why"]), language)
            yield f"- {markdown(entry['name'])}{say('colon', language)}{markdown(why)}"
    yield f"\n{say('reproduce', language)}"


def _notebooks(row: Row, language: Language) -> Iterator[str]:
    if row["notebooks"]:
        yield f"\n## {say('notebooks', language)}\n"
    for notebook in row["notebooks"]:
        status = getattr(STATUSES[notebook["status"]], language)
        yield f"- {markdown(notebook['name'])}{say('colon', language)}{status}"
        for error in notebook["errors"]:
            said = markdown(f"{error['name']} {error['text']}")
            yield f"  - {say('cell', language, cell=error['cell'])}{say('colon', language)}{said}"


def _lesson(number: str, lesson: Lesson, language: Language) -> Iterator[str]:
    yield f"\n## {getattr(lesson_name(number), language)}"
    told = _told_first(lesson)
    if told:
        first, *others = told
        yield f"\n**{say('first', language, id=first['id'], title=_title(first, language))}**\n"
        yield from _explained(first, language)
        yield from _the_same(others, language)
    else:
        yield f"\n**{say('nothing-left', language)}**"
    answers = {key: say("yes" if lesson[key] else "no", language) for key in ("ok", "complete")}
    earned, worth = (figure(lesson["points"][end]) for end in ("earned", "worth"))
    yield f"\n{say('standing', language, **answers, earned=earned, worth=worth)}"
    rubric = [
        f"{getattr(DIMENSIONS[name], language)} {score['passed']}/{score['total']}"
        for name, score in lesson["rubric"].items()
    ]
    yield f"\n{' · '.join(rubric)}"
    for group in ("required", "extended"):
        yield f"\n### {say('score', language, title=say(group, language), **lesson[group])}"
        tests = [test for test in lesson["tests"] if test["required"] == (group == "required")]
        yield from _misses([test for test in missed(tests) if test not in told], language)


def _told_first(lesson: Lesson) -> list[Test]:
    """Give the test to look at first, and with it those that ended in the same words, if it was written at all."""
    first = first_missed(lesson)
    if first is None or first["reason"] == "not-implemented":
        return [first] if first else []
    return next(group for group in alike(missed(lesson["tests"])) if first in group)


def _misses(tests: list[Test], language: Language) -> Iterator[str]:
    """Tell every test that was missed; those whose code is not written yet only by name."""
    unwritten = [test for test in tests if test["reason"] == "not-implemented"]
    for test, *others in alike(test for test in tests if test["reason"] != "not-implemented"):
        yield f"\n**{test['id']} {_title(test, language)}**\n"
        yield from _explained(test, language)
        yield from _the_same(others, language)
    if unwritten:
        yield f"\n{say('unwritten', language, count=len(unwritten))}\n"
    for test in unwritten:
        yield f"- {test['id']} {_title(test, language)}"


def _the_same(others: list[Test], language: Language) -> Iterator[str]:
    """Name them, no more: what was seen and what to do next stand right above."""
    if others:
        ids = ", ".join(test["id"] for test in others)
        yield f"- {say('the-same', language, count=len(others))}{say('colon', language)}{ids}"


def _title(test: Test, language: Language) -> str:
    return markdown(getattr(both(test["title"]), language))


def _explained(test: Test, language: Language) -> Iterator[str]:
    verdict = getattr(VERDICTS[test["reason"]], language)
    said = markdown(getattr(both(test["message"]), language)) if test["message"] else ""
    yield f"- {verdict}{say('colon', language)}{said}" if said else f"- {verdict}"
    if test["place"]:
        yield f"- {say('place', language, place=markdown(test['place']))}"
    if step := next_step(test):
        yield f"- {say('hint', language, hint=markdown(getattr(step, language)))}"
