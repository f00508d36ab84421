"""The control room of lesson 04: real commands in the learner's lab, and beside them what the disk then holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import ipywidgets

from labkit import lab_actions, views
from labkit.lab_actions import Answer
from labkit.widgets import parts
from labkit.widgets.console import Console
from labkit.widgets.crash_dial import CrashDial
from labkit.widgets.spine_board import SpineBoard
from labkit.widgets.tasks import Tasks
from labkit.words import t

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from labkit.widgets.console import Work


class ControlRoom(ipywidgets.VBox):
    """Acts on one lab. Each click has an awaitable form that takes the same way."""

    GROUPS = (
        ("task", ("task", "task-name", "task-spacing", "back-to-inbox")),
        ("ground", ("contract", "head", "tree")),
        ("phase", ("phase-claiming", "phase-agent_running", "phase-agent_finished")),
        ("delete", ("delete-claim", "delete-facts", "delete-state")),
        ("damage", ("half-state", "event-type", "event-time")),
    )
    """What can be changed behind the runner's back, as the list groups it."""
    kinds = tuple(kind for _, kinds in GROUPS for kind in kinds)

    def __init__(self, lab: Path, code: str | None) -> None:
        self.lab, self.code = lab, code
        self._tampering: lab_actions.Tampering | None = None
        self._exists: bool | None = None
        self._tasks = Tasks(self._failed)
        self.console = Console(self._before, self._after)
        self.dial = CrashDial(lab)
        self.board = SpineBoard(lab, self._looked)
        super().__init__(self._lay_out())
        self.add_class("lab-room")

    # --- actions ---

    def make(self) -> Awaitable[Answer]:
        """Lay a lab down where there is none."""
        return self.console.begin(t("room.make"), lambda: self._lay(lab_actions.new_command))

    def lay_overlay(self) -> Awaitable[Answer]:
        """Copy lesson 04's files into a lab that has only those of the lessons before."""
        return self._in_lab(t("room.overlay"), self._lay_overlay, lambda _answer: t("room.laid"))

    def interrupt(self) -> Awaitable[Answer]:
        """Claim the first task and end at the checkpoint, on purpose."""
        return self._round(t("room.interrupt"), interrupt=True)

    def resume(self) -> Awaitable[Answer]:
        """Run a round. That it resumes is not said here: the runner reads it from the disk."""
        return self._round(t("room.resume"))

    def run(self) -> Awaitable[Answer]:
        """Run a round."""
        return self._round(t("room.run"))

    def crash_at(self, number: int, *, halfway: bool = False) -> Awaitable[Answer]:
        """Run a round that is killed before its ``number``th operation that changes the disk, or ``halfway`` through it.

        Raises: ValueError for a number below 1.
        """
        if number < 1:
            raise ValueError(f"crash_at: no operation {number}; they are counted from 1")
        crashing = lab_actions.crashing_command(self.lab, number, halfway=halfway)
        return self._in_lab(
            t("room.crash"),
            lambda: self._run_within(crashing),
            lambda answer: views.crash_sentence(number, answer.struck),
        )

    def tamper(self, kind: str) -> Awaitable[Answer]:
        """Change one thing behind the runner's back; ``kinds`` lists what. Raises: LookupError for any other."""
        if kind not in self.kinds:
            raise LookupError(f"tamper: no kind {kind!r}; choose one of {', '.join(self.kinds)}")
        what = t(f"tamper.{kind}")
        return self._in_lab(
            what, lambda: self._tamper(kind), lambda answer: _touched("tampered", answer, what)
        )

    def put_back(self) -> Awaitable[Answer]:
        """Undo the last tampering, byte for byte."""
        return self._in_lab(
            t("room.put-back"), self._put_back, lambda answer: _touched("was-put-back", answer)
        )

    def reset(self) -> Awaitable[Answer]:
        """Set the lab aside under its time, and lay a fresh one down."""
        return self.console.begin(t("room.reset"), lambda: self._lay(lab_actions.reset_command))

    def stop(self) -> None:
        """End what is running, with everything that it started."""
        self.console.stop()

    async def operations(self) -> list[dict[str, Any]]:
        """Return what the next round does to the disk, found out on a copy: ``op``, ``path``, ``to``, ``size``.

        Raises: OSError when there is no lab, or it cannot be copied.
        """
        return await self.dial.operations()

    async def settled(self) -> None:
        """Wait until nothing is running, and show what is on disk then."""
        await self._tasks.settled()
        for task in (self.console.task, self.dial.counting):
            if task:
                await asyncio.wait([task])
        self.board.look()

    def close(self) -> None:
        """End what is running, stop watching, then close as any widget."""
        self._tasks.cancel()
        self.dial.forget()
        self.console.close()
        self.board.close()
        super().close()

    # --- how they are carried out ---

    def _in_lab(
        self, what: str, work: Work, say: Callable[[Answer], str] = lambda _answer: ""
    ) -> Awaitable[Answer]:
        """Begin a piece of work that needs a lab; where there is none, that is the answer."""

        async def carry_out() -> Answer:
            if not self.lab.is_dir():
                return Answer(refused=t("room.no-lab", folder=views.shown_path(self.lab)))
            return await work()

        return self.console.begin(what, carry_out, say)

    def _round(self, what: str, *, interrupt: bool = False) -> Awaitable[Answer]:
        command = lab_actions.round_command(self.lab, interrupt=interrupt)
        return self._in_lab(what, lambda: self.console.run(command))

    async def _run_within(self, commands: AbstractContextManager[lab_actions.Command]) -> Answer:
        with commands as command:
            return await self.console.run(command)

    async def _tamper(self, kind: str) -> Answer:
        self._tampering = await asyncio.to_thread(lab_actions.tamper, self.lab, kind)
        return Answer(paths=self._tampering.paths)

    async def _put_back(self) -> Answer:
        if self._tampering is None:
            return Answer(refused=t("room.nothing-to-put-back"))
        await asyncio.to_thread(lab_actions.put_back, self.lab, self._tampering)
        paths, self._tampering = self._tampering.paths, None
        return Answer(paths=paths)

    async def _lay(self, command: Callable[[Path, str], lab_actions.Command]) -> Answer:
        code = await asyncio.to_thread(lab_actions.code_to_lay, self.lab, self.code)
        self._tampering = None
        return await self.console.run(command(self.lab, code))

    async def _lay_overlay(self) -> Answer:
        code = await asyncio.to_thread(lab_actions.code_to_lay, self.lab, self.code)
        await asyncio.to_thread(lab_actions.lay_overlay, self.lab, code)
        return Answer()

    # --- around each of them ---

    def _before(self) -> None:
        self.dial.forget()
        self.board.mark()

    async def _after(self) -> None:
        await self._learn_code()
        self.board.look()
        self.dial.count()

    def _looked(self, view: views.SpineView) -> None:
        """Learn anew whose code there is when the lab has come or gone: what can be done with it changes with it."""
        if view.exists != self._exists:
            self._exists = view.exists
            self._tasks.start(self._learn_code, t("room.title"))

    async def _learn_code(self) -> None:
        code = await asyncio.to_thread(lab_actions.code_of, self.lab)
        key = f"code-{code.holds}" if code else "no-lab"
        said = t(f"room.{key}", folder=views.shown_path(self.lab), chosen=code.made_for if code else "")
        self.notice.text = f"{said} {code.problem}" if code and code.problem else said
        self.make_button.layout.display = None if code is None else "none"
        self.overlay_button.layout.display = None if code and code.holds == "none" else "none"

    def _failed(self, what: str, error: BaseException) -> None:
        self.notice.text = t("room.failed", what=what, error=parts.in_one_line(error))

    # --- controls ---

    def _lay_out(self) -> tuple[ipywidgets.Widget, ...]:
        self.notice = parts.Heading()
        self.make_button = parts.button(t("room.make"), self.make)
        self.overlay_button = parts.button(t("room.overlay"), self.lay_overlay)
        board, console = self.board, self.console
        beside = parts.row(console, board.timeline)
        beside.add_class("lab-beside")
        return (
            self.notice,
            parts.row(self.make_button, self.overlay_button),
            board.head,
            board.diagram,
            parts.row(self._run_controls(), self._reset_controls()),
            self._crash_controls(),
            self._tamper_controls(),
            beside,
            board.files,
        )

    def _run_controls(self) -> ipywidgets.Widget:
        buttons = (
            parts.button(t("room.interrupt"), self.interrupt),
            parts.button(t("room.resume"), self.resume),
            parts.button(t("room.run"), self.run),
        )
        return parts.group(t("room.group-run"), parts.row(*buttons))

    def _reset_controls(self) -> ipywidgets.Widget:
        return parts.group(t("room.group-reset"), parts.row(parts.button(t("room.reset"), self.reset)))

    def _crash_controls(self) -> ipywidgets.Widget:
        self.when = parts.Choice(
            label=t("room.when"),
            options=[["before", t("room.before")], ["halfway", t("room.halfway")]],
            value="before",
        )
        crash = parts.button(t("room.crash"), self._crash_as_dialled)
        return parts.group(t("room.group-crash"), self.dial, parts.row(self.when, crash))

    def _tamper_controls(self) -> ipywidgets.Widget:
        groups = [
            [t(f"tamper.group-{name}"), [[kind, t(f"tamper.{kind}")] for kind in kinds]]
            for name, kinds in self.GROUPS
        ]
        self.kind = parts.Select(label=t("room.tamper-with"), groups=groups, value="task")
        tamper = parts.button(t("room.tamper"), lambda: self.tamper(self.kind.value))
        put_back = parts.button(t("room.put-back"), self.put_back)
        return parts.group(t("room.group-tamper"), parts.row(self.kind, tamper, put_back))

    def _crash_as_dialled(self) -> Awaitable[Answer]:
        return self.crash_at(self.dial.value, halfway=self.when.value == "halfway")


def _touched(key: str, answer: Answer, what: str = "") -> str:
    return t(f"room.{key}", what=what, names=", ".join(answer.paths))
