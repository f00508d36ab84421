"""Puts a store, written here as text, behind the grader's pipe: a real box, a real child, the lab a check would see."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TypeVar

from grader import tree
from grader.proxy import Children, PipedLab
from grader.sandbox import Box, open_box
from grader.settings import Limits

KIT = Path(__file__).resolve().parents[1]
SOLUTION = KIT / "solution" / "lesson_22"
T = TypeVar("T")

PLAIN_STORE = """
import asyncio, json, os
from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True)
class SessionEvent:
    sequence: object
    type: object
    data: object

class CorruptLogError(Exception):
    def __init__(self, path, line, reason):
        super().__init__(f"{path}: line {line}: {reason}")
        self.path, self.line, self.reason = path, line, reason

class Plain:
    '''Keeps events on disk in the shortest way; each test overrides what it is about.'''

    def __init__(self, path):
        self.path = Path(path)

    def write(self, type, data):
        events = self.events()
        event = SessionEvent(len(events) + 1, type, data)
        with self.path.open("a") as file:
            file.write(json.dumps([event.sequence, type, data]) + "\\n")
        return event

    def events(self):
        if not self.path.exists():
            return []
        return [SessionEvent(*json.loads(line)) for line in self.path.read_text().splitlines()]

    async def append(self, type, data):
        return self.write(type, data)

    async def read(self):
        return self.events()
"""
"""What every small store below stands on; a test adds `class JsonlSessionStore(Plain)`."""


@contextmanager
def box_of(source: str | None, limits: Limits | None = None) -> Iterator[Box]:
    """Open a box with `PLAIN_STORE` and this source as the package; the solution itself for None."""
    with open_box(limits or Limits()) as box:
        package = box.code / "lesson_22"
        if source is None:
            shutil.copytree(SOLUTION, package, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            package.mkdir()
            (package / "__init__.py").write_text(PLAIN_STORE + source)
        yield box


def on_pipe(
    source: str | None,
    body: Callable[[PipedLab], Awaitable[T]],
    *,
    limits: Limits | None = None,
    faults: bool = False,
) -> T:
    """Run `body` with a lab on the store that `source` defines, and give what it returns."""

    async def run(box: Box) -> T:
        children = Children(box, "lesson_22")
        try:
            return await body(await lab_of(children, faults=faults))
        finally:
            children.close()

    with box_of(source, limits) as box:
        return asyncio.run(run(box))


_numbers = itertools.count(1)


async def lab_of(children: Children, *, faults: bool = False) -> PipedLab:
    """Make the lab of one check on running children."""
    channel = await children.get(faults=faults)
    box, name = children.box, f"{next(_numbers)}"
    tree.make_folder(box.work, name, box.place.user)
    return PipedLab(children, channel, box.work / name, Random(1), faults=faults)
