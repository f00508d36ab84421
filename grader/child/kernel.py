"""Calls of the Linux kernel that Python has no name for. Loaded by path, before any student's code; standard library only."""

from __future__ import annotations

import ctypes
import os
import stat

NEW_MOUNTS, NEW_USERS, NEW_PROCESSES, NEW_NETWORK = 0x00020000, 0x10000000, 0x20000000, 0x40000000
NEW_NAMES, NEW_IPC = 0x04000000, 0x08000000
NO_SUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8
_BIND, _WITH_ALL_BELOW = 0x1000, 0x4000
_PRIVATE_FROM_HERE = _WITH_ALL_BELOW | 0x40000
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
        _tell(f"/proc/self/{name}", content)


def keep_mounts_here() -> None:
    """Let no mount made from here on be seen outside. Raises: OSError."""
    system_call("mount", b"none", b"/", None, ctypes.c_ulong(_PRIVATE_FROM_HERE), None)


def keep_identities(numbers: list[int], kinds: int) -> None:
    """Move as root into new namespaces, users among them, in which these users and groups are who they are outside.

    The numbers can only be written from outside, once we are in. Raises: OSError.
    """
    done, tell = os.pipe()
    writer = os.fork()
    if writer == 0:
        os.close(tell)
        os.read(done, 1)  # until we are in
        lines = "".join(f"{number} {number} 1\n" for number in dict.fromkeys(numbers))
        for name in ("uid_map", "gid_map"):
            _tell(f"/proc/{os.getppid()}/{name}", lines)
        os._exit(0)
    enter_new(kinds)
    os.write(tell, b"!")
    if os.waitpid(writer, 0)[1]:
        raise OSError("this machine does not let root name the users of a namespace")


def forbid_new_users() -> None:
    """Let nobody in this user namespace make another one, in which he would be root. Raises: OSError."""
    _tell("/proc/sys/user/max_user_namespaces", "0")


def _tell(file: str, content: str) -> None:
    with open(file, "w", encoding="ascii") as line:  # noqa: PTH123 - pathlib takes longer to import than this whole file
        line.write(content)


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


# --- Landlock: which files a process may open, whatever their rights say ---

READ, WRITE, EVERY_DEVICE = 0b1101, 0b10, 0b110  # execute 1, write 2, read 4, list 8
_OF_FILES = 0b110000000000111
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights of files each version of the kernel's interface knows."""
_CREATE_RULES, _ADD_RULE, _RESTRICT_SELF, _SET_MOUNT = 444, 445, 446, 442
_BELOW_PATH, _NO_NETWORK, _SCOPED = 1, 0b11, 0b11
_FROM_HERE, _RECURSIVE, _READ_ONLY = -100, 0x8000, 1


class _Rules(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scoped")]


class _BelowPath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("place", ctypes.c_int32)]


class _MountChange(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users")]


def open_only(read: list[str], write: list[str], devices: list[str]) -> None:
    """Open nothing from here on but what is below these paths, and no connection; paths that are not there are skipped.

    Raises: OSError where the kernel has no Landlock, or one that cannot move a file between two folders.
    """
    version = _call(_CREATE_RULES, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 2:
        raise OSError("Landlock of this kernel cannot move files between folders")
    every = (1 << _RIGHTS.get(version, 16)) - 1
    asked = _Rules(every, _NO_NETWORK if version >= 4 else 0, _SCOPED if version >= 6 else 0)
    rules = _call(_CREATE_RULES, ctypes.byref(asked), ctypes.sizeof(asked), ctypes.c_uint32(0))
    for paths, rights in ((read, READ), (write, every), (devices, EVERY_DEVICE)):
        for path in paths:
            _allow(rules, path, rights & every)
    _call(_RESTRICT_SELF, rules, ctypes.c_uint32(0))
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
    rule = _BelowPath(rights if is_folder else rights & _OF_FILES, place)
    _call(_ADD_RULE, rules, _BELOW_PATH, ctypes.byref(rule), ctypes.c_uint32(0))
    os.close(place)


def show_again(place: int, path: str) -> None:
    """Put what is open as `place` at this path, with all mounts in it. Raises: OSError."""
    source = f"/proc/self/fd/{place}".encode()
    system_call("mount", source, path.encode(), None, ctypes.c_ulong(_BIND | _WITH_ALL_BELOW), None)


def make_read_only(place: str) -> None:
    """Let nothing be changed from here on, not even rights and times, in any mount below. Raises: OSError."""
    _change_mount(place, _RECURSIVE, _MountChange(set=_READ_ONLY))


def make_writable(place: str) -> None:
    """Let this folder be changed again. Raises: OSError."""
    system_call("mount", place.encode(), place.encode(), None, ctypes.c_ulong(_BIND), None)
    _change_mount(place, 0, _MountChange(clear=_READ_ONLY))


def _change_mount(place: str, flags: int, change: _MountChange) -> None:
    _call(_SET_MOUNT, _FROM_HERE, place.encode(), flags, ctypes.byref(change), ctypes.sizeof(change))


def _call(number: int, *arguments: object) -> int:
    return system_call("syscall", ctypes.c_long(number), *arguments)
