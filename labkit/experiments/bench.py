"""One store at work in a folder of its own: every call with its answer, and the bytes that it left behind."""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import re
import shutil
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import HTML, Code

from labkit import actions, workspace
from labkit.experiments.left_out import ReferenceMissingError
from labkit.faults import file_layer
from labkit.views import LogReader, Outcome, ReadReport
from labkit.words import t

PATIENCE_SECONDS = 5.0
"""How long one call may take before it counts as unanswered."""
SCRIPT_SECONDS = 20.0
"""How long a whole script may take on one store."""
LOG = "task.jsonl"
NO_ANSWER = "…"
"""Stands for the answer of something that was done and answers nothing."""

OpenStore = Callable[[Path], Any]
Script = Callable[["Bench"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call as a learner would type it, and its answer: a number, a list of numbers, or an error in short."""

    text: str
    answer: Any


@dataclass(frozen=True, slots=True)
class Side:
    """What one store did. ``files`` maps names to the bytes on disk afterwards; ``report`` judges the log.

    ``unfinished`` holds the message of a NotImplementedError: the learner has not written this part yet.
    """

    name: str
    calls: tuple[Call, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    report: ReadReport = ReadReport(Outcome.ABSENT)  # noqa: RUF009 — frozen
    unfinished: str = ""

    @property
    def answers(self) -> list[Any]:
        """What each call answered, in the order in which they were made."""
        return [call.answer for call in self.calls]

    @property
    def log(self) -> bytes:
        """The bytes of the log; none when there is no such file."""
        return self.files.get(LOG, b"")

    @property
    def numbers(self) -> list[Any]:
        """The sequence on each physical line of the log, sound or not."""
        return numbers_in(self.log)

    @property
    def types(self) -> list[Any]:
        """The type on each physical line of the log, sound or not."""
        return [_field_on(line, "type") for line in self.log.split(b"\n") if line]


@dataclass(frozen=True, slots=True)
class Seen:
    """The same script run on several stores, side by side. ``seen["kit"]`` is one of them."""

    sides: tuple[Side, ...]

    def __getitem__(self, name: str) -> Side:
        """Return the side called ``name``. Raises: KeyError; ReferenceMissingError for the kit's where there is none."""
        side = {side.name: side for side in self.sides}[name]
        if name == "kit" and side.unfinished:
            raise ReferenceMissingError(side.unfinished)
        return side

    def _repr_html_(self) -> str:
        from labkit.experiments.cards import cards  # noqa: PLC0415 — a test of the facts needs no picture

        return cards(self)


class Bench:
    """Where a script meets a store: a fresh folder, the store's path in it, and a note of every call."""

    def __init__(self, open_store: OpenStore, folder: Path) -> None:
        self.open_store, self.folder, self.path = open_store, folder, folder / LOG
        self.calls: list[Call] = []
        self._store: Any = None

    @property
    def store(self) -> Any:
        """The store on the log, opened at first use."""
        if self._store is None:
            self.reopen()
        return self._store

    def reopen(self) -> None:
        """Open the log with a new instance, as a restarted program does."""
        self._store = self.open_store(self.path)

    async def append(self, type_: str, data: object = None, *, shown: str | None = None) -> None:
        """Append one event and wait for its answer."""
        text = f"append({type_!r}, {shown if shown is not None else _short(data)})"
        await self.call(text, lambda: self.store.append(type_, data))

    async def read(self, path: Path | None = None, *, shown: str = "read()") -> None:
        """Read the log, or another file with a store of its own."""
        store = self.store if path is None else self.open_store(path)
        await self.call(shown, store.read)

    async def call(self, text: str, make: Callable[[], Any]) -> None:
        """Note what ``make`` answers. NotImplementedError passes: the script ends where the learner's code does."""
        try:
            answer = make()
            if inspect.isawaitable(answer):
                answer = await asyncio.wait_for(answer, PATIENCE_SECONDS)
        except NotImplementedError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task and task.cancelling():  # the cell itself was interrupted
                raise
            answer = error  # the store cancelled what it had promised
        except (Exception, SystemExit) as error:  # noqa: BLE001 — the error is the answer
            answer = error
        self.note(text, answer)

    def note(self, text: str, answer: object) -> None:
        """Add one call to the record."""
        self.calls.append(Call(text, in_short(answer)))

    @contextmanager
    def fault(self, op: str, do: str, **limits: Any) -> Iterator[None]:
        """Disturb the log's file operations underneath, see ``labkit/faults/file_layer.py``."""
        file_layer.arm([{"op": op, "do": do, "match": LOG, **limits}], root=self.folder)
        try:
            yield
        finally:
            file_layer.disarm()


async def compare(experiment: str, script: Script, **naive: OpenStore) -> Seen:
    """Run ``script`` on the naive stores, on the kit's and on the learner's, each in a fresh folder.

    The files stay in ``workspace/22-task-state/EXPERIMENT/NAME`` until the next run.
    """
    stores = {**naive, "kit": actions.solution_store, "yours": learners_store}
    place = fresh_folder(experiment)
    sides = []
    for name, open_store in stores.items():
        (place / name).mkdir()
        sides.append(await _run(script, place / name, name, open_store))
    return Seen(tuple(sides))


async def _run(script: Script, folder: Path, name: str, open_store: OpenStore) -> Side:
    bench = Bench(open_store, folder)
    unfinished = ""
    file_layer.install()  # before the store opens its file, or a fault could not find it
    try:
        await asyncio.wait_for(script(bench), SCRIPT_SECONDS)
    except NotImplementedError as error:
        unfinished = str(error)
    except Exception as error:
        if name != "yours":
            raise
        bench.note("…", error)  # a learner's code may raise anything, at any moment; here it is shown
    finally:
        file_layer.uninstall()
    return side_of(name, bench.calls, folder, unfinished)


def side_of(name: str, calls: list[Call], folder: Path, unfinished: str = "") -> Side:
    """Return what was done, and what lies in ``folder`` now: the log first, then whatever stands beside it."""
    found = sorted(folder.rglob("*"), key=lambda path: (path.name != LOG, path))
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if path.is_file()}
    return Side(name, tuple(calls), files, LogReader(folder / LOG).read()[1], unfinished)


def learners_store(path: Path) -> Any:
    """Open the learner's store, from the files as they are now. Raises: whatever importing or opening it raises."""
    try:
        return workspace.load_lesson("22").JsonlSessionStore(path)
    except SystemExit:  # in a task it would take the kernel with it
        raise RuntimeError("session_store.py ends the program; take sys.exit out of it") from None


def fresh_folder(experiment: str, notebook: str = "22-task-state") -> Path:
    """Return ``workspace/NOTEBOOK/EXPERIMENT``, emptied of what the same experiment left there before."""
    folder = workspace.scratch(notebook) / experiment
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def where_you_are() -> HTML:
    """Say which code the experiments use, and where they leave their files."""
    code, folder = map(shown_path, (workspace.lesson_source("22"), workspace.scratch("22-task-state")))
    return HTML(  # type: ignore[no-untyped-call]
        f"<p>{escape(t('seen.where', code=code, folder=folder))}</p>"
    )


def shown_path(path: Path) -> str:
    """Return a path as a learner finds it: from the kit's folder on, where it is in there."""
    root = workspace.kit_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def code(thing: Any) -> Code:
    """Return the source of a function or class, to be read in the notebook, without remarks meant for the linter."""
    return Code(  # type: ignore[no-untyped-call]
        textwrap.dedent(re.sub(r" *# noqa.*", "", inspect.getsource(thing))), language="python"
    )


def numbers_in(raw: bytes) -> list[Any]:
    """Return the sequence that stands on each physical line, sound or not; None where none can be made out."""
    return [_field_on(line, "sequence") for line in raw.split(b"\n") if line]


def in_short(answer: object) -> Any:
    """Say an answer in short: an event as its number, a history as its numbers, an error as its name and place."""
    if isinstance(answer, list):
        return [in_short(item) for item in answer]
    if isinstance(answer, TimeoutError) and answer.errno is None:
        return "TimeoutError"
    if isinstance(answer, OSError):
        return f"OSError({errno.errorcode.get(answer.errno or 0, answer.errno)})"
    if isinstance(answer, BaseException):
        places = (f"{name}={getattr(answer, name)}" for name in ("line", "sequence") if hasattr(answer, name))
        return f"{type(answer).__name__}({', '.join(places)})".removesuffix("()")
    value = getattr(answer, "sequence", answer)
    return value if isinstance(value, (int, float, str, dict, type(None))) else f"<{type(value).__name__}>"


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _field_on(line: bytes, field: str) -> Any:
    try:
        return json.loads(line)[field]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
