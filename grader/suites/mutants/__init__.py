"""Wrong stores that the suite must fail, each by the check meant for it; right ones in other styles that must pass.

A sample of lesson 22 is one `session_store.py`, laid by machine over the other files of the solution's folder. Most are
small edits of the plain store beside this file, so that each mutant differs from right code in its one mistake. Those
of lesson 04 have a folder of their own.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.workspace import lesson_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.suites.check import Text

STORE = "session_store.py"
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Sample:
    """One store: an idea, and the edits that make it from a base (the folder of that name beside this file).

    `caught_by` is the id of the check meant to fail it; None for a right store.
    """

    id: str
    idea: Text
    edits: tuple[tuple[str, str], ...] = ()
    caught_by: str | None = None
    base: str = "plain"

    def source(self) -> str:
        """Give the text of its `session_store.py`. Raises `ValueError` when an edit no longer fits its base."""
        return edited(self.id, (HERE / self.base / STORE).read_text(encoding="utf-8"), self.edits)

    def lay_down(self, folder: Path) -> Path:
        """Make a submission with this store below `folder`; give the path of its `lesson_22`."""
        package = folder / "lesson_22"
        shutil.copytree(
            lesson_source("22", "solution"), package, ignore=shutil.ignore_patterns("__pycache__")
        )
        (package / STORE).write_text(self.source(), encoding="utf-8")
        return package


def edited(name: str, text: str, edits: Iterable[tuple[str, str]]) -> str:
    """Make the edits of the sample `name`, each in the one place that it fits. Raises: ValueError when it does not."""
    for before, after in edits:
        if text.count(before) != 1:
            found = text.count(before)
            raise ValueError(
                f"{name}: an edit fits its base {found} times, not once: {before.strip()[:60]!r}"
            )
        text = text.replace(before, after)
    return text
