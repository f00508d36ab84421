"""Calls of the Linux kernel that Python has no name for. Loaded by path, before any student's code; standard library only."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEW_MOUNTS, NEW_USERS, NEW_PROCESSES, NEW_NETWORK = 0x00020000, 0x10000000, 0x20000000, 0x40000000
NEW_NAMES, NEW_IPC = 0x04000000, 0x08000000
NO_SUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8
_PRIVATE_FROM_HERE = 0x4000 | 0x40000
_SET_PARENT_DEATH_SIGNAL, _DROP_FROM_BOUND, _ADOPT_ORPHANS, _NO_NEW_PRIVILEGES = 1, 24, 36, 38

_libc = ctypes.CDLL(None, use_errno=True)


def system_call(name: str, *arguments: object) -> int:
    """Make one call of the C library. Raises: OSError."""
    result = int(getattr(_libc, name)(*arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def enter_new(kinds: int) -> None:
    """Move into new namespaces of these kinds. Raises: OSError."""
    system_call("unshare", kinds)


def keep_identity(user: int, group: int) -> None:
    """Be in the new user namespace who one was outside. Raises: OSError."""
    for name, content in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with Path(f"/proc/self/{name}").open("w", encoding="ascii") as file:
            file.write(content)


def keep_mounts_here() -> None:
    """Let no mount made from here on be seen outside. Raises: OSError."""
    system_call("mount", b"none", b"/", None, ctypes.c_ulong(_PRIVATE_FROM_HERE), None)


def mount(kind: str, place: str, flags: int, options: str = "") -> None:
    """Mount a new file system of this kind. Raises: OSError."""
    words = (b"statelab", place.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    system_call("mount", *words)


def die_with_parent(signal: int) -> None:
    """Get this signal when the thread that started us ends. Raises: OSError."""
    _control(_SET_PARENT_DEATH_SIGNAL, signal)


def adopt_orphans() -> None:
    """Become the parent of every process below that loses its own. Raises: OSError."""
    _control(_ADOPT_ORPHANS, 1)


def gain_no_privileges() -> None:
    """Let no program started from here on have more rights than this one. Raises: OSError."""
    _control(_NO_NEW_PRIVILEGES, 1)


def drop_capability(number: int) -> None:
    """Let no program started from here on have this capability. Raises: OSError (EINVAL: there is none of this number)."""
    _control(_DROP_FROM_BOUND, number)


def _control(option: int, value: int) -> None:
    system_call("prctl", *(ctypes.c_ulong(number) for number in (option, value, 0, 0, 0)))
