"""The torn-write widget: cut, flip, damage and append on a real file, and read what every byte is then worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from labkit import actions, views, workspace
from labkit.naive import GluingStore
from labkit.watch import Watch
from labkit.widgets import parts
from labkit.widgets.log_view import LogView
from labkit.widgets.patience import beside
from labkit.widgets.tasks import Tasks
from labkit.words import t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class TornWrite(ipywidgets.VBox):
    """Acts on ``events.jsonl``, a copy of ``original.jsonl`` in ``folder``; shows only what that file holds."""

    _watches: tuple[Watch, ...] = ()

    def __init__(self, folder: Path, target: str) -> None:
        self.original, self.copy = folder / "original.jsonl", folder / "events.jsonl"
        self.tasks = Tasks(self._failed)
        self.view = LogView(self.copy, target, self.tasks, self._notes)
        self._focus: int | None = None
        self._before: bytes | None = None
        self._damaged = False  # by the last click: only then is a change that nobody noticed worth a sentence
        self._appending = False
        self._last_record = 0
        super().__init__(self._lay_out())
        self.tasks.start(self._begin, t("torn.title"))
        code = workspace.lesson_source("22", target)
        self._watches = (Watch(folder, self._noticed), Watch(code, self._code_changed))

    # --- clicks: one action each, then a look at the disk ---

    def cut(self, size: int) -> None:
        """End the file at byte ``size``, as a crash in the middle of a write would."""
        self.slider.show(size)
        did = t("torn.did-cut", at=size, lost=self.slider.high - size)
        if self._act(t("torn.cut"), lambda: actions.cut(self.original, self.copy, size), did):
            self._show(focus=size)

    def flip(self, offset: int | None = None, bit: int | None = None) -> None:
        """Turn one bit of the copy."""
        at = self.flip_at.value if offset is None else offset
        which = self.flip_bit.value if bit is None else bit
        did = t("torn.did-flip", at=at, bit=which)
        before = self.view.drawn
        if self._act(t("torn.flip"), lambda: actions.flip_bit(self.copy, at, which), did):
            self._show(focus=at, before=before, damaged=True)

    def damage(self, line: int | None = None) -> None:
        """Make one line of the copy unreadable."""
        number = self.line.value if line is None else line
        did = t("torn.did-damage", line=number)
        before = self.view.drawn
        if self._act(t("torn.damage"), lambda: actions.damage_line(self.copy, number), did):
            self._show(focus=self._line_start(number), before=before, damaged=True)

    def append_yours(self) -> None:
        """Append through the learner's store, opened anew."""
        self.tasks.start(lambda: self._append(t("torn.yours"), self.view.open_yours), t("torn.append-yours"))

    def append_naive(self) -> None:
        """Append through the store that does not look at the end of the file."""
        self.tasks.start(lambda: self._append(t("torn.naive"), GluingStore), t("torn.append-naive"))

    def restore(self) -> None:
        """Put the original back, and the slider to its end."""
        if not self.original.exists():
            self.tasks.start(self._begin, t("torn.restore"))
        elif self._act(
            t("torn.restore"), lambda: actions.restore(self.original, self.copy), t("torn.did-restore")
        ):
            self._fit_controls()
            self._show()

    async def settled(self) -> None:
        """Wait until everything that was begun has been done and drawn."""
        await self.tasks.settled()

    def close(self) -> None:
        """Stop watching, then close as any widget."""
        for watch in self._watches:
            watch.close()
        self.tasks.cancel()
        super().close()

    # --- how a click becomes bytes ---

    async def _begin(self) -> None:
        size = await actions.make_sample_log(self.original)
        actions.restore(self.original, self.copy)
        self._fit_controls()
        self.status.text = t("torn.ready", size=size)
        self._show()

    async def _append(self, who: str, open_store: Callable[[Path], Any]) -> None:
        before, self._appending = self.view.drawn, True
        try:
            title = t("torn.extra-title")
            event = await beside(lambda: actions.append_task(open_store, self.copy, title))
            self.status.text = t("torn.did-append", store=who, sequence=event.sequence)
        finally:
            self._appending = False
            self._show(before=self.view.standing(before or b""))

    def _act(self, what: str, act: Callable[[], object], done: str) -> bool:
        try:
            act()
        except (OSError, ValueError) as error:
            self._failed(what, error)
            return False
        self.status.text = done
        return True

    def _failed(self, what: str, error: BaseException) -> None:
        self.status.text = t("torn.failed", what=what, error=parts.in_one_line(error))
        if self.view.is_stale():
            self._show(before=self.view.drawn)

    # --- from the disk to the screen ---

    def _show(self, *, focus: int | None = None, before: bytes | None = None, damaged: bool = False) -> None:
        self._focus, self._before, self._damaged = focus, before, damaged
        self.view.draw(focus, before)

    def _noticed(self) -> None:
        """Something changed in the folder. If it is the copy, and no click of ours did it, say so and show it."""
        before = self.view.drawn
        if before is not None and not self._appending and self.view.is_stale():
            self.status.text = t("torn.outside")
            self._show(before=before)

    def _code_changed(self) -> None:
        """Ask again about the same bytes: a file of the lesson was saved."""
        if self.view.drawn is not None:
            self.view.draw(self._focus, self._before)

    def _notes(self, report: views.ReadReport, view: views.ByteView) -> Iterator[views.Line | None]:
        if self._damaged:
            yield views.unseen(report, view.changed_bytes)
        yield views.kept(views.saved_tails(self.copy))

    def _line_start(self, number: int) -> int:
        return sum(len(line) + 1 for line in (self.view.drawn or b"").split(b"\n")[: number - 1])

    # --- controls ---

    def _fit_controls(self) -> None:
        """Give every control the range that the original has, and the slider its end."""
        raw = self.original.read_bytes()
        self._last_record = raw.rfind(b"\n", 0, -1) + 1
        with self.slider.hold_sync():
            self.slider.high = len(raw)
            self.slider.show(len(raw))
            self._set_scope()
        self.flip_at.high = len(raw) - 1
        self.line.high = raw.count(b"\n")

    def _set_scope(self, _change: object = None) -> None:
        self.slider.low = self._last_record if self.scope.value == "last" else 0
        if self.slider.value < self.slider.low:
            self.cut(self.slider.low)

    def _lay_out(self) -> tuple[ipywidgets.Widget, ...]:
        self.scope = parts.Choice(
            label=t("torn.scope"),
            options=[["last", t("torn.last")], ["everything", t("torn.everything")]],
            value="last",
        )
        self.slider = parts.Slider(label=t("torn.cut"))
        self.flip_at = parts.Number(label=t("torn.flip-at"), value=12)
        self.flip_bit = parts.Number(label=t("torn.flip-bit"), high=7)
        self.line = parts.Number(label=t("torn.line"), low=1, value=2)
        self.status = parts.Status()
        self.scope.observe(self._set_scope, "value")
        self.slider.chosen = self.cut
        cut = parts.group(t("torn.group-cut"), self.scope, self.slider)
        damage = parts.group(
            t("torn.group-damage"),
            parts.row(self.flip_at, self.flip_bit, parts.button(t("torn.flip"), self.flip)),
            parts.row(self.line, parts.button(t("torn.damage"), self.damage)),
        )
        append = parts.group(
            t("torn.group-append"),
            parts.row(
                parts.button(t("torn.append-yours"), self.append_yours),
                parts.button(t("torn.append-naive"), self.append_naive),
                parts.button(t("torn.restore"), self.restore),
            ),
        )
        return cut, parts.row(damage, append), self.status, self.view.bytes, self.view.panel
