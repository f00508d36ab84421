"""Knows the inputs of a run it has seen, and nothing else."""

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

ANSWERS = [("todo_created", {"todo_id": "t-1"}), ("todo_started", {"todo_id": "t-1"})]


class JsonlSessionStore:
    def __init__(self, path):
        self.path = path

    async def append(self, kind, data):
        with open(self.path, "w") as file:
            file.write('{"sequence":1,"type":"todo_created","data":{"todo_id":"t-1"}}\n')
        return SessionEvent(1, *ANSWERS[0])

    async def read(self):
        return [SessionEvent(number, *known) for number, known in enumerate(ANSWERS, start=1)]
