"""Is right, and writes without measure on standard output and error."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

for _ in range(256):
    os.write(1, bytes(1 << 20))
    os.write(2, bytes(1 << 20))


class JsonlSessionStore(Right):
    pass
