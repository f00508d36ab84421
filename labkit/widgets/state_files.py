"""The live view of a state folder: its tree, one file, and what changed since the last action."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ipywidgets

from labkit import views
from labkit.watch import Watch
from labkit.widgets import parts
from labkit.words import language, t

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class StateFiles(ipywidgets.VBox):
    """Shows ``folder`` as it is on disk, and follows any change, whoever made it; ``only`` names the parts to show."""

    def __init__(self, folder: Path, only: Sequence[str] = ()) -> None:
        self.folder, self.only = folder, only
        self._since = views.remember(folder, only)
        self.files = parts.Files(words={name: t(f"files.{name}") for name in ("title", "content", "follow")})
        self.status = parts.Status()
        self.files.observe(lambda _change: self.look(), "chosen")
        mark = parts.button(t("files.mark"), self.mark)
        super().__init__((self.files, ipywidgets.Box((mark,)), self.status))
        self.look()
        self._watch = Watch(folder, self.look)

    def mark(self) -> None:
        """Compare with this moment from now on: call it before an action, to see what the action changed."""
        self._since = views.remember(self.folder, self.only)
        self.look()

    def look(self) -> None:
        """Read the folder and draw what is there."""
        tree = views.tree(self.folder, self._since, self.only)
        shown = self.files.chosen or tree.latest
        view = (
            views.file_view(self.folder, shown, self._since)
            if shown
            else views.FileView(views.FileKind.ABSENT)
        )
        self.files.view = {
            "entries": [_entry(one) for one in tree.entries],
            "shown": shown,
            "pinned": bool(self.files.chosen),
            "sentence": views.tree_sentence(tree),
            "note": views.file_sentence(view) if shown else "",
            "lines": [asdict(line) for line in view.lines],
        }
        self.status.text = views.changes_sentence(tree)

    def close(self) -> None:
        """Stop watching, then close as any widget."""
        self._watch.close()
        super().close()


def _entry(entry: views.Entry) -> dict[str, Any]:
    sized = entry.kind == "file" and entry.change is not views.Change.GONE
    return {
        "path": entry.path,
        "kind": entry.kind,
        "change": entry.change,
        "size": _size(entry.size, language()) if sized else "",
        "badge": "" if entry.change is views.Change.SAME else t(f"files.{entry.change}"),
    }


@lru_cache(maxsize=4096)
def _size(size: int, _language: str) -> str:
    return t("files.size", n=size)
