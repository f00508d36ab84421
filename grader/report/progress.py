"""How far a long run is (G10): a bar with rate and time left on a terminal, one plain line each in a log."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text as Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Task


class _Rate(ProgressColumn):
    """Things done per second."""

    def render(self, task: Task) -> Line:
        """Give the rate, or nothing before there is one."""
        return Line(f"{task.speed:.1f}/s" if task.speed else "")


@contextlib.contextmanager
def progress(title: str, total: int, *, lines: bool) -> Iterator[Callable[[str], None]]:
    """Show progress on standard error, so that standard output stays the report's; call the step when one is done.

    In a log there is no bar: with `lines`, each step is one line.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        done = 0

        def say(what: str) -> None:
            nonlocal done
            done += 1
            if lines:
                print(f"{title}: {done}/{total} {what}", file=sys.stderr, flush=True)

        yield say
        return
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),  # last, so that the bar stands still while it changes
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(what: str) -> None:
            bar.update(task, advance=1, description=what)

        yield advance
