"""A disk that forgets, at a power cut, all that was not synced: contents of files, and names in folders (LevelDB's way).

    disk = Disk(root)
    disk.install()             every `os` call that alters a file below `root` is a moment at which the power may go
    disk.on_moment = ...       called before each of them
    disk.leave(target, ...)    write down what would be left, were the power to go now

Only for a process of its own: it replaces functions of `os` and never puts them back. Linux: names descriptors by /proc.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MOMENTS = ("write", "fsync", "fdatasync", "ftruncate", "replace", "open", "unlink", "mkdir")
_real_open, _real_stat, _real_fsync = os.open, os.stat, os.fsync


class Disk:
    """What of the files below `root` is known to be on the platter."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.on_moment: Callable[[str], object] = lambda _op: None
        self._contents: dict[int, bytes] = {}
        self._names: dict[str, dict[str, int]] = {self.root: {}}

    def install(self) -> None:
        """Put the disk underneath `os`."""
        for op in _MOMENTS:
            setattr(os, op, self._moment(op, getattr(os, op)))

    def _moment(self, op: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            link = f"/proc/self/fd/{args[0]}"
            path = os.readlink(link) if isinstance(args[0], int) else os.fspath(args[0])  # noqa: PTH115
            if not path.startswith(self.root):
                return real(*args, **kwargs)
            self.on_moment(op)
            new = op == "open" and not os.path.lexists(path)
            result = real(*args, **kwargs)
            if new:
                self._contents.pop(os.fstat(result).st_ino, None)  # the number may have been a removed file's
            if op in ("fsync", "fdatasync"):
                self._synced(path)
            return result

        return call

    def _synced(self, path: str) -> None:
        if os.path.isdir(path):  # noqa: PTH112 - pathlib works through what is replaced here
            self._names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._contents[_real_stat(path).st_ino] = _bytes(path)

    def leave(self, target: Path, draw: random.Random | None = None) -> None:
        """Write below `target` what a power cut leaves; with `draw`, some of what was not synced arrived all the same."""
        self._leave(self.root, target, draw)

    def _leave(self, folder: str, target: Path, draw: random.Random | None) -> None:
        target.mkdir(mode=0o700, exist_ok=True)
        now = {entry.name: entry.inode() for entry in os.scandir(folder)}
        names = dict(self._names.get(folder, {}))
        if draw is not None:
            names |= {name: inode for name, inode in now.items() if draw.random() < 0.5}
        for name, inode in names.items():
            path = f"{folder}/{name}"
            if os.path.isdir(path):  # noqa: PTH112
                self._leave(path, target / name, draw)
                continue
            durable = self._contents.get(inode, b"")
            if draw is not None and now.get(name) == inode and (newer := _bytes(path)).startswith(durable):
                durable = newer[: draw.randint(len(durable), len(newer))]
            (target / name).write_bytes(durable)
            (target / name).chmod(0o600)


def _bytes(path: str) -> bytes:
    descriptor = _real_open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)
