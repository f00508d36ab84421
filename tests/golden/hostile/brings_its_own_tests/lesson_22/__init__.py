"""Answers from memory."""

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        return SessionEvent(1, kind, data)

    async def read(self):
        return []
