"""Is right, and leaves a process that listens where no folder shows it."""

import os
import socket
import time

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

line = socket.socket(socket.AF_UNIX)
line.bind(b"\0statelab-hostile-listens-%d" % os.getpid())
line.listen()
if os.fork() == 0:
    os.setsid()
    time.sleep(600)


class JsonlSessionStore(Right):
    pass
