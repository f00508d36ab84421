"""Gives one box a work folder of its own size, and ends: a file system in memory, in mounts that nobody else sees.

    python -I -S -B work_mount.py CHANNEL FOLDER OPTIONS

The folder's root and the namespaces are handed back as open descriptors. As long as the grader keeps these, the mount
is there; when it closes them, or dies, the kernel takes it away: nothing can be left mounted.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from pathlib import Path
from types import ModuleType


def sibling(name: str) -> ModuleType:
    """Load another program of this folder: nothing of the kit can be imported by its name here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Mount, and hand the descriptors over: folder, mounts, and for an ordinary user the users."""
    kernel = sibling("kernel")
    channel, folder, options = sys.argv[1:]
    user, group = os.geteuid(), os.getegid()
    kernel.enter_new(kernel.NEW_MOUNTS | (kernel.NEW_USERS if user else 0))
    if user:  # without root, only who has users of his own may mount
        kernel.keep_identity(user, group)
    kernel.keep_mounts_here()
    kernel.mount("tmpfs", folder, kernel.NO_SUID | kernel.NO_DEVICES, options)
    names = [folder, "/proc/self/ns/mnt", *(["/proc/self/ns/user"] if user else [])]
    with socket.socket(fileno=int(channel)) as line:
        socket.send_fds(line, [b"!"], [os.open(name, os.O_RDONLY) for name in names])


if __name__ == "__main__":
    main()
