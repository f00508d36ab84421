"""Lesson 04 in process: a debugger meets the student's code, and a round leaves this process as it was."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from grader.channel import ChildLost
from grader.direct_spine import direct_spine
from grader.suites.lesson_04.drawn import task
from grader.suites.lesson_04.judge import given_task
from grader.suites.lesson_04.scenarios import digests, source_of
from labkit.workspace import kit_root, lesson_source

ROUND = "issue_garden/stateful_round.py"


def edited(folder: Path, before: str, after: str) -> Path:
    """Give a copy of the solution in which the round has this in the place of that."""
    package = Path(shutil.copytree(lesson_source("04", "solution"), folder / "lesson_04"))
    text = (package / ROUND).read_text("utf-8")
    assert text.count(before) == 1
    (package / ROUND).write_text(text.replace(before, after), "utf-8")
    return package


def test_a_breakpoint_is_met_at_the_terminal_and_the_round_goes_on(tmp_path):
    """It shows the line of the file that is edited; the answer of the round is not mixed with the debugger's words."""
    package = edited(tmp_path, "    folder.make_root()\n", "    breakpoint()\n    folder.make_root()\n")
    suite = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_suite_lesson_04.py"]

    shown = at_a_terminal([*suite, "--target", str(tmp_path), "-k", "04-04"], typed="continue")

    assert f"> {package / ROUND}(" in shown
    assert "1 passed" in shown


def test_what_a_round_changes_in_its_process_is_put_back(tmp_path):
    """Folder, environment, paths, streams and the lab's modules are this process's own again."""
    changes = (
        "import os, sys\nos.chdir('/')\nos.environ['LEFT'] = 'x'\nos.umask(0)\nsys.argv = sys.path = []\n"
    )
    package = edited(
        tmp_path, "from collections.abc import Callable\n", f"{changes}from collections.abc import Callable\n"
    )
    before = process_state()

    with direct_spine(package) as lab_of:
        asyncio.run(ask_for_a_digest(lab_of(Random(1))))

    assert process_state() == before


def test_an_order_to_kill_the_runner_ends_a_fork(tmp_path):
    """The agent's parent is never this process, not even when nobody expects the round to die."""

    async def run(lab):
        one = task(lab.draw)
        garden = await given_task(lab, one)
        await garden.write({"../orders/agent": "kill -9 $PPID\n"})
        await garden.run(agent=True)

    with (
        direct_spine(lesson_source("04", "solution")) as lab_of,
        pytest.raises(ChildLost, match="signal 9"),
    ):
        asyncio.run(run(lab_of(Random(1))))


def test_an_error_comes_with_the_students_own_behind_it(tmp_path):
    """A debugger finds the line that raised it, and its values."""
    package = lesson_source("04", "starter")
    with direct_spine(package) as lab_of, pytest.raises(NotImplementedError) as caught:
        asyncio.run(ask_for_a_digest(lab_of(Random(1))))

    cause = caught.value.__cause__
    assert isinstance(cause, NotImplementedError)
    trace = cause.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    assert trace.tb_frame.f_code.co_filename == str(package / "issue_garden" / "state_store.py")


async def ask_for_a_digest(lab):
    garden = await lab.lay("bare")
    return await garden.ask(source_of(digests), ["{}"])


def process_state() -> list[object]:
    umask = os.umask(0o022)
    os.umask(umask)
    streams = (sys.stdout, sys.stderr, sys.breakpointhook)
    modules = {name: id(module) for name, module in sys.modules.items() if name.startswith("issue_garden")}
    paths = (id(sys.path), list(sys.path), list(sys.meta_path), list(sys.argv))
    return [umask, Path.cwd(), dict(os.environ), streams, modules, paths]


def at_a_terminal(command: list[str], *, typed: str) -> str:
    """Run a command at a terminal of its own, typing this line at the debugger's first prompt; give what was shown."""
    ours, theirs = os.openpty()
    try:
        # A session's first process that opens a terminal gets it as its own.
        script = 'exec "$@" < "$0" > "$0" 2>&1'
        with subprocess.Popen(
            ["sh", "-c", script, os.ttyname(theirs), *command], cwd=kit_root(), start_new_session=True
        ):
            shown = until_prompt(ours)
            os.write(ours, f"{typed}\n".encode())
            os.close(theirs)
            theirs = -1
            return shown + to_the_end(ours)
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def until_prompt(terminal: int) -> str:
    shown = b""
    while b"(Pdb) " not in shown:
        assert not re.search(rb"\d (passed|failed|error)|ERROR", shown), shown.decode()
        shown += os.read(terminal, 4096)
    return shown.decode()


def to_the_end(terminal: int) -> str:
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # nobody has it open any more
        pass
    return shown.decode()
