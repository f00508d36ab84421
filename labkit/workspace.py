"""Where things are, and which code the learner is on.

The only reader of ``LAB_TARGET`` (``starter``, ``solution`` or a folder), ``LAB_STATE`` (the user's own state folder) and
``LAB_LANG`` (``zh`` or ``en``).
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import locale
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal

import platformdirs

LESSON_FOLDERS = {"22": "lesson_22", "04": "lesson_04"}
"""Lesson number -> folder name below ``starter/``, ``solution/`` or a submission."""
HOMEWORK, HOMEWORK_FILE = "22-homework", "homework.py"
"""What is asked for by this name in place of a lesson: one file in the folder of lesson 22."""
LEFT_OUT = "solution/LEFT-OUT.md"
"""Lies in a kit that was handed out without the bodies of the reference (`statelab bundle`), and says so."""


class WorkspaceError(Exception):
    """Something that should be there is not; says where, what, and what to do next."""


def kit_root() -> Path:
    """Return the folder that holds ``pyproject.toml``, ``notebooks``, ``starter`` and ``solution``."""
    return Path(__file__).resolve().parent.parent


def target() -> str:
    """Return the code that is being worked on: ``starter`` (default), ``solution``, or a folder."""
    return os.environ.get("LAB_TARGET") or "starter"


def reference_left_out() -> bool:
    """Tell whether this kit was handed out to students without the reference's answers."""
    return (kit_root() / LEFT_OUT).is_file()


def target_folder(name: str | None = None) -> Path:
    """Return the folder that holds the lesson folders of a target. Raises: WorkspaceError when there is none."""
    chosen = name or target()
    folder = kit_root() / chosen if chosen in ("starter", "solution") else Path(chosen).expanduser().resolve()
    if not folder.is_dir():
        raise WorkspaceError(f"{chosen}: no such folder; name starter, solution, or a folder that exists")
    return folder


def lesson_source(lesson: str, name: str | None = None) -> Path:
    """Return the folder of one lesson's code. Raises: WorkspaceError when the lesson or the folder is unknown."""
    folder = target_folder(name) / lesson_folder(lesson)
    if not folder.is_dir():
        raise WorkspaceError(f"{folder}: missing; make the starter again with 'statelab workspace reset'")
    return folder


def lesson_folder(lesson: str) -> str:
    """Return the name of a lesson's folder; the homework lies in that of its lesson. Raises: WorkspaceError."""
    number = "22" if lesson == HOMEWORK else lesson
    if number not in LESSON_FOLDERS:
        raise WorkspaceError(f"lesson {lesson}: unknown; choose one of {', '.join(LESSON_FOLDERS)}")
    return LESSON_FOLDERS[number]


def load_lesson(lesson: str, name: str | None = None, module: str = "") -> ModuleType:
    """Return the lesson's package, or one ``module`` of it, made from the files as they are at this moment.

    Nothing is cached between two different versions of the files, so an edit is seen without restarting the kernel.

    Raises: WorkspaceError for a missing folder; whatever the code itself raises while it is imported.
    """
    folder = lesson_source(lesson, name)
    package = f"_lab_{folder.name}_{_fingerprint(folder)}"
    if package not in sys.modules:
        sys.meta_path.insert(0, _FreshFinder(package, folder))
    return importlib.import_module(f"{package}.{module}" if module else package)


def language() -> Literal["zh", "en"]:
    """Return the learner's language: what ``LAB_LANG`` says, else that of the system."""
    # The names are read first: Python knows no locale that is set but not installed, as on a bare machine.
    names = (os.environ.get(name) for name in ("LAB_LANG", "LC_ALL", "LC_MESSAGES", "LANG"))
    wanted = next(filter(None, names), None) or locale.getlocale()[0] or ""
    return "zh" if wanted.lower().startswith(("zh", "chinese")) else "en"


def state_folder() -> Path:
    """Return the user's own folder for progress and records, made private (mode 0700), outside any work tree."""
    chosen = os.environ.get("LAB_STATE")
    folder = (
        Path(chosen).expanduser()
        if chosen
        else Path(platformdirs.user_state_dir("agent-state-lab", appauthor=False))
    )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def scratch(name: str) -> Path:
    """Return the learner's playground ``workspace/NAME``, made if missing. Git ignores it."""
    folder = kit_root() / "workspace" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def set_aside(path: Path, into: Path | None = None) -> Path:
    """Rename a file or folder to ``NAME.aside-TIME``, beside it or ``into`` a folder; return the new path. Never deletes.

    Raises: WorkspaceError when there is nothing to set aside.
    """
    if not path.exists():
        raise WorkspaceError(f"{path}: nothing there to set aside; check the name")
    name = f"{path.name}.aside-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    folder, attempt = into or path.parent, 1
    aside = folder / name
    while aside.exists():
        attempt += 1
        aside = folder / f"{name}-{attempt}"
    return path.rename(aside)


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256(str(folder).encode())
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"\0{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class _SourceOnlyLoader(importlib.machinery.SourceFileLoader):
    """Compiles the file as it is: byte code may be stale when two edits fall into one second."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _FreshFinder(importlib.abc.MetaPathFinder):
    """Finds one version of one lesson folder under a name of its own."""

    def __init__(self, package: str, folder: Path) -> None:
        self.package, self.folder = package, folder

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 — the finder protocol's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.package and not fullname.startswith(self.package + "."):
            return None
        place = self.folder.joinpath(*fullname.split(".")[1:])
        is_package = place.is_dir()
        file = place / "__init__.py" if is_package else place.with_suffix(".py")
        if not file.is_file():
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            file,
            loader=_SourceOnlyLoader(fullname, str(file)),
            submodule_search_locations=[str(place)] if is_package else None,
        )
