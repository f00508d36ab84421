"""Kills whoever started it."""

import os
import signal

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

os.kill(os.getppid(), signal.SIGKILL)


class JsonlSessionStore(Right):
    pass
