"""Closes every descriptor that it does not know."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        os.closerange(3, 1024)
        return super().append(kind, data)
