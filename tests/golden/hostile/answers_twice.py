"""Is right, and repeats its answers on the channel."""

import gc

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    async def read(self):
        for host in gc.get_objects():
            if type(host).__name__ == "Host":
                host._answer(3, ok=[])
                host._answer(3, ok=[])
        return await super().read()
