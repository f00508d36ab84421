"""The roof: `statelab` names every door and loads the one that is asked for.

The only file of labkit that knows the grader, and it knows it by name alone: nothing behind a door is imported
before someone opens it, so `statelab --help` costs no more than click itself.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

import click


class Door(NamedTuple):
    """Where a command lives (`module:attribute`, a click command) and what it is for, in one line."""

    where: str
    purpose: str


DOORS = {
    "lab": Door("labkit.lab:main", "Open JupyterLab on the first page of the labs."),
    "verify": Door("grader.cli:verify", "Grade one folder: your own starter, the solution, or any other."),
    "submit": Door("grader.submit:submit", "Pack your work into one zip to hand in."),
    "bundle": Door(
        "labkit.bundle.command:main", "Make the zip that students get: the kit without solutions."
    ),
    "grade": Door("grader.cli:grade", "Grade every submission of a class."),
    "report": Door(
        "grader.report.command:report", "Write the reports of a graded class anew, without grading."
    ),
    "gate": Door(
        "grader.gate:gate", "Prove the suite, or your own tests: every store known to be wrong must fail."
    ),
    "workspace": Door(
        "labkit.lab_folder:main", "Lay your lab down, look at it, or begin anew; old work is kept."
    ),
    "log": Door(
        "solution.durable_log.cli:main",
        "Look at event logs, ours or any agent's: inspect, verify, repair, follow.",
    ),
    "crash": Door(
        "labkit.faults.crash.command:main",
        "Find every state a crash can leave of a store's files, and what breaks in it.",
    ),
    "clean": Door("labkit.notebook_strip:main", "Strip from notebooks what running them left behind."),
}
FOR_INSTRUCTORS = ("bundle", "grade", "report", "gate")
"""Need the answers, or the stores known to be wrong: in a kit handed out without these they refuse, and say why."""


class Doors(click.Group):
    """A group whose commands are imported one by one, when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it so
        """Give the names in the order a learner meets them."""
        return list(_open())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one door; `None` for a name that is none, and click says so."""
        door = DOORS.get(cmd_name)
        if door is None:
            return None
        if cmd_name not in _open():
            return _refusing(cmd_name)
        module, attribute = door.where.split(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{door.where}: not a click command; correct DOORS in labkit/cli.py")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the doors from the table, without opening one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, door.purpose) for name, door in _open().items()])


def _open() -> dict[str, Door]:
    """Give the doors that lead somewhere in this kit. As in `labkit.workspace`, which a mere list need not load."""
    root = Path(__file__).resolve().parent.parent
    whole = (root / "grader/suites/mutants").is_dir() and not (root / "solution/LEFT-OUT.md").exists()
    return {name: door for name, door in DOORS.items() if whole or name not in FOR_INSTRUCTORS}


def _refusing(name: str) -> click.Command:
    """Give a command in place of one that cannot work in a kit for students."""

    @click.command(name, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def refuse() -> None:
        raise click.ClickException(
            f"{name}: 要用到参考实现，而老师发的这份套件没有带 (needs what your instructor's bundle "
            "leaves out); 检查自己的代码用 statelab verify (check your own work with statelab verify)"
        )

    return refuse


@click.command(
    cls=Doors,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: statelab verify --lesson 22. Every command has its own --help.",
)
@click.version_option(package_name="agent-state-lab", message="%(prog)s %(version)s")
def main() -> None:
    """Let a learner see how an agent's state survives a crash."""
