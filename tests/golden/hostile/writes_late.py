"""Keeps everything in memory, and writes the disk only when it is read."""

import json

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

logs = {}


class JsonlSessionStore:
    def __init__(self, path):
        self.path = path
        self.events = logs.setdefault(str(path), [])

    async def append(self, kind, data):
        self.events.append(SessionEvent(len(self.events) + 1, kind, data))
        return self.events[-1]

    async def read(self):
        with open(self.path, "w") as file:
            for event in self.events:
                record = {"sequence": event.sequence, "type": event.type, "data": event.data}
                file.write(json.dumps(record) + "\n")
        return list(self.events)
