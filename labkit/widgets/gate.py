"""The gate, turned on the learner's own tests: which of them stops which store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import traitlets

from labkit import actions, views
from labkit.widgets import parts
from labkit.widgets.command import Command
from labkit.words import t


class Grid(parts.Part):
    """Stores and tests, what got through and why, and what to do next."""

    _esm = parts.script("gate.js")
    view = traitlets.Dict().tag(sync=True)


class Gate(Command):
    """Runs ``statelab gate --tests`` on the learner's file, laid down with an example in it where there is none."""

    def __init__(self) -> None:
        self.file = actions.my_tests()
        title, words = t("mine.title"), {"key": t("mine.key"), "tests": t("seen.gate-tests")}
        idle = t("mine.idle", file=views.shown_path(self.file))
        super().__init__(title, t("mine.button"), idle, Grid(words={"title": title, **words}))

    def command(self) -> tuple[str, list[str]]:
        """Give what tries the file, as it is now, on every store."""
        file = actions.my_tests()
        return f"statelab gate --tests {file} --json", actions.gate_command("22", file)

    def shown(self, answer: Any, seconds: float) -> str:
        """Show the grid; say in the status what came of it."""
        view = views.own_tests_view(answer)
        self.results.view = asdict(view)
        return t("mine.done", seconds=f"{seconds:.1f}", message=view.message)
