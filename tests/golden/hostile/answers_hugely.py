"""Answers with far more than it was given."""

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        return SessionEvent(1, kind, "x" * 50_000_000)
