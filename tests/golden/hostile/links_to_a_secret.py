"""Puts a link to a file of the machine where the log should be."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        os.symlink("/etc/hostname", self.path)
        return SessionEvent(1, kind, data)
