"""The developer's gate: what `make check`, `make test` and `make proof` do, step by step, cheapest first.

    python -m labkit.devgate check
    python -m labkit.devgate lock     writes the lock files anew after a change of dependencies in pyproject.toml

Stops at the first step that fails and exits 1. A step of pytest tells its own time, last of all.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
OUR_CODE = ("labkit", "grader", "solution", "tests")


@dataclass(frozen=True)
class Step:
    """One command of a gate: `words` follow this Python's `-m`; `settings` are added to the environment."""

    title: str
    words: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


def _notebooks_on(target: str) -> Step:
    words = (
        "pytest",
        "--nbval-lax",
        "--nbval-current-env",
        "--nbval-cell-timeout",
        "60",
        "-p",
        "no:cacheprovider",
    )
    return Step(
        f"notebooks in both languages, on the {target}", (*words, "notebooks"), {"LAB_TARGET": target}
    )


def _lock(file: str, *what: str) -> Step:
    form = ("--universal", "--python-version", "3.11", "--generate-hashes")
    plain = ("--quiet", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links")
    return Step(file, ("uv", "pip", "compile", *form, *plain, *what, "-o", file))


GATES = {
    "check": (
        Step("format", ("ruff", "format", "--check", "--quiet", *OUR_CODE)),
        Step("lint", ("ruff", "check", "--quiet", *OUR_CODE)),
        Step("types", ("mypy", "--no-error-summary")),
        Step("starter is what the solution generates", ("labkit.generate", "--check")),
        Step("notebooks are what their sources build", ("labkit.notebook_build", "--check")),
        Step(
            "solution passes, starter and mutants fail",
            ("pytest", "-q", "-m", "both_directions and not proof", "tests"),
        ),
    ),
    "test": (
        _notebooks_on("solution"),
        _notebooks_on("starter"),
        Step("the kit's tests, the browser among them", ("pytest", "tests")),
    ),
    "proof": (Step("the full counts", ("pytest", "-m", "proof", "tests")),),
    "lock": (
        _lock("requirements.lock", "pyproject.toml", "--group", "build"),
        _lock("requirements-dev.lock", "--group", "dev", "-c", "requirements.lock"),
        _lock("requirements-node.lock", "--group", "node", "-c", "requirements.lock"),
        _lock("requirements-nbgrader.lock", "--group", "nbgrader"),
        _lock("requirements-otter.lock", "--group", "otter"),
        _lock("requirements-eventlogs.lock", "--group", "eventlogs"),
        _lock("requirements-crashlab.lock", "--group", "crashlab"),
    ),
}


@click.command(epilog="Example: python -m labkit.devgate check")
@click.argument("gate", type=click.Choice(list(GATES)))
def main(gate: str) -> None:
    """Run the steps of GATE from the cheapest on; stop at the first that fails."""
    steps = GATES[gate]
    for number, step in enumerate(steps, 1):
        click.secho(f"[{number}/{len(steps)}] {step.title}", bold=True)
        began = time.monotonic()
        if run(step) != 0:
            click.secho(f"{gate}: stopped at: {step.title}; again alone: {again(step)}", fg="red", err=True)
            sys.exit(1)
        if step.words[0] != "pytest":
            click.echo(f"      passed, {time.monotonic() - began:.1f} s")


def run(step: Step) -> int:
    """Run one step in the kit's root and give its exit code; 1 also when a signal ended it."""
    ended = subprocess.run(
        [sys.executable, "-m", *step.words], cwd=ROOT, env={**os.environ, **step.settings}, check=False
    )
    return 0 if ended.returncode == 0 else 1


def again(step: Step) -> str:
    """Give the line that repeats one step in a shell."""
    settings = [f"{name}={value}" for name, value in step.settings.items()]
    return " ".join([*settings, ".venv/bin/python -m", shlex.join(step.words)])


if __name__ == "__main__":
    main()
