"""Is right only if a datagram of its is answered by this machine."""

import socket

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
    line.sendto(b"statelab-hostile", ("127.0.0.1", int("@UDP@")))
    line.settimeout(1)
    line.recv(100)


class JsonlSessionStore(Right):
    pass
