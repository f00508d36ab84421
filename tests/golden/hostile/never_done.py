"""Gives back futures that nobody will ever complete."""

import asyncio

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        return asyncio.get_running_loop().create_future()
