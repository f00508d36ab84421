"""Progress of a long run: a bar where somebody watches, plain lines where they are kept (G10)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.piped import KIT

PROGRAM = """
from grader.report.progress import progress
with progress("grade", 3, lines=True) as step:
    for name in ("a", "b", "c"):
        step(f"{name}: ok")
"""


def test_a_log_gets_one_plain_line_a_step():
    """No control characters, each line whole and flushed, counted to the total."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=KIT, stderr=subprocess.PIPE, text=True, check=True
    )
    assert done.stderr == "grade: 1/3 a: ok\ngrade: 2/3 b: ok\ngrade: 3/3 c: ok\n"


def test_a_terminal_gets_a_bar_with_rate_and_time_left():
    """How many of how many, a time left, and what was done last; nothing of it stays on the screen."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=KIT, stderr=theirs, env=environment
    ) as running:
        os.close(theirs)
        seen = b""
        while piece := _read(ours):
            seen += piece
    os.close(ours)
    told = seen.decode()
    assert running.returncode == 0
    assert "3/3" in told
    assert "0:00:00" in told
    assert "/s" in told
    assert "c: ok" in told
    assert "grade: 1/3" not in told
    assert told.endswith("\x1b[2K")


def _read(descriptor: int) -> bytes:
    """Read what the terminal shows; nothing once the program has closed it."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
