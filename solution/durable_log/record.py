"""One event and its line, both ways, and the chain that binds lines together (docs/formats-durable.md).

Everything here is pure: values in, bytes out. Files and order live in `reading` and `log`.
"""

from __future__ import annotations

import hashlib
import marshal
import re
from typing import Any

import msgspec

from .contract import GENESIS, Event
from .errors import LimitError, RefusedError
from .limits import LONGEST_ID, Limits

encode_value = msgspec.json.Encoder().encode
_decode_value = msgspec.json.Decoder().decode
_decode_event = msgspec.json.Decoder(Event).decode

_HASH_KEY = b',"event_hash":"'
UNHASHED_BYTES = len(_HASH_KEY) + 64 + len(b'"}')
"""The bytes at a line's end, without its newline, that its hash is not over."""

_HEAD = (
    b'{"v":%d,"session":"%b","sequence":%d,"event_id":%b,"type":%b,"data":%b,'
    b'"occurred_at":"%b","causation_id":%b,"correlation_id":%b,"previous_hash":"%b"'
)
_LINE = b'%b,"event_hash":"%b"}\n'
_SURROGATE = re.compile("([\ud800-\udfff])")
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class Head(msgspec.Struct, frozen=True):
    """The last event of a log or a part of one: its number and its `event_hash`."""

    sequence: int
    hash: str


BEGINNING = Head(0, GENESIS)
"""Before a session's first event."""
