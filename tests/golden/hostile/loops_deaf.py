"""Never comes back from append, and ignores the signals that would end it."""

import signal

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)


class JsonlSessionStore(Right):
    def append(self, kind, data):
        while True:
            pass
