"""Finds what the file layer cannot follow, so that no all-clear is given for it. Standard library only; lives in the recorder's child.

Two watchmen. `Bypass` hears what the interpreter itself reports (`sys.addaudithook`): files that are changed or opened to
write by another way than the layer, `mmap`, `sqlite3`, `ctypes`, processes. `OneOrder` finds out whether several threads
that write have one order, because one always waits for the other, or whether the recorded one is only one of many.
"""

# What goes down here must not be watched itself:
# ruff: noqa: PTH110, PTH113, PTH119

from __future__ import annotations

import _posixsubprocess
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from labkit.faults.crash.observing import Observer, flags_of
from labkit.faults.crash.spool import Spool

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_PATIENCE_SECONDS = 0.5
"""How long a thread is given to come to rest. One that waits for its turn at a lock never does."""
_LOOK_AGAIN_SECONDS = 0.0005
_AT_REST = {
    "threading": {"wait", "join", "_wait_for_tstate_lock"},
    "selectors": {"select"},
    "concurrent.futures.thread": {"_worker"},
}
"""Functions of the standard library in which a thread waits for others, and does nothing by itself."""
_WRITERS = (
    *(
        "open",
        "creat",
        "fopen",
        "freopen",
        "fdopen",
        "tmpfile",
        "mkstemp",
        "mkdtemp",
        "mk",
        "syscall",
        "dlopen",
        "dlsym",
    ),
    *(
        "write",
        "pwrite",
        "fwrite",
        "fput",
        "put",
        "fprintf",
        "vfprintf",
        "dprintf",
        "sendfile",
        "splice",
        "copy_file",
    ),
    *(
        "truncate",
        "ftruncate",
        "fallocate",
        "posix_f",
        "rename",
        "unlink",
        "remove",
        "rmdir",
        "link",
        "symlink",
    ),
    *("chmod", "fchmod", "mmap", "aio_", "fork", "vfork", "clone", "exec", "posix_spawn", "system", "popen"),
)
"""How the names of those functions of the C library begin that may change files, or start what does."""


class Bypass:
    """Hears every audit event once it is armed; there is no way to stop hearing."""

    def __init__(self, observer: Observer) -> None:
        self._observer, self._spool = observer, observer.spool
        self._met: dict[str, Callable[..., None]] = {
            "open": self._opened,
            "mmap.__new__": self._mapped,
            "sqlite3.connect": self._connected,
            "ctypes.dlsym": self._looked_up,
            "os.system": lambda command: self._child(os.fsdecode(command).split(maxsplit=1)[0]),
            "os.exec": lambda path, *_: self._child(path),
            "os.posix_spawn": lambda path, *_: self._child(path),
            "subprocess.Popen": lambda program, *_: self._child(program),
            "os.fork": lambda *_: self._child("fork"),
            "os.forkpty": lambda *_: self._child("fork"),
            "os.rename": lambda src, dst, *_: self._changed(("rename", "replace"), src, dst),
            "os.remove": lambda path, *_: self._changed(("unlink", "remove"), path),
            "os.truncate": lambda path, *_: self._changed(("truncate", "ftruncate"), path),
            "os.chmod": lambda path, *_: self._changed(("chmod", "fchmod"), path),
            "os.mkdir": lambda path, *_: self._changed(("mkdir",), path),
            "os.rmdir": lambda path, *_: self._changed(("rmdir",), path),
            "os.link": lambda _src, dst, *_: self._changed(("link",), dst),
            "os.symlink": lambda _src, dst, *_: self._changed(("symlink",), dst),
        }

    def arm(self) -> None:
        """Hear from now on."""
        sys.addaudithook(self._hear)
        os.register_at_fork(after_in_child=self._spool.stop)
        fork_exec = _posixsubprocess.fork_exec  # multiprocessing starts processes by it, and no event tells

        def heard(args: Any, *rest: Any) -> int:
            self._child(args[0])
            return fork_exec(args, *rest)

        _posixsubprocess.fork_exec = heard

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event in self._met:
            try:
                self._met[event](*args)
            except (OSError, TypeError, ValueError):  # it cannot be done: the real function will say so
                return

    def _through_the_layer(self, ops: tuple[str, ...]) -> bool:
        expected, self._observer.expected.op = getattr(self._observer.expected, "op", None), None
        return expected in ops

    def _changed(self, ops: tuple[str, ...], *places: Any) -> None:
        if not self._through_the_layer(ops):
            for place in places:
                self._by_another_way(place)

    def _opened(self, path: Any, _mode: str | None, flags: int) -> None:
        if isinstance(path, int) or self._through_the_layer(("open",)) or not flags & _WRITES:
            return
        place = self._observer.place(path, follow=True)
        if not os.path.exists(place) or os.path.isfile(place):  # no device, no pipe
            self._by_another_way(place)

    def _by_another_way(self, target: Any) -> None:
        if isinstance(target, int):
            self._spool.unseen("c-writer", self._observer.name_of(target))
            return
        place = self._observer.place(target)
        below = self._observer.below(place)
        self._spool.unseen("outside" if below is None else "c-writer", place if below is None else below)

    def _mapped(self, descriptor: int, _length: int, access: int, _offset: int) -> None:
        reads_only = access in (1, 3)  # ACCESS_READ, ACCESS_COPY
        if descriptor < 0 or reads_only or flags_of(descriptor) & (os.O_WRONLY | os.O_RDWR) == 0:
            return
        self._spool.unseen("mmap", self._observer.name_of(descriptor))

    def _connected(self, database: Any) -> None:
        name = os.fsdecode(database)
        if name not in ("", ":memory:"):
            self._spool.unseen("sqlite3", self._observer.below(self._observer.place(name)) or name)

    def _looked_up(self, library: Any, name: Any) -> None:
        of_libc = (getattr(library, "_name", "") or "libc.").startswith("libc.")
        if not of_libc or str(name).lstrip("_").startswith(_WRITERS):
            self._spool.unseen("c-writer", f"ctypes: {name}")

    def _child(self, program: Any) -> None:
        self._spool.unseen("child", os.path.basename(os.fsdecode(program)))


class OneOrder:
    """Lets every other thread come to rest before one changes something; finds those that never do.

    Two threads have one order if, whenever one of them changes something, the other waits for it, or has ended. A thread
    that is busy, that sleeps, or that waits for a lock may come at another time in another run.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._wrote: set[int] = set()
        self._apart: set[frozenset[int]] = set()

    def turn(self) -> bool:
        """Wait until the others are at rest, or have shown that they are not; say whether that took time."""
        me = threading.get_ident()
        until, waited = 0.0, False
        while busy := self._busy(me):
            until = until or time.monotonic() + _PATIENCE_SECONDS
            if time.monotonic() > until:
                self._apart |= {frozenset((me, other)) for other in busy}
            else:
                time.sleep(_LOOK_AGAIN_SECONDS)
            waited = True
        self._wrote.add(me)
        if any(pair <= self._wrote for pair in self._apart):
            self._spool.unseen("threads", "")
        return waited

    def _busy(self, me: int) -> list[int]:
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to see other threads
        del frames[me]  # holding itself, it would keep alive what the code is done with, open files among it
        return [
            thread
            for thread, frame in frames.items()
            if frozenset((me, thread)) not in self._apart and not _at_rest(frame)
        ]


def _at_rest(frame: FrameType) -> bool:
    """Say whether a thread waits for another, however long: one with a timeout wakes up by itself."""
    functions = _AT_REST.get(frame.f_globals.get("__name__", ""), set())
    waits = frame.f_code.co_name in functions and frame.f_locals.get("timeout") in (None, -1)
    return waits and not _is_starting_a_thread(frame)


def _is_starting_a_thread(frame: FrameType) -> bool:
    """Say whether it only waits until a new thread has begun: then it goes on, whatever that thread does."""
    outer: FrameType | None = frame
    while outer and outer.f_globals.get("__name__") == "threading":
        if outer.f_code.co_name == "start":
            return True
        outer = outer.f_back
    return False
