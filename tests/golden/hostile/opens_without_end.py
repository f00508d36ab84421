"""Is right, and keeps open whatever it can."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

OPEN = []
try:
    while True:
        OPEN.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    for descriptor in OPEN[-20:]:
        os.close(descriptor)


class JsonlSessionStore(Right):
    pass
