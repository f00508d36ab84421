"""Reads the lesson's logs in place of the reference, in a kit that was handed out without it.

The engineering version's inspector judges the bytes (`statelab log inspect`), so every view, the slider and the zoo
still tell what is right. It cannot append, and nothing here can be handed in: a submission is the lesson's files alone.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def judge(
    raw: bytes, path: Path, decode: Callable[[bytes], Any], scan: Callable[..., Any], corrupt: type[Exception]
) -> Any:
    """Return what the inspector says about a log, as a value or an error of the lesson's. Raises: ``corrupt``."""
    # The inspector imports the lesson's lines, and the lesson imports this.
    from solution.durable_log.inspection import inspect  # noqa: PLC0415
    from solution.durable_log.log_source import Source  # noqa: PLC0415
    from solution.durable_log.log_words import describe  # noqa: PLC0415

    report = inspect(Source(str(path), io.BytesIO(raw), None, compressed=False), "lesson")
    if report.verdict == "corrupt":
        found = next(one for one in report.findings if one.line == report.line and one.weight == "corrupt")
        raise corrupt(path, report.line, f"{describe(found, 'zh')} ({describe(found, 'en')})")
    sound = raw[: report.good_bytes]
    events = tuple(decode(line) for line in sound.removesuffix(b"\n").split(b"\n") if line)
    unended = bool(events) and report.verdict == "sound" and not raw.endswith(b"\n")
    return scan(events, report.good_bytes, raw[report.good_bytes :], missing_newline=unended)


def events(path: Path, scan: Callable[[bytes, Path], Any], refuse: Callable[[Path], None]) -> Any:
    """Return the events of a log; none when there is no file. Raises: OSError, and what ``scan`` raises."""
    if not path.exists():
        return ()
    refuse(path)
    return scan(path.read_bytes(), path).events
