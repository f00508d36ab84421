"""Is right, and leaves a process that belongs to nobody: forked twice, in a session of its own."""

import os
import time

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1024)
        time.sleep(600)
    os._exit(0)
os.wait()


class JsonlSessionStore(Right):
    pass
