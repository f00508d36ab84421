"""The ladder of isolation (G5): what each rung puts before the interpreter, and the strongest that works here.

    bubblewrap            own mounts, processes and network; the kit, other submissions and homes are not there
    namespaces-landlock   own processes and network; whatever else is there, a child may not open or change
    limits-only           limits, empty home and environment, its processes killed; nothing is hidden
    limits-only-as-root   the same, with the grader's own root: only for code that you would run yourself

A rung is known by running it, never by the presence of a program: user namespaces may be forbidden, the
interpreter may be out of reach inside. A grader that is root gives it up on every rung but the last.
"""

from __future__ import annotations

import functools
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from grader import temporary

KIT = Path(__file__).parents[1]
HOST = KIT / "grader" / "child" / "host.py"
LAUNCH = HOST.with_name("launch.py")
SPINE_HOST = HOST.with_name("spine_host.py")
FAULT_LAYER = KIT / "labkit" / "faults" / "file_layer.py"

_NOBODY = 65534  # inside a user namespace
_FIRST_USER, _USERS = 1_000_000_000, 1_000_000_000  # numbers that no account and no container has
_PROBE_SECONDS = 20
_SCRATCH_BYTES = 16 * 1024 * 1024  # inside the box, home and scratch are in memory
_HOME = "/tmp/home"  # noqa: S108 - the box's own
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Place(NamedTuple):
    """Where a child lives: its code (read only), where it works, and as whom; None for the grader's own user.

    `home` has nothing in it. `programs` are further folders that it needs for reading.
    """

    code: Path
    work: Path
    home: Path
    user: int | None
    programs: tuple[Path, ...] = ()


class Rung(NamedTuple):
    """One way to start a child.

    `name` stands in every report. With `own_user` a child runs as a user that nobody else is: the system counts
    processes by user, and users cannot touch each other's. `prefix` gives the words before the interpreter. A child that
    is `kept` has a keeper, which has to be asked to end it.
    """

    name: str
    isolated: bool
    own_user: bool
    prefix: Callable[[Place], list[str]]
    kept: bool = False

    def new_user(self) -> int | None:
        """Give the user of one more box."""
        return _FIRST_USER + secrets.randbelow(_USERS) if self.own_user else None


@functools.cache
def strongest_rung() -> Rung:
    """Find the first rung on which the interpreter really starts. Asked once a run.

    Raises: OSError on a system without POSIX processes, or when not even the plain interpreter starts.
    """
    if os.name != "posix":
        raise OSError("sandbox: grading needs Linux or macOS; on Windows, run the kit inside WSL")
    for rung in rungs():
        if works(rung):
            return rung
    raise OSError(f"sandbox: {interpreter()}: does not start; repair this Python installation")


def rungs() -> tuple[Rung, ...]:
    """List the rungs of this user, strongest first."""
    if os.geteuid() != 0:
        return (
            Rung("bubblewrap", isolated=True, own_user=False, prefix=_box_of_user),
            Rung("namespaces-landlock", isolated=True, own_user=False, prefix=_enclosed),
            Rung("limits-only", isolated=False, own_user=False, prefix=_kept, kept=sys.platform == "linux"),
        )
    return (
        Rung("bubblewrap", isolated=True, own_user=True, prefix=_box_of_root),
        Rung("namespaces-landlock", isolated=True, own_user=True, prefix=_enclosed),
        Rung("limits-only", isolated=False, own_user=True, prefix=_another_user),
        Rung("limits-only-as-root", isolated=False, own_user=False, prefix=_nothing),
    )


def works(rung: Rung) -> bool:
    """Try the rung: a child that starts, reads the host and writes where it works."""
    root = temporary.make()
    try:
        root.chmod(0o755)
        (work := root / "work").mkdir()
        (home := root / "home").mkdir()
        place = Place(root, work, home, rung.new_user())
        if place.user is not None:
            os.chown(work, place.user, place.user)
        return starts(rung, place)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        temporary.remove(root)


def starts(rung: Rung, place: Place, before: Sequence[str] = ()) -> bool:
    """Say whether a child does what every child does first, in this place, with these words `before` the rung's own."""
    command = [*before, *rung.prefix(place), *python_command(), "-c", _PROBE, str(HOST), sys.base_prefix]
    probe = subprocess.run(
        command,
        cwd=place.work,
        capture_output=True,
        check=False,
        timeout=_PROBE_SECONDS,
        env={"PATH": os.defpath},
    )
    return probe.returncode == 0


_PROBE = """
import asyncio, os, subprocess, sys, tempfile
open(sys.argv[1]).close()
open("probe", "x").close()
os.mkdir("folder")
os.rename("probe", "folder/probe")
tempfile.TemporaryFile().close()
subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)  # a lab's own commands start it anew
sys.exit(sys.prefix != sys.argv[2])  # out of reach, an interpreter quietly takes another one's library
"""


def end_user(user: int | None) -> None:
    """Kill whatever the user of one box still runs; nothing for a user that was not made for a box.

    All at once, in that user's own name: one by one, they could go on starting others.
    """
    if user is not None and _FIRST_USER <= user < _FIRST_USER + _USERS:
        command = [*_another_user(Place(KIT, KIT, KIT, user)), "kill", "-KILL", "--", "-1"]
        subprocess.run(command, capture_output=True, check=False)


def python_command() -> list[str]:
    """Give Python isolated (-I), without site packages (-S), without writing byte code (-B)."""
    return [str(interpreter()), "-I", "-S", "-B", "-X", "utf8", "-W", "ignore"]


def environment(home: str) -> dict[str, str]:
    """Give the whole environment of a child. Fewer memory arenas: each thread's own would eat the address space."""
    return {"PATH": os.defpath, "HOME": home, "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "2"}


def interpreter() -> Path:
    """Give the Python below the kit's environment: a child sees the standard library and nothing else."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def _nothing(_place: Place) -> list[str]:
    return []


def _kept(_place: Place) -> list[str]:
    return [*python_command(), str(LAUNCH), "keep"] if sys.platform == "linux" else []


def _enclosed(place: Place) -> list[str]:
    settings = {
        "user": place.user,
        "read": [str(path) for path in _shown(place)],
        "work": str(place.work),
        "scratch": str(place.home),
        "bytes": _SCRATCH_BYTES,
    }
    return [*python_command(), str(LAUNCH), "enclose", json.dumps(settings)]


def _another_user(place: Place) -> list[str]:
    identity = [f"--reuid={place.user}", f"--regid={place.user}", "--clear-groups"]
    return ["setpriv", *identity, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


def _box_of_user(place: Place) -> list[str]:
    """Nested user namespaces are forbidden: inside one, the student would be root of a new box."""
    identity = ["--unshare-user", "--disable-userns", "--uid", f"{_NOBODY}", "--gid", f"{_NOBODY}"]
    return ["bwrap", *identity, *_box(place)]


def _box_of_root(place: Place) -> list[str]:
    """Root is given up inside: mapped to another number by a user namespace, it would still be root."""
    capabilities = ["--cap-drop", "ALL"]
    for needed in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
        capabilities += ["--cap-add", needed]
    return ["bwrap", *capabilities, *_box(place), *_another_user(place)]


def _box(place: Place) -> list[str]:
    words = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    for scratch in ("/tmp", "/dev/shm"):  # noqa: S108 - the box's own
        words += ["--perms", "1777", "--size", f"{_SCRATCH_BYTES}", "--tmpfs", scratch]
    words += ["--remount-ro", "/dev"]  # else it is a folder without a size
    words += ["--perms", "1777", "--dir", _HOME]
    shown = _shown(place)
    for folder in _parents([*shown, place.work]):
        words += ["--perms", "0755", "--dir", str(folder)]  # bubblewrap's own would be closed to another user
    for path in shown:
        here = ["--symlink", str(path.readlink())] if path.is_symlink() else ["--ro-bind", str(path)]
        words += [*here, str(path)]
    words += [
        "--bind",
        str(place.work),
        str(place.work),
        "--remount-ro",
        "/",
        "--chdir",
        str(place.work),
        "--clearenv",
    ]
    for name, value in environment(_HOME).items():
        words += ["--setenv", name, value]
    return [*words, "--"]


def _shown(place: Place) -> list[Path]:
    """List what a child may read: the system's programs, Python, its hosts, its own code."""
    shown = [Path(path) for path in _SYSTEM]
    shown += [Path(sys.base_prefix).resolve(), interpreter(), HOST, SPINE_HOST, FAULT_LAYER, place.code]
    return [path for path in dict.fromkeys((*shown, *place.programs)) if path.exists()]


def _parents(paths: Sequence[Path]) -> list[Path]:
    """List the folders above the paths, outermost first, each once."""
    folders = {folder for path in paths for folder in path.parents if folder != Path("/")}
    return sorted(folders, key=lambda folder: len(folder.parts))
