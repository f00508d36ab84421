"""The grader's own reading of a log: what docs/formats.md says about any bytes. It never meets a student's code."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple, NoReturn

from grader.lab import Event

BOM = b"\xef\xbb\xbf"
FIELDS = {"sequence", "type", "data"}
DEPTH = 100  # levels of lists and objects inside data


class Verdict(NamedTuple):
    """The events before the first fault, and the physical line (1-based) of that fault; None for a sound log."""

    events: list[Event]
    bad_line: int | None


class _NotStrictError(ValueError):
    """The strict parser met what Python's own lets pass."""


def judge(raw: bytes) -> Verdict:
    """Read a log as the rules say. A torn tail is left out; a whole last record without newline counts."""
    pieces = raw.split(b"\n")
    events: list[Event] = []
    for number, piece in enumerate(pieces, start=1):
        try:
            value = _parse(piece)
        except (ValueError, RecursionError):
            if number == len(pieces):
                break  # torn, or the nothing after the last newline
            return Verdict(events, number)
        event = _event(value, number)
        if event is None:
            return Verdict(events, number)
        events.append(event)
    return Verdict(events, None)


def _event(value: Any, number: int) -> Event | None:
    """Give the event that a line holds, or None when it is not the record that is due there."""
    if type(value) is not dict or value.keys() != FIELDS:
        return None
    event = Event(value["sequence"], value["type"], value["data"])
    if type(event.sequence) is not int or event.sequence != number:
        return None
    return event if type(event.type) is str and event.type.strip() else None


def _parse(piece: bytes) -> Any:
    if piece.startswith(BOM):
        raise _NotStrictError
    value = json.loads(
        piece.decode(), object_pairs_hook=_members, parse_constant=_constant, parse_float=_finite
    )
    if _depth(value) > DEPTH + 1:
        raise _NotStrictError
    return value


def _depth(value: Any) -> int:
    if type(value) not in (dict, list):
        return 0
    inner = value.values() if type(value) is dict else value
    return 1 + max(map(_depth, inner), default=0)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotStrictError
    return members


def _constant(_token: str) -> NoReturn:
    raise _NotStrictError


def _finite(digits: str) -> float:
    if math.isinf(float(digits)):
        raise _NotStrictError
    return float(digits)
