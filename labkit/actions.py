"""One function per click. Each acts on real files, through a store or the file system, and shows nothing.

What changed is for the disk to say: ``watch`` notices, ``views`` reads, a widget draws.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from labkit import workspace
from labkit.faults import file_layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    OpenStore = Callable[[Path], Any]

SAMPLE_EVENTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("todo_created", {"todo_id": "todo-1", "title": "给咖啡机写自检 ☕"}),
    ("todo_started", {"todo_id": "todo-1", "expected_from": "pending"}),
    ("tool_called", {"todo_id": "todo-1", "call_id": "call-1", "tool": "write_file", "path": "检查.py"}),
    ("tool_result", {"todo_id": "todo-1", "call_id": "call-1", "ok": True, "bytes": 1280}),
    ("todo_created", {"todo_id": "todo-2", "title": "Read the café's log"}),
    ("todo_started", {"todo_id": "todo-2", "expected_from": "pending"}),
    ("tool_called", {"todo_id": "todo-2", "call_id": "call-2", "tool": "send_mail"}),
    ("todo_completed", {"todo_id": "todo-1", "expected_from": "in_progress", "note": "自检通过，水温 92 ℃"}),
)
"""A task that finishes beside one whose mail may or may not have gone out; characters of one to four bytes."""


# --- Making a log, and damaging it ---


async def make_sample_log(path: Path, open_store: OpenStore | None = None) -> int:
    """Write the sample task's events into a new log, through a store where one is given; return its bytes.

    Raises: whatever the store raises.
    """
    _clear(path)
    if open_store is None:
        write_events(path, *SAMPLE_EVENTS)
        return _size(path)
    store = open_store(path)
    for type_, data in SAMPLE_EVENTS:
        await store.append(type_, data)
    return _size(path)


def write_events(path: Path, *events: tuple[str, object]) -> None:
    """Add events to a log as its format has them, without a store: numbered on from its last line."""
    event_line = workspace.load_lesson("22", "solution", "event_line")
    first = path.read_bytes().count(b"\n") + 1 if path.exists() else 1
    with path.open("ab") as file:
        for number, (type_, data) in enumerate(events, start=first):
            words = event_line.capture_type(type_)[1], event_line.capture_data(data)[1]
            file.write(event_line.encode_line(number, *words))


def solution_store(path: Path) -> Any:
    """Open the kit's own store on a log."""
    return workspace.load_lesson("22", "solution").JsonlSessionStore(path)


def cut(original: Path, copy: Path, size: int) -> None:
    """Make ``copy`` the first ``size`` bytes of ``original``, as a crash at that byte leaves them.

    Raises: ValueError for a size outside the original; OSError from the disk.
    """
    raw = original.read_bytes()
    if not 0 <= size <= len(raw):
        raise ValueError(f"{original.name}: no byte {size}; choose 0 to {len(raw)}")
    _put(copy, raw[:size])


def restore(original: Path, copy: Path) -> None:
    """Put the whole original back into ``copy``, and remove what stores saved beside it (``copy.torn-…``)."""
    _put(copy, original.read_bytes())
    for saved in copy.parent.glob(f"{copy.name}.torn-*"):
        saved.unlink(missing_ok=True)


def flip_bit(path: Path, offset: int, bit: int = 0) -> None:
    """Turn one bit (0 is the lowest) of the byte at ``offset``, in place, as a bad disk does.

    Raises: ValueError when there is no such byte or bit; OSError from the disk.
    """
    if not 0 <= bit <= 7:
        raise ValueError(f"{path.name}: no bit {bit} in a byte; choose 0 to 7")
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        if not 0 <= offset < size:
            raise ValueError(f"{path.name}: no byte {offset}; the file has {size} bytes, counted from 0")
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


def damage_line(path: Path, line: int, text: bytes = b"not-json") -> None:
    """Replace what stands in one line (1-based, physical) by ``text``; its newline and all other lines stay.

    Raises: ValueError when there is no such line; OSError from the disk.
    """
    lines = path.read_bytes().split(b"\n")
    if not 1 <= line <= len(lines) or not lines[line - 1]:
        raise ValueError(f"{path.name}: no line {line} to damage; the file has {len(lines) - 1} lines")
    lines[line - 1] = text
    _put(path, b"\n".join(lines))


async def append_task(open_store: OpenStore, path: Path, title: str) -> Any:
    """Append one more ``todo_created`` through a store opened anew, as a restarted program does; return the event.

    Raises: whatever the store raises.
    """
    todo_id = f"todo-{_size(path)}"  # unlike every other id in this log
    return await open_store(path).append("todo_created", {"todo_id": todo_id, "title": title})


def _clear(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _put(path: Path, raw: bytes) -> None:
    """Write over a file in place: bytes that stay the same are never missing, not even for a moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if path.exists() else "xb") as file:
        file.write(raw)
        file.truncate()


# --- Faults underneath, races, cuts ---


@contextmanager
def disturbed(folder: Path, *rules: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Put the fault layer underneath every file operation below ``folder`` while the block runs.

    ``rules`` as in ``labkit/faults/file_layer.py``. Yields a list that holds, after the block, what was done.
    """
    log: list[dict[str, Any]] = []
    file_layer.install()
    try:
        file_layer.arm(list(rules), root=str(folder))
        yield log
    finally:
        log += file_layer.log()
        file_layer.uninstall()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a caller did, between two ticks of a counter that all callers share.

    ``kind`` is ``call``, ``read`` or ``write``; ``number`` the last sequence that was read, or the one written.
    """

    lane: str
    kind: str
    began: int
    ended: int
    number: int | None


_lane: ContextVar[str] = ContextVar("lane")


async def race(store: Any, types: Sequence[str] = ("a", "b", "c"), hold: float = 0.2) -> list[Step]:
    """Call ``append`` once for each type, all before any is awaited, and return who did what in which order.

    Underneath, whoever has read the log and closes it again is held there until all have, or ``hold`` seconds have
    passed. A store that lets several callers read before one writes shows it every time, not by luck, also when it
    locks its writes: a barrier at the write would let only one of those come. A missing log is made, empty.
    """
    recorder = _Recorder(store)
    path = store.path
    path.touch()
    rule = {"op": "close", "match": path.name, "do": "hold", "until": len(types), "seconds": hold}
    with disturbed(path.parent, rule):
        await asyncio.gather(*(recorder.append(type_) for type_ in types))
    return recorder.steps


class _Recorder:
    """Notes when each caller of a store reads and writes, by wrapping what the store itself calls."""

    def __init__(self, store: Any) -> None:
        self.steps: list[Step] = []
        self._store, self._ticks = store, count()
        for kind, name in (("read", "read"), ("write", "_write")):
            inner = getattr(store, name)
            if asyncio.iscoroutinefunction(inner):
                setattr(store, name, self._noting(kind, inner))

    def append(self, type_: str) -> asyncio.Task[None]:
        _lane.set(type_)
        began = next(self._ticks)
        return asyncio.get_running_loop().create_task(
            self._called(began, type_, self._store.append(type_, None))
        )

    async def _called(self, began: int, type_: str, result: Any) -> None:
        event = await result
        self.steps.append(Step(type_, "call", began, next(self._ticks), event.sequence))

    def _noting(self, kind: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        async def noted(*args: Any) -> Any:
            began = next(self._ticks)
            result = await inner(*args)
            number = json.loads(args[0])["sequence"] if kind == "write" else len(result)
            self.steps.append(Step(_lane.get("?"), kind, began, next(self._ticks), number))
            return result

        return noted


async def cut_everywhere(original: Path, open_store: OpenStore) -> list[str]:
    """Cut a sound log at every byte, let a store read each real file, and return one verdict a position.

    ``whole`` every record of the file, nothing left over · ``torn`` every whole record, the rest ignored · ``lost``
    fewer than the whole records · ``wrong`` anything else that was returned · ``refused`` an error.
    Position k, from 0 to the file's size, is the file of k bytes.
    """
    raw = original.read_bytes()  # noqa: ASYNC240 — a small local file, as everywhere here
    copy = original.with_name(f"{original.name}.cut")
    try:
        return [await _verdict(raw, size, copy, open_store) for size in range(len(raw) + 1)]
    finally:
        copy.unlink(missing_ok=True)


async def _verdict(raw: bytes, size: int, copy: Path, open_store: OpenStore) -> str:
    _put(copy, raw[:size])
    ended = raw.count(b"\n", 0, size)
    between = raw[size : size + 1] == b"\n"  # only the newline is missing: the record counts
    rest = size - (raw.rfind(b"\n", 0, size) + 1)
    try:
        events = await open_store(copy).read()
        numbers = [event.sequence for event in events]
    except Exception:  # noqa: BLE001 — a learner's store may refuse in any way it likes
        return "refused"
    due = list(range(1, ended + 1 + between))
    if numbers == due:
        return "torn" if rest and not between else "whole"
    return "lost" if numbers == due[: len(numbers)] else "wrong"


# --- Checking and remembering ---


_STATELAB = (sys.executable, "-c", "from labkit.cli import main; main()")


def verify_command(lesson: str, target: str | None = None) -> list[str]:
    """Return the command line that grades one lesson's code in a process of its own."""
    where = target or workspace.target()
    return [*_STATELAB, "verify", "--lesson", lesson, "--target", where, "--json"]


def gate_command(lesson: str, tests: Path | None = None) -> list[str]:
    """Return the command line that runs a lesson's suite, or a file of ``tests``, on the stores known to be wrong."""
    own = () if tests is None else ("--tests", str(tests))
    return [*_STATELAB, "gate", "--lesson", lesson, *own, "--json"]


def grade_command(lesson: str, submissions: Path, out: Path, language: str) -> list[str]:
    """Return the command line that grades the kit's own samples, which may be run where nothing isolates, too."""
    where = ("--lesson", lesson, "--out", str(out), "--lang", language)
    return [*_STATELAB, "grade", str(submissions), *where, "--allow-unsandboxed"]


def example_tests() -> Path:
    """Return the file with the worked example of a learner's own test; it is the kit's, and nobody edits it."""
    return workspace.kit_root() / "assets" / "my-tests" / "test_my_store.py"


def my_tests() -> Path:
    """Return the learner's file of tests, made from the example where there is none; one that is there stays as it is."""
    path = workspace.scratch("my_tests") / example_tests().name
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(example_tests().read_bytes())
    return path


def remember_prediction(question: str, answer: str) -> None:
    """Keep a learner's answer, so that it is still there after the kernel restarts."""
    path = _predictions()
    _put(path, json.dumps({**predictions(), question: answer}, ensure_ascii=False, indent=1).encode() + b"\n")


def predictions() -> dict[str, str]:
    """Return the kept answers by question; empty when there are none, or when somebody broke the file."""
    try:
        kept = json.loads(_predictions().read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _predictions() -> Path:
    return workspace.scratch("predictions") / "answers.json"
