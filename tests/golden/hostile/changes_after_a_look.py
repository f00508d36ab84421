"""Gives a list that holds something else each time it is looked at."""

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class Lazy(list):
    looks = 0

    def __iter__(self):
        Lazy.looks += 1
        return iter([Lazy.looks])


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        return SessionEvent(1, kind, Lazy())
