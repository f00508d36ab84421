"""What is taken from a submission: the files that the kit names, as bytes, and nothing else (G3).

A submission is a folder for now. A zip, a tar or a git checkout will be one more way to make an `Entries`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from labkit.workspace import LESSON_FOLDERS

MAX_FILE_BYTES = 1024 * 1024
MAX_LISTED = 50
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class KitFiles(NamedTuple):
    """The files of one lesson, by their names below its folder: those that must be there, and those that may."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]


KIT_FILES = {
    "22": KitFiles(("__init__.py", "session_store.py"), ("event_line.py", "todo.py", "homework.py")),
}


class LeftOut(NamedTuple):
    """A file that was not taken: its name below the submission, and why (`unnamed`, `odd`, `large`, `unreadable`)."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Handin:
    """One lesson of one submission: its files by name, the needed ones that are missing, what was left out."""

    lesson: str
    files: dict[str, bytes]
    missing: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = field(default=())

    @property
    def package(self) -> str:
        """The name under which the files are imported."""
        return LESSON_FOLDERS[self.lesson]

    def lay_down(self, code: Path) -> None:
        """Write the files below `code`, as the package that the child loads."""
        folder = code / self.package
        folder.mkdir(mode=0o755)
        for name, raw in self.files.items():
            (folder / name).write_bytes(raw)
            (folder / name).chmod(0o644)


def take(submission: Path, lesson: str) -> Handin:
    """Take one lesson's files from a folder: at its root, below `starter/`, or one folder down.

    A folder that is the lesson's own (it holds the needed files itself) is taken as well.
    """
    kit = KIT_FILES[lesson]
    home = _lesson_folder(submission, lesson, kit)
    files: dict[str, bytes] = {}
    left_out: list[LeftOut] = []
    for path in _entries(submission):
        name = path.relative_to(submission).as_posix()
        if path.parent == home and path.name in (*kit.needed, *kit.optional):
            found = _read(path)
            if isinstance(found, bytes):
                files[path.name] = found
            else:
                left_out.append(LeftOut(name, found))
        elif len(left_out) < MAX_LISTED:
            left_out.append(LeftOut(name, "unnamed"))
    missing = tuple(f"{LESSON_FOLDERS[lesson]}/{name}" for name in kit.needed if name not in files)
    return Handin(lesson, files, missing, tuple(left_out))


def _lesson_folder(submission: Path, lesson: str, kit: KitFiles) -> Path:
    """Find where the lesson's files are; the first place that has any of the needed ones."""
    name = LESSON_FOLDERS[lesson]
    below = sorted(path for path in submission.iterdir() if path.is_dir() and not path.is_symlink())
    places = [submission / name, submission / "starter" / name, *(path / name for path in below), submission]
    for place in places:
        if not place.is_symlink() and any((place / needed).exists() for needed in kit.needed):
            return place
    return places[0]


def _entries(submission: Path) -> Iterator[Path]:
    """Give every file below the folder, sorted, without following links; caches and repositories are no hand-in."""
    for root, folders, names in os.walk(submission, followlinks=False):
        linked = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", ".git", *linked))
        for name in sorted([*names, *linked]):
            yield Path(root) / name


def _read(path: Path) -> bytes | str:
    """Read a plain file of reasonable size; the text says why it was not."""
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as error:
        return "odd" if path.is_symlink() else f"unreadable ({error.strerror})"
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "odd"
        return "large" if status.st_size > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES)
