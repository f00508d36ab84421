"""Writes a file without end before it appends."""

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        with open("filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
