"""A command beside the kernel: heard while it runs, stopped with everything it started, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from labkit import owned_child
from labkit.owned_child import Ended, OwnedChild, Spoken

# A program with a child in its group, and a grandchild that left for a session of its own; it says their pids.
FAMILY = """\
import os, subprocess, sys, time
deep = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
near = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
far = subprocess.Popen([sys.executable, "-c", "import os\\nif os.fork(): os._exit(0)\\n" + deep], stdout=subprocess.PIPE)
print(os.getpid(), near.pid, far.stdout.readline().decode().strip(), flush=True)
time.sleep(600)
"""


def run(source: str, *, until: str | None = None) -> tuple[Ended, list[tuple[Spoken, ...]]]:
    """Run a piece of Python to its end, or until a line holds a text; then it is stopped. Return all that was heard."""
    heard: list[tuple[Spoken, ...]] = []

    async def go() -> Ended:
        def listen() -> None:
            heard.append(child.said())
            if until and any(until in line.text for line in child.said() if line.stream == "out"):
                child.stop()

        child = OwnedChild("shown", (sys.executable, "-c", source), Path.cwd(), os.environ, listen)
        return await child.ended()

    return asyncio.run(go()), heard


def survivors(ended: Ended) -> list[str]:
    """Return the members of FAMILY that are still there."""
    family = ended.out.decode().split()
    assert len(family) == 3
    return [pid for pid in family if psutil.pid_exists(int(pid))]


def test_lines_come_with_their_stream_and_the_command_first() -> None:
    """The command as a person types it, then what it printed, each stream in its order."""
    ended, _ = run("import sys; print('a'); print('b'); print('c', file=sys.stderr)")

    assert ended.lines[0] == Spoken("err", "$ shown")
    assert [line.text for line in ended.lines if line.stream == "out"] == ["a", "b"]
    assert Spoken("err", "c") in ended.lines
    assert (ended.exit_code, ended.signal, ended.out) == (0, None, b"a\nb\n")


def test_a_line_is_heard_while_the_command_still_runs() -> None:
    """It waits for ever after its line; that it is stopped at all shows that the line came before its end."""
    ended, heard = run("import time; print('now', flush=True); time.sleep(600)", until="now")

    assert ended.signal == signal.SIGKILL
    assert Spoken("out", "now") in heard[-1]


@pytest.mark.parametrize(
    ("source", "code", "by"),
    [("raise SystemExit(75)", 75, None), ("import os; os.kill(os.getpid(), 15)", None, 15)],
)
def test_it_ends_as_the_command_did(source: str, code: int | None, by: int | None) -> None:
    """An exit code stays an exit code, a signal a signal."""
    ended, _ = run(source)

    assert (ended.exit_code, ended.signal) == (code, by)


def test_bytes_that_are_no_text_are_shown_all_the_same() -> None:
    """Invalid UTF-8, a carriage return, a last line without its end."""
    ended, _ = run("import sys; sys.stdout.buffer.write(b'\\xff\\r\\nend')")

    assert [line.text for line in ended.lines if line.stream == "out"] == ["\ufffd", "end"]


def test_a_flood_keeps_its_last_lines_and_is_no_answer() -> None:
    """Memory stays small, how much was dropped is known, and output that is too long is not taken for JSON."""
    ended, heard = run("for n in range(300_000): print(n, 'x' * 40)")

    assert len(ended.lines) == owned_child.KEPT_LINES
    assert ended.lines[-1].text.startswith("299999 ")
    assert ended.dropped_lines == 300_001 - owned_child.KEPT_LINES
    assert ended.out == b""
    assert len(heard) < 3_000


def test_a_very_long_line_comes_in_pieces() -> None:
    """A line without end is told as it grows."""
    ended, _ = run(f"print('x' * {owned_child.LINE_BYTES * 2}, end='')")

    assert [len(line.text) for line in ended.lines if line.stream == "out"] == [owned_child.LINE_BYTES] * 2


def test_a_program_that_is_missing_is_named() -> None:
    """The sentence says which program, and what to look at."""

    async def go() -> Ended:
        return await OwnedChild("x", ("no-such-program",), Path.cwd(), os.environ, lambda: None).ended()

    ended = asyncio.run(go())
    assert ended.exit_code == 1
    assert "no-such-program: No such file or directory; look whether" in ended.lines[-1].text


def test_stop_ends_the_whole_tree() -> None:
    """The command, its child, and a grandchild in a session of its own: none is left when the end is told."""
    ended, _ = run(FAMILY, until=" ")

    assert ended.signal == signal.SIGKILL
    assert survivors(ended) == []


def test_what_the_command_left_behind_is_ended_too() -> None:
    """A program that ends by itself and leaves a daemon leaves none."""
    ended, _ = run(FAMILY.removesuffix("time.sleep(600)\n") + "raise SystemExit(3)")

    assert ended.exit_code == 3
    assert survivors(ended) == []


KERNEL = """\
import asyncio, os, sys
from pathlib import Path
from labkit.owned_child import OwnedChild
async def main():
    def listen():
        for line in child.said():
            if line.stream == "out":
                print(child._process.pid, line.text, flush=True)
    child = OwnedChild("shown", (sys.executable, "-c", sys.argv[1]), Path.cwd(), os.environ, listen)
    await child.ended()
asyncio.run(main())
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_the_kernel(by: signal.Signals) -> None:
    """However the kernel dies, the guard notices that its pipe has ended, and ends the tree."""
    kernel = subprocess.Popen([sys.executable, "-c", KERNEL, FAMILY], stdout=subprocess.PIPE, text=True)
    assert kernel.stdout is not None
    family = [psutil.Process(int(pid)) for pid in kernel.stdout.readline().split()]
    assert len(family) == 4

    kernel.send_signal(by)
    kernel.wait()
    kernel.stdout.close()
    assert psutil.wait_procs(family, timeout=30)[1] == []


def test_stop_may_come_at_any_time() -> None:
    """At once, twice, after the end: never an error."""

    async def go() -> Ended:
        child = OwnedChild(
            "x", (sys.executable, "-c", "import time; time.sleep(600)"), Path.cwd(), os.environ, lambda: None
        )
        child.stop()
        child.stop()
        ended = await child.ended()
        child.stop()
        return ended

    assert asyncio.run(go()).signal == signal.SIGKILL
