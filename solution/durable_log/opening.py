"""What opening a log does before the first append: read the active segment, prove it, mend its tail (E2, E11)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal, NamedTuple

from .active_file import ActiveFile
from .errors import CorruptLogError, TornTailError
from .limits import Limits
from .metrics import Metrics
from .placing import tells_its_sequence
from .reading import Scan
from .record import Head
from .repair import mend_tail
from .segments import Segments
from .session_folder import SessionFolder

OnTorn = Literal["repair", "refuse"]


class Mark(NamedTuple):
    """A place in the active file: behind `head`, at `offset` in bytes."""

    head: Head
    offset: int


class Opened(NamedTuple):
    """A log that may be appended to: where it ends, the callers' ids in its active segment, places to read from."""

    segments: Segments
    file: ActiveFile
    head: Head
    ids: dict[str, int]
    marks: list[Mark]


def open_for_appends(
    folder: SessionFolder, *, limits: Limits, newest: int | None, on_torn: OnTorn, metrics: Metrics
) -> Opened:
    """Read and prove the active segment, and mend what an unfinished append left at its end. Under the writer's lock.

    Raises:
        CorruptLogError: it is damaged, or ends before the head that the manifest records; no byte of it was changed.
        TornTailError: it has a torn tail and `on_torn` is "refuse"; no byte was changed.
        UnknownVersionError, PlaceError, OSError.
    """
    started = time.perf_counter()
    segments = Segments.open(folder)
    scan = Scan(segments.active, session=folder.session, before=segments.before, limits=limits, newest=newest)
    ids: dict[str, int] = {}
    marks = [Mark(segments.before, 0)]
    recorded = segments.recorded_head()
    for block in scan.blocks():
        for event in block.events:
            if not tells_its_sequence(event.event_id, event.sequence):
                ids[event.event_id] = event.sequence
        place = recorded.sequence - block.events[0].sequence
        if 0 <= place < len(block.events) and block.events[place].event_hash != recorded.hash:
            raise CorruptLogError(
                scan.name, f"event {recorded.sequence} is not the one that the manifest recorded"
            )
        marks.append(Mark(scan.head, scan.good_bytes))
    if scan.head.sequence < recorded.sequence:
        raise CorruptLogError(
            scan.name,
            f"ends at event {scan.head.sequence}, and it reached event {recorded.sequence}: its tail was cut",
        )
    size = _mend(scan, segments.active, on_torn, metrics)
    metrics.replay_seconds = time.perf_counter() - started
    return Opened(segments, ActiveFile(segments.active, size), scan.head, ids, marks)


def _mend(scan: Scan, path: Path, on_torn: OnTorn, metrics: Metrics) -> int:
    """Make the file end with a whole record and its newline; returns its size in bytes."""
    report = scan.report
    if report.verdict == "sound" and not scan.missing_newline:
        return report.good_bytes
    if on_torn == "refuse":
        raise TornTailError(
            f"{scan.name}: {report.torn_bytes} bytes of an unfinished append stand behind event {report.last_sequence}; "
            "open it with on_torn='repair', or run: statelab log repair"
        )
    mend_tail(path, report, missing_newline=scan.missing_newline)
    metrics.torn_recoveries += 1
    return report.good_bytes + scan.missing_newline
