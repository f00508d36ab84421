"""What a run left on this machine: processes, files, mounts, sockets, and open descriptors of our own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MARK = "statelab-hostile"
"""Stands in the name of everything that a hostile submission leaves outside, so that it is known as theirs."""

box_users: set[int] = set()
"""Whom the boxes of this process belonged to: nobody else has these numbers."""

_SECONDS = 10
"""So long may the kernel take to end a namespace; a process that stays is there for ten minutes."""

_PLACES = ("/dev", "/dev/shm", "/var/tmp", tempfile.gettempdir(), str(Path.home()))


class Known(NamedTuple):
    """What was there before a case ran, and so is not what it left: our children, our folders."""

    processes: frozenset[int] = frozenset()
    files: frozenset[str] = frozenset()


def here() -> Known:
    """List the processes that stem from this one, and the files of its own, such as the labs built once a run."""
    ours = frozenset(pid for pid, parents in _families().items() if os.getpid() in parents)
    return Known(ours, frozenset(_files(Known())))


def left(known: Known) -> list[str]:
    """Say in one word each what is left, waiting for what is just ending."""
    until = time.monotonic() + _SECONDS
    pause = threading.Event()
    while (found := _found(known)) and time.monotonic() < until:
        pause.wait(0.01)  # the kernel needs a processor, too
    return found


def clear(known: Known) -> None:
    """Remove and end what was found: where a case is not contained, the next one starts without it."""
    for path in _files(known):
        shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()
    for pid in _processes(known):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def descriptors() -> int:
    """Count what this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _found(known: Known) -> list[str]:
    kinds = {"process": _processes(known), "file": _files(known), "mount": _mounts(), "socket": _sockets()}
    return [kind for kind, names in kinds.items() if names]


def _processes(known: Known) -> list[str]:
    """List processes of ours, of a box's user, or with the mark in their environment, folder or command."""
    found = []
    for pid, parents in _families().items():
        place = Path(f"/proc/{pid}")
        with contextlib.suppress(OSError):
            if "\nState:\tZ" in (place / "status").read_text():
                continue
            ours = os.getpid() in parents and pid not in known.processes
            if ours or place.stat().st_uid in box_users or _is_marked(place):
                found.append(str(pid))
    return found


def _is_marked(place: Path) -> bool:
    box = f"statelab-{os.getpid()}-"
    words = [(place / name).read_bytes().decode(errors="replace") for name in ("environ", "cmdline")]
    return place.name != str(os.getpid()) and any(box in text or MARK in text for text in words)


def _families() -> dict[int, set[int]]:
    """Give every process with all that it stems from."""
    parent = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parent[int(stat.parent.name)] = int(
                stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            )
    return {pid: set(_line(pid, parent)) for pid in parent}


def _line(pid: int, parent: dict[int, int]) -> Iterator[int]:
    while (pid := parent.get(pid, 0)) > 1:
        yield pid


def _files(known: Known) -> list[str]:
    found: list[Path] = []
    for place in {*_PLACES, str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "solution")}:
        with contextlib.suppress(OSError):
            found += Path(place).glob(f"{MARK}*")
    found += Path(tempfile.gettempdir()).glob(f"statelab-{os.getpid()}-*")
    return [str(path) for path in found if str(path) not in known.files]


def _mounts() -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "statelab" in line]


def _sockets() -> list[str]:
    return [line for line in Path("/proc/net/unix").read_text().splitlines() if MARK in line]
