"""What was graded, and what it was judged by, as SHA-256: two gradings with both in common are one."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from grader.suites import JUDGED, package_of
from labkit.workspace import HOMEWORK, kit_root

if TYPE_CHECKING:
    from grader.intake import Handin
    from grader.settings import Settings

# Files that can change an outcome, by lesson, below the kit: the grader itself, and what the code is laid into.
_JUDGES = ("grader", "labkit/faults/file_layer.py")
_LABS = {
    "22": (),
    HOMEWORK: (),
    "04": ("assets/issue-garden-lab", "assets/lesson-03-result", "assets/lesson-04-state"),
    "notebooks": ("labkit", "solution", "starter", "assets"),
}
_NO_JUDGES = ("grader/report", "grader/suites/mutants")


def content_of(handin: Handin) -> str:
    """Hash what was taken: the files by name, or the reason why there is nothing to grade."""
    problem = handin.problem.en if handin.problem else ""
    parts = [handin.lesson.encode(), problem.encode("utf-8", "surrogateescape")]
    for name in sorted(handin.files):
        parts += [name.encode("utf-8", "surrogateescape"), handin.files[name]]
    return _digest(parts)


def content_of_notebooks(notebooks: Mapping[str, bytes], handins: Iterable[Handin]) -> str:
    """Hash what is executed: the notebooks by name, and the lessons that they import."""
    parts = [
        part
        for name in sorted(notebooks)
        for part in (name.encode("utf-8", "surrogateescape"), notebooks[name])
    ]
    return _digest([*parts, b"", *(content_of(handin).encode() for handin in handins)])


def suite_of(lesson: str, settings: Settings, rung: str) -> str:
    """Hash what a lesson (or `notebooks`) is judged by: the checks and the grader's own files, limits and points, the isolation."""
    rules = {"limits": asdict(settings.limits_of(lesson)), "points": dict(settings.points.get(lesson, {}))}
    return _digest([_files_of(lesson).encode(), json.dumps(rules, sort_keys=True).encode(), rung.encode()])


def together(digests: Iterable[str]) -> str:
    """Hash several hashes, in their order."""
    return _digest(digest.encode() for digest in digests)


@functools.cache
def _files_of(lesson: str) -> str:
    others = [f"grader/suites/{package_of(other)}/" for other in JUDGED if other != lesson]
    root = kit_root()
    parts = []
    for place in (*_JUDGES, *_LABS[lesson]):
        for path in _files(root / place):
            name = path.relative_to(root).as_posix()
            if not name.startswith((*_NO_JUDGES, *others)):
                parts += [name.encode(), path.read_bytes()]
    return _digest(parts)


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    return sorted(path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _digest(parts: Iterable[bytes]) -> str:
    """Hash parts so that no two lists of them share a hash: each is preceded by its length."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()
