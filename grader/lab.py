"""The face a test sees: the student's store, the disk, a restart, a fault; never the transport below them.

    CheckFailed      raised by a check itself (`grader.suites.expect`): the rule was tried and does not hold
    CorruptLog       the student's CorruptLogError, with its line, path and text
    Cancelled        the awaited append had been cancelled
    StudentError     anything else the student's code raised that is not on the whitelist below
    a builtin        of `BUILTIN_ERRORS`: the student's code raised it or a subclass; OSError keeps its errno

What a transport itself has to say (child gone, deadline passed, reply too large) is no error of this tree: it
passes through every check, and the grader gives it its own word.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from grader.interface import Interface

    Rule = Mapping[str, object]
    """One fault, see `labkit/faults/file_layer.py`: {"op": "write", "nth": 1, "do": "ENOSPC"}."""

BUILTIN_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (
        NotImplementedError,  # before RuntimeError, its parent
        OSError,
        ValueError,
        TypeError,
        RuntimeError,
        LookupError,
        AttributeError,
        AssertionError,
    )
}
"""The builtins that reach a check as themselves. A student's class is known by the first name on its MRO."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event as the student's store gave it: plain JSON values, of whatever type they really have."""

    sequence: Any
    type: Any
    data: Any

    def plain(self) -> dict[str, Any]:
        """Give the event as the object that stands on its line."""
        return {"sequence": self.sequence, "type": self.type, "data": self.data}


class CorruptLog(Exception):  # noqa: N818 - it is the student's finding, not a fault of the grader
    """The student's `CorruptLogError`. `line` is 1-based and physical, as found: it may be anything plain."""

    def __init__(self, text: str, *, line: Any = None, path: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.line = line
        self.path = path


class Cancelled(Exception):  # noqa: N818 - an outcome, not a fault
    """The awaited call had been cancelled. Not `asyncio.CancelledError`: the test's own task goes on."""


class StudentError(Exception):
    """The student's code raised what is no builtin of the whitelist: `name` is its class, as text."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}" if text else name)
        self.name = name
        self.text = text


class Told(dict[str, Any]):
    """A JSON object that the student's code wrote or gave: what it lacks is that code's fault, and not a check's."""

    def __missing__(self, key: object) -> Any:
        """Refuse a key that is not there."""
        raise StudentError("KeyError", f"{key!r}")


class ToldList(list[Any]):
    """A JSON array of the same origin."""

    def __getitem__(self, at: Any) -> Any:
        """Refuse a place that is not there."""
        try:
            return super().__getitem__(at)
        except IndexError:
            raise StudentError("IndexError", f"{at!r}") from None


def as_told(value: Any) -> Any:
    """Give plain JSON as what the student's code told."""
    if isinstance(value, dict):
        return Told({name: as_told(inner) for name, inner in value.items()})
    return ToldList(map(as_told, value)) if isinstance(value, list) else value


STUDENT_ERRORS: tuple[type[Exception], ...] = (
    CorruptLog,
    Cancelled,
    StudentError,
    *BUILTIN_ERRORS.values(),
)
"""Everything that awaiting a store may raise because of the student's code."""

_MARK = "came_from_the_students_code"


def rebuild_error(types: Sequence[str], attrs: Mapping[str, Any], text: str) -> Exception:
    """Make the exception that a check sees from what crossed the border.

    `types` are the names on the MRO of the raised class, nearest first; `attrs` may hold `line`, `path`
    (CorruptLogError) and `errno`, `filename` (OSError). The first known name decides. It is marked (`is_students`).
    """
    error = _rebuilt(types, attrs, text)
    setattr(error, _MARK, True)
    return error


def is_students(error: BaseException) -> bool:
    """Say whether the student's code raised this. A check's own TypeError has the same class, and no such mark."""
    return isinstance(error, CorruptLog | Cancelled | StudentError) or getattr(error, _MARK, False) is True


def _rebuilt(types: Sequence[str], attrs: Mapping[str, Any], text: str) -> Exception:
    for name in types:
        if name == "CorruptLogError":
            path = attrs.get("path")
            return CorruptLog(text, line=attrs.get("line"), path=None if path is None else str(path))
        if name == "CancelledError":
            return Cancelled(text)
        if name == "OSError" and isinstance(attrs.get("errno"), int):
            return OSError(
                attrs["errno"], text
            )  # its number makes it a PermissionError, FileNotFoundError ...
        if name in BUILTIN_ERRORS:
            return BUILTIN_ERRORS[name](text)
    return StudentError(types[0] if types else "?", text)


def canonical(value: object) -> str:
    """Write plain JSON so that `1`, `1.0` and `true` differ and key order does not matter."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Handle(Protocol):
    """One append that was called: awaitable (its `Event`), and cancellable before or while it runs."""

    def __await__(self) -> Generator[Any, Any, Event]:
        """Wait for the event, or raise one of `STUDENT_ERRORS`."""
        ...

    def cancel(self) -> None:
        """Cancel the student's awaitable as a caller would."""
        ...


class Store(Protocol):
    """One new instance of the student's `JsonlSessionStore`."""

    def append(self, type: str, data: object) -> Handle:  # noqa: A002 - the lesson's own parameter name
        """Call the student's `append` now, in this order; `data` is plain JSON.

        What the student's code raises at the call comes from the await, like what it raises there.
        """
        ...

    def read(self) -> Awaitable[list[Event]]:
        """Await the student's `read`; raises one of `STUDENT_ERRORS`."""
        ...


class Lab(Protocol):
    """Everything one check may touch. Each check has a fresh, empty folder."""

    folder: Path
    draw: Random
    interface: Interface  # read from the source, not told by the child

    def store(self, name: str = ...) -> Store:
        """Open a new instance of the student's store on the file `name` (may hold `/`) of the folder."""
        ...

    def disk(self, name: str = ...) -> bytes:
        """Look at what is really on disk now, from outside. A missing file is `FileNotFoundError`."""
        ...

    def plant(self, name: str, raw: bytes) -> None:
        """Put a file of exactly these bytes in the folder, in place of any other; a store may write it."""
        ...

    def names(self) -> list[str]:
        """List every file below the folder, as sorted relative POSIX names."""
        ...

    def mode(self, name: str) -> int:
        """Give the rights of a file or folder of the folder, as `chmod` takes them; of a missing one, `FileNotFoundError`."""
        ...

    async def restart(self) -> None:
        """Lose everything in memory: a new process (piped), modules loaded anew (direct); stores are void."""
        ...

    async def arm(self, rules: Sequence[Rule]) -> None:
        """Arm faults underneath the file layer. Only in a check that was declared with `faults=True`."""
        ...

    async def disarm(self) -> list[dict[str, Any]]:
        """Lift the armed faults; give the operations seen since arming (`file_layer.log()`), oldest first."""
        ...

    async def scenario(self, source: str, given: Any = ...) -> Any:
        """Run trusted source beside the student's code and give back the plain JSON that it returns.

        The source defines `async def scenario(lesson, folder, given)`: the student's module, the work
        folder (`pathlib.Path`) and `given` (plain JSON). It is for what plain calls cannot carry: values
        that are not JSON, event loops, exact moments. What it returns is the child's word: where it counts,
        judge by the disk. Raises one of `STUDENT_ERRORS`.
        """
        ...
