"""A learner's own tests on one store after the other: what counts, what does not, and what each odd file is told."""

from __future__ import annotations

import os
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from grader import own_tests
from grader.intake import take
from grader.own_tests import OwnTests, OwnTestsError, Trial, Tried, on_store
from grader.rungs import strongest_rung
from grader.settings import load_settings
from grader.suites.mutants.lesson_22 import MUTANTS
from tests.piped import KIT

LIMITS = load_settings().limits_of("22")
IMPATIENT = replace(LIMITS, call_seconds=1.5)
HEAD = """
import asyncio, json, os, pytest
from pathlib import Path
from lesson_22 import CorruptLogError, JsonlSessionStore

def store(tmp_path):
    return JsonlSessionStore(tmp_path / "task.jsonl")

async def gap_is_accepted(tmp_path):
    path = tmp_path / "gap.jsonl"
    path.write_bytes(b'{"sequence":1,"type":"a","data":1}\\n{"sequence":3,"type":"a","data":1}\\n')
    try:
        return bool(await JsonlSessionStore(path).read())
    except CorruptLogError:
        return False
"""
"""What every file below begins with; only the mutant `only-monotonic` accepts a gap."""

RIGHT = "async def test_right(tmp_path):\n    assert not await gap_is_accepted(tmp_path)\n"
NEVER_ENDS = "async def test_hangs(tmp_path):\n    await asyncio.Event().wait()\n"
FORGER = """
def test_forges(tmp_path):
    reply = b'{"id":%d,"err":{"types":["AssertionError"],"attrs":{},"text":"","where":"","when":"call"}}\\n'
    for number in range(3, 1024):
        try:
            os.write(number, b"".join(reply % id for id in range(1, 20)))
        except OSError:
            pass
"""


def file_of(source: str, head: str = HEAD) -> OwnTests:
    return OwnTests("test_mine.py", (head + textwrap.dedent(source)).encode())


def on_solution(source: str, limits=LIMITS) -> Trial:
    """Run a file on the solution."""
    return on_store("solution", take(KIT / "solution", "22"), file_of(source), limits)


def on_mutant(source: str, limits=LIMITS, name: str = "only-monotonic") -> Trial:
    """Run a file on one mutant."""
    mutant = next(mutant for mutant in MUTANTS if mutant.id == name)
    return on_store(name, own_tests.handed_in(mutant), file_of(source), limits)


def statuses(trial: Trial) -> dict[str, str]:
    return {test: ended.status for test, ended in trial.ended.items()}


# --- What a test may look like ---


def test_plain_and_async_tests_and_fixtures_run_as_in_any_pytest_file():
    """`def` with asyncio.run, `async def`, classes, parameters and fixtures of one's own all run."""
    trial = on_solution("""
        @pytest.fixture
        def path(tmp_path):
            return tmp_path / "task.jsonl"

        def test_plain(path):
            async def twice():
                await JsonlSessionStore(path).append("a", 1)
                return await JsonlSessionStore(path).append("a", 2)
            assert asyncio.run(twice()).sequence == 2

        async def test_async(path):
            assert (await JsonlSessionStore(path).append("a", 1)).sequence == 1

        class TestMany:
            @pytest.mark.parametrize("count", [1, 2])
            async def test_in_a_class(self, path, count):
                for _ in range(count):
                    last = await JsonlSessionStore(path).append("a", 1)
                assert last.sequence == count
        """)

    tests = ["test_plain", "test_async", "TestMany::test_in_a_class[1]", "TestMany::test_in_a_class[2]"]
    assert statuses(trial) == dict.fromkeys(tests, "pass")


def test_the_disk_can_be_made_to_fail():
    """The fixture `fault` disturbs the disk underneath the store while its block runs, and no longer."""
    trial = on_solution("""
        async def test_full_disk(tmp_path, fault):
            log = store(tmp_path)
            with fault("write", "ENOSPC"), pytest.raises(OSError, match="No space"):
                await log.append("a", 1)
            assert (await log.append("a", 2)).sequence == 1
        """)

    assert statuses(trial) == {"test_full_disk": "pass"}


def test_each_test_starts_in_a_folder_of_its_own():
    """Nothing that one test leaves in `tmp_path` is met by the next."""
    trial = on_solution("""
        def test_first(tmp_path):
            (tmp_path / "task.jsonl").write_text("left behind")

        async def test_second(tmp_path):
            assert await store(tmp_path).read() == []
        """)

    assert statuses(trial) == {"test_first": "pass", "test_second": "pass"}


def test_only_the_file_and_the_store_are_in_sight():
    """In the box there is no kit, no other file of the learner's, and no setting of pytest's from outside."""
    trial = on_solution(f"""
        def test_kit():
            assert Path({str(KIT / "solution")!r}).exists()

        def test_library():
            import rich

        def test_neighbours():
            assert [path.name for path in Path(__file__).parent.iterdir()] == ["test_mine.py"]
        """)

    hidden = "fail" if strongest_rung().isolated else "pass"
    assert statuses(trial) == {"test_kit": hidden, "test_library": "fail", "test_neighbours": "pass"}


def test_a_strict_umask_shuts_nobody_out():
    """The child may be another user: it reads what was laid down for it, whatever the grader keeps private otherwise."""
    before = os.umask(0o077)
    try:
        trial = on_solution(RIGHT)
    finally:
        os.umask(before)

    assert statuses(trial) == {"test_right": "pass"}


# --- What stops a mutant ---


def test_a_failing_test_stops_a_store():
    """A test that fails on a store stops it, and says where and why in the learner's own file."""
    trial = on_mutant(RIGHT)

    assert trial.stopped_by == ["test_right"]
    assert trial.of("test_right").said.en == "test_mine.py:17: AssertionError: assert not True"


def test_an_exception_is_as_good_as_an_assertion():
    """An error that the store raises, in the test or in a fixture of it, stops the store, too."""
    trial = on_mutant("""
        @pytest.fixture
        def log(tmp_path):
            if asyncio.run(gap_is_accepted(tmp_path)):
                raise ValueError("in the fixture")

        def test_with_fixture(log):
            pass
        """)

    assert trial.stopped_by == ["test_with_fixture"]


def test_a_test_that_does_not_end_stops_a_store_in_a_word_of_its_own():
    """Out of time counts against the store, and the tests after it are tried all the same, in a new process."""
    trial = on_mutant(NEVER_ENDS + RIGHT, IMPATIENT)

    assert statuses(trial) == {"test_hangs": "timeout", "test_right": "fail"}
    assert trial.stopped_by == ["test_hangs", "test_right"]


def test_a_loop_that_heeds_no_signal_is_ended_from_outside():
    """A test cannot outlive its time by refusing to be interrupted."""
    trial = on_mutant(
        """
        def test_deaf():
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
        """,
        IMPATIENT,
    )

    assert statuses(trial) == {"test_deaf": "timeout"}


def test_a_file_that_hangs_again_and_again_is_given_up():
    """After the allowed number of hangs the rest is not run, which stops nothing."""
    source = "".join(NEVER_ENDS.replace("hangs", f"hangs_{number}") for number in range(3))
    trial = on_mutant(source, IMPATIENT)

    assert list(statuses(trial).values()) == ["timeout", "timeout", "not-run"]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("os._exit(0)", "crash"),
        ("os._exit(1)", "crash"),
        ("os.kill(os.getpid(), 9)", "crash"),
        ("pytest.exit('enough')", "crash"),
        ("pytest.skip('not today')", "skip"),
        ("import unittest; raise unittest.SkipTest", "skip"),
        ("pytest.xfail('as expected')", "skip"),
        ("print('FAILED test_mine.py::test_odd - 1 failed', flush=True)", "pass"),
        ("os.write(2, b'FAILED test_mine.py::test_odd')", "pass"),
    ],
)
def test_ending_skipping_and_printing_stop_nothing(ending, status):
    """Only a failure that was seen counts: not the end of the process, no skip, and nothing that is printed."""
    trial = on_mutant(f"def test_odd():\n    {ending}\n" + RIGHT)

    assert statuses(trial) == {"test_odd": status, "test_right": "fail"}
    assert trial.stopped_by == ["test_right"]


def test_forged_answers_void_everything():
    """A file that writes answers on the line itself earns nothing on this store, not even what was true before."""
    trial = on_mutant(RIGHT + FORGER)

    assert statuses(trial) == {"test_right": "tamper", "test_forges": "tamper"}
    assert trial.stopped_by == []


def test_a_forger_that_leaves_at_once_earns_nothing():
    """An answer counts once the child has answered again, so writing it and ending the process is no failure."""
    the_one_asked_for = FORGER.replace("range(1, 20)", "[2]")
    trial = on_mutant(the_one_asked_for + "    os._exit(0)\n")

    assert statuses(trial) == {"test_forges": "crash"}


# --- What is said of a file that cannot be tried ---


def tried(source: str, limits=LIMITS, head: str = HEAD) -> Tried:
    """Try a file that is not expected to reach the mutants."""
    done = own_tests.try_tests(file_of(source, head), 2, lambda _store: None, limits)
    assert done.mutants == ()
    return done


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def test_x(:\n", "test_mine.py:1: SyntaxError"),
        ("import solution.lesson_22\n", "test_mine.py:1: ModuleNotFoundError: No module named 'solution'"),
        ("1 / 0\n", "test_mine.py:1: ZeroDivisionError"),
        ("import sys\nsys.exit(0)\n", "the child ended by itself half-way (exit code 0)"),
        ("import os\nos._exit(0)\n", "the child ended by itself half-way (exit code 0)"),
    ],
)
def test_a_file_that_does_not_load_is_told_why(source, said):
    """What went wrong while the file was imported is named with its line, in both languages, with a next step."""
    done = tried(source, head="")

    assert done.verdict == "not-loaded"
    assert said in done.message.en
    assert done.message.en.startswith("test_mine.py does not load: ")
    assert done.message.zh.startswith("test_mine.py 无法载入：")


def test_a_file_that_hangs_while_it_is_imported_is_told_so():
    """An import that does not come to its end is ended, and that is what is said of it."""
    done = tried("while True:\n    pass\n", replace(LIMITS, start_seconds=2.0))

    assert done.verdict == "not-loaded"
    assert "importing the code did not end in time" in done.message.en


def test_a_file_without_tests_is_told_so():
    """No test is no pass."""
    done = tried("def check_something():\n    pass\n")

    assert done.verdict == "no-tests"
    assert "test_" in done.message.en


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("assert False", "fail"),
        ("pytest.skip()", "skip"),
        ("os._exit(0)", "crash"),
        ("while True: pass", "timeout"),
    ],
)
def test_a_test_that_does_not_pass_on_the_reference_is_named(body, status):
    """Until each test passes on a right store, no wrong one is tried; the test at fault is named."""
    done = tried(f"def test_wrong():\n    {body}\n" + RIGHT, IMPATIENT)

    assert done.verdict == "wrong-tests"
    assert [(test, store, ended.status) for test, store, ended in done.wrong] == [
        ("test_wrong", "solution", status)
    ]


@pytest.mark.parametrize(
    "private",
    [
        "def test_private(tmp_path):\n    assert not store(tmp_path)._queue\n",
        "from lesson_22.session_store import LogScan\ndef test_private():\n    assert LogScan\n",
    ],
)
def test_a_test_of_one_way_of_writing_it_is_no_test_of_a_rule(private):
    """What passes on the reference and fails on a right store of another style would fail every mutant, for nothing."""
    done = tried(private)

    assert done.verdict == "wrong-tests"
    assert [(test, store) for test, store, _ in done.wrong] == [("test_private", "plain")]
    assert "written differently" in done.message.en


# --- Which files are taken ---


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("absent.py", None, "No such file"),
        ("notes.txt", b"", "no plain name of a Python file"),
        ("a::b.py", b"", "no plain name of a Python file"),
        ("large.py", b"#" * (own_tests.MAX_FILE_BYTES + 1), "is larger than"),
    ],
)
def test_what_is_no_file_of_tests_is_refused(tmp_path: Path, name, raw, said):
    """The refusal says where, what, and what to do next."""
    if raw is not None:
        (tmp_path / name).write_bytes(raw)

    with pytest.raises(OwnTestsError, match=said):
        OwnTests.read(tmp_path / name)


def test_a_folder_is_no_file_of_tests(tmp_path: Path):
    """A folder with the name of a file is refused and nothing in it is taken."""
    (tmp_path / "tests.py").mkdir()

    with pytest.raises(OwnTestsError, match="name the file that holds your tests"):
        OwnTests.read(tmp_path / "tests.py")


def test_a_link_to_a_file_is_followed(tmp_path: Path):
    """Where a learner keeps the file is their own affair."""
    (tmp_path / "real.py").write_bytes(b"x = 1\n")
    (tmp_path / "test_mine.py").symlink_to(tmp_path / "real.py")

    assert OwnTests.read(tmp_path / "test_mine.py") == OwnTests("test_mine.py", b"x = 1\n")
