"""`junit/<name>.xml`: one submission in the form that build servers read, one suite a lesson.

A test that was missed is a `failure`, one that the grader failed at an `error`. Nothing is ever `skipped`: readers
count a skip as no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from grader.report.rows import Row, both, next_step, problem, who
from grader.report.student_text import legible, one_line
from grader.report.words import VERDICTS, lesson_name, say

if TYPE_CHECKING:
    from grader.report.rows import Test
    from grader.report.words import Language


def junit_xml(row: Row, language: Language) -> str:
    """Give the document. A row that was never graded has one suite with one failed case, which says why."""
    name = one_line(who(row))
    suites = [_suite(name, number, lesson["tests"], language) for number, lesson in row["lessons"].items()]
    if not row["lessons"]:
        suites = [_never_graded(name, row, language)]
    root = ET.Element("testsuites", name=name, time=f"{row['seconds']:.3f}")
    root.extend(suites)
    for counted in ("tests", "failures", "errors"):
        root.set(counted, str(sum(int(suite.attrib[counted]) for suite in suites)))
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(name: str, number: str, tests: list[Test], language: Language) -> ET.Element:
    suite = ET.Element(
        "testsuite",
        name=f"{name} · {getattr(lesson_name(number), language)}",
        tests=str(len(tests)),
        failures=str(sum(test["status"] == "fail" for test in tests)),
        errors=str(sum(test["status"] == "error" for test in tests)),
        skipped="0",
    )
    for test in tests:
        title = getattr(both(test["title"]), language)
        group = "required" if test["required"] else "extended"
        case = ET.SubElement(
            suite, "testcase", name=f"{test['id']} {title}", classname=f"lesson_{number}.{group}"
        )
        if test["status"] != "pass":
            case.append(_miss(test, language))
    return suite


def _miss(test: Test, language: Language) -> ET.Element:
    said = one_line(getattr(both(test["message"]), language)) if test["message"] else ""
    verdict = getattr(VERDICTS[test["reason"]], language)
    lines = [
        f"{verdict}: {said}" if said else verdict,
        say("place", language, place=one_line(test["place"])) if test["place"] else "",
        say("hint", language, hint=getattr(step, language)) if (step := next_step(test)) else "",
    ]
    miss = ET.Element("error" if test["status"] == "error" else "failure", type=test["reason"], message=said)
    miss.text = legible("\n".join(filter(None, lines)))
    return miss


def _never_graded(name: str, row: Row, language: Language) -> ET.Element:
    said = problem(row)
    ours = row["verdict"] == "grader-error"
    suite = ET.Element(
        "testsuite",
        name=name,
        tests="1",
        failures=str(int(not ours)),
        errors=str(int(ours)),
        skipped="0",
    )
    case = ET.SubElement(suite, "testcase", name=say("hand-in", language), classname="hand_in")
    why = one_line(getattr(said, language)) if said else getattr(VERDICTS[row["verdict"]], language)
    ET.SubElement(case, "error" if ours else "failure", type=row["verdict"], message=why).text = why
    return suite
