"""The Check button: a suite on the learner's code."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import traitlets

from labkit import actions, views, workspace
from labkit.widgets import parts
from labkit.widgets.command import Command
from labkit.words import t

if TYPE_CHECKING:
    from pathlib import Path


class Results(parts.Part):
    """The table of tests, each with its hints to open one after the other."""

    _esm = parts.script("check.js")
    view = traitlets.Dict().tag(sync=True)


class Check(Command):
    """Runs ``statelab verify`` when asked. With a ``part``, the tests of that dimension are shown and no others."""

    def __init__(self, lesson: str, target: str, part: str | None = None) -> None:
        self.lesson, self.target, self.part = lesson, target, part
        title = t("check.title")
        idle = t("check.idle", where=views.shown_path(self._checked()))
        results = Results(words={"title": title, "diff": t("check.diff")})
        super().__init__(title, t("check.button"), idle, results)

    def command(self) -> tuple[str, list[str]]:
        """Give what grades the one lesson."""
        line = f"statelab verify --lesson {self.lesson} --target {self.target} --json"
        return line, actions.verify_command(self.lesson, self.target)

    def shown(self, answer: Any, seconds: float) -> str:
        """Show the tests; count them in the status."""
        view = views.check_view(answer, self.lesson, self.part)
        self.results.view = {**asdict(view), **self._closing(view)}
        scores = [f"{group.passed}/{len(group.rows)}" for group in view.groups] + ["–"]
        return t("check.done", seconds=f"{seconds:.1f}", required=scores[0], extended=scores[1])

    def _checked(self) -> Path:
        """Give the folder or the file that is checked."""
        folder = workspace.lesson_source(self.lesson, self.target)
        return folder / workspace.HOMEWORK_FILE if self.lesson == workspace.HOMEWORK else folder

    def _closing(self, view: views.CheckView) -> dict[str, str]:
        if (
            not view.ok or self.part
        ):  # one part is right, and the answers to the others are not to be seen yet
            return {"note": t("check.starter-note") if view.untouched else "", "diff": ""}
        if workspace.reference_left_out():
            return {"note": t("left-out.diff"), "diff": ""}
        yours, solution = (
            workspace.lesson_source(self.lesson, self.target),
            workspace.lesson_source(self.lesson, "solution"),
        )
        diff = views.solution_diff(yours, solution, self.lesson)
        return {"note": "" if diff else t("check.same"), "diff": diff}
