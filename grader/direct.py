"""The lab in process: for a developer with a debugger, on the solution, the mutants and harmless samples.

No verdict comes from here: the code under test shares the process with the assertions. What the pipe does at its
border (plain JSON only, errors by name) is done here by the same code, so that one suite gives one answer over both.
The file layer sees this side's own looks at the disk as well, when a check looks while a fault is armed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

from grader import tree
from grader.child import host
from grader.interface import read_interface
from grader.lab import Cancelled, Event, Handle, Lab, Store, as_told, rebuild_error
from grader.work_folder import MAX_FILE_BYTES
from labkit.faults import file_layer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path
    from random import Random
    from types import ModuleType

    from grader.lab import Rule

_numbers = count(1)


@contextlib.contextmanager
def direct_lab(package: Path, folder: Path, draw: Random, *, faults: bool = False) -> Iterator[Lab]:
    """Give a lab on the lesson folder `package` (for example `solution/lesson_22`) in the empty `folder`.

    With `faults`, the file layer lies underneath until the lab is left.
    """
    if faults:
        file_layer.install()
    lab = DirectLab(package, folder, draw)
    try:
        yield lab
    finally:
        lab.close()
        if faults:
            file_layer.uninstall()


class DirectLab:
    """See `grader.lab.Lab`."""

    def __init__(self, package: Path, folder: Path, draw: Random) -> None:
        self.folder = folder
        self.draw = draw
        self._package = package
        self.interface = read_interface({file.name: file.read_bytes() for file in package.glob("*.py")})
        self._load()

    def _load(self) -> None:
        self._lesson = _load(self._package)
        self._border = Border(self._package, self._lesson)

    def store(self, name: str = "events.jsonl") -> Store:
        """Open a new instance; what its constructor raises comes from the first await, as over the pipe."""
        return DirectStore(self._lesson, self.folder / name, self._border)

    def disk(self, name: str = "events.jsonl") -> bytes:
        """Look at what is on disk now."""
        return tree.read(self.folder, name, MAX_FILE_BYTES)

    def mode(self, name: str) -> int:
        """Look at the rights of a file or folder."""
        return tree.mode(self.folder, name)

    def plant(self, name: str, raw: bytes) -> None:
        """Put a file of these bytes in the folder."""
        tree.plant(self.folder, name, raw)

    def names(self) -> list[str]:
        """List the files below the folder."""
        return tree.names(self.folder, ".")

    async def restart(self) -> None:
        """Load the student's modules anew."""
        self.close()
        self._load()

    async def arm(self, rules: Sequence[Rule]) -> None:
        """Arm faults below the folder."""
        file_layer.arm([dict(rule) for rule in rules], self.folder)

    async def disarm(self) -> list[dict[str, Any]]:
        """Lift the faults and tell what was seen."""
        file_layer.disarm()
        return file_layer.log()

    async def scenario(self, source: str, given: Any = None) -> Any:
        """Run trusted source beside the student's code."""
        namespace: dict[str, Any] = {"__name__": "scenario"}
        exec(compile(source, "<scenario>", "exec"), namespace)  # noqa: S102 - the suite's own text
        with self._border.crossed():
            told = host.plain(await namespace["scenario"](self._lesson, self.folder, _copied(given)))
        return as_told(told)

    def close(self) -> None:
        """Forget the student's modules and whatever was never awaited."""
        self._border.drop_unawaited()
        prefix = self._lesson.__name__
        for name in [name for name in sys.modules if name == prefix or name.startswith(prefix + ".")]:
            del sys.modules[name]


class Border:
    """What the pipe does to errors on their way out, done here by the same code; and what is under way."""

    def __init__(self, package: Path, lesson: ModuleType) -> None:
        self._describer = host.Describer(package)
        self._describer.know(getattr(lesson, "CorruptLogError", None), "CorruptLogError")
        self._handles: list[DirectHandle] = []

    @contextlib.contextmanager
    def crossed(self) -> Iterator[None]:
        """Let out what the student's code raises as the error that a check sees."""
        try:
            yield
        except Exception as error:
            told = self._describer.describe(error, "await")
            rebuilt = rebuild_error(told["types"], told["attrs"], told["text"])
            rebuilt.add_note(told["where"])
            raise rebuilt from error

    def handle(self, awaitable: Any) -> DirectHandle:
        """Make the handle of one call."""
        self._handles.append(DirectHandle(awaitable, self))
        return self._handles[-1]

    def drop_unawaited(self) -> None:
        """Let go of coroutines that nobody awaited, without a warning."""
        for handle in self._handles:
            handle.drop()
        self._handles.clear()


class DirectStore:
    """See `grader.lab.Store`."""

    def __init__(self, lesson: ModuleType, path: Path, border: Border) -> None:
        self._border = border
        try:
            self._student: Any = lesson.JsonlSessionStore(path)
        except Exception as error:  # noqa: BLE001 - whatever it is, it comes from the first await
            self._student = _Unopened(error)

    def append(self, type: str, data: object) -> Handle:  # noqa: A002
        """Call the student's `append` now."""
        try:
            awaitable = self._student.append(type, _copied(data))
        except Exception as error:  # noqa: BLE001 - whatever it is, it comes from the await
            awaitable = _fail(error)
        return self._border.handle(awaitable)

    async def read(self) -> list[Event]:
        """Await the student's `read`."""
        with self._border.crossed():
            return [Event(*event) for event in host.events(await self._student.read())]


class DirectHandle:
    """See `grader.lab.Handle`."""

    def __init__(self, awaitable: Any, border: Border) -> None:
        self._awaitable = awaitable
        self._border = border
        self._awaited = False
        self._cancelled = False

    def __await__(self) -> Generator[Any, Any, Event]:
        """Wait for the event."""
        return self._event().__await__()

    async def _event(self) -> Event:
        if self._cancelled and asyncio.iscoroutine(self._awaitable):
            raise Cancelled
        self._awaited = True
        try:
            with self._border.crossed():
                return Event(*host.event(await self._awaitable))
        except asyncio.CancelledError:
            if self._cancelled or (asyncio.isfuture(self._awaitable) and self._awaitable.cancelled()):
                raise Cancelled from None
            raise

    def cancel(self) -> None:
        """Cancel the student's awaitable; a coroutine that never began has nothing to stop."""
        self._cancelled = True
        if hasattr(self._awaitable, "cancel"):
            self._awaitable.cancel()

    def drop(self) -> None:
        """Close a coroutine that nobody awaited."""
        if not self._awaited and asyncio.iscoroutine(self._awaitable):
            self._awaitable.close()


class _Unopened:
    """What stands in for a store whose constructor raised."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def append(self, _type: str, _data: object) -> NoReturn:
        raise self._error

    async def read(self) -> NoReturn:
        raise self._error


async def _fail(error: Exception) -> NoReturn:
    raise error


def _load(package: Path) -> ModuleType:
    name = f"student_{next(_numbers)}"
    init = package / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(package)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{init}: is no package; point at a lesson folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _copied(value: object) -> Any:
    """Give what would arrive over the pipe: the same JSON, no shared object."""
    return json.loads(json.dumps(value))
