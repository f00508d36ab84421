"""Gives one box a work folder of its own size: a file system in memory, in mounts that nobody else sees.

    python -I -S -c START FOLDER_OF_THIS_FILE CHANNEL FOLDER OPTIONS USER USERS

It hands back the folder's root and the namespaces as open descriptors, and ends. As long as the grader keeps these, the
mount is there; when it closes them, or dies, the kernel takes it away: nothing can be left mounted.

No student's code ever runs in this process. Each submission waits for it, so it imports next to nothing: `socket`,
`pathlib` and `json` would take longer than all that is done here.
"""

from __future__ import annotations

import array
import os
import types
from _socket import SCM_RIGHTS, SOL_SOCKET, socket


def main(kernel: types.ModuleType, words: list[str]) -> None:
    """Mount, and hand the descriptors over: folder, mounts, and users where there are any.

    `kernel` is the module beside this file. USER is who the child will be, USERS whether it is put among users of its
    own. An ordinary grader may only mount there; where root starts it, the child is kept from making such a namespace
    itself, in which it would be root.
    """
    channel, folder, options, user, users = words
    new, group = kernel.NEW_USERS if users == "own" else 0, os.getegid()
    if new and os.geteuid() == 0:
        kernel.keep_identities([0, int(user)], kernel.NEW_MOUNTS | new)
        kernel.forbid_new_users()
    else:
        kernel.enter_new(kernel.NEW_MOUNTS | new)
        if new:
            kernel.keep_identity(int(user), group)
    kernel.keep_mounts_here()
    kernel.mount("tmpfs", folder, kernel.NO_SUID | kernel.NO_DEVICES, options)
    names = [folder, "/proc/self/ns/mnt", *(["/proc/self/ns/user"] if new else [])]
    opened = array.array("i", [os.open(name, os.O_RDONLY) for name in names])
    socket(fileno=int(channel)).sendmsg([b"!"], [(SOL_SOCKET, SCM_RIGHTS, opened)])
