"""The box of one submission and the children started in it, on the strongest rung that works here (G3, G4)."""

from __future__ import annotations

import contextlib
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
    """The folders of one submission, and how its children are started: on which rung, within which limits.

    `home` has nothing in it. `tasks` counts what the children's user ran before, None where that is not known.
    """

    place: rungs.Place
    home: Path
    rung: rungs.Rung
    limits: Limits
    tasks: int | None

    @property
    def work(self) -> Path:
        """The folder that a child works in, and may fill."""
        return self.place.work

    @property
    def code(self) -> Path:
        """The folder that holds the package, for reading only."""
        return self.place.code

    def hand_over(self, path: Path) -> None:
        """Let what the grader put below `work` belong to the user that the child runs as."""
        if self.place.user is not None:
            os.chown(path, self.place.user, self.place.user, follow_symlinks=False)


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
def open_box(limits: Limits, programs: tuple[Path, ...] = ()) -> Iterator[Box]:
    """Make the folders of one submission; remove them at the end, whatever the student's code did to them.

    `programs` are folders that its children may read besides the system's.
    """
    root = Path(tempfile.mkdtemp(prefix="statelab-"))
    try:
        root.chmod(0o711)  # a child that is another user passes through, and cannot list
        rung = rungs.strongest_rung()
        place = rungs.Place(root / "code", root / "work", rung.new_user(), programs)
        box = Box(place, root / "home", rung, limits, _tasks_of(place.user))
        for folder in (box.code, box.work, box.home):
            folder.mkdir()
            folder.chmod(0o755)  # whatever the umask
        box.hand_over(box.work)
        yield box
    finally:
        _remove(root)


def start(box: Box, package: str, *, faults: bool, host: Path = rungs.HOST) -> Child:
    """Start a host on the box's code; it says by itself when it is ready (`docs/grader-pipe.md`).

    Raises: OSError when the system cannot start one more process.
    """
    ours, theirs = socket.socketpair()
    settings = {
        "channel": theirs.fileno(),
        "code": str(box.code),
        "package": package,
        "faults": str(rungs.FAULT_LAYER) if faults else None,
        "limits": box.limits.for_child(box.tasks),
    }
    try:
        process = subprocess.Popen(
            [
                *box.rung.prefix(box.place),
                *rungs.python_command(),
                str(host),
                json.dumps(settings),
            ],
            cwd=box.work,
            env=rungs.environment(str(box.home)),
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


def _tasks_of(user: int | None) -> int | None:
    """Count the processes and threads that the user runs already; None where the system does not tell."""
    if user is not None:
        return 0  # made for this box
    if not Path("/proc/self/task").is_dir():
        return None
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if process.stat().st_uid == os.geteuid():
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
