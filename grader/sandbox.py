"""The box of one submission and the children started in it, on the strongest rung that works here (G3, G4)."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from grader import rungs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.settings import Limits


@dataclass(frozen=True, slots=True)
class Box:
    """The folders of one submission: its code (read only), where it works, and a home with nothing in it."""

    code: Path
    work: Path
    home: Path
    rung: rungs.Rung
    limits: Limits

    def hand_over(self, path: Path) -> None:
        """Let what the grader put below `work` belong to the user that the child runs as."""
        if self.rung.user is not None:
            os.chown(path, self.rung.user, self.rung.user, follow_symlinks=False)


class Child(NamedTuple):
    """A started host: its process, and our end of the one socket it shares with us."""

    process: subprocess.Popen[bytes]
    channel: socket.socket

    def kill(self) -> int:
        """End the whole process group now; give the exit code, as `Popen.returncode` does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()


@contextlib.contextmanager
def open_box(limits: Limits) -> Iterator[Box]:
    """Make the folders of one submission; remove them at the end, whatever the student's code did to them."""
    root = Path(tempfile.mkdtemp(prefix="statelab-"))
    try:
        root.chmod(0o711)  # a child that is another user passes through, and cannot list
        box = Box(root / "code", root / "work", root / "home", rungs.strongest_rung(), limits)
        for folder in (box.code, box.work, box.home):
            folder.mkdir(mode=0o755)
        box.hand_over(box.work)
        yield box
    finally:
        _remove(root)


def start(box: Box, package: str, *, faults: bool) -> Child:
    """Start the host on the box's code; it says by itself when it is ready (`docs/grader-pipe.md`).

    Raises: OSError when the system cannot start one more process.
    """
    ours, theirs = socket.socketpair()
    settings = {
        "channel": theirs.fileno(),
        "code": str(box.code),
        "package": package,
        "faults": str(rungs.FAULT_LAYER) if faults else None,
        "limits": box.limits.for_child(_tasks_of(box.rung.user)),
    }
    try:
        process = subprocess.Popen(
            [
                *box.rung.prefix(box.code, box.work),
                *rungs.python_command(),
                str(rungs.HOST),
                json.dumps(settings),
            ],
            cwd=box.work,
            env={"PATH": os.defpath, "HOME": str(box.home), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(theirs.fileno(),),
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Child(process, ours)


@functools.cache
def _tasks_of(user: int | None) -> int | None:
    """Count the processes and threads that the user runs already; None where the system does not tell."""
    owner = os.geteuid() if user is None else user
    if not Path("/proc/self/task").is_dir():
        return None
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if process.stat().st_uid == owner:
                count += sum(1 for _ in (process / "task").iterdir())
    return count


def _remove(root: Path) -> None:
    """Remove the box. Processes of a killed child may still be ending, and writing, for a moment."""
    for _ in range(50):
        shutil.rmtree(root, onerror=_open_up_and_retry)
        if not root.exists():
            return
        time.sleep(0.02)


def _open_up_and_retry(remove: Callable[[str], Any], path: str, _error: Any) -> None:
    """Forgive a folder that the student's code closed to everyone; what still cannot go stays behind."""
    with contextlib.suppress(OSError):
        Path(path).parent.chmod(0o700)
        Path(path).chmod(0o700)
        if remove in (os.open, os.scandir, os.listdir, os.lstat):
            shutil.rmtree(path, ignore_errors=True)
        else:
            remove(path)
