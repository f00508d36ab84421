"""The box of one submission and the children started in it, on the strongest rung that works here (G3, G4)."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader import rungs, temporary, tree, work_mount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.settings import Limits


_LITTLE_ROOM = 1 << 20  # bytes
_KEEPER_SECONDS = 5


class RunEnded(Exception):  # noqa: N818 - nobody's fault
    """`end_all` was called: what was being graded has no outcome."""


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """The folders of one submission, and how its children are started: on which rung, within which limits.

    `tasks` counts what the children's user ran before, None where that is not known. `mount` is
    what keeps the work folder from growing, None where nothing does.
    """

    place: rungs.Place
    rung: rungs.Rung
    limits: Limits
    tasks: int | None
    mount: work_mount.WorkMount | None
    _children: set[Child] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def work(self) -> Path:
        """The folder that a child works in, and may fill, as the grader sees it; the child knows it as `place.work`."""
        return self.place.work if self.mount is None else Path(f"/proc/self/fd/{self.mount.folder}")

    @property
    def is_full(self) -> bool:
        """Whether what is in the work folder leaves no room for more."""
        if self.mount is None:
            return tree.is_larger(self.work, self.limits.work_mib << 20)
        found = os.statvfs(self.mount.folder)
        return not (found.f_bavail and found.f_favail)

    @property
    def has_no_room_here(self) -> bool:
        """Whether this machine's disk is full below the work folder, and not by what is in it."""
        if self.mount is not None:
            return False
        found = os.statvfs(self.work)
        return found.f_bavail * found.f_frsize < _LITTLE_ROOM and not self.is_full

    @property
    def words(self) -> list[str]:
        """The words before the interpreter."""
        mounted = [] if self.mount is None else self.mount.words()
        return [*mounted, *self.rung.prefix(self.place)]

    @property
    def code(self) -> Path:
        """The folder that holds the package, for reading only."""
        return self.place.code

    def check_running(self) -> None:
        """Go on unless the run was ended. Raises: RunEnded."""
        if self._ended.is_set():
            raise RunEnded

    def keep(self, child: Child) -> None:
        """Take note of a child, to end it with the box. Raises: RunEnded, and the child is gone."""
        self._children.add(child)
        if self._ended.is_set():  # meanwhile, from another thread
            self.end()
            raise RunEnded

    def end(self) -> None:
        """Kill every child, and start none any more."""
        self._ended.set()
        for child in list(self._children):
            child.kill()


class Child:
    """A started host: its process, and our end of the one socket it shares with us."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, *, kept: bool) -> None:
        self.process = process
        self.channel = channel
        self._kept = kept
        self._lock = threading.Lock()
        self._killed = False

    def kill(self) -> int:
        """End the whole process group now; give the exit code, as `Popen.returncode` does."""
        with self._lock:
            if not self._killed:  # once: the number could be another group's the next time
                self._killed = True
                if self._kept:
                    self._ask_keeper()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def _ask_keeper(self) -> None:
        """Let the keeper end what it has; one that does not answer has been stopped or killed by its child."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_KEEPER_SECONDS)


_open: set[Box] = set()


def end_all() -> None:
    """Kill all children of this process at once; whoever waits for one gets RunEnded, and opens no more in its box.

    A box that is opened later works as usual: cancel what has not begun before calling this.
    """
    for box in list(_open):
        box.end()


def sweep() -> int:
    """Remove what graders left behind that were killed; give the number of folders."""
    left = temporary.left_behind()
    for root in left:
        with contextlib.suppress(OSError):
            rungs.end_user((root / "work").lstat().st_uid)
        temporary.remove(root)
    return len(left)


@contextlib.contextmanager
def open_box(limits: Limits, programs: tuple[Path, ...] = ()) -> Iterator[Box]:
    """Make the folders of one submission; remove them at the end, whatever the student's code did to them.

    `programs` are folders that its children may read besides the system's.
    """
    root = temporary.make()
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(temporary.remove, root)
        root.chmod(0o711)  # a child that is another user passes through, and cannot list
        rung = rungs.strongest_rung()
        place = rungs.Place(root / "code", root / "work", root / "home", rung.new_user(), programs)
        for folder in (place.code, place.work, place.home):
            folder.mkdir()
            folder.chmod(0o755)  # whatever the umask
        if place.user is not None:
            os.chown(place.work, place.user, place.user)
        mount = None
        if way := way_to_mount():
            mount = work_mount.mount(place.work, limits.work_mib, place.user, way)
            at_the_end.callback(mount.close)
        box = Box(place, rung, limits, _tasks_of(place.user), mount)
        _open.add(box)
        at_the_end.callback(_open.discard, box)
        if not rung.isolated:
            at_the_end.callback(rungs.end_user, place.user)
        at_the_end.callback(box.end)
        yield box


@functools.cache
def way_to_mount() -> work_mount.Way | None:
    """Find out how a child of the strongest rung gets a work folder of its own size, if at all. Asked once a run."""
    return next((way for way in work_mount.ways() if _starts_in_a_mount(way)), None)


def _starts_in_a_mount(way: work_mount.Way) -> bool:
    rung = rungs.strongest_rung()
    root = temporary.make()
    try:
        root.chmod(0o755)
        (work := root / "work").mkdir()
        (home := root / "home").mkdir()
        user = rung.new_user()
        mount = work_mount.mount(work, 1, user, way)
        try:
            return rungs.starts(rung, rungs.Place(root, work, home, user), mount.words())
        finally:
            mount.close()
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        temporary.remove(root)


def start(box: Box, package: str, *, faults: bool, host: Path = rungs.HOST) -> Child:
    """Start a host on the box's code; it says by itself when it is ready (`docs/grader-pipe.md`).

    Raises: OSError when the system cannot start one more process, RunEnded after `end_all`.
    """
    box.check_running()
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
                *box.words,
                *rungs.python_command(),
                str(host),
                json.dumps(settings),
            ],
            cwd=box.place.work,
            env=rungs.environment(str(box.place.home)),
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
    child = Child(process, ours, kept=box.rung.kept)
    try:
        box.keep(child)
    except RunEnded:
        ours.close()
        raise
    return child


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
