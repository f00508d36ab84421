"""The ladder of isolation (G5): what each rung puts before the interpreter, and the strongest that works here.

    bubblewrap            own mounts, processes and network; the kit, other submissions and homes are not there
    limits-only           limits, empty home and environment, process group killed; nothing is hidden
    limits-only-as-root   the same, with the grader's own root: only for code that you would run yourself

A rung is known by running it, never by the presence of a program: user namespaces may be forbidden, the
interpreter may be out of reach inside. A grader that is root gives it up on every rung but the last.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

KIT = Path(__file__).parents[1]
HOST = KIT / "grader" / "child" / "host.py"
FAULT_LAYER = KIT / "labkit" / "faults" / "file_layer.py"

_NOBODY = 65534
_PROBE_SECONDS = 20
_SCRATCH_BYTES = 16 * 1024 * 1024  # inside the box, home and scratch are in memory
_HOME = "/tmp/home"  # noqa: S108 - the box's own
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")


class Rung(NamedTuple):
    """One way to start a child.

    `name` stands in every report. `user` is whom the child runs as, None for the grader's own user.
    `prefix(code, work)` gives the words before the interpreter.
    """

    name: str
    isolated: bool
    user: int | None
    prefix: Callable[[Path, Path], list[str]]


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
            Rung("bubblewrap", isolated=True, user=None, prefix=_box_of_user),
            Rung("limits-only", isolated=False, user=None, prefix=_nothing),
        )
    return (
        Rung("bubblewrap", isolated=True, user=_NOBODY, prefix=_box_of_root),
        Rung("limits-only", isolated=False, user=_NOBODY, prefix=_another_user),
        Rung("limits-only-as-root", isolated=False, user=None, prefix=_nothing),
    )


def works(rung: Rung) -> bool:
    """Try the rung: a child that starts, reads the host and writes where it works."""
    with tempfile.TemporaryDirectory(prefix="statelab-probe-") as name:
        work = Path(name)
        work.chmod(0o755)
        if rung.user is not None:
            os.chown(work, rung.user, rung.user)
        try:
            command = [*rung.prefix(work, work), *python_command(), "-c", _PROBE, str(HOST), sys.base_prefix]
            probe = subprocess.run(
                command,
                cwd=work,
                capture_output=True,
                check=False,
                timeout=_PROBE_SECONDS,
                env={"PATH": os.defpath},
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return probe.returncode == 0


_PROBE = """
import asyncio, sys
open(sys.argv[1]).close()
open("probe", "x").close()
sys.exit(sys.prefix != sys.argv[2])  # out of reach, an interpreter quietly takes another one's library
"""


def python_command() -> list[str]:
    """Give Python isolated (-I), without site packages (-S), without writing byte code (-B)."""
    return [str(interpreter()), "-I", "-S", "-B", "-X", "utf8", "-W", "ignore"]


def interpreter() -> Path:
    """Give the Python below the kit's environment: a child sees the standard library and nothing else."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def _nothing(_code: Path, _work: Path) -> list[str]:
    return []


def _another_user(_code: Path, _work: Path) -> list[str]:
    user = f"{_NOBODY}"
    return [
        "setpriv",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
    ]


def _box_of_user(code: Path, work: Path) -> list[str]:
    """Nested user namespaces are forbidden: inside one, the student would be root of a new box."""
    identity = ["--unshare-user", "--disable-userns", "--uid", f"{_NOBODY}", "--gid", f"{_NOBODY}"]
    return ["bwrap", *identity, *_box(code, work)]


def _box_of_root(code: Path, work: Path) -> list[str]:
    """Root is given up inside: mapped to another number by a user namespace, it would still be root."""
    capabilities = ["--cap-drop", "ALL"]
    for needed in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
        capabilities += ["--cap-add", needed]
    return ["bwrap", *capabilities, *_box(code, work), *_another_user(code, work), "--inh-caps=-all"]


def _box(code: Path, work: Path) -> list[str]:
    words = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    words += ["--perms", "1777", "--size", f"{_SCRATCH_BYTES}", "--tmpfs", "/tmp"]  # noqa: S108 - the box's own
    words += ["--perms", "1777", "--dir", _HOME]
    shown = [Path(path) for path in _SYSTEM]
    shown += [Path(sys.base_prefix).resolve(), interpreter(), HOST, FAULT_LAYER, code]
    shown = [path for path in dict.fromkeys(shown) if path.exists()]
    for folder in _parents([*shown, work]):
        words += ["--perms", "0755", "--dir", str(folder)]  # bubblewrap's own would be closed to another user
    for path in shown:
        here = ["--symlink", str(path.readlink())] if path.is_symlink() else ["--ro-bind", str(path)]
        words += [*here, str(path)]
    words += ["--bind", str(work), str(work), "--remount-ro", "/", "--chdir", str(work), "--clearenv"]
    for name, value in {"PATH": os.defpath, "HOME": _HOME, "LANG": "C.UTF-8"}.items():
        words += ["--setenv", name, value]
    return [*words, "--"]


def _parents(paths: Sequence[Path]) -> list[Path]:
    """List the folders above the paths, outermost first, each once."""
    folders = {folder for path in paths for folder in path.parents if folder != Path("/")}
    return sorted(folders, key=lambda folder: len(folder.parts))
