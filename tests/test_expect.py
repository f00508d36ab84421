"""Failures explain themselves in both languages, and show nothing that was drawn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from grader.direct import direct_lab
from grader.lab import CorruptLog, Event, StudentError, rebuild_error
from grader.suites.check import CheckFailed, Suite, Text
from grader.suites.expect import Trial, redacted, show_error
from labkit.workspace import lesson_source

TRIAL = Trial("S5", "追加再读取", "Append and read")
EVENTS = [Event(1, "a", {"n": 1}), Event(2, "b", [True])]


async def raising(error: Exception) -> None:
    raise error


def failure(found: list[Event]) -> Text:
    with pytest.raises(CheckFailed) as caught:
        TRIAL.same_events(found, EVENTS)
    return caught.value.message


def test_a_failure_says_rule_deed_expected_and_found():
    """One sentence a language, with the same facts in it."""
    message = failure(EVENTS[:1])

    assert message.en == "S5: Append and read. Expected: the events read are numbered 1, 2; found: 1."
    assert message.zh == "S5：追加再读取。应当：读到的事件编号为 1、2；实际：1。"


@pytest.mark.parametrize("data", [[1], [1.0], ["true"], [[True]]])
def test_values_that_python_calls_equal_differ(data):
    """Data is compared as canonical JSON: `1`, `1.0` and `true` are three values."""
    assert "the data of number 2" in failure([EVENTS[0], Event(2, "b", data)]).en


def test_an_event_in_another_order_of_keys_is_the_same():
    """Key order is no difference."""
    TRIAL.same_events([Event(1, "a", {"x": 1, "y": 2})], [Event(1, "a", {"y": 2, "x": 1})])


def test_work_not_done_yet_stays_that():
    """`NotImplementedError` passes through: it is no wrong answer and no right one."""
    for call in (TRIAL.gives, lambda made: TRIAL.refuses(made, RuntimeError)):
        with pytest.raises(NotImplementedError):
            asyncio.run(call(raising(NotImplementedError("step 1"))))


def test_another_error_than_the_expected_one_fails():
    """The class that came is named beside the class that was due."""
    with pytest.raises(CheckFailed, match="Expected: OSError; found: ValueError"):
        asyncio.run(TRIAL.refuses(raising(rebuild_error(["ValueError"], {}, "no")), OSError))


@pytest.mark.parametrize("call", [TRIAL.gives, lambda made: TRIAL.refuses(made, ValueError, OSError)])
def test_a_fault_of_the_graders_own_is_no_answer(call):
    """A ValueError or OSError that no student's code raised is neither the refusal that was due nor a failure."""
    for error in (ValueError("of the check"), OSError(28, "of this machine")):
        with pytest.raises(type(error)) as caught:
            asyncio.run(call(raising(error)))
        assert caught.value is error


def test_a_fault_of_the_transport_is_no_answer():
    """What is no error of a student's code passes through every comparison."""
    with pytest.raises(EOFError):
        asyncio.run(TRIAL.refuses(raising(EOFError()), OSError))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("第 3 行 (line 3)", None),
        ("第 3 行", "does not contain"),
        ("line 3", "does not contain"),
        ("第 31 行 (line 31)", "does not contain"),
        ("第 3 行 (line 3): secret", "echoes no event data"),
    ],
)
def test_a_corrupt_line_is_named_twice_and_never_quoted(text, problem):
    """The text says the line in both languages and holds nothing of it."""
    run = TRIAL.corrupt_at(raising(CorruptLog(text, line=3)), 3, hidden=("secret",))
    if problem is None:
        asyncio.run(run)
    else:
        with pytest.raises(CheckFailed, match=problem):
            asyncio.run(run)


@pytest.mark.parametrize("line", [2, True, 3.0, "3", None])
def test_the_line_is_an_exact_number(line):
    """`.line` has to be that integer, not what only compares equal."""
    with pytest.raises(CheckFailed, match="names line 3"):
        asyncio.run(TRIAL.corrupt_at(raising(CorruptLog("第 3 行 (line 3)", line=line)), 3))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "append() missing 1 required positional argument: 'data'",
            "append() missing 1 required positional argument: 'data'",
        ),
        ("no key 'note_4f2a1c'", "no key …"),
        ('bad value {"todo_id": "note_4f2a1c"} here', "bad value … here"),
        ("number 83746251 is odd", "number … is odd"),
        ("x" * 200, "x" * 159 + "…"),
    ],
)
def test_drawn_values_are_cut_from_messages(text, shown):
    """Names of the code stay readable; anything that may have been drawn does not."""
    assert redacted(text) == shown


def test_errors_are_shown_by_class():
    """A student's own class is shown by its name, a corrupt log by its line."""
    assert show_error(StudentError("Skipped", "")).en == "Skipped"
    assert show_error(CorruptLog("...", line=7)).en == "CorruptLogError (line 7)"


def test_errors_are_known_by_the_nearest_name():
    """The first known name on the MRO decides; an errno makes the exact OSError; the unknown stays a name."""
    assert type(rebuild_error(["Mine", "KeyError", "LookupError"], {}, "")) is LookupError
    assert type(rebuild_error(["PermissionError", "OSError"], {"errno": 13}, "no")) is PermissionError
    assert type(rebuild_error(["CorruptLogError", "ValueError"], {"line": 2}, "")) is CorruptLog
    assert rebuild_error(["Skipped", "BaseException"], {}, "").name == "Skipped"


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (None, "it is missing"),
        (b'{"sequence":1,"type":"a","data":{"n":1}}', "40 bytes stand after the last one"),
        (b'{"sequence":1,"type":"a"}\n', "line 1 is no record"),
        (b'{"sequence":true,"type":"a","data":{"n":1}}\n', "a value of type bool"),
    ],
)
def test_the_disk_is_looked_at_from_outside(planted, problem, tmp_path: Path):
    """A log that is missing, unended or no run of records is a failure that says so."""
    with direct_lab(lesson_source("22", "solution"), tmp_path, Random(1)) as lab:
        if planted is not None:
            lab.plant("events.jsonl", planted)
        with pytest.raises(CheckFailed, match=problem):
            TRIAL.disk_holds(lab, EVENTS[:1])


@pytest.mark.parametrize(
    ("check_id", "title", "problem"),
    [
        ("23-01", "一\n\nOne", "is named 22-"),
        ("22-01", "only one line", "two lines"),
        ("22-00", "一\n\nOne", "two checks have this id"),
    ],
)
def test_a_check_that_is_declared_wrongly_is_refused(check_id, title, problem):
    """The registry refuses a foreign id, a doubled id and a title in one language."""
    suite = Suite("22")
    rest = {"rules": ("S1",), "dimension": "integrity", "hint": Text("", "")}

    async def body(_lab):
        raise AssertionError

    body.__doc__ = "零\n\nZero"
    suite.check("22-00", **rest)(body)
    body.__doc__ = title
    with pytest.raises(ValueError, match=problem):
        suite.check(check_id, **rest)(body)
