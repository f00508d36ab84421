"""Which files the kit names: those of each lesson, the manifest, and how large each may be."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from labkit.workspace import kit_root

MANIFEST = "statelab-submission.json"
MAX_FILE_BYTES = 1024 * 1024
MAX_NOTEBOOK_BYTES = 4 * 1024 * 1024
MAX_NOTEBOOKS = 8


class KitFiles(NamedTuple):
    """The files of one lesson, by their names below its folder: those that must be there, and those that may.

    What stands in the folder `given` of the kit is not taken either: it is laid down from there.
    """

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    given: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """Every name that is taken."""
        return (*self.needed, *self.optional)

    def given_bytes(self, name: str) -> bytes | None:
        """Give the kit's own file of this name, if the lesson is laid down with one."""
        return _given(self.given).get(name)


KIT_FILES = {
    "22": KitFiles(("__init__.py", "session_store.py"), ("event_line.py", "todo.py", "homework.py")),
    "04": KitFiles(
        ("issue_garden/state_store.py", "issue_garden/stateful_round.py"), given="assets/lesson-04-state"
    ),
}


@cache
def _given(folder: str) -> dict[str, bytes]:
    root = kit_root() / folder
    return (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        if folder
        else {}
    )


@cache
def last_names() -> frozenset[str]:
    """Give the last parts of all names that may have to be read: whoever reads forward only keeps these."""
    names = {MANIFEST}
    for kit in KIT_FILES.values():
        names.update(kit.named, _given(kit.given))
    return frozenset(name.rpartition("/")[2] for name in names)


def is_notebook(name: str) -> bool:
    """Say whether a name is a notebook's."""
    return name.lower().endswith(".ipynb")


def most_bytes(name: str) -> int:
    """Give how large a file of this name may be, in bytes."""
    return MAX_NOTEBOOK_BYTES if is_notebook(name) else MAX_FILE_BYTES


def may_be_taken(name: str) -> bool:
    """Say by its last part whether a file may have to be read at all."""
    return is_notebook(name) or name.rpartition("/")[2] in last_names()
