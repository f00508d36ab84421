"""The box of one submission and the children started in it, on the strongest rung that works here (G3, G4)."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import marshal
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
_LAST_WORD_SECONDS = 0.5
_STILL_RUNNING = 999  # says a nursery of its child


class RunEnded(Exception):  # noqa: N818 - nobody's fault
    """`end_all` was called: what was being graded has no outcome."""


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """The folders of one submission, and how its children are started: on which rung, within which limits.

    `tasks` counts what the children's user ran before, None where that is not known. `mount` is what keeps the work
    folder from growing, None where nothing does.
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

    def close(self) -> None:
        """Let go of everything, once nobody waits for a child any more."""
        self.end()
        for child in self._children:
            child.channel.close()


class Child:
    """A started host: its process, and our end of the one socket it shares with us."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, *, kept: bool) -> None:
        self.process = process
        self.channel = channel
        self._kept = kept
        self._lock = threading.Lock()
        self._killed = False

    def kill(self) -> None:
        """End the whole process group now."""
        with self._lock:
            if not self._killed:  # once: the number could be another group's the next time
                self._killed = True
                if self._kept:
                    self._ask_keeper()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ended_by_itself(self) -> int | None:
        """Give the exit code of a child that closed its line, waiting a moment for it; below 0, a signal's number."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_WORD_SECONDS)
        code = self.process.returncode
        return None if code is None else min(code, 128 - code)  # a launcher tells of a signal as a shell does

    def _ask_keeper(self) -> None:
        """Let the keeper end what it has; one that does not answer has been stopped or killed by its child."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_KEEPER_SECONDS)


class Nursery:
    """A process of a box that has loaded what every child needs, and nothing of the student's: children are its forks.

    One child at a time. Its end is the end of every process in the box but this one (docs/grader-pipe.md, "Forks").
    """

    def __init__(self, process: Child) -> None:
        self._process = process
        process.channel.settimeout(_KEEPER_SECONDS)

    def start(self, *, faults: bool) -> ForkedChild:
        """Fork one more child; the one before has been ended. Raises: OSError when the process is gone."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._process.channel, [b"f" if faults else b"+"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ForkedChild(self, ours)

    def ask(self, word: bytes) -> int | None:
        """Let it say how its child ended (`?`), or end it (`-`); None when there is no telling any more."""
        try:
            self._process.channel.sendall(word)
            code = int(self._process.channel.recv(16))
        except (OSError, ValueError):  # it was killed or stopped, by a child or by us
            self.end()
            return None
        return None if code == _STILL_RUNNING else code

    def end(self) -> None:
        """End it, and with it the box's processes."""
        self._process.kill()
        self._process.channel.close()

    @property
    def is_over(self) -> bool:
        """Whether it was ended."""
        return self._process.channel.fileno() < 0


class ForkedChild:
    """A child that a nursery forked; see `Child`."""

    def __init__(self, nursery: Nursery, channel: socket.socket) -> None:
        self.channel = channel
        self._nursery = nursery

    def kill(self) -> None:
        """End it, and all that it started."""
        if not self._nursery.is_over:
            self._nursery.ask(b"-")

    def ended_by_itself(self) -> int | None:
        """Give the exit code of a child that closed its line; below 0, a signal's number."""
        return None if self._nursery.is_over else self._nursery.ask(b"?")


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
        at_the_end.callback(box.close)
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


def can_fork(box: Box) -> bool:
    """Say whether a process of this box may end all others that it may end: whether it has a namespace of its own."""
    return box.rung.isolated


def start_nursery(box: Box, package: str) -> Nursery:
    """Start what the children of lesson 22 are forked from. Raises: as `start`."""
    host, layer = _compiled(box, rungs.HOST), _compiled(box, rungs.FAULT_LAYER)
    return Nursery(start(box, package, faults=True, host=host, layer=layer, line="control"))


def _compiled(box: Box, program: Path) -> Path:
    """Lay a program of the grader's down beside the code, as byte code: each box would compile it anew."""
    file = box.code / f"{program.stem}.pyc"
    file.write_bytes(_byte_code(program))
    file.chmod(0o644)  # whatever the umask
    return file


@functools.cache
def _byte_code(program: Path) -> bytes:
    """Give what a file of byte code holds that is never compared with its source (PEP 552)."""
    code = compile(program.read_bytes(), str(program), "exec", dont_inherit=True, optimize=0)
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def start(
    box: Box,
    package: str,
    *,
    faults: bool,
    host: Path = rungs.HOST,
    layer: Path = rungs.FAULT_LAYER,
    line: str = "channel",
) -> Child:
    """Start a host on the box's code; it says by itself when it is ready (`docs/grader-pipe.md`).

    `layer` is the file layer for a child with `faults`, `line` what the host takes its end of the socket for. Raises:
    OSError when the system cannot start one more process, RunEnded after `end_all`.
    """
    box.check_running()
    ours, theirs = socket.socketpair()
    settings = {
        line: theirs.fileno(),
        "code": str(box.code),
        "package": package,
        "faults": str(layer) if faults else None,
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
