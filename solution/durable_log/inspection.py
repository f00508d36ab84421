"""One log -> one report (E10, E15): its format known or found, every record judged, nothing changed.

report = inspect(Source.open("session.jsonl"))
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec

from solution.lesson_22.event_line import NotAnEventError, NotJsonError, decode_line

from .contract import Event, Report
from .errors import CorruptLogError, DurableLogError, UnknownVersionError
from .foreign import AnyObject, Examination, Finding, Format, NotARecordError, Rules, shape_of
from .log_source import Source, printable
from .log_words import describe
from .physical_lines import MAX_LINE_BYTES, Line, blocks
from .reading import Scan
from .record import BEGINNING, Head
from .segments import Segments
from .session_folder import SessionFolder
from .strict_json import NotStrictError, judge_exactly
from .verification import verify_session

_DURABLE_LINE = re.compile(rb'\{"v":\d+,"session":"|,"event_hash":"')
_LESSON_LINE = re.compile(rb'\{"sequence":')
_LESSON_LINE_ANYHOW = re.compile(rb'\{\s*+"(?:sequence|type|data)"\s*+:')
_FOREIGN_KEY = re.compile(rb'"(?:uuid|parentUuid|sessionId|timestamp|payload|message|role|id)"\s*+:')


class LogReport(Report, frozen=True, kw_only=True):
    """The read report of E10, and what inspecting adds to it.

    records   that count in the whole file, behind a bad place too; `events` stops at the first bad place
    size      bytes that were read
    findings  everything that was found, in order, at most 1,000; `counts` has how many of each kind there are
    """

    schema: int = 1
    format: Format
    records: int
    size: int
    findings: list[Finding]
    counts: dict[str, int]


class Entry(NamedTuple):
    """One record as it may be shown or counted: nothing of its content but the value itself, for whoever counts it."""

    line: int
    offset: int
    size: int
    sequence: int | None
    type: str
    id: str
    at: Any
    content: Any
    format: Format


class Show(NamedTuple):
    """Which lines' records are handed on, from `first` to `last`, and to whom."""

    to: Callable[[Entry], None]
    first: int = 1
    last: float = math.inf


NOTHING = Show(lambda _: None, last=0)


class LessonRules:
    """The lesson's own log (docs/formats.md), judged by the lesson's own reader of lines."""

    any_tail_is_torn = True
    any_object = False

    def __init__(self) -> None:
        self.due: int | None = 1

    def record(self, raw: bytes) -> tuple[Any, tuple[str, ...]]:
        """Give the event that a line holds, as its object."""
        try:
            event = decode_line(raw)
        except NotJsonError:
            self.due = None  # which number that record would have had is not known
            raise _why_not_json(raw) from None
        except NotAnEventError:
            raise NotARecordError("not-an-event") from None
        due, self.due = self.due, event.sequence + 1
        if due is not None and event.sequence != due:
            raise NotARecordError("wrong-sequence", due)
        return {"sequence": event.sequence, "type": event.type, "data": event.data}, ()


def _why_not_json(raw: bytes) -> NotStrictError:
    try:
        judge_exactly(raw)
    except NotStrictError as fault:
        return fault
    return NotStrictError("too-deep")  # the lesson's limit is lower


def format_of(head: bytes) -> Format:
    """Tell a log's format by its first lines: the most of them decide, of as many the first; damaged ones do not vote."""
    votes: list[Format] = []
    for line in head.replace(b"\0", b"").split(b"\n")[:100]:
        if _DURABLE_LINE.search(line):
            votes.append("durable")
        elif _LESSON_LINE.match(line) and b'"data":' in line:
            votes.append("lesson")
        elif _FOREIGN_KEY.search(line):
            votes.append("foreign")
        elif _LESSON_LINE_ANYHOW.search(line) and b'"data"' in line:
            votes.append("lesson")
    if votes:
        return max(votes, key=votes.count)  # the first of the most
    return "lesson" if b'"sequence"' in head else "foreign"


def inspect(
    source: Source,
    format_: Format | None = None,
    *,
    show: Show = NOTHING,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> LogReport:
    """Read one log from end to end and report, and show some of its records.

    Raises: OSError when it cannot be read.
    """
    chosen = format_ or format_of(source.head)
    if chosen == "durable":
        return _inspect_durable(source, show, max_line_bytes)
    return _examine(source, chosen, show, max_line_bytes)


def _examine(source: Source, format_: Format, show: Show, max_line_bytes: int) -> LogReport:
    rules: Rules = LessonRules() if format_ == "lesson" else AnyObject()
    examined = Examination(rules)

    def visit(line: Line, value: Any) -> None:
        if show.first <= line.number <= show.last:
            show.to(entry_of(line, value))

    examined.read(blocks(source.read, max_line_bytes), visit if show.last else None, show.last)
    if source.damaged:
        examined.add(Finding("gzip", examined.lines + 1, examined.size))
    elif source.grew:
        examined.add(Finding("growing", examined.lines, examined.size))
    bad, torn = examined.first_bad, examined.verdict == "torn"
    return LogReport(
        verdict=examined.verdict,
        file=source.title,
        events=examined.events,
        last_sequence=examined.events if format_ == "lesson" else 0,
        good_bytes=examined.good_bytes,
        torn_bytes=examined.torn_bytes if torn else 0,
        line=bad.line if bad else None,
        offset=bad.offset if bad else None,
        reason=describe(bad, "en") if bad else "",
        format=format_,
        records=examined.records_read,
        size=examined.size,
        findings=examined.findings,
        counts={kind: count for kind, count in examined.counts.items() if count},
    )


def entry_of(line: Line, value: dict[str, Any]) -> Entry:
    """Give what may be known of a record."""
    shape = shape_of(value)
    sequence = value.get("sequence")
    return Entry(
        line.number,
        line.offset,
        line.size,
        sequence if type(sequence) is int else None,
        _text(value.get("type")),
        _text(value.get("uuid") or value.get("event_id") or value.get("id")),
        value.get("timestamp") or value.get("occurred_at"),
        value.get("data", value) if shape != "foreign" else value,
        shape,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# --- Our own format ---


def _inspect_durable(source: Source, show: Show, max_line_bytes: int) -> LogReport:
    scan = Scan(cast(IO[bytes], source), before=_before(source.head), name=source.name)
    size = _follow(scan, show)
    report = scan.report
    if source.damaged:
        broken = [Finding("gzip", report.events + 1, report.good_bytes)]
        report = msgspec.structs.replace(
            report,
            verdict="corrupt",
            torn_bytes=0,
            line=report.events + 1,
            offset=report.good_bytes,
            reason=describe(broken[0], "en"),
        )
        return _report(report, broken, size=size)
    if report.verdict == "sound":
        ending = (
            [Finding("missing-newline", report.events, report.good_bytes)] if scan.missing_newline else []
        )
        return _report(report, ending, size=size)
    if source.size is None:
        return _report(report, [_fault(report)], size=size)
    return _explained(report, max_line_bytes)


def _follow(scan: Scan, show: Show) -> int:
    """Read a log to its end or its first bad place; return how many bytes that were."""
    lines = 0
    try:
        for block in scan.blocks():
            if lines < show.last:
                for number, event, (offset, size) in zip(
                    count(lines + 1), block.events, _places(block.offset, block.lines), strict=False
                ):
                    if show.first <= number <= show.last:
                        show.to(_event_entry(number, offset, size, event))
            lines += len(block.events)
    except (CorruptLogError, UnknownVersionError):
        pass  # the report has it
    return scan.good_bytes


def _places(offset: int, lines: bytes) -> Iterator[tuple[int, int]]:
    for line in lines.split(b"\n"):
        yield offset, len(line)
        offset += len(line) + 1


def _event_entry(number: int, offset: int, size: int, event: Event) -> Entry:
    return Entry(
        number,
        offset,
        size,
        event.sequence,
        event.type,
        event.event_id,
        event.occurred_at,
        event.data,
        "durable",
    )


def _before(head: bytes) -> Head:
    """Give the event before a segment's first record, as that record tells it: a lone segment begins anywhere."""
    try:
        first = msgspec.json.decode(head.partition(b"\n")[0])
        sequence, previous = first["sequence"], first["previous_hash"]
    except (msgspec.MsgspecError, RecursionError, ValueError, LookupError, TypeError):
        return BEGINNING
    if type(sequence) is int and sequence > 1 and isinstance(previous, str):
        return Head(sequence - 1, previous)
    return BEGINNING


def _fault(report: Report) -> Finding:
    """Give what a log's own reader says as a finding."""
    kind = "record" if report.verdict == "corrupt" else "torn-tail"
    line = report.line or report.events + 1
    offset = report.good_bytes if report.offset is None else report.offset
    return Finding(kind, line, offset, report.torn_bytes, detail=report.reason)


def _explained(report: Report, max_line_bytes: int = MAX_LINE_BYTES) -> LogReport:
    """Read the bad file once more as plain JSON lines, to say what each bad line turned out to be."""
    with Source.open(report.file) as source:
        again = _examine(source, "foreign", NOTHING, max_line_bytes)
    found = [finding for finding in again.findings if finding.weight != "torn" or report.verdict == "torn"]
    fault = _fault(report)
    if not any(finding.line == fault.line and finding.weight != "note" for finding in found):
        found = sorted([*found, fault], key=lambda finding: finding.offset)
    return _report(report, found, size=again.size, records=again.records)


def _report(
    report: Report, findings: Iterable[Finding], *, size: int, records: int | None = None
) -> LogReport:
    """Make a log's own report one of this command: the same fields with the same values, and what was found."""
    plain: dict[str, Any] = {name: getattr(report, name) for name in Report.__struct_fields__}
    found = list(findings)
    return LogReport(
        **plain | {"file": printable(report.file)},
        format="durable",
        records=report.events if records is None else records,
        size=size,
        findings=found,
        counts=Counter(finding.kind for finding in found),
    )


def inspect_session(folder: Path, show: Show = NOTHING) -> LogReport:
    """Read a whole session: every segment that its manifest names, chained, up to the head that it records.

    Raises: PlaceError; OSError.
    """
    session = SessionFolder(folder, folder.name)
    try:
        report = verify_session(session)
    except UnknownVersionError as error:
        report = Report(
            verdict="corrupt", file=str(folder), events=0, last_sequence=0, good_bytes=0, reason=str(error)
        )
    if show.last:
        _show_segments(session, show)
    size = sum(path.stat().st_size for path in folder.glob("*.jsonl*"))
    if report.verdict == "sound":
        return _report(report, [], size=size)
    if report.line is None and report.verdict == "corrupt":
        return _report(report, [_fault(report)], size=size)
    return msgspec.structs.replace(_explained(report), size=size, records=report.events)


def _show_segments(session: SessionFolder, show: Show) -> None:
    """Hand on the records of a session, their lines counted through all its segments."""
    try:
        for file in Segments.look(session).files():
            with file.open() as lines:
                done = file.before.sequence
                here = show._replace(first=show.first - done, last=show.last - done)
                _follow(Scan(lines, before=file.before), here)
    except (DurableLogError, OSError):
        pass  # the report has it
