"""The children that recover from crash states: what is laid down, what comes back, and those that hang or die."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from labkit.faults.crash import recovery
from labkit.faults.crash.recovery import Code, CrashLabError, Recoveries
from labkit.faults.crash.scenarios import scenario_path
from labkit.faults.crash.trace import CrashState, Entry

_WORD = """
    import os, time
    PROMISES = ("recovery-ends",)
    def work(folder, events, acknowledge): pass
    def recover(folder):
        word = (folder / "word").read_text()
        print("what the code prints is no answer")
        if word == "hang": time.sleep(1000)
        if word == "die": os._exit(7)
        if word == "kill": os.kill(os.getpid(), 9)
        if word == "raise": raise KeyError(word)
        return {"read": [word], "error": None, "after": None, "by": os.getpid()}
"""


def command_of(child: psutil.Process) -> list[str]:
    try:
        return list(child.cmdline())
    except psutil.Error:  # it has ended, and is another test's
        return []


def code(folder: Path, source: str) -> Code:
    path = folder / "scenario.py"
    path.write_text(dedent(source), "utf-8")
    return Code(path)


def word(text: str) -> CrashState:
    return CrashState(1, (), {"word": Entry("file", text.encode())}, (text,))


@pytest.fixture(autouse=True)
def nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No child and no folder outlives the test that started it."""
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(recovery, "MEMORY", memory)
    yield
    children = psutil.Process().children()
    mine = {child.pid for child in children if str(recovery.CHILD) in command_of(child)}

    assert mine == set()
    assert list(memory.iterdir()) == []


def test_every_state_has_its_report_in_its_order(tmp_path: Path) -> None:
    """Two children share the states, and the reports come in the order of the states all the same."""
    words = [str(number) for number in range(60)]

    with Recoveries(code(tmp_path, _WORD), children=2) as recoveries:
        found = [
            (state.acknowledged[0], report["read"]) for state, report in recoveries.reports(map(word, words))
        ]

    assert found == [(text, [text]) for text in words]


def test_a_state_is_laid_down_as_it_was(tmp_path: Path) -> None:
    """Files with bytes, modes, folders that forbid writing, links: the recovery finds all of it."""
    look = """
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder):
            found = {}
            for path in sorted(folder.rglob("*")):
                content = str(path.readlink()) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
                found[path.relative_to(folder).as_posix()] = [content, oct(path.lstat().st_mode & 0o777)]
            return {"read": found}
    """
    tree = {
        "closed": Entry("folder", mode=0o500),
        "closed/deep": Entry("folder", mode=0o700),
        "closed/deep/file": Entry("file", b"\0\xff", 0o640),
        "empty": Entry("file", mode=0o600),
        "link": Entry("link", b"closed/deep", 0o777),
    }

    with Recoveries(code(tmp_path, look), children=1) as recoveries:
        read = recoveries.report(tree)["read"]

    assert read == {
        "closed": ["", "0o500"],
        "closed/deep": ["", "0o700"],
        "closed/deep/file": ["00ff", "0o640"],
        "empty": ["", "0o600"],
        "link": ["closed/deep", "0o777"],
    }


def test_a_recovery_sees_nothing_of_the_one_before(tmp_path: Path) -> None:
    """Each state has a folder of its own, whatever the recovery of another left in its own."""
    leave = """
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder):
            names = sorted(path.name for path in folder.iterdir())
            (folder / "left").mkdir(); (folder / "left" / "file").write_text("x"); (folder / "left").chmod(0o500)
            return {"read": names}
    """

    with Recoveries(code(tmp_path, leave), children=1) as recoveries:
        found = [report["read"] for _, report in recoveries.reports(map(word, "abc"))]

    assert found == [["word"]] * 3


def test_what_was_met_lately_is_not_tried_again(tmp_path: Path) -> None:
    """Two states with the same files differ in what was acknowledged, and one recovery answers for both."""
    states = [CrashState(after, (), {"word": Entry("file", b"same")}, (after,)) for after in range(20)]

    with Recoveries(code(tmp_path, _WORD + "        return 1/0\n"), children=1) as recoveries:
        found = list(recoveries.reports(states))

    assert len(found) == 20
    assert len({id(report) for _, report in found[8:]}) == 1


@pytest.mark.parametrize(
    ("bad", "ended"),
    [
        ("hang", "no answer within 1 s"),
        ("die", "ended its process with exit code 7"),
        ("kill", "died of signal 9"),
    ],
)
def test_a_recovery_that_gives_no_answer_is_reported_with_its_state(
    tmp_path: Path, bad: str, ended: str
) -> None:
    """It hangs, or takes its process down: that state alone is marked, and the others have their reports."""
    words = ["a", "b", bad, "c", "d"]

    with Recoveries(code(tmp_path, _WORD), seconds=1, children=1) as recoveries:
        found = [report.get("ended") or report["read"] for _, report in recoveries.reports(map(word, words))]

    assert found == [["a"], ["b"], ended, ["c"], ["d"]]


def test_one_death_that_does_not_come_again_is_no_report(tmp_path: Path) -> None:
    """What kills a child is tried once more, alone; only what happens twice is the state's own."""
    once = f"""
        import os
        from pathlib import Path
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder):
            mark = Path({str(tmp_path / "died")!r})
            if (folder / "word").read_text() == "b" and not mark.exists():
                mark.touch(); os._exit(1)
            return {{"read": [(folder / "word").read_text()]}}
    """

    with Recoveries(code(tmp_path, once), children=1) as recoveries:
        found = [report["read"] for _, report in recoveries.reports(map(word, "abc"))]

    assert found == [["a"], ["b"], ["c"]]


def test_an_exception_is_the_report(tmp_path: Path) -> None:
    """A recovery need not catch anything: what comes out of it is what it met."""
    with Recoveries(code(tmp_path, _WORD), children=1) as recoveries:
        report = recoveries.report({"word": Entry("file", b"raise")})

    assert report == {"read": None, "error": "KeyError", "after": None}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def work(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os._exit(3)", "could not be loaded, ended its process with exit code 3"),
        ("PROMISES = ()\ndef work(f, e, a): pass", "no attribute 'recover'"),
        ("def work(f, e, a): pass\ndef recover(f): pass", "no attribute 'PROMISES'"),
        ("PROMISES = ('readable')\ndef work(f, e, a): pass\ndef recover(f): pass", "PROMISES is one text"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, source: str, said: str) -> None:
    """Where, what, what next: never a traceback of ours."""
    with pytest.raises(CrashLabError, match=said) as refused:
        Recoveries(code(tmp_path, source), children=1)

    assert str(refused.value).startswith(f"{tmp_path / 'scenario.py'}: ")
    assert "docs/crash-lab.md" in str(refused.value)


def test_a_full_or_closed_folder_is_said_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder for states can be made: words with what to do, and no report."""
    monkeypatch.setattr(recovery, "MEMORY", tmp_path / "none")
    monkeypatch.setattr(recovery.tempfile, "tempdir", str(tmp_path / "none-either"))

    with pytest.raises(
        CrashLabError, match="temporary folder: No such file or directory; free some room, or set"
    ):
        Recoveries(code(tmp_path, _WORD), children=1)


def test_a_state_that_cannot_be_laid_down_is_no_report(tmp_path: Path) -> None:
    """Names that the disk refuses end the exploration in words; nobody waits for the other children."""
    with (
        Recoveries(code(tmp_path, _WORD), children=2) as recoveries,
        pytest.raises(CrashLabError, match="File name too long; free some room there, or set TMPDIR"),
    ):
        list(recoveries.reports([CrashState(1, (), {"x" * 300: Entry("file")}, ())] * 50))


def test_a_relative_path_is_in_the_state_that_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the caller has under the same name is nobody's recovery."""
    (tmp_path / "word").write_text("the caller's own")
    monkeypatch.chdir(tmp_path)
    source = """
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder): return {"read": [open("word").read()]}
    """

    with Recoveries(code(tmp_path, source), children=1) as recoveries:
        found = [report["read"] for _, report in recoveries.reports(map(word, "ab"))]

    assert found == [["a"], ["b"]]


@pytest.mark.parametrize(
    "does",
    ["sys.stdin.read()", "subprocess.run(['cat'])", "os.fork() or [][1]"],
    ids=["reads", "lets-read", "forks"],
)
def test_a_recovery_gets_no_orders_and_gives_one_answer(tmp_path: Path, does: str) -> None:
    """It reads its standard input, a program of its does, or a copy of it comes back: each state keeps its own report."""
    source = f"""
        import os, subprocess, sys
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder):
            {does}
            return {{"read": [(folder / "word").read_text()]}}
    """

    with Recoveries(code(tmp_path, source), children=1) as recoveries:
        found = [report.get("read") for _, report in recoveries.reports(map(word, "abc"))]

    assert found == [["a"], ["b"], ["c"]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="sessions: POSIX only")
def test_what_a_recovery_started_ends_with_it(tmp_path: Path) -> None:
    """A process that it leaves behind is not there when the lab is done."""
    source = """
        import subprocess
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder): return {"read": [subprocess.Popen(["sleep", "1000"]).pid]}
    """

    with Recoveries(code(tmp_path, source), children=1) as recoveries:
        (left,) = recoveries.report({})["read"]
        sleeper = psutil.Process(left)

    assert sleeper in psutil.wait_procs([sleeper], timeout=60)[0]


def test_a_report_that_is_no_json_is_said(tmp_path: Path) -> None:
    """The scenario is wrong, not the store: no promise is broken by it."""
    source = """
        PROMISES = ("readable",)
        def work(folder, events, acknowledge): pass
        def recover(folder): return {"read": {1, 2}}
    """

    with (
        Recoveries(code(tmp_path, source), children=1) as recoveries,
        pytest.raises(CrashLabError, match=r"scenario.py: recover gave what is no JSON .*; see docs"),
    ):
        recoveries.report({})


def test_a_scenario_that_is_called_as_no_python_file_is_refused(tmp_path: Path) -> None:
    """Its name says what to do, and no assertion of ours."""
    path = code(tmp_path, _WORD).scenario.rename(tmp_path / "scenario.txt")

    with pytest.raises(
        CrashLabError, match=r"scenario.txt: .*no Python file; give it a name that ends in .py"
    ):
        Recoveries(Code(path), children=1)


def test_leaving_ends_a_recovery_that_hangs(tmp_path: Path) -> None:
    """Whoever stops waiting leaves no process behind, however busy it is."""
    with Recoveries(code(tmp_path, _WORD), seconds=1000, children=1) as recoveries:
        recoveries.report({"word": Entry("file", b"fine")})
        recoveries._pool.submit(recoveries.report, {"word": Entry("file", b"hang")})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals: POSIX only")
def test_a_killed_parent_leaves_neither_child_nor_folder(tmp_path: Path) -> None:
    """The child notices that nobody is there any more, in the middle of a recovery too."""
    path = code(tmp_path, _WORD).scenario
    source = f"""
from pathlib import Path
from labkit.faults.crash.recovery import Code, Recoveries
from labkit.faults.crash.trace import Entry
recoveries = Recoveries(Code(Path({str(path)!r})), seconds=1000, children=1)
child, = recoveries._all
print(child._process.pid, child._folder, flush=True)
recoveries.report({{"word": Entry("file", b"hang")}})
"""
    parent = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, folder = parent.stdout.readline().split()
    child = psutil.Process(int(pid))
    parent.kill()
    parent.wait()
    parent.stdout.close()

    child.wait(60)
    assert not Path(folder).exists()


def test_what_a_killed_run_left_is_swept_up(tmp_path: Path) -> None:
    """Killed with all its children, nobody removes its folder: the next run does, and touches nobody else's."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    old = time.time() - 7200
    names = {
        "left": f"{ended.pid}-a",
        "fresh": f"{ended.pid}-b",
        "living": f"{os.getpid()}-c",
        "foreign": "notes",
    }
    places = {name: recovery.MEMORY / f"statelab-crash-{end}" for name, end in names.items()}
    for name, place in places.items():
        (place / "1").mkdir(parents=True)
        if name != "fresh":
            os.utime(place, (old, old))

    recovery.scratch_folder().rmdir()

    assert {name for name, place in places.items() if place.exists()} == {"fresh", "living", "foreign"}
    for place in places.values():
        shutil.rmtree(place, ignore_errors=True)


def test_the_lessons_store_recovers_from_every_cut() -> None:
    """A log cut at every byte: the store of the solution reads it, and goes on."""
    whole = b'{"sequence":1,"type":"event","data":{"n":1}}\n{"sequence":2,"type":"event","data":{"n":2}}\n'
    states = (
        CrashState(1, (), {"session.jsonl": Entry("file", whole[:cut])}, ()) for cut in range(len(whole) + 1)
    )

    with Recoveries(Code(scenario_path("lesson"))) as recoveries:
        reports = [report for _, report in recoveries.reports(states)]

    assert all(report["after"] == [*report["read"], "after-crash"] for report in reports)
    assert [len(report["read"]) for report in reports] == [0] * 44 + [1] * 45 + [2] * 2
