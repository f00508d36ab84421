"""From findings to an outcome: evidence, scores, the one word of a row."""

from __future__ import annotations

import pytest

from grader.intake import LeftOut
from grader.outcome import Finding, Head, Outcome, conclude
from grader.settings import Limits, Settings
from grader.suites.check import Check, Text

SETTINGS = Settings(Limits(), {"22": {"required": 10, "extended": 2, "22-special": 7}})


def a_check(check_id, *, required=True, core=False, guard=False):
    async def run(lab):
        """Nothing."""

    return Check(
        check_id,
        Text("题", "title"),
        ("S1",),
        "integrity",
        Text("提", "hint"),
        required,
        core,
        guard,
        False,
        run,
    )


def concluded(checks, **status):
    findings = [Finding(check.id, *status.get(check.id.replace("-", "_"), ("pass",))) for check in checks]
    return conclude("22", "seed", checks, findings, SETTINGS)


@pytest.mark.parametrize("times", [0, 2])
def test_a_pass_needs_its_id_exactly_once(times):
    """A check that reported never, or twice, did not pass: that is the grader's error, not the student's."""
    check = a_check("22-a")
    lesson = conclude("22", "seed", [check], [Finding("22-a", "pass")] * times, SETTINGS)
    assert [test.finding.status for test in lesson.tests] == ["error"]
    assert not lesson.ok


def test_a_finding_nobody_expected_counts_for_nothing():
    """Only the suite's own ids are in an outcome."""
    check = a_check("22-a")
    lesson = conclude("22", "seed", [check], [Finding("22-a", "pass"), Finding("22-z", "pass")], SETTINGS)
    assert [test.check.id for test in lesson.tests] == ["22-a"]


def test_no_tests_are_not_a_success():
    """A lesson without a required check is never ok."""
    assert not conclude("22", "seed", [], [], SETTINGS).ok


def test_ok_asks_for_required_and_complete_for_core_too():
    """An extended check that is not core decides neither."""
    checks = [a_check("22-a"), a_check("22-b", required=False, core=True), a_check("22-c", required=False)]
    lesson = concluded(checks, **{"22_c": ("fail", "fail")})
    assert (lesson.ok, lesson.complete) == (True, True)
    lesson = concluded(checks, **{"22_b": ("fail", "fail")})
    assert (lesson.ok, lesson.complete) == (True, False)
    lesson = concluded(checks, **{"22_a": ("fail", "fail")})
    assert (lesson.ok, lesson.complete) == (False, False)


@pytest.mark.parametrize(
    ("a", "b", "first"),
    [
        (("fail", "not-implemented"), ("fail", "fail"), "22-b"),
        (("fail", "not-implemented"), ("fail", "not-implemented"), "22-a"),
        (("fail", "fail"), ("fail", "fail"), "22-a"),
        (("pass",), ("pass",), None),
    ],
)
def test_code_that_was_written_and_fails_is_what_to_look_at_first(a, b, first):
    """A required check that waits for unwritten code does not hide what is wrong with the code that is there."""
    lesson = concluded([a_check("22-a"), a_check("22-b", required=False)], **{"22_a": a, "22_b": b})
    assert (lesson.first_failure and lesson.first_failure.check.id) == first


def test_points_follow_the_settings():
    """Required and extended checks have their worth; one id may have its own."""
    checks = [a_check("22-a"), a_check("22-b", required=False), a_check("22-special", required=False)]
    assert concluded(checks).points == 19


def test_a_guard_earns_nothing_and_costs_when_it_breaks():
    """What the untouched starter passes already is no merit, but breaking it is a loss, down to zero."""
    checks = [a_check("22-a"), a_check("22-guard", required=False, guard=True)]
    assert concluded(checks).points == 10
    assert concluded(checks, **{"22_guard": ("fail", "fail")}).points == 8
    assert concluded(checks, **{"22_a": ("fail", "fail"), "22_guard": ("fail", "fail")}).points == 0


def test_a_fault_of_the_grader_costs_no_guard():
    """A guard that could not be tried takes nothing away."""
    checks = [a_check("22-a"), a_check("22-guard", required=False, guard=True)]
    assert concluded(checks, **{"22_guard": ("error", "grader-error")}).points == 10


@pytest.mark.parametrize(
    ("reasons", "verdict"),
    [
        (("", ""), "ok"),
        (("", "fail"), "fail"),
        (("not-implemented", "not-implemented"), "fail"),
        (("fail", "timeout"), "timeout"),
        (("timeout", "tamper"), "tamper"),
        (("crash", "memory"), "memory"),
        (("tamper", "grader-error"), "grader-error"),
        (("import-error", "import-error"), "import-error"),
    ],
)
def test_a_row_has_the_gravest_reason(reasons, verdict):
    """One word per submission: ok, or the gravest reason among its required checks."""
    checks = [a_check("22-a"), a_check("22-b")]
    words = {"": "pass", "grader-error": "error"}
    status = {
        f"22_{letter}": (words.get(reason, "fail"), reason)
        for letter, reason in zip("ab", reasons, strict=True)
    }
    outcome = Outcome("s", "limits-only", {"22": concluded(checks, **status)})
    assert outcome.verdict == verdict


def test_a_submission_is_as_bad_as_its_worst_lesson():
    """One lesson that is fine does not hide the other, and each keeps its own word."""
    fine = concluded([a_check("22-a")])
    broken = concluded([a_check("22-a")], **{"22_a": ("fail", "timeout")})
    assert Outcome("s", "limits-only", {"22": fine, "04": broken}).verdict == "timeout"
    assert Outcome("s", "limits-only", {"22": fine, "04": fine}).verdict == "ok"
    assert (fine.verdict, broken.verdict) == ("ok", "timeout")


def test_the_json_has_the_shape_that_others_read():
    """Schema 1: counts by group and dimension, and for each test its id, title, status, reason and message."""
    message = Text("错", "wrong")
    lesson = conclude(
        "22", "5eed", [a_check("22-a")], [Finding("22-a", "fail", "fail", message, "a.py:3")], SETTINGS
    )
    plain = Outcome("s", "bubblewrap", {"22": lesson}).plain()
    assert plain["schema"] == 1
    assert plain["isolation"] == "bubblewrap"
    found = plain["lessons"]["22"]
    assert found["required"] == {"passed": 0, "total": 1}
    assert found["extended"] == {"passed": 0, "total": 0}
    assert found["rubric"]["integrity"] == {"passed": 0, "total": 1}
    assert list(found["rubric"]) == ["concurrency", "recovery", "integrity", "diagnosis"]
    assert found["seed"] == "5eed"
    test = found["tests"][0]
    assert test["title"] == {"en": "title", "zh": "题"}
    assert (test["id"], test["status"], test["reason"]) == ("22-a", "fail", "fail")
    assert test["message"] == {"en": "wrong", "zh": "错"}
    assert test["hint"] == {"en": "hint", "zh": "提"}
    assert test["place"] == "a.py:3"


def test_a_row_tells_whose_it_is_and_what_it_was_judged_by():
    """Beside the lessons stand the student, the file, the reason it was not graded, and both hashes."""
    lesson = concluded([a_check("22-a")], **{"22_a": ("fail", "missing-file")}).plain()
    left_out, problem, notes = (LeftOut("x", "odd"),), Text("坏", "bad"), (Text("注", "note"),)
    head = Head("Li 1", "bubblewrap", left_out, "s-1", "Li 1.zip", problem, notes, "c0", "50")
    row = head.row({"22": lesson}, 1.5)
    assert row.keys() == Outcome("s", "bubblewrap", {}).plain().keys()
    assert (row["student"], row["handed_in"], row["problem"]) == (
        "s-1",
        "Li 1.zip",
        {"en": "bad", "zh": "坏"},
    )
    assert (row["content"], row["suite"], row["seconds"]) == ("c0", "50", 1.5)
    assert row["notes"] == [{"en": "note", "zh": "注"}]
    assert row["left_out"] == [{"name": "x", "why": "odd"}]
    assert row["verdict"] == row["lessons"]["22"]["verdict"] == "missing-file"
