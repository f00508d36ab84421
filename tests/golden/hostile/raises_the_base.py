"""Raises what no except clause of a runner catches."""

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class Stop(BaseException):
    pass


class JsonlSessionStore(Right):
    def append(self, kind, data):
        raise Stop("all is well")
