"""What is taken from a submission: the files that the kit names, as bytes, and nothing else (G3).

`take` is the one door. Behind it a submission is a folder; archives are recognised, and refused with a reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from grader.suites.check import Text
from labkit.workspace import LESSON_FOLDERS, kit_root

MAX_FILE_BYTES = 1024 * 1024
MAX_LISTED = 50
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_ARCHIVE = Text(
    "压缩包还不能直接评分，请解压成同名文件夹",
    "archives are not read yet; unpack it into a folder of this name",
)
_KIT_OWN = (
    "__init__.py",
    ".generated.json",
)  # stand beside the lesson folders, and nobody needs to hear of them
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class KitFiles(NamedTuple):
    """The files of one lesson, by their names below its folder: those that must be there, and those that may.

    What stands in the folder `given` of the kit is not taken either: it is laid down from there.
    """

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    given: str = ""

    def is_given(self, name: str, path: Path) -> bool:
        """Say whether the submission's file of this name is the kit's own, unchanged."""
        return bool(self.given) and _read(kit_root() / self.given / name) == _read(path)


KIT_FILES = {
    "22": KitFiles(("__init__.py", "session_store.py"), ("event_line.py", "todo.py", "homework.py")),
    "04": KitFiles(
        ("issue_garden/state_store.py", "issue_garden/stateful_round.py"), given="assets/lesson-04-state"
    ),
}


class LeftOut(NamedTuple):
    """A file that was not taken: its name below the submission, and why (`unnamed`, `odd`, `large`, `unreadable`)."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Handin:
    """One lesson of one submission: its files by name, what was left out, and why it cannot be graded, if so."""

    lesson: str
    files: dict[str, bytes] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    problem: Text | None = None

    @property
    def package(self) -> str:
        """The name under which the files are imported."""
        return LESSON_FOLDERS[self.lesson]

    def lay_down(self, code: Path) -> None:
        """Write the files below `code`, as the package that the child loads."""
        folder = code / self.package
        folder.mkdir()
        folder.chmod(0o755)  # for a child that is another user, whatever the umask
        for name, raw in self.files.items():
            (folder / name).write_bytes(raw)
            (folder / name).chmod(0o644)


def take(submission: Path, lesson: str) -> Handin:
    """Take one lesson's files from a folder: at its root, below `starter/`, or one folder down.

    A folder that is the lesson's own (it holds the needed files itself) is taken as well. Never raises: what cannot
    be taken is the hand-in's `problem`.
    """
    if submission.name.lower().endswith(ARCHIVES) and not submission.is_dir():
        return Handin(lesson, problem=_ARCHIVE)
    try:
        return _take(submission, lesson, KIT_FILES[lesson])
    except OSError as error:
        why = error.strerror or "OSError"
        return Handin(
            lesson, problem=Text(f"无法读取这份提交（{why}）", f"this submission cannot be read ({why})")
        )


def _take(submission: Path, lesson: str, kit: KitFiles) -> Handin:
    home = _lesson_folder(submission, lesson, kit)
    files: dict[str, bytes] = {}
    left_out: list[LeftOut] = []
    for path in _entries(submission, lesson):
        name = path.relative_to(submission).as_posix()
        known = path.relative_to(home).as_posix() if path.is_relative_to(home) else ""
        if known in (*kit.needed, *kit.optional):
            found = _read(path)
            if isinstance(found, bytes):
                files[known] = found
            else:
                left_out.append(LeftOut(name, found))
        elif (path.parent == home.parent and path.name in _KIT_OWN) or (known and kit.is_given(known, path)):
            continue
        elif len(left_out) < MAX_LISTED:
            left_out.append(LeftOut(name, "unnamed"))
    missing = ", ".join(f"{LESSON_FOLDERS[lesson]}/{name}" for name in kit.needed if name not in files)
    problem = Text(f"缺少 {missing}", f"{missing} is not there") if missing else None
    return Handin(lesson, files, tuple(left_out), problem)


def _lesson_folder(submission: Path, lesson: str, kit: KitFiles) -> Path:
    """Find where the lesson's files are; the first place that has any of the needed ones."""
    name = LESSON_FOLDERS[lesson]
    below = sorted(path for path in submission.iterdir() if path.is_dir() and not path.is_symlink())
    places = [submission / name, submission / "starter" / name, *(path / name for path in below), submission]
    for place in places:
        if not place.is_symlink() and any((place / needed).exists() for needed in kit.needed):
            return place
    return places[0]


def _entries(submission: Path, lesson: str) -> Iterator[Path]:
    """Give every file below the folder, sorted, without following links, caches, repositories and other lessons."""
    others = [name for number, name in LESSON_FOLDERS.items() if number != lesson]
    skipped = ("__pycache__", ".git", *others)
    for root, folders, names in os.walk(submission, followlinks=False):
        linked = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in (*skipped, *linked))
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
