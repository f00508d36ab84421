"""What intake gives: plain values that pickle. One lesson's hand-in, and the whole submission."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from grader.intake.manifest import Manifest
from grader.suites.check import Text
from labkit.workspace import HOMEWORK, HOMEWORK_FILE, lesson_folder

ARCHIVES = (".tar.gz", ".tar.bz2", ".tar.xz", ".zip", ".tar", ".tgz", ".tbz2", ".txz")


class LeftOut(NamedTuple):
    """A file that was not taken: its name below the submission, and why: a key of `reasons.LEFT_OUT`."""

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
        return lesson_folder(self.lesson)

    def homework(self) -> Handin:
        """Give the homework that lies in this hand-in of lesson 22: its one file, to be judged by itself."""
        if HOMEWORK_FILE in self.files:
            return Handin(HOMEWORK, {HOMEWORK_FILE: self.files[HOMEWORK_FILE]}, self.left_out)
        path = f"{self.package}/{HOMEWORK_FILE}"
        return Handin(HOMEWORK, {}, self.left_out, Text(f"缺少 {path}", f"{path} is not there"))

    def lay_down(self, code: Path) -> None:
        """Write the files below `code`, as the package that the child loads."""
        folder = code / self.package
        folder.mkdir()
        folder.chmod(0o755)  # for a child that is another user, whatever the umask
        for name, raw in self.files.items():
            (folder / name).write_bytes(raw)
            (folder / name).chmod(0o644)


@dataclass(frozen=True, slots=True)
class Opened:
    """One submission: what was taken from it, as bytes, and what there is to say about it.

    handed_in   name of the file or folder, in UTF-8
    form        `folder`, `zip`, `tar` or `git`; "" when it could not be told
    handins     one for each lesson, also for one that was not handed in (its `problem` says so)
    notebooks   notebooks by their names below the submission
    left_out    files that were not taken, of all lessons
    manifest    what `statelab submit` wrote, if it is there and can be read
    notes       what an instructor should know, and what costs nothing
    problem     why nothing can be graded at all; then there are no files
    """

    handed_in: str
    form: str = ""
    handins: Mapping[str, Handin] = field(default_factory=dict)
    notebooks: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    manifest: Manifest | None = None
    notes: tuple[Text, ...] = ()
    problem: Text | None = None

    def handin(self, lesson: str) -> Handin:
        """Give the hand-in of one lesson, or of the homework; when nothing can be graded, it says why."""
        if lesson == HOMEWORK and "22" in self.handins:
            return self.handins["22"].homework()
        return self.handins.get(lesson) or Handin(lesson, problem=self.problem)

    @property
    def student(self) -> str:
        """Whose it is by its own word: the manifest's student id, else the name without its ending."""
        return self.manifest.student if self.manifest else name_without_ending(self.handed_in)

    @property
    def content(self) -> str:
        """SHA-256 of the lessons' files (`content_hash`), "" when there are none."""
        files = kit_paths(self.handins)
        return content_hash(files) if files else ""


def kit_paths(handins: Mapping[str, Handin]) -> dict[str, bytes]:
    """Give all files of some hand-ins by their paths from the submission's root: `lesson_22/session_store.py`."""
    return {
        f"{handin.package}/{name}": raw for handin in handins.values() for name, raw in handin.files.items()
    }


def content_hash(files: Mapping[str, bytes]) -> str:
    """Give the SHA-256, in hex, of files by path: over JSON of path -> SHA-256, sorted, without spaces, ASCII."""
    digests = {path: hashlib.sha256(raw).hexdigest() for path, raw in files.items()}
    return hashlib.sha256(json.dumps(digests, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def name_without_ending(name: str) -> str:
    """Give a submission's name without an archive's ending."""
    ending = next((ending for ending in ARCHIVES if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)] or name
