"""A button that runs one command of the kit, in a process of its own, and shows what its JSON says."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import ipywidgets

from labkit import workspace
from labkit.owned_child import OwnedChild
from labkit.widgets import parts
from labkit.widgets.tasks import Tasks
from labkit.words import t


class Command(ipywidgets.VBox):
    """The button, a status line, and the results below; the kernel stays free while the command runs.

    A kind of command says what is run (`command`) and what is made of the answer (`shown`).
    """

    def __init__(self, title: str, label: str, idle: str, results: parts.Part) -> None:
        self.title = title
        self.tasks = Tasks(self._failed)
        self.button = parts.button(label, self.run)
        self.status = parts.Status(text=idle)
        self.results = results
        self._child: OwnedChild | None = None
        super().__init__((ipywidgets.Box((self.button,)), self.status, results))

    def command(self) -> tuple[str, list[str]]:
        """Give the command as a person would type it, and its arguments."""
        raise NotImplementedError

    def shown(self, answer: Any, seconds: float) -> str:
        """Show the answer; give the line for the status. Raises: LookupError, TypeError when it is not of its shape."""
        raise NotImplementedError

    def run(self) -> None:
        """Begin, unless one is under way."""
        if not self.button.disabled:
            self.button.disabled = True
            self.status.text = t("check.running")
            self.tasks.start(self._run, self.title)

    async def settled(self) -> None:
        """Wait until what was begun has been shown."""
        await self.tasks.settled()

    def close(self) -> None:
        """End a command that is under way, then close as any widget."""
        if self._child:
            self._child.stop()
        super().close()

    async def _run(self) -> None:
        """Run the command to its end. Raises: ValueError with its last word when it printed no answer."""
        began = time.monotonic()
        line, argv = self.command()
        self._child = OwnedChild(line, argv, workspace.kit_root(), os.environ, lambda: None)
        try:
            ended = await self._child.ended()
        finally:
            self.button.disabled = False
        try:
            self.status.text = self.shown(json.loads(ended.out), time.monotonic() - began)
        except (ValueError, LookupError, TypeError):
            errors = [line.text for line in ended.lines if line.stream == "err"][
                1:
            ]  # the first is the command
            end = t("check.exit", code=ended.exit_code if ended.signal is None else -ended.signal)
            raise ValueError(errors[-1] if errors else end) from None

    def _failed(self, _what: str, error: BaseException) -> None:
        self.status.text = t("check.broken", error=parts.in_one_line(error))
