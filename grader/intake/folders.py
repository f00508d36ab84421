"""A submission that is a folder, read as it stands on disk; links are never followed."""

from __future__ import annotations

import os
import stat
from collections import deque
from itertools import islice
from pathlib import Path

from grader.intake.names import is_tools_own
from grader.intake.source import MAX_ENTRIES, Entry

MAX_DEPTH = 12
OPEN_PLAIN = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


class FolderSource:
    """The files below a folder, nearest first."""

    def __init__(self, root: Path) -> None:
        """Look at the folder. Raises: OSError when it cannot be listed."""
        self._root = root
        self.entries = _entries(root)

    def read(self, name: str, most: int) -> bytes | str:
        """Read a plain file."""
        return read_plain(self._root / name, most)


def read_plain(path: Path, most: int) -> bytes | str:
    """Read a plain file of at most `most` bytes; the text says why it was not: `odd`, `large`, `unreadable (…)`."""
    try:
        descriptor = os.open(path, OPEN_PLAIN)
    except OSError as error:
        return "odd" if path.is_symlink() else f"unreadable ({error.strerror})"
    try:
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return "odd"
            raw = file.read(most + 1)
    except OSError as error:
        return f"unreadable ({error.strerror})"
    return raw if len(raw) <= most else "large"


def _entries(root: Path) -> list[Entry]:
    """List what is below the folder, level by level, so that a huge tree still shows what lies near its root."""
    found: list[Entry] = []
    seen, waiting = 0, deque([""])
    while waiting:
        prefix = waiting.popleft()
        try:
            with os.scandir(root / prefix) as listing:
                items = sorted(islice(listing, MAX_ENTRIES - seen + 1), key=lambda item: item.name)
        except OSError as error:
            if not prefix:
                raise
            found.append(Entry(prefix.rstrip("/"), f"unreadable ({error.strerror})"))
            continue
        for item in items:
            seen += 1
            if seen > MAX_ENTRIES:
                return [*found, Entry(f"{prefix}…", "too-many")]
            if is_tools_own(item.name):
                continue
            name = prefix + item.name
            if not item.is_dir(follow_symlinks=False):
                found.append(Entry(name, "" if item.is_file(follow_symlinks=False) else "odd"))
            elif name.count("/") + 1 >= MAX_DEPTH:
                found.append(Entry(name, "deep"))
            else:
                waiting.append(f"{name}/")
    return found
