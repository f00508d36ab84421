"""Is right only if it can speak to a server of this machine."""

import socket

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

with socket.create_connection(("127.0.0.1", int("@TCP@")), 5) as line:
    line.sendall(b"statelab-hostile")


class JsonlSessionStore(Right):
    pass
