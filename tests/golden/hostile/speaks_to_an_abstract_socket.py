"""Is right only if it can speak to a socket that has no place in any folder."""

import socket

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

with socket.socket(socket.AF_UNIX) as line:
    line.connect(b"\0@ABSTRACT@")


class JsonlSessionStore(Right):
    pass
