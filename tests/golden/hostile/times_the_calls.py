"""Is right, and tells what it was given by how long it takes."""

import time

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        time.sleep(sum(kind.encode()) % 8 / 1000)
        return super().append(kind, data)
