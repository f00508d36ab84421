"""One log on screen: its bytes, the kit's verdict beside the learner's, and the tasks that it replays to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from labkit import views, workspace
from labkit.widgets import parts
from labkit.widgets.patience import GaveUpError, beside
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from labkit.widgets.tasks import Tasks

    Notes = Callable[[views.ReadReport, views.ByteView], Iterable[views.Line | None]]

QUICK_BYTES = 64 * 1024
"""Up to this size the learner's ``read`` is asked at once; beyond it, when the file has rested for a moment."""
REST_SECONDS = 0.15
GRACE_SECONDS = 0.05
"""How long to wait for the learner's answer before the kit's verdict is shown without it."""


class LogView:
    """Draws what a file holds, and nothing else. ``notes`` adds sentences to the verdict."""

    def __init__(
        self, path: Path, target: str, tasks: Tasks, notes: Notes = lambda _report, _view: ()
    ) -> None:
        self.bytes = parts.Bytes(words=parts.bytes_words())
        self.panel = parts.Panel(words=parts.panel_words())
        self.target = target
        self._tasks, self._notes = tasks, notes
        self._asking: asyncio.Task[None] | None = None
        self.open(path)

    def open(self, path: Path) -> None:
        """Turn to another file; the next ``draw`` shows it."""
        self.path = path
        self._reader = views.LogReader(path)
        self.drawn: bytes | None = None

    def is_stale(self) -> bool:
        """Whether the file no longer holds what is on the screen."""
        return self._reader.read()[0] != self.drawn

    def standing(self, before: bytes) -> bytes:
        """Return what of ``before`` still stands in the file, after an append that may have cut it first."""
        return views.standing(before, self._reader.read()[0])

    def draw(self, focus: int | None = None, before: bytes | None = None) -> None:
        """Read the file and show it around ``focus``, with what differs from ``before`` marked as changed."""
        self.drawn, report = self._reader.read()
        view = views.byte_view(self.drawn, report, focus=focus, before=before)
        self.bytes.view = parts.bytes_trait(view, views.shown_path(self.path))
        if self._asking:
            self._asking.cancel()
        self._asking = self._tasks.start(lambda: self._ask(report, view), t("report.yours"))

    async def _ask(self, report: views.ReadReport, view: views.ByteView) -> None:
        if report.size > QUICK_BYTES:
            await asyncio.sleep(REST_SECONDS)
        state = views.task_table(report, views.task_state(report.events))
        asking = asyncio.ensure_future(self._answer())
        try:
            await asyncio.wait({asking}, timeout=GRACE_SECONDS)
            if not asking.done():
                self._draw_panel(report, view, state, None)
            self._draw_panel(report, view, state, await asking)
        finally:
            asking.cancel()

    async def _answer(self) -> views.Answer:
        try:
            return await beside(lambda: views.ask(self.open_yours, self.path))
        except GaveUpError as gave_up:
            return views.Answer(views.Answered.SILENT, message=str(gave_up))

    def _draw_panel(
        self,
        report: views.ReadReport,
        view: views.ByteView,
        tasks: views.TaskTable,
        answer: views.Answer | None,
    ) -> None:
        self.panel.view = parts.panel_trait(
            cards=(views.report_card(report), views.answer_card(answer)),
            lines=(views.agreement(report, answer), *self._notes(report, view)),
            tasks=tasks,
        )

    def open_yours(self, path: Path) -> Any:
        """Open the learner's store on a log, from the lesson's files as they are at this moment."""
        return workspace.load_lesson("22", self.target).JsonlSessionStore(path)
