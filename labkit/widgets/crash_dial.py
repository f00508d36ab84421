"""Chooses the operation at which a round is to die. What there is to choose from is found out by a round on a copy."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import traitlets

from labkit import lab_actions, views
from labkit.widgets import parts
from labkit.widgets.spine_board import SpinePart
from labkit.words import t

if TYPE_CHECKING:
    from pathlib import Path


class CrashDial(parts.Slider, SpinePart):
    """One operation of the next round. ``seen`` turns true when a page shows it; before that nothing is counted."""

    _esm = parts.script("dial.js")
    seen = traitlets.Bool(default_value=False).tag(sync=True)

    def __init__(self, lab: Path) -> None:
        self._lab = lab
        self.counting: asyncio.Task[None] | None = None
        super().__init__(label=t("room.crash-at"), value=1, view={})
        self.observe(lambda _change: self.count(), "seen")

    async def operations(self) -> list[dict[str, Any]]:
        """Run the next round on a copy of the lab, and return what it does to the disk. Raises: OSError."""
        stack = ExitStack()
        try:
            command = await asyncio.to_thread(stack.enter_context, lab_actions.rehearsal(self._lab))
            child = lab_actions.begin(command, lambda _child: None)
            stack.callback(child.end)
            await child.ended()
            return lab_actions.changes(command)
        finally:  # also when it is cancelled: first the child goes, then the copy that it works in
            await asyncio.to_thread(stack.close)

    def count(self) -> None:
        """Count anew, for whoever looks."""
        if self.seen:
            self.forget()
            self.counting = asyncio.get_running_loop().create_task(self._count())

    def forget(self) -> None:
        """Give up a count that is under way: the lab is about to change."""
        if self.counting and self.counting.cancel():
            self._show([], "")

    async def _count(self) -> None:
        self._show([], t("room.counting"))
        try:
            self._show(await self.operations(), t("room.no-operations"))
        except OSError as error:  # there is no lab, or it holds what cannot be copied
            self._show([], t("room.not-counted", error=parts.in_one_line(error)))

    def _show(self, operations: list[dict[str, Any]], otherwise: str) -> None:
        with self.hold_sync():
            self.view = {
                "operations": views.operation_lines(operations),
                "zones": [{"size": size, "text": text} for text, size in views.operation_zones(operations)],
                "sentence": otherwise,
            }
            self.high = len(operations)
            self.show(max(1, min(self.value, len(operations))))
