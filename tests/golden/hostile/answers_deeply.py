"""Answers with a value nested past any parser."""

import json

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

deep = []
for _ in range(100_000):
    deep = [deep]


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        return SessionEvent(1, kind, deep)
