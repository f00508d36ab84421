"""How one check's end becomes a finding, and a submission an outcome."""

from __future__ import annotations

import asyncio
import errno
import shutil

import pytest

from grader.grade import grade_handin, grade_submission
from grader.intake import Handin, take
from grader.settings import Limits, Settings
from grader.suites.check import Check, CheckFailed, Text
from tests.piped import PLAIN_STORE, SOLUTION

SETTINGS = Settings(Limits(), {})


def finding_of(run, store="class JsonlSessionStore(Plain): pass", limits=None):
    """Grade a store by one check, and give the finding."""
    files = {"__init__.py": (PLAIN_STORE + store).encode(), "session_store.py": b""}
    return findings_of([run], files, limits)[0]


def findings_of(runs, files, limits=None):
    checks = [
        Check(
            f"22-{number}",
            Text("题", "title"),
            ("S1",),
            "integrity",
            Text("提", "hint"),
            True,
            False,
            False,
            False,
            run,
        )
        for number, run in enumerate(runs)
    ]
    handin = Handin("22", files)
    _, lesson = grade_handin(handin, checks, Settings(limits or Limits(), {}))
    return [test.finding for test in lesson.tests]


async def one_append(lab):
    await lab.store().append("note", lab.draw.getrandbits(40))


RAISING = "class JsonlSessionStore(Plain):\n    async def append(self, kind, data):\n        raise {}"


def test_a_check_that_returns_has_passed():
    """The evidence is the check's own end, in the parent."""
    assert finding_of(one_append).status == "pass"


def test_a_failed_rule_keeps_its_message():
    """What the check says reaches the finding in both languages."""

    async def run(lab):
        raise CheckFailed(Text("不对", "wrong"))

    found = finding_of(run)
    assert (found.status, found.reason, found.message) == ("fail", "fail", Text("不对", "wrong"))


def test_what_a_finding_says_can_always_be_recorded():
    """Names of files may be any bytes: halves of surrogate pairs become their escapes before anything keeps them."""

    async def run(lab):
        error = CheckFailed(Text("有 \udcff", "found \udcff"))
        error.add_note("\ud800.py:3")
        raise error

    found = finding_of(run)
    assert found.message == Text(r"有 \udcff", r"found \udcff")
    assert found.place == r"\ud800.py:3"


def test_unfinished_work_is_said_to_be_unfinished():
    """NotImplementedError is a fail of its own kind, with the student's line."""
    found = finding_of(one_append, RAISING.format("NotImplementedError('step 1')"))
    assert (found.status, found.reason) == ("fail", "not-implemented")
    assert "step 1" in found.message.en
    assert found.place.startswith("__init__.py:")


def test_a_students_error_is_a_fail_with_the_rule_and_without_data():
    """An error that a check did not ask for names rule and class; what was drawn is not repeated."""
    found = finding_of(one_append, RAISING.format("ValueError(f'cannot keep {data!r}')"))
    assert (found.status, found.reason) == ("fail", "fail")
    assert found.message.en.startswith("S1:")
    assert "ValueError" in found.message.en
    assert not [digits for digits in found.message.en.split() if digits.isdigit()]


def test_the_place_survives_a_checks_own_words():
    """A check that explains an error still leads to the student's line."""

    async def run(lab):
        try:
            await lab.store().append("note", 1)
        except ValueError:
            raise CheckFailed(Text("不对", "wrong")) from None

    assert finding_of(run, RAISING.format("ValueError")).place.startswith("__init__.py:")


@pytest.mark.parametrize("statement", ["MemoryError", "__import__('sys').exit(0)", "KeyboardInterrupt"])
def test_no_error_of_the_student_ends_the_grader(statement):
    """Whatever is raised over there is a finding over here."""
    assert finding_of(one_append, RAISING.format(statement)).status == "fail"


def test_no_memory_is_its_own_reason():
    """MemoryError is told apart from a wrong answer."""
    assert finding_of(one_append, RAISING.format("MemoryError")).reason == "memory"


FAULTS = [
    NameError,
    TypeError,
    KeyError,
    AttributeError,
    ValueError,
    OSError,
    AssertionError,
    NotImplementedError,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_check_is_the_graders(fault):
    """Whatever a check's own code raises costs nobody a mark, and is tried twice: also what a store could have raised."""
    tries = []

    async def run(lab):
        await one_append(lab)
        tries.append(lab.folder)
        raise fault("in the check")

    found = finding_of(run)
    assert (found.status, found.reason) == ("error", "grader-error")
    assert len(set(tries)) == 2


@pytest.mark.parametrize("fault", ["TypeError", "KeyError", "AttributeError", "OSError", "AssertionError"])
def test_the_same_fault_of_the_store_is_the_students(fault):
    """The class does not say whose fault it is; where it came from does."""
    assert finding_of(one_append, RAISING.format(f"{fault}('in the store')")).reason == "fail"


def test_a_disk_that_is_full_is_the_graders(monkeypatch):
    """No room on this machine costs nobody a mark, whether the grader or the store met it."""

    async def plants(lab):
        lab.plant("events.jsonl", b"")

    def no_room(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("grader.tree.plant", no_room)
        assert finding_of(plants).reason == "grader-error"
    monkeypatch.setattr("grader.sandbox.Box.has_no_room_here", True)
    assert finding_of(one_append, RAISING.format("OSError(28, 'No space left')")).reason == "grader-error"


def test_a_fault_that_goes_away_is_forgotten():
    """The second try of a check that failed by the grader's fault counts."""
    tries = []

    async def run(lab):
        tries.append(1)
        if len(tries) == 1:
            raise NameError("in the check")

    assert finding_of(run).status == "pass"


def test_a_check_that_does_not_end_is_a_timeout():
    """The limit of a whole check holds also when every call is answered."""

    async def run(lab):
        store = lab.store()
        while True:
            await store.read()

    assert finding_of(run, limits=Limits(check_seconds=0.4)).reason == "timeout"


def test_a_crash_in_one_check_does_not_fail_the_next():
    """The next check gets a new child."""
    files = {"__init__.py": (PLAIN_STORE + RAISING.format("os._exit(0)").replace("raise ", "")).encode()}

    async def only_reads(lab):
        assert await lab.store().read() == []

    reasons = [found.reason for found in findings_of([one_append, only_reads, one_append], files)]
    assert reasons == ["crash", "", "crash"]


def test_tampering_ends_the_submission():
    """After a forged reply nothing is believed any more."""
    forge = (
        PLAIN_STORE
        + """
class JsonlSessionStore(Plain):
    async def append(self, kind, data):
        for number in range(3, 1024):
            try:
                os.write(number, b'{"id":77,"ok":[]}\\n')
            except OSError:
                pass
        return self.write(kind, data)
"""
    )

    async def only_reads(lab):
        await lab.store().read()

    async def append_and_read(lab):
        await one_append(lab)
        await only_reads(lab)

    files = {"__init__.py": forge.encode()}
    reasons = [found.reason for found in findings_of([only_reads, append_and_read, only_reads], files)]
    assert reasons == ["", "tamper", "tamper"]


def test_a_check_that_did_not_notice_a_lost_child_has_not_passed():
    """What came on the channel after the last answer counts, too."""

    async def run(lab):
        await one_append(lab)
        while not lab.lost():  # noqa: ASYNC110 - the channel is looked at as it is
            await asyncio.sleep(0)

    found = finding_of(
        run,
        RAISING.format("os.kill(os.getpid(), 9)").replace(
            "raise ",
            "asyncio.get_running_loop().call_later(0.01, os._exit, 0); return self.write(kind, data) #",
        ),
    )
    assert found.reason == "crash"


def test_a_child_that_failed_a_check_is_not_used_again():
    """What a failed check left in memory does not fail the next one."""
    count = (
        PLAIN_STORE
        + """
appends = []
class JsonlSessionStore(Plain):
    async def append(self, kind, data):
        appends.append(data)
        return SessionEvent(len(appends), kind, data)
"""
    )

    async def is_first(lab):
        if (await lab.store().append("note", 1)).sequence != 1:
            raise CheckFailed(Text("不是第一个", "not the first"))

    files = {"__init__.py": count.encode()}
    assert [found.status for found in findings_of([is_first] * 3, files)] == ["pass", "fail", "pass"]


def test_a_check_that_was_not_run_says_so():
    """After too many time-outs the rest fails at once, and nobody is told of a call that was never made."""
    never = (
        PLAIN_STORE + "class JsonlSessionStore(Plain):\n    async def read(self):\n        while True: pass"
    )
    limits = Limits(call_seconds=0.3, timeouts=2)

    async def run(lab):
        await lab.store().read()

    said = [found.message.en for found in findings_of([run] * 3, {"__init__.py": never.encode()}, limits)]
    assert [text.startswith("Not run:") for text in said] == [False, False, True]


def test_when_the_time_of_a_submission_is_spent_the_rest_fails_at_once():
    """A spent budget leaves no check waiting for its own limit."""

    async def run(lab):
        store = lab.store()
        while True:
            await store.read()

    files = {"__init__.py": (PLAIN_STORE + "class JsonlSessionStore(Plain): pass").encode()}
    limits = Limits(submission_seconds=0.5, check_seconds=30, timeouts=100)
    assert {found.reason for found in findings_of([run] * 40, files, limits)} == {"timeout"}


def test_each_check_has_a_fresh_folder():
    """Nothing of one check is on disk for the next."""

    async def run(lab):
        assert lab.names() == []
        await one_append(lab)

    files = {"__init__.py": (PLAIN_STORE + "class JsonlSessionStore(Plain): pass").encode()}
    assert [found.status for found in findings_of([run, run], files)] == ["pass", "pass"]


def test_inputs_are_fresh_in_every_run_and_the_seed_brings_them_back():
    """Two runs draw differently; a run with a recorded seed draws the same."""
    drawn = []

    async def run(lab):
        drawn.append(lab.draw.getrandbits(64))

    check = Check(
        "22-a", Text("题", "t"), ("S1",), "integrity", Text("提", "h"), True, False, False, False, run
    )
    handin = Handin("22", {"__init__.py": (PLAIN_STORE + "JsonlSessionStore = Plain").encode()})
    _, first = grade_handin(handin, [check], SETTINGS)
    _, second = grade_handin(handin, [check], SETTINGS)
    grade_handin(handin, [check], SETTINGS, seed=first.seed)
    assert first.seed != second.seed
    assert drawn[0] != drawn[1]
    assert drawn[2] == drawn[0]


def test_a_missing_file_is_the_reason_of_every_check(tmp_path):
    """Without the needed files no child is started, and every check says what is missing."""
    outcome = grade_submission("nobody", tmp_path, ["22"], SETTINGS)
    found = outcome.lessons["22"].tests
    assert outcome.verdict == "missing-file"
    assert {test.finding.reason for test in found} == {"missing-file"}
    assert "session_store.py" in found[0].finding.message.en


def test_code_from_another_lesson_folder_is_found_by_its_relative_imports(tmp_path):
    """A copy of the solution anywhere is as good as the solution."""
    shutil.copytree(SOLUTION, tmp_path / "hand in" / "lesson_22")

    async def run(lab):
        await one_append(lab)
        assert lab.disk().endswith(b"\n")

    handin = take(tmp_path, "22")
    assert [found.status for found in findings_of([run], handin.files)] == ["pass"]
