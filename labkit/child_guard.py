"""Stands between the kernel and one command, so that nothing the command starts outlives either of them.

    python -I child_guard.py SHOWN PROGRAM ARGUMENT...

It first prints `$ SHOWN` on standard error: the command as a person would type it. Standard input is the kernel's end of a pipe: when it closes, because somebody pressed Stop or the kernel is gone, however
it died, the command and everything below it is killed. Output goes straight to whoever reads it. The guard ends as the
command did: with its exit code, or by its signal.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the program that the arguments name, and end as it does."""
    shown, argv = sys.argv[1], sys.argv[2:]
    print("$", shown, file=sys.stderr, flush=True)
    _adopt_orphans()
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=os.name != "nt")
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}; look whether the program and the folder are still there")
    threading.Thread(target=_end_when_told, daemon=True).start()
    code = process.wait()
    _end_the_rest()
    _end_like(code)


def _adopt_orphans() -> None:
    """On Linux, become the parent of whoever loses his: a program in a session of its own stays within reach."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_when_told() -> None:
    """Kill the whole tree once standard input ends; taken as it stands, since elsewhere orphans are not adopted."""
    while os.read(0, 4096):  # unbuffered: at exit, the interpreter would wait for a buffer that is being read
        pass
    _kill(_descendants())


def _end_the_rest() -> None:
    """Kill what the command left behind, one generation after the other: the orphans of one are our children next."""
    while left := _descendants():
        _kill(left)
        for child in _descendants(recursive=False):
            child.wait()


def _descendants(*, recursive: bool = True) -> list[psutil.Process]:
    import psutil  # noqa: PLC0415 - the command starts first: somebody waits for its first line

    found: list[psutil.Process] = psutil.Process().children(recursive)
    return found


def _kill(processes: list[psutil.Process]) -> None:
    import psutil  # noqa: PLC0415

    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _end_like(code: int) -> None:
    """End with the same exit code, or by the same signal, so that a crash looks like one."""
    if code >= 0:
        sys.exit(code)
    if -code != signal.SIGKILL:  # which has no handler to reset
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main()
