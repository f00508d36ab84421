"""What is done before a child's interpreter starts, by a process that no student's code ever runs in.

    python -I -S -B launch.py enclose SETTINGS COMMAND...
    python -I -S -B launch.py keep COMMAND...

`enclose` starts a child in namespaces of its own and with Landlock, where bubblewrap does not work. One process waits,
and ends as the child did; the first of the new process namespace gathers orphans, and with it everything in there ends;
the third gives up what it may and becomes COMMAND. `SETTINGS` is JSON:

    user      the number that it runs as when root starts it, else null
    read      paths that it may read, and run programs from
    work      the folder that it works in, and may fill
    scratch   a folder that gets a small file system in memory: for temporary files, and with an empty home in it
    bytes     the size of that one

`keep` starts a child where nothing shuts it in, and ends whatever that left behind, in a session of its own or not:
whoever loses his parent becomes a child of the keeper, which kills its children until it has none. SIGTERM tells it to,
also when the grader is gone. A child that kills its keeper escapes: it is the same user.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_DEVICES = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")]
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc")
_MOST_CAPABILITIES, _MOST_DESCRIPTORS = 64, 65_536
_BY_SIGNAL = 128  # and its number: the exit code that a shell gives


def _sibling(name: str) -> ModuleType:
    """Load another program of this folder: nothing of the kit can be imported by its name here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kernel = _sibling("kernel")

# --- namespaces and Landlock ---


def enclose(given: str, *command: str) -> NoReturn:
    """Move into new namespaces, and wait there for the command's end."""
    settings = json.loads(given)
    kernel.die_with_parent(signal.SIGKILL)
    ours = kernel.NEW_MOUNTS | kernel.NEW_PROCESSES | kernel.NEW_NETWORK | kernel.NEW_IPC | kernel.NEW_NAMES
    if settings["user"] is None:
        user, group = os.getuid(), os.getgid()
        kernel.enter_new(ours | kernel.NEW_USERS)
        kernel.keep_identity(user, group)
        kernel.forbid_new_users()
    else:
        kernel.enter_new(ours)
    alive, held = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(held)
        gather(alive, settings, command)
    hold_only(held)
    os._exit(code_of(os.waitpid(first, 0)[1]))


def gather(alive: int, settings: dict[str, Any], command: tuple[str, ...]) -> NoReturn:
    """Be the first process of the namespace: start the command, and end with it."""
    kernel.die_with_parent(signal.SIGKILL)
    os.set_blocking(alive, False)
    try:
        if not os.read(alive, 1):  # whoever waits for us was gone before we could ask to go with him
            os._exit(1)
    except BlockingIOError:
        pass
    child = os.fork()
    if child == 0:
        os.close(alive)
        become(settings, command)
    hold_only()
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(code_of(status))


def become(settings: dict[str, Any], command: tuple[str, ...]) -> NoReturn:
    """Give up everything that the command does not need, and become it."""
    work, scratch = settings["work"], settings["scratch"]
    kernel.keep_mounts_here()
    show_only([*settings["read"], work, scratch])
    kernel.make_read_only("/")
    kernel.make_writable(work)
    options = f"size={settings['bytes']},mode=1777"
    kernel.mount("tmpfs", scratch, kernel.NO_SUID | kernel.NO_DEVICES, options)
    read = [*settings["read"], *own_processes()]
    os.chdir(work)
    for number in range(_MOST_CAPABILITIES):
        try:
            kernel.drop_capability(number)
        except OSError:  # there is none of this number
            break
    if settings["user"] is not None:
        os.setgroups([])
        os.setresgid(*[settings["user"]] * 3)
        os.setresuid(*[settings["user"]] * 3)
    kernel.gain_no_privileges()
    kernel.open_only(read, [work, scratch], _DEVICES)
    home = f"{scratch}/home"
    os.mkdir(home)  # noqa: PTH102 - as plain as the calls around it
    os.execve(command[0], command, {**os.environ, "HOME": home, "TMPDIR": scratch})  # noqa: S606 - no shell is meant


def show_only(paths: list[str]) -> None:
    """Cover the top folders that these paths are in, but for the system's, and show only the paths there again.

    The way to them may be closed to another user, and what lies beside them has names that are no child's to know.
    """
    outside = [path for path in paths if Path(path).parts[1] not in _SYSTEM]
    places = {path: os.open(path, os.O_PATH) for path in sorted(outside)}
    for top in {Path(path).parts[1] for path in outside}:
        kernel.mount("tmpfs", f"/{top}", kernel.NO_SUID | kernel.NO_DEVICES, "mode=0755")
    for path, place in places.items():
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            if stat.S_ISDIR(os.fstat(place).st_mode):
                target.mkdir()
            else:
                target.touch()
            kernel.show_again(place, path)
        os.close(place)


def own_processes() -> list[str]:
    """Show the namespace's own processes in /proc; where that is forbidden, nobody's are shown."""
    try:
        kernel.mount("proc", "/proc", kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_PROGRAMS)
    except OSError:  # inside some containers
        return []
    return ["/proc"]


# --- limits only ---


def keep(*command: str) -> NoReturn:
    """Start the command, wait for its end or for the word to end it, and leave nothing."""
    kernel.adopt_orphans()
    kernel.die_with_parent(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        os.setsid()
        os.execv(command[0], command)  # noqa: S606 - no shell is meant
    hold_only()
    code = wait_for(child)
    end_the_rest()
    os._exit(code)


def wait_for(child: int) -> int:
    """Wait until the child has ended, or shall; give the exit code to end with."""
    while True:
        told = signal.sigwait({signal.SIGTERM, signal.SIGCHLD})
        if told == signal.SIGTERM:
            return _BY_SIGNAL + signal.SIGKILL
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return code_of(ended[1])


def end_the_rest() -> None:
    """Kill our children until there are none: the orphans of one generation are the next."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def children() -> list[int]:
    """List the processes whose parent is this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found


def hold_only(kept: int = 2) -> None:
    """Close what was inherited, the child's line before all: its end has to be seen when the child closes it."""
    os.closerange(3, kept)
    os.closerange(kept + 1, _MOST_DESCRIPTORS)


def code_of(status: int) -> int:
    """Give the exit code that tells of this wait status."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _BY_SIGNAL - code


if __name__ == "__main__":
    verbs: dict[str, Callable[..., None]] = {"enclose": enclose, "keep": keep}
    verbs[sys.argv[1]](*sys.argv[2:])
