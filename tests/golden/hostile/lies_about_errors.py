"""Raises errors that lie about their class, and raise when they are described."""

import sys

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class Lying(type):
    def __eq__(cls, other):
        return True

    def __hash__(cls):
        raise SystemExit(0)


class CorruptLog(Exception, metaclass=Lying):
    __module__ = property(lambda self: sys.exit())

    def __str__(self):
        raise KeyboardInterrupt

    @property
    def line(self):
        raise SystemExit(0)


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        raise CorruptLog
