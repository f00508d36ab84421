"""The corruption zoo, to browse: one log at a time, its bytes, the right verdict and the learner's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from labkit import views, workspace
from labkit.widgets import parts
from labkit.widgets.tasks import Tasks
from labkit.words import language, t

if TYPE_CHECKING:
    from pathlib import Path


class Zoo(ipywidgets.VBox):
    """Shows the logs of ``folder`` as they are on disk; reading changes none of them."""

    def __init__(self, folder: Path, target: str) -> None:
        self.target = target
        self.exhibits = {one.path.name: one for one in views.zoo(folder)}
        names = list(self.exhibits)
        self.select = parts.Select(
            label=t("zoo.choose", n=len(names)),
            groups=[[t(f"zoo.{kind}"), self._names(kind)] for kind in ("sound", "torn", "corrupt")],
            value=names[0],
        )
        self.story = parts.Status()
        self.bytes = parts.Bytes(words=parts.bytes_words())
        self.panel = parts.Panel(words=parts.panel_words())
        self.tasks = Tasks(self._failed)
        self.select.observe(lambda _change: self.show(), "value")
        super().__init__((self.select, self.story, self.bytes, self.panel))
        self.show()

    def show(self, name: str | None = None) -> None:
        """Show one log, by default the one that is selected."""
        if name and name != self.select.value:
            self.select.value = name  # comes back here
            return
        exhibit = self.exhibits[self.select.value]
        raw, report = views.LogReader(exhibit.path).read()
        view = views.byte_view(raw, report, focus=report.good_bytes)
        self.story.text = exhibit.story[language()]
        self.bytes.view = parts.bytes_trait(view, exhibit.path.name)
        self.tasks.cancel()
        self.tasks.start(lambda: self._ask(exhibit.path, report), t("report.yours"))

    async def settled(self) -> None:
        """Wait until the learner's answer is drawn."""
        await self.tasks.settled()

    async def _ask(self, path: Path, report: views.ReadReport) -> None:
        answer = await views.ask(self._open_yours, path)
        self.panel.view = parts.panel_trait(
            cards=(views.report_card(report), views.answer_card(answer)),
            lines=(views.agreement(report, answer),),
        )

    def _names(self, kind: str) -> list[str]:
        return [name for name, one in self.exhibits.items() if one.kind == kind]

    def _open_yours(self, path: Path) -> Any:
        return workspace.load_lesson("22", self.target).JsonlSessionStore(path)

    def _failed(self, what: str, error: BaseException) -> None:
        self.story.text = t("torn.failed", what=what, error=error)
