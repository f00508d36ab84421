"""A work folder that cannot grow past its size: a file system of its own, where this machine lets us make one (G4).

Elsewhere the folder is measured from outside (`grader.grade`).
"""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from grader.rungs import HOST, interpreter

if TYPE_CHECKING:
    from pathlib import Path

_MAX_NAMES = 32_768  # each costs a kibibyte of memory that the size does not count
_SECONDS = 20
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); import kernel, mount; mount.main(kernel, sys.argv[1:])"
)
_MOUNT = ["-I", "-S", "-X", "utf8", "-c", _START]  # imported, not run: then its byte code is kept


class WorkMount(NamedTuple):
    """Descriptors of the root of the folder at `place`, of the mounts it is in, and, without root, of their users."""

    place: Path
    folder: int
    mounts: int
    users: int | None

    def words(self) -> list[str]:
        """Give the words before a command that is to see the folder. It inherits no descriptor: it looks them up here."""
        here = f"/proc/{os.getpid()}/fd"
        users = [] if self.users is None else [f"--user={here}/{self.users}", "--preserve-credentials"]
        return ["nsenter", f"--mount={here}/{self.mounts}", *users, f"--wdns={self.place}", "--"]

    def close(self) -> None:
        """Let go: with the last of its processes, the folder and all that is in it are gone."""
        for descriptor in (self.folder, self.mounts, *([] if self.users is None else [self.users])):
            os.close(descriptor)


class Way(NamedTuple):
    """How a mount is made. Among users of its own, a child can make no namespace in which it would be root."""

    own_users: bool


def ways() -> list[Way]:
    """List the ways to mount that this user may have, the best first."""
    return [Way(own_users=True)] if os.geteuid() else [Way(own_users=True), Way(own_users=False)]


def mount(folder: Path, mib: int, user: int | None, way: Way) -> WorkMount:
    """Mount a file system of this size over the folder, for its child's user. Raises: OSError when that is not possible."""
    ours, theirs = socket.socketpair()
    options = f"size={mib}m,nr_inodes={_MAX_NAMES},mode=0755"
    with ours:
        with theirs:
            child_user = str(os.geteuid() if user is None else user)
            words = [
                str(theirs.fileno()),
                str(folder),
                options,
                child_user,
                "own" if way.own_users else "same",
            ]
            command = [str(interpreter()), *_MOUNT, str(HOST.parent), *words]
            try:
                done = subprocess.run(
                    command,
                    pass_fds=(theirs.fileno(),),
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise OSError(f"{folder}: mounting takes longer than {_SECONDS} s") from None
        if done.returncode:
            raise OSError(f"{folder}: {(done.stderr.strip().splitlines() or ['not mounted'])[-1]}")
        _, (root, mounts, *users), _, _ = socket.recv_fds(ours, 1, 3, socket.MSG_CMSG_CLOEXEC)
    found = WorkMount(folder, root, mounts, users[0] if users else None)
    if user is not None:
        os.chown(root, user, user)
    return found
