"""What each lesson needs of the pipe: which program runs its code, how a submission is laid down, what a check sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from grader import rungs, spine_template
from grader.intake import Handin
from grader.interface import Interface, read_interface
from grader.proxy import PipedLab
from grader.spine import PipedSpineLab

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


BENCHES = {
    "22": Bench(rungs.HOST, Handin.lay_down, PipedLab, interface=read_interface),
    "04": Bench(rungs.SPINE_HOST, spine_template.lay_down, PipedSpineLab, spine_template.programs),
}
