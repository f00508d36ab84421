"""The torn-write widget: cut, flip, damage and append on a real file, and read what every byte is then worth."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets

from labkit import actions, views, workspace
from labkit.naive import GluingStore
from labkit.watch import Watch
from labkit.widgets import parts
from labkit.widgets.tasks import Tasks
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK_BYTES = 64 * 1024
"""Up to this size the learner's ``read`` is asked at every step of the slider; beyond it, when the slider rests."""
REST_SECONDS = 0.15
GRACE_SECONDS = 0.05
"""How long to wait for the learner's answer before the kit's verdict is shown without it."""


class TornWrite(ipywidgets.VBox):
    """Acts on ``events.jsonl``, a copy of ``original.jsonl`` in ``folder``; draws only what that file holds."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self.target = folder, target
        self.original, self.copy = folder / "original.jsonl", folder / "events.jsonl"
        self.tasks = Tasks(self._failed)
        self._reader = views.LogReader(self.copy)
        self._drawn: bytes | None = None
        self._before: bytes | None = None
        self._focus: int | None = None
        self._damaging = self._appended = False
        self._asking: asyncio.Task[None] | None = None
        super().__init__(self._lay_out())
        self._watch = Watch(folder, self._look)
        self._code_watch: Watch | None = None
        self.tasks.start(self._begin, t("torn.title"))

    # --- clicks: one action each, then a look at the disk ---

    def cut(self, size: int) -> None:
        """Interrupt the last write at byte ``size``."""
        if self.slider.value == size:
            self._cut(size)
        self.slider.value = size

    def flip(self, offset: int | None = None, bit: int | None = None) -> None:
        """Turn one bit of the copy."""
        at = self.flip_at.value if offset is None else offset
        which = self.flip_bit.value if bit is None else bit
        self._act(
            t("torn.flip"),
            lambda: actions.flip_bit(self.copy, at, which),
            t("torn.did-flip", at=at, bit=which),
            focus=at,
            damaging=True,
        )

    def damage(self, line: int | None = None) -> None:
        """Make one line of the copy unreadable."""
        number = self.line.value if line is None else line
        self._act(
            t("torn.damage"),
            lambda: actions.damage_line(self.copy, number),
            t("torn.did-damage", line=number),
            focus=self._start_of_line(number),
            damaging=True,
        )

    def restore(self) -> None:
        """Put the original back, and the slider to its end."""
        if not self.original.exists():
            self.tasks.start(self._begin, t("torn.restore"))
            return
        self.slider.value = self.slider.high
        self._act(t("torn.restore"), lambda: actions.restore(self.original, self.copy), t("torn.did-restore"))
        self._before = None
        self._look(force=True)

    def append_yours(self) -> None:
        """Append through the learner's store, opened anew."""
        self.tasks.start(lambda: self._append(t("torn.yours"), self._open_yours), t("torn.append-yours"))

    def append_naive(self) -> None:
        """Append through the store that does not look at the end of the file."""
        self.tasks.start(lambda: self._append(t("torn.naive"), GluingStore), t("torn.append-naive"))

    async def settled(self) -> None:
        """Wait until everything that was begun has been done and drawn."""
        await self.tasks.settled()

    def close(self) -> None:
        """Stop watching, then close as any widget."""
        self._watch.close()
        if self._code_watch:
            self._code_watch.close()
        self.tasks.cancel()
        super().close()

    # --- how a click becomes bytes ---

    async def _begin(self) -> None:
        size = await actions.make_sample_log(self.original)
        actions.restore(self.original, self.copy)
        with self.slider.hold_sync():
            self.slider.high = size
            self.slider.value = size
        self._set_scope()
        self.flip_at.high = size - 1
        self.line.high = len(actions.SAMPLE_EVENTS)
        self._before = None
        self.status.text = t("torn.ready", size=size)
        self._look(force=True)
        self._code_watch = Watch(workspace.lesson_source("22", self.target), self._ask_again)

    async def _append(self, who: str, open_store: Callable[[Path], Any]) -> None:
        self._before = self.copy.read_bytes()
        self._damaging, self._appended, self._focus = False, True, None
        event = await actions.append_task(open_store, self.copy, t("torn.extra-title"))
        self.status.text = t("torn.did-append", store=who, sequence=event.sequence)
        self._look()

    def _cut(self, size: int) -> None:
        self._before, self._focus, self._damaging = None, size, False
        lost = self.slider.high - size

        def act() -> None:
            if (
                self._appended
            ):  # a new crash, a new beginning: nothing of the last append stays beside the log
                actions.restore(self.original, self.copy)
                self._appended = False
            actions.cut(self.original, self.copy, size)

        self._act(t("torn.cut"), act, t("torn.did-cut", at=size, lost=lost), focus=size, keep_before=True)

    def _act(
        self,
        what: str,
        act: Callable[[], object],
        done: str,
        *,
        focus: int | None = None,
        damaging: bool = False,
        keep_before: bool = False,
    ) -> None:
        try:
            if not keep_before:
                self._before = self.copy.read_bytes()
            act()
        except (OSError, ValueError) as error:
            self._failed(what, error)
            return
        self._focus, self._damaging = focus, damaging
        self.status.text = done
        self._look()

    def _failed(self, what: str, error: BaseException) -> None:
        self.status.text = t("torn.failed", what=what, error=_in_one_line(error))
        self._look()

    # --- from the disk to the screen ---

    def _look(self, *, force: bool = False) -> None:
        raw, report = self._reader.read()
        if raw == self._drawn and not force:
            return
        self._drawn = raw
        view = views.byte_view(raw, report, focus=self._focus, before=self._before)
        self.bytes.view = parts.bytes_trait(view, self._name())
        if self._asking:
            self._asking.cancel()
        self._asking = self.tasks.start(lambda: self._ask(report, view), t("report.yours"))

    def _ask_again(self) -> None:
        self._look(force=True)

    async def _ask(self, report: views.ReadReport, view: views.ByteView) -> None:
        if report.size > QUICK_BYTES:
            await asyncio.sleep(REST_SECONDS)
        state = views.task_state(report.events)
        asking = asyncio.ensure_future(views.ask(self._open_yours, self.copy))
        try:
            await asyncio.wait({asking}, timeout=GRACE_SECONDS)
            if not asking.done():
                self._draw_panel(report, view, state, None)
            self._draw_panel(report, view, state, await asking)
        finally:
            asking.cancel()

    def _draw_panel(
        self,
        report: views.ReadReport,
        view: views.ByteView,
        state: views.TaskState,
        answer: views.Answer | None,
    ) -> None:
        unseen = views.unseen(report, view.changed_bytes) if self._damaging else None
        kept = views.saved_tails(self.copy)
        names = ", ".join(f"{one.path} ({one.size})" for one in kept)
        self.panel.view = parts.panel_trait(
            cards=(views.report_card(report), views.answer_card(answer)),
            lines=(
                views.agreement(report, answer),
                unseen,
                views.Line("quiet", t("torn.kept", names=names)) if kept else None,
            ),
            tasks=views.task_table(report, state),
        )

    def _open_yours(self, path: Path) -> Any:
        return workspace.load_lesson("22", self.target).JsonlSessionStore(path)

    def _name(self) -> str:
        root = workspace.kit_root()
        return self.copy.relative_to(root).as_posix() if self.copy.is_relative_to(root) else str(self.copy)

    def _start_of_line(self, number: int) -> int:
        lines = (self._drawn or b"").split(b"\n")
        return sum(len(line) + 1 for line in lines[: number - 1])

    # --- layout ---

    def _set_scope(self, _change: object = None) -> None:
        raw = self.original.read_bytes() if self.scope.value == "last" and self.original.exists() else b""
        self.slider.low = raw.rfind(b"\n", 0, max(0, len(raw) - 1)) + 1

    def _lay_out(self) -> tuple[ipywidgets.Widget, ...]:
        self.scope = parts.Choice(
            label=t("torn.scope"),
            options=[["last", t("torn.last")], ["everything", t("torn.everything")]],
            value="last",
        )
        self.slider = parts.Slider(label=t("torn.cut"))
        self.bytes = parts.Bytes(words=parts.bytes_words())
        self.panel = parts.Panel(words=parts.panel_words())
        self.flip_at = parts.Number(label=t("torn.flip-at"), high=0, value=12)
        self.flip_bit = parts.Number(label=t("torn.flip-bit"), high=7, value=0)
        self.line = parts.Number(label=t("torn.line"), low=1, high=1, value=2)
        self.status = parts.Status()
        self.scope.observe(self._set_scope, "value")
        self.slider.observe(lambda change: self._cut(change["new"]), "value")
        return (
            _group(t("torn.group-cut"), self.scope, self.slider),
            self.bytes,
            self.panel,
            _group(
                t("torn.group-damage"),
                _row(self.flip_at, self.flip_bit, parts.button(t("torn.flip"), self.flip)),
                _row(self.line, parts.button(t("torn.damage"), self.damage)),
            ),
            _group(
                t("torn.group-append"),
                _row(
                    parts.button(t("torn.append-yours"), self.append_yours),
                    parts.button(t("torn.append-naive"), self.append_naive),
                    parts.button(t("torn.restore"), self.restore),
                ),
            ),
            self.status,
        )


def _group(title: str, *children: ipywidgets.Widget) -> ipywidgets.Widget:
    return ipywidgets.VBox([parts.Heading(text=title), *children])


def _row(*children: ipywidgets.Widget) -> ipywidgets.Widget:
    return ipywidgets.Box(children, layout={"flex_flow": "row wrap", "align_items": "center"})


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
