"""Is right, and leaves a process behind with every call."""

import os
import time

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, 1024)
            time.sleep(600)
        return super().append(kind, data)
