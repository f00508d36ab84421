"""What each lesson needs of the pipe: which program runs its code, how a submission is laid down, what a check sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from grader import rungs, spine_template
from grader.intake import Handin
from grader.interface import Interface, read_interface
from grader.proxy import PipedLab
from grader.spine import PipedSpineLab
from labkit.workspace import HOMEWORK

if TYPE_CHECKING:
    from pathlib import Path


class Bench(NamedTuple):
    """How one lesson is judged.

    `host` is the child's program, `lay_down(handin, code)` puts a submission where the child loads it from, `lab` makes
    the lab of one check from (children, channel, folder, draw, faults=), `programs()` are folders that a box shows, too.
    `interface(files)` reads from the source what the child would otherwise only say.
    """

    host: Path
    lay_down: Callable[[Handin, Path], None]
    lab: Callable[..., Any]
    programs: Callable[[], tuple[Path, ...]] = tuple
    interface: Callable[[Mapping[str, bytes]], Interface] = lambda _: Interface(
        {}
    )  # no child of 04 reaches its line


_FACADE = '''"""The homework by itself, under the two names that the pipe's host asks of a lesson: nothing else is loaded."""

from . import homework
from .homework import CorruptLogError
from .homework import DurableLines as JsonlSessionStore
'''


def lay_homework_down(handin: Handin, code: Path) -> None:
    """Lay the homework down as a package of its own, whatever became of the lesson's other files."""
    replace(handin, files={**handin.files, "__init__.py": _FACADE.encode()}).lay_down(code)


BENCHES = {
    "22": Bench(rungs.HOST, Handin.lay_down, PipedLab, interface=read_interface),
    "04": Bench(rungs.SPINE_HOST, spine_template.lay_down, PipedSpineLab, spine_template.programs),
    HOMEWORK: Bench(rungs.HOST, lay_homework_down, PipedLab),
}
