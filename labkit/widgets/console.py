"""One command at a time: its lines as it prints them, its exit code and answer, a button to stop it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import ipywidgets

from labkit import lab_actions, views
from labkit.lab_actions import Answer, Command
from labkit.widgets import parts
from labkit.widgets.spine_board import SpinePart
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labkit.owned_child import OwnedChild, Spoken

    Work = Callable[[], Coroutine[Any, Any, Answer]]


class Transcript(SpinePart):
    """What the last command printed, as it prints it."""

    _esm = parts.script("transcript.js")


class Console(ipywidgets.VBox):
    """Carries out one piece of work after the other; while one is under way, another is refused in words.

    ``before`` is called when a piece of work begins; ``after`` when it has ended and before its answer is given.
    """

    def __init__(self, before: Callable[[], object], after: Callable[[], Awaitable[object]]) -> None:
        self._before, self._after = before, after
        self._busy = ""
        self._child: OwnedChild | None = None
        self._stopped = False
        self._runs = 0
        self.task: asyncio.Task[Answer] | None = None
        self.status = parts.Status(text=t("room.ready"))
        self.stop_button = parts.button(t("room.stop"), self.stop)
        self.transcript = Transcript(words={"title": t("room.output")})
        self.answer = parts.Panel(words={**parts.panel_words(), "title": t("room.answer")})
        self._show_lines((), 0)
        self._show_busy("")
        self.status.add_class("lab-grows")
        super().__init__((parts.row(self.status, self.stop_button), self.transcript, self.answer))

    def begin(
        self, what: str, work: Work, say: Callable[[Answer], str] = lambda _answer: ""
    ) -> Awaitable[Answer]:
        """Start a piece of work, called ``what``; ``say`` tells in a sentence what came of it.

        Nothing that goes wrong is raised: the answer's ``refused`` says it. Raises: RuntimeError without an event loop.
        """
        loop = asyncio.get_running_loop()
        if self._busy:
            self.status.text = t("room.busy", running=self._busy)
            refusal: asyncio.Future[Answer] = loop.create_future()
            refusal.set_result(Answer(refused=self.status.text))
            return refusal
        self._stopped = False
        self._show_busy(what)
        self.status.text = t("room.running", what=what)
        self.task = loop.create_task(self._carry_out(what, work, say))
        return self.task

    async def run(self, command: Command) -> Answer:
        """Run a command as part of a piece of work."""
        await asyncio.to_thread(lab_actions.environment)  # the first time, it looks for Node
        self._runs += 1
        self.answer.view = parts.panel_trait((), ())
        self._child = child = lab_actions.begin(command, self._heard)
        if self._stopped:  # before it could begin
            child.stop()
        try:
            answer = lab_actions.answer_of(await child.ended(), command)
        finally:
            child.stop()
            self._child = None
        self._show_lines(answer.lines, answer.dropped_lines)
        self.answer.view = parts.panel_trait([views.command_card(answer, answer.signal, answer.json)], ())
        return answer

    def stop(self) -> None:
        """End the command that is running, or is about to, with everything that it started."""
        self._stopped = True
        if self._child:
            self._child.stop()

    def close(self) -> None:
        """End what is under way, then close as any widget."""
        if self.task:
            self.task.cancel()
        super().close()

    async def _carry_out(self, what: str, work: Work, say: Callable[[Answer], str]) -> Answer:
        began = time.monotonic()
        self._before()
        try:
            answer = await work()
            self.status.text = answer.refused or self._how_it_ended(what, answer, began, say)
        except Exception as error:  # noqa: BLE001 - whatever a lab's disk, Git or files come up with is said in words
            self.status.text = t("room.failed", what=what, error=parts.in_one_line(error))
            answer = Answer(refused=self.status.text)
        finally:
            self._show_busy("")
        await self._after()
        return answer

    def _how_it_ended(self, what: str, answer: Answer, began: float, say: Callable[[Answer], str]) -> str:
        if self._stopped:
            return t("room.stopped", what=what)
        if said := say(answer):
            return said
        seconds = f"{time.monotonic() - began:.1f}"
        if answer.signal is not None:
            return t("room.killed", what=what, signal=answer.signal, seconds=seconds)
        return t("room.ended", what=what, code=answer.exit_code, seconds=seconds)

    def _heard(self, child: OwnedChild) -> None:
        self._show_lines(child.said(), child.dropped_lines)

    def _show_lines(self, lines: Sequence[Spoken], dropped: int) -> None:
        note = t("room.dropped", n=dropped) if dropped else "" if lines else t("room.no-output")
        self.transcript.view = {
            "run": self._runs,
            "first": dropped,
            "lines": [[line.stream, line.text] for line in lines],
            "note": note,
        }

    def _show_busy(self, what: str) -> None:
        self._busy = what
        self.stop_button.layout.display = None if what else "none"
