"""Where an append goes: its number, its link, its line; or the answer that it needs no line (E2, E3).

Placing runs ahead of the disk: what is placed counts as there for those behind it. When the disk refuses, the writer
goes back to the last committed event and places the rest again.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .contract import Event
from .errors import ConflictError, IdReusedError, LimitError
from .record import Head, encode_line, encode_text

_MADE_BY_A_WRITER = re.compile(r"[0-9a-f]{16}-([1-9][0-9]{0,17})")
_MOST_REMEMBERED_TYPES = 1000


class Request(msgspec.Struct, kw_only=True):
    """One append from its call to its answer.

    `raw` is the data's serialisation and `copy` what it decodes to; `called_at` is in nanoseconds since 1970. Placing
    adds `line` and `event`; a request that needs no line, or has no type and wants no event, waits for those before it.
    """

    future: asyncio.Future[Event]
    called_at: int
    v: int = 1
    type: str = ""
    raw: bytes = b""
    copy: Any = None
    event_id: str | None = None
    expected_version: int | None = None
    causation_id: str | None = None
    correlation_id: str | None = None
    line: bytes = b""
    event: Event | None = None


class Stamp:
    """The time of a call as text; the part that changes once a second is kept."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def text(self, nanoseconds: int) -> str:
        """Return UTC with microseconds, as `occurred_at` has it."""
        second, rest = divmod(nanoseconds // 1000, 1_000_000)
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._text}.{rest:06d}Z"


class Placer:
    """The end of the log as the next append sees it. `ids` are the callers' own of the active segment."""

    def __init__(
        self,
        session: str,
        head: Head,
        ids: dict[str, int],
        record_bytes: int,
        find_event: Callable[[str, int | None], Event | None],
        same: Callable[[Any, Any], bool],
    ) -> None:
        """Continue behind `head`.

        Args:
            session: the id that records carry.
            head: the last event.
            ids: ids of events whose sequence they do not tell themselves, and their sequences; kept up to date.
            record_bytes: a longer line is refused.
            find_event: gives the stored event with an id, looked for at a sequence or, for None, everywhere else.
            same: whether two events' data are the same, however they were stored.
        """
        self.head = head
        self.ids = ids
        self.session = session
        self._session_bytes = session.encode()
        self._opening = os.urandom(8).hex()
        self._record_bytes = record_bytes
        self._find_event = find_event
        self._same = same
        self._stamp = Stamp()
        self._types: dict[str, bytes] = {}

    def place(self, request: Request) -> None:
        """Give the request its line and event, or the event that is there under its id.

        Raises: ConflictError, IdReusedError, LimitError; nothing has changed then.
        """
        sequence, previous_hash = self.head.sequence, self.head.hash
        event_id = request.event_id
        if event_id is not None and self._place_repeat(request, event_id):
            return
        if request.expected_version is not None and request.expected_version != sequence:
            raise ConflictError(self.session, request.expected_version, sequence)
        sequence += 1
        occurred_at = self._stamp.text(request.called_at)
        made = event_id is None
        name = event_id or f"{self._opening}-{sequence}"
        line, digest = encode_line(
            (
                request.v,
                self._session_bytes,
                sequence,
                b'"%b"' % name.encode() if made else encode_text(name),
                self._types.get(request.type) or self._type(request.type),
                request.raw,
                occurred_at.encode(),
                b"null" if request.causation_id is None else encode_text(request.causation_id),
                b"null" if request.correlation_id is None else encode_text(request.correlation_id),
                previous_hash.encode(),
            )
        )
        if len(line) > self._record_bytes:
            raise LimitError(
                f"{self.session}: the record has {len(line)} bytes, over the limit of {self._record_bytes}; store "
                "large content once, among the blobs, and append its reference"
            )
        request.line = line
        request.event = Event(
            v=request.v,
            session=self.session,
            sequence=sequence,
            event_id=name,
            type=request.type,
            data=request.copy,
            occurred_at=occurred_at,
            causation_id=request.causation_id,
            correlation_id=request.correlation_id,
            previous_hash=previous_hash,
            event_hash=digest,
        )
        self.head = Head(sequence, digest)
        if not made:
            self.ids[name] = sequence

    def go_back(self, head: Head, requests: Iterable[Request]) -> None:
        """Forget what was placed behind `head`: these requests will be placed again."""
        self.head = head
        for request in requests:
            if request.line and request.event_id is not None:
                self.ids.pop(request.event_id, None)
            request.line, request.event = b"", None

    def _type(self, type_: str) -> bytes:
        encoded = encode_text(type_)
        if len(self._types) < _MOST_REMEMBERED_TYPES:
            self._types[type_] = encoded
        return encoded

    def _place_repeat(self, request: Request, event_id: str) -> bool:
        """Answer with the event that has this id already. Raises: IdReusedError when it is another event."""
        sequence = self.ids.get(event_id)
        if sequence is None and (made := _MADE_BY_A_WRITER.fullmatch(event_id)):
            sequence = int(made[1])
        first = self._find_event(event_id, sequence)
        if first is None:
            return False
        if first.type != request.type or not self._same(first.data, request.copy):
            raise IdReusedError(
                f"{self.session}: the event id is that of event {first.sequence}, with another type or other data; "
                "use a new id for a new event"
            )
        request.line, request.event = b"", first
        return True


def tells_its_sequence(event_id: str, sequence: int) -> bool:
    """Say whether an id is one that a writer made for this sequence, so that it needs no remembering."""
    return event_id[16:] == f"-{sequence}" and _MADE_BY_A_WRITER.fullmatch(event_id) is not None
