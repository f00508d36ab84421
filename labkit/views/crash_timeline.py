"""One crash as a timeline: what was done to which object, what a sync had secured, what the crash kept, what broke."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from rich.cells import cell_len

from labkit.faults.crash.trace import CONTENT, NAMES
from labkit.views.byte_view import ByteView, Mark, byte_view
from labkit.views.read_report import Outcome, ReadReport
from labkit.words import catalogue, speaking, t

if TYPE_CHECKING:
    from labkit.faults.crash.trace import Choice, CrashState, Step, Trace

MOST_FILES = 3
"""How many files are drawn byte by byte."""
AROUND = 12
"""How many steps before the first deviation, and after the crash, are drawn as text; the others are counted."""


class Fate(StrEnum):
    """What became of a step. A sync or an acknowledgement leaves nothing by itself: it is done, or never came."""

    ARRIVED = "arrived"
    MISSING = "missing"
    SHORTENED = "shortened"
    ZERO_FILLED = "zero-filled"
    DONE = "done"
    AFTER = "after"


SIGNS = {
    Fate.ARRIVED: "●",
    Fate.MISSING: "○",
    Fate.SHORTENED: "◐",
    Fate.ZERO_FILLED: "▨",
    Fate.DONE: "✓",
    Fate.AFTER: "·",
}


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One step. ``lane`` is an index into the view's lanes: the file for bytes, the folder for names, -1 for what was said.

    ``size`` is how many bytes were written, or how long the file became; None where bytes have no part in it. ``kept`` is
    how many of a write arrived. ``secured_by`` is the number of the sync after which this step could not get lost any more,
    None when there was none before the crash. ``lost`` marks an acknowledged value that the recovery did not find.
    """

    number: int
    thread: int
    lane: int
    op: str
    path: str
    to: str
    at: int
    size: int | None
    value: str
    fate: Fate
    kept: int | None = None
    secured_by: int | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """One file or folder, with the names that it had, oldest first."""

    names: tuple[str, ...]
    folder: bool


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file as the crash left it. ``view`` is None when it has no name there; ``whole`` is its size had all arrived."""

    path: str
    view: ByteView | None
    whole: int


@dataclass(frozen=True, slots=True)
class TimelineView:
    """All steps of a trace; the crash comes after step ``after``. ``broken`` names promises, ``report`` is the recovery's."""

    rows: tuple[TimelineRow, ...]
    lanes: tuple[Lane, ...]
    after: int
    threads: int
    acknowledged: int
    broken: tuple[str, ...]
    files: tuple[FileBytes, ...]
    report: Mapping[str, Any]


def timeline(
    trace: Trace,
    state: CrashState,
    broken: Iterable[str],
    *,
    model: str = "weak",
    report: Mapping[str, Any] | None = None,
) -> TimelineView:
    """Lay out one crash state of a trace.

    ``model`` decides what a sync secures: in ``ordered`` any sync secures every name before it, else a name waits for a
    sync of its folder. ``report`` is what the recovery found, as a counterexample stores it.
    """
    lanes, broken = _Lanes(trace), tuple(broken)
    choices = {choice.step: choice for choice in state.choices}
    secured, lost = _secured(trace, state.after, model), _lost(state, broken, report or {})
    rows = tuple(
        replace(
            _row(step, lanes.of(step), choices.get(step.number), state.after),
            secured_by=secured.get(step.number),
            lost=step.op == "acknowledge" and step.number <= state.after and step.value in lost,
        )
        for step in trace.steps
    )
    return TimelineView(
        rows=rows,
        lanes=lanes.all(),
        after=state.after,
        threads=len({step.thread for step in trace.steps}),
        acknowledged=len(state.acknowledged),
        broken=broken,
        files=tuple(_files(trace, state)),
        report=report or {},
    )


class Found(Protocol):
    """A crash that broke a promise, as ``labkit.faults.crash.counterexample.Counterexample``."""

    @property
    def model(self) -> str:
        """What a crash keeps."""
        ...

    @property
    def broken(self) -> tuple[str, ...]:
        """The promises that it breaks."""
        ...

    @property
    def report(self) -> Mapping[str, Any]:
        """What the recovery found."""
        ...

    @property
    def trace(self) -> Trace:
        """What was recorded."""
        ...

    @property
    def state(self) -> CrashState:
        """What the crash left."""
        ...


def timeline_of(found: Found) -> TimelineView:
    """Lay out a counterexample."""
    return timeline(found.trace, found.state, found.broken, model=found.model, report=found.report)


class _Lanes:
    """Which object a step is about: bytes belong to a file, names to the folder that holds them."""

    def __init__(self, trace: Trace) -> None:
        self._nodes = {start.path: start.node for start in trace.start if start.entry.kind == "folder"}
        self._nodes |= {step.path: step.node for step in trace.steps if step.op == "mkdir"} | {".": 0}
        self._names: dict[int, list[str]] = {}
        for step in trace.steps:
            self._meet(step)
        self._order = list(self._names)

    def of(self, step: Step) -> int:
        return -1 if step.op == "acknowledge" else self._order.index(self._object(step))

    def all(self) -> tuple[Lane, ...]:
        folders = set(self._nodes.values())
        return tuple(
            Lane(tuple(dict.fromkeys(names)), node in folders) for node, names in self._names.items()
        )

    def _object(self, step: Step) -> int:
        return self._nodes.get(parent(step), 0) if step.op in NAMES else step.node

    def _meet(self, step: Step) -> None:
        if step.op == "acknowledge":
            return
        place = parent(step) if step.op in NAMES else step.path
        names = self._names.setdefault(self._object(step), [])
        if step.op in CONTENT or not names:
            names.append(place)
        if step.op == "rename" and step.node in self._names:
            self._names[step.node].append(step.to)


_MOVES = ("rename", "link")
"""Steps that give a file the name ``to``; of a symbolic link that is what it points to."""


def parent(step: Step) -> str:
    """Return the folder whose names a step changes; of a rename, the one that it leads into."""
    return str(PurePosixPath(step.to if step.op in _MOVES else step.path).parent)


def _row(step: Step, lane: int, choice: Choice | None, after: int) -> TimelineRow:
    size = len(step.data) if step.op == "write" else step.at if step.op == "truncate" else None
    return TimelineRow(
        number=step.number,
        thread=step.thread,
        lane=lane,
        op=step.op,
        path=step.path,
        to=step.to,
        at=step.at,
        size=size,
        value=json.dumps(step.value, ensure_ascii=False) if step.op == "acknowledge" else "",
        fate=_fate(step, choice, after),
        kept=choice.kept if choice and step.op == "write" else None,
    )


def _fate(step: Step, choice: Choice | None, after: int) -> Fate:
    if step.number > after:
        return Fate.AFTER
    if step.op in ("sync", "acknowledge"):
        return Fate.DONE
    if choice is None:
        return Fate.ARRIVED
    if choice.filled:
        return Fate.ZERO_FILLED
    return Fate.SHORTENED if choice.kept else Fate.MISSING


def _secured(trace: Trace, after: int, model: str) -> dict[int, int]:
    """Return which step was secured by which sync before the crash, by number."""
    secured: dict[int, int] = {}
    of_node: dict[int, int] = {}
    of_folder: dict[str, int] = {}
    first = 0
    for step in reversed(trace.steps[:after]):  # of the syncs behind a step, the one next to it is met last
        if step.op == "sync":
            of_node[step.node] = of_folder[step.path] = first = step.number
        elif step.op in CONTENT:
            secured[step.number] = of_node.get(step.node, 0)
        elif step.op in NAMES:
            secured[step.number] = first if model == "ordered" else of_folder.get(parent(step), 0)
    return {number: sync for number, sync in secured.items() if sync}


def _lost(state: CrashState, broken: tuple[str, ...], report: Mapping[str, Any]) -> list[Any]:
    """Return what had been acknowledged and is gone. Of a state file only the newest counts: it replaces the others."""
    said, found = state.acknowledged, report.get("read")
    if not isinstance(found, list):
        return []
    if "acknowledged-survive" in broken:
        return [value for value in said if value not in found]
    return list(said[-1:]) if "saved-survives" in broken else []


# --- The bytes of what the crash touched ---


def _files(trace: Trace, state: CrashState) -> Iterator[FileBytes]:
    for path in _touched(trace, state)[:MOST_FILES]:
        entry = state.tree.get(path)
        if entry is not None and entry.kind != "file":
            continue
        lacking = [
            (step, choice)
            for choice in state.choices
            if (step := trace.steps[choice.step - 1]).op == "write" and _name(trace, state, step) == path
        ]
        yield _file(path, None if entry is None else entry.content, lacking)


def _touched(trace: Trace, state: CrashState) -> list[str]:
    """Name the files that deviate; when none does, the one that was changed last."""
    steps = [trace.steps[choice.step - 1] for choice in state.choices]
    if not steps:
        before = [step for step in trace.steps[: state.after] if step.op in CONTENT | NAMES]
        steps = before[-1:]
    return list(dict.fromkeys(_name(trace, state, step) for step in steps))


def _name(trace: Trace, state: CrashState, changed: Step) -> str:
    """Return the name, at the crash, of the file that a step changed; of a lost rename, the name that was to be replaced."""
    lost = {choice.step for choice in state.choices}
    path = changed.to if changed.op in _MOVES else changed.path
    for step in trace.steps[changed.number : state.after]:
        if step.op == "rename" and step.path == path and step.number not in lost:
            path = step.to
    return path


def _file(path: str, raw: bytes | None, lacking: Sequence[tuple[Step, Choice]]) -> FileBytes:
    """Mark as torn what came of a write that was cut, as damaged what stands where another write is missing."""
    whole = bytearray(raw or b"")
    for step, _ in lacking:
        whole.extend(bytes(max(0, step.at - len(whole))))
        whole[step.at : step.at + len(step.data)] = step.data
    if raw is None:
        return FileBytes(path, None, len(whole))
    begins = min((step.at for step, _ in lacking), default=len(raw))
    reaches = any(len(raw) > step.at + choice.kept for step, choice in lacking)
    outcome = Outcome.CORRUPT if reaches else Outcome.TORN if begins < len(raw) else Outcome.WHOLE
    report = ReadReport(outcome, size=len(raw), good_bytes=min(begins, len(raw)))
    return FileBytes(path, byte_view(raw, report, focus=begins, before=bytes(whole)), len(whole))


# --- In words ---


def step_line(row: TimelineRow) -> str:
    """Say what a step did."""
    return t(f"crash-step.{row.op}", path=row.path, to=row.to, at=row.at, value=row.value)


def fate_line(row: TimelineRow) -> str:
    """Say what became of a step, with the bytes that arrived where only some did."""
    said = t("crash-fate.lost") if row.lost else t(f"crash-fate.{row.fate}", kept=row.kept or 0)
    return f"{'✗' if row.lost else SIGNS[row.fate]} {said}"


def broken_line(name: str) -> str:
    """Say which promise is broken; one that the catalogue does not know is said by its name alone."""
    key = f"promise.{name}"
    promise = f"{name}: {t(key)}" if key in catalogue() else name
    return t("crash-timeline.broken", promise=promise)


def crash_line(view: TimelineView) -> str:
    """Say where the crash came, and how much had been promised by then."""
    return t("crash-timeline.crash", after=view.after, steps=len(view.rows), said=view.acknowledged)


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Say what the recovery found: how much it read, before and after one more append, what it answered, or its error."""
    for name in ("read", "after"):
        if isinstance(report.get(name), list):
            yield t(f"crash-report.{name}", n=len(report[name]))
    if answer := report.get("answer"):
        words = (answer.get(name) for name in ("decision", "reason", "cause"))
        yield t("crash-report.answer", answer=" / ".join(str(word) for word in words if word))
    for name in ("error", "missing", "ended"):
        if report.get(name):
            yield t(f"crash-report.{name}", why=report[name])


def file_line(file: FileBytes) -> str:
    """Say how large a file is, and how large it would be; or that no name leads to it."""
    if file.view is None:
        return t("crash-timeline.no-name", path=file.path)
    return t("crash-timeline.file", path=file.path, size=file.view.size, whole=file.whole)


def timeline_columns(view: TimelineView) -> tuple[str, ...]:
    """Name the columns of a timeline's table; that of the threads only where there is more than one."""
    threads = ("thread",) if view.threads > 1 else ()
    return ("number", *threads, "operation", "bytes", "secured", "fate")


def timeline_cells(row: TimelineRow) -> dict[str, str]:
    """Return one step's texts by column."""
    return {
        "number": str(row.number),
        "thread": str(row.thread),
        "operation": step_line(row),
        "bytes": "" if row.size is None else str(row.size),
        "secured": str(row.secured_by or ("–" if row.op in CONTENT | NAMES else "")),
        "fate": fate_line(row),
    }


def lane_line(lane: Lane) -> str:
    """Name a lane: the names that a file had, or whose names a folder holds."""
    if not lane.folder:
        return " → ".join(lane.names)
    name = lane.names[0]
    return t("crash-timeline.root") if name == "." else t("crash-timeline.folder", path=name)


def secured_bars(view: TimelineView) -> list[tuple[int, int, int]]:
    """Return lane, first step and sync, by number, of each stretch that one sync secured, in the lane of the steps."""
    first: dict[tuple[int, int], int] = {}
    for row in view.rows:
        if row.secured_by:
            first.setdefault((row.lane + 1, row.secured_by), row.number)
    return [(lane, begins, sync) for (lane, sync), begins in first.items()]


# --- As text, for a terminal ---


def as_text(view: TimelineView, language: str) -> str:
    """Draw a timeline for a terminal, in ``zh`` or ``en``: no colour, no line is cut, ends with a newline."""
    with speaking(language):
        files = [line for file in view.files for line in ("", file_line(file), *_bytes_as_text(file))]
        return "\n".join([crash_line(view), *_found_as_text(view), "", *_rows_as_text(view), *files, ""])


def what_is_left_as_text(view: TimelineView, language: str) -> str:
    """Draw the same without the steps and the crash: of a run in which an operation failed the trace tells neither."""
    with speaking(language):
        files = [
            line
            for file in view.files
            if file.view
            for line in (
                "",
                t("crash-timeline.left", path=file.path, size=file.view.size),
                *_bytes_as_text(file),
            )
        ]
        return "\n".join([*_found_as_text(view), *files, ""])


def _found_as_text(view: TimelineView) -> list[str]:
    broken = [f"✗ {broken_line(name)}" for name in view.broken]
    return [*broken, *(f"→ {line}" for line in report_lines(view.report))]


def _rows_as_text(view: TimelineView) -> Iterator[str]:
    columns = timeline_columns(view)
    first, last = _stretch(view)
    drawn = [{name: t(f"crash-timeline.{name}") for name in columns}]
    drawn += [timeline_cells(row) for row in view.rows[first:last]]
    widths = [max(cell_len(cells[name]) for cells in drawn) for name in columns]
    lines = [_aligned([cells[name] for name in columns], widths) for cells in drawn]
    crash_at = view.after - first + 1
    mark = t("crash-timeline.here")
    yield lines[0]
    if first:
        yield t("crash-timeline.before", n=first)
    yield from lines[1:crash_at]
    yield f"──── ⚡ {mark} {'─' * max(4, sum(widths) - cell_len(mark))}"
    yield from lines[crash_at:]
    if last < len(view.rows):
        yield t("crash-timeline.later", n=len(view.rows) - last)


def _stretch(view: TimelineView) -> tuple[int, int]:
    """Return which rows to draw: from a little before the first deviation to a little after the crash."""
    deviant = (row.number for row in view.rows if row.lost or row.fate not in _EXPECTED)
    first = max(0, min([view.after, *deviant]) - 1 - AROUND)
    last = min(len(view.rows), view.after + AROUND)
    return first, last


_EXPECTED = (Fate.ARRIVED, Fate.DONE, Fate.AFTER)


def _aligned(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text + " " * (width - cell_len(text)) for text, width in zip(texts, widths, strict=True))
    return "  ".join(padded).rstrip()


def _bytes_as_text(file: FileBytes) -> Iterator[str]:
    if file.view is None:
        return
    counts = [t(f"bytes.{mark}", n=n) for mark, n in file.view.counts.items() if n and mark is not Mark.GOOD]
    if file.view.changed_bytes:
        counts.append(t("bytes.changed", n=file.view.changed_bytes))
    if counts:
        yield " · ".join(counts)
    for row in file.view.rows:
        sign = "!" if any(cell.changed for cell in row.cells) else _WORTH[row.cells[-1].mark]
        hexes = " ".join(cell.hex for cell in row.cells)
        yield f"{sign} {row.offset:>7}  {hexes:<47}  {''.join(cell.glyph for cell in row.cells)}"


_WORTH = {Mark.GOOD: " ", Mark.TORN: "~", Mark.DAMAGED: "!", Mark.UNREAD: "?"}
