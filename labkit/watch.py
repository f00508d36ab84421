"""Says that something changed on disk. Parses nothing, decides nothing.

One daemon thread per watched folder asks the operating system for events and hands each change to the event loop
that asked. A thread, not ``watchfiles.awatch``: the worker of that one is no daemon, and a kernel that ends then
waits for it (2.6 s instead of 0.2 s, measured).
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import watchfiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STEP_MS = 15
"""How long the folder must stay quiet before a change is told, in milliseconds."""
LONGEST_SILENCE_MS = 120
"""How often the thread looks for itself: a folder that was deleted or recreated sends no events of its own."""

_watches: weakref.WeakSet[Watch] = weakref.WeakSet()


class Watch:
    """Calls ``changed()`` on the running event loop once it watches, then at every change below ``folder``.

    The folder need not exist: its coming, going and coming back are changes like any other. Where the system sends
    no events (inotify used up, some network disks) the thread compares names, sizes and times itself;
    ``polling=True`` asks for that. Raises: RuntimeError when no event loop is running.
    """

    def __init__(self, folder: Path, changed: Callable[[], object], *, polling: bool = False) -> None:
        self.folder = folder.absolute()
        self.polling = polling
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {folder.name}", daemon=True)
        _watches.add(self)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; nothing is told afterwards. May be called again."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        """Follow whatever folder stands there now, until it is another one, or none."""
        while not self._stop.is_set():
            identity = _identity(self.folder)
            self._tell()
            follow = self._poll() if identity is None or self.polling else self._system_events()
            for changed in follow:
                if _identity(self.folder) != identity:
                    break
                if changed:
                    self._tell()

    def _system_events(self) -> Iterator[bool]:
        try:
            for changes in watchfiles.watch(
                self.folder,
                watch_filter=None,
                step=STEP_MS,
                debounce=4 * STEP_MS,
                rust_timeout=LONGEST_SILENCE_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
            ):
                yield bool(changes)
        except OSError:
            # The folder went while the watch was laid, or the system has no more events to give.
            self.polling = self.folder.is_dir()

    def _poll(self) -> Iterator[bool]:
        before = _fingerprint(self.folder)
        while not self._stop.wait(LONGEST_SILENCE_MS / 1000):
            now = _fingerprint(self.folder)
            yield now != before
            before = now

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop ended before we did: nobody is left to tell
            self._loop.call_soon_threadsafe(self._call)

    def _call(self) -> None:
        if not self._stop.is_set():
            self._changed()


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _fingerprint(folder: Path) -> set[tuple[str, int, int, int]]:
    """Return what tells one state of a folder from the next, without opening a file."""
    found = set()
    for parent, _, names in os.walk(folder):
        for path in (parent, *(os.path.join(parent, name) for name in names)):  # noqa: PTH118 — hot, and only text
            with suppress(OSError):  # it went between the listing and the look
                status = os.lstat(path)
                found.add((path, status.st_ino, status.st_size, status.st_mtime_ns))
    return found


@atexit.register
def _close_all() -> None:
    """End the threads before the interpreter does: one caught inside watchfiles would abort the process."""
    for watch in list(_watches):
        watch.close()
