"""The Check button: a suite on the learner's code, in a process of its own."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from labkit import actions, views, workspace
from labkit.owned_child import OwnedChild
from labkit.widgets import parts
from labkit.widgets.tasks import Tasks
from labkit.words import t


class Results(parts.Part):
    """The table of tests, each with its hints to open one after the other."""

    _esm = parts.script("check.js")
    view = traitlets.Dict().tag(sync=True)


class Check(ipywidgets.VBox):
    """Runs ``statelab verify`` when asked, never in this process; the kernel stays free meanwhile.

    With a ``part``, the tests of that dimension are shown and no others.
    """

    def __init__(self, lesson: str, target: str, part: str | None = None) -> None:
        self.lesson, self.target, self.part = lesson, target, part
        self.tasks = Tasks(self._failed)
        self.button = parts.button(t("check.button"), self.run)
        self.status = parts.Status(text=t("check.idle", where=views.shown_path(self._checked())))
        self.results = Results(words={"title": t("check.title"), "diff": t("check.diff")})
        self._child: OwnedChild | None = None
        super().__init__((ipywidgets.Box((self.button,)), self.status, self.results))

    def run(self) -> None:
        """Begin a check, unless one is under way."""
        if not self.button.disabled:
            self.button.disabled = True
            self.status.text = t("check.running")
            self.tasks.start(self._run, t("check.title"))

    async def settled(self) -> None:
        """Wait until the check that was begun has been shown."""
        await self.tasks.settled()

    def close(self) -> None:
        """End a check that is under way, then close as any widget."""
        if self._child:
            self._child.stop()
        super().close()

    async def _run(self) -> None:
        began = time.monotonic()
        try:
            view = views.check_view(await self._verify(), self.lesson, self.part)
        finally:
            self.button.disabled = False
        scores = [f"{group.passed}/{len(group.rows)}" for group in view.groups] + ["–"]
        seconds = f"{time.monotonic() - began:.1f}"
        self.status.text = t("check.done", seconds=seconds, required=scores[0], extended=scores[1])
        self.results.view = {**asdict(view), **self._closing(view)}

    async def _verify(self) -> dict[str, Any]:
        """Run the grader to its end. Raises: ValueError with its last word when it printed no outcome."""
        shown = f"statelab verify --lesson {self.lesson} --target {self.target} --json"
        argv = actions.verify_command(self.lesson, self.target)
        self._child = OwnedChild(shown, argv, workspace.kit_root(), os.environ, lambda: None)
        ended = await self._child.ended()
        try:
            outcome = json.loads(ended.out)
            outcome["lessons"][self.lesson]["tests"]
        except (ValueError, LookupError, TypeError):
            complaints = [line.text for line in ended.lines if line.stream == "err"][
                1:
            ]  # the first is the command
            end = t("check.exit", code=ended.exit_code if ended.signal is None else -ended.signal)
            raise ValueError(complaints[-1] if complaints else end) from None
        return dict(outcome)

    def _checked(self) -> Path:
        """Give the folder or the file that is checked."""
        folder = workspace.lesson_source(self.lesson, self.target)
        return folder / workspace.HOMEWORK_FILE if self.lesson == workspace.HOMEWORK else folder

    def _closing(self, view: views.CheckView) -> dict[str, str]:
        if (
            not view.ok or self.part
        ):  # one part is right, and the answers to the others are not to be seen yet
            return {"note": t("check.starter-note") if view.untouched else "", "diff": ""}
        yours, solution = (
            workspace.lesson_source(self.lesson, self.target),
            workspace.lesson_source(self.lesson, "solution"),
        )
        diff = views.solution_diff(yours, solution, self.lesson)
        return {"note": "" if diff else t("check.same"), "diff": diff}

    def _failed(self, _what: str, error: BaseException) -> None:
        self.status.text = t("check.broken", error=parts.in_one_line(error))
