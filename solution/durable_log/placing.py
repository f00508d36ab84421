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
from .errors import ConflictError, DurableLogError, IdReusedError, LimitError
from .record import NULL, Head, encode_text, line_form, seal

_MADE_BY_A_WRITER = re.compile(r"[0-9a-f]{16}-([1-9][0-9]{0,17})")


class Request(msgspec.Struct):
    """One append from its call to its answer.

    `raw` is the data's serialisation and `copy` what it decodes to; `called_at` is in nanoseconds since 1970. Placing
    adds `line` and `event`, or a `refusal` that rests on appends that are not stored yet; a request that needs no line, or has no type and wants no event, waits for those before it.
    """

    # Collected, unlike other structs here: a refusal's traceback holds the request, and this one's future the refusal.
    future: asyncio.Future[Event]
    called_at: int
    v: int = 1
    type: str = ""
    type_json: bytes = b""
    raw: bytes = b""
    copy: Any = None
    event_id: str | None = None
    expected_version: int | None = None
    causation_id: str | None = None
    correlation_id: str | None = None
    line: bytes = b""
    event: Event | None = None
    refusal: DurableLogError | None = None


class Placer:
    """The end of the log as the next append sees it. `ids` are the callers' own of the active segment."""

    def __init__(
        self,
        session: str,
        head: Head,
        ids: dict[str, int],
        *,
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
        self.session = session
        self.ids = ids
        self._sequence, self._hash = head.sequence, head.hash
        self._form = line_form(session)
        self._opening = os.urandom(8).hex()
        self._record_bytes = record_bytes
        self._find_event = find_event
        self._same = same
        self._millisecond = self._second = -1
        self._occurred_at_json = b""
        self._occurred_at = ""
        self._plain_form = b""
        self._second_text = ""

    def place(self, request: Request) -> None:
        """Give the request its line and event, or the event that is there under its id.

        Raises: ConflictError, IdReusedError, LimitError; nothing has changed then.
        """
        event_id = request.event_id
        if event_id is not None and self._place_repeat(request, event_id):
            return
        sequence, previous = self._sequence, self._hash
        if request.expected_version is not None and request.expected_version != sequence:
            raise ConflictError(self.session, request.expected_version, sequence)
        sequence += 1
        if request.called_at // 1_000_000 != self._millisecond:
            self._next_millisecond(request.called_at // 1_000_000)
        name, cause, correlation = event_id, request.causation_id, request.correlation_id
        if name is None:
            name = f"{self._opening}-{sequence}"
        if event_id is cause is correlation is None:
            rest = request.v, sequence, sequence, request.type_json, request.raw, previous.encode()
            line, digest = seal(self._plain_form % rest)
        else:
            line, digest = seal(self._with_ids(request, sequence, name))
        if len(line) > self._record_bytes:
            raise self._too_long(len(line))
        request.line = line
        request.event = Event(
            v=request.v,
            session=self.session,
            sequence=sequence,
            event_id=name,
            type=request.type,
            data=request.copy,
            occurred_at=self._occurred_at,
            causation_id=cause,
            correlation_id=correlation,
            previous_hash=previous,
            event_hash=digest,
        )
        self._sequence, self._hash = sequence, digest
        if event_id is not None:
            self.ids[event_id] = sequence

    def _with_ids(self, request: Request, sequence: int, name: str) -> bytes:
        cause, correlation = request.causation_id, request.correlation_id
        return self._form % (
            request.v,
            sequence,
            encode_text(name),
            request.type_json,
            request.raw,
            self._occurred_at_json,
            NULL if cause is None else encode_text(cause),
            NULL if correlation is None else encode_text(correlation),
            self._hash.encode(),
        )

    def _next_millisecond(self, millisecond: int) -> None:
        """Prepare what appends of this millisecond have in common, and those without ids nearly all of."""
        self._millisecond = millisecond
        second, rest = divmod(millisecond, 1000)
        if second != self._second:
            self._second, self._second_text = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        self._occurred_at = f"{self._second_text}.{rest:03d}000Z"
        self._occurred_at_json = f'"{self._occurred_at}"'.encode()
        self._plain_form = self._form.replace(b"%d", b"%%d") % (
            *(b'"%b-%%d"' % self._opening.encode(), b"%b", b"%b", self._occurred_at_json, NULL, NULL, b"%b"),
        )

    def _too_long(self, size: int) -> LimitError:
        return LimitError(
            f"{self.session}: the record has {size} bytes, over the limit of {self._record_bytes}; store large content "
            "once, among the blobs, and append its reference"
        )

    def go_back(self, head: Head, requests: Iterable[Request]) -> None:
        """Forget what was placed behind `head`: these requests will be placed again. An id that none gets leads nowhere."""
        self._sequence, self._hash = head.sequence, head.hash
        for request in requests:
            request.line, request.event = b"", None

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
