"""Ends the process with success in the first append."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def append(self, kind, data):
        os._exit(0)
