"""Is right, and leaves a thread running for ever."""

import threading

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


def run():
    while True:
        pass


threading.Thread(target=run, daemon=False).start()


class JsonlSessionStore(Right):
    pass
