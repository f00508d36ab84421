"""The corruption zoo, to browse: one log at a time, its bytes, the right verdict and the learner's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets

from labkit import views
from labkit.widgets import parts
from labkit.widgets.log_view import LogView
from labkit.widgets.tasks import Tasks
from labkit.words import language, t

if TYPE_CHECKING:
    from pathlib import Path


class Zoo(ipywidgets.VBox):
    """Shows the logs of ``folder`` as they are on disk; reading changes none of them."""

    def __init__(self, folder: Path, target: str) -> None:
        self.exhibits = {one.path.name: one for one in views.zoo(folder)}
        names = list(self.exhibits)
        self.select = parts.Select(
            label=t("zoo.choose", n=len(names)),
            groups=[[t(f"zoo.{kind}"), self._names(kind)] for kind in ("sound", "torn", "corrupt")],
            value=names[0],
        )
        self.story = parts.Status()
        self.tasks = Tasks(self._failed)
        self.view = LogView(self.exhibits[names[0]].path, target, self.tasks)
        self.select.observe(lambda _change: self._show(), "value")
        super().__init__((self.select, self.story, self.view.bytes, self.view.panel))
        self._show()

    def show(self, name: str) -> None:
        """Turn to one log by its file name. Raises: LookupError when the zoo has none of that name."""
        if name not in self.exhibits:
            raise LookupError(f"zoo: no log {name!r}; its files are in assets/corruption-zoo")
        self.select.value = name

    async def settled(self) -> None:
        """Wait until the learner's answer is drawn."""
        await self.tasks.settled()

    def _show(self) -> None:
        exhibit = self.exhibits[self.select.value]
        self.story.text = exhibit.story[language()]
        self.view.open(exhibit.path)
        self.view.draw()

    def _names(self, kind: str) -> list[str]:
        return [name for name, one in self.exhibits.items() if one.kind == kind]

    def _failed(self, what: str, error: BaseException) -> None:
        self.story.text = t("torn.failed", what=what, error=parts.in_one_line(error))
