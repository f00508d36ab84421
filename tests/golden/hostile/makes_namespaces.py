"""Is right only if it can be root of a user namespace, where it may mount."""

import ctypes

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

if ctypes.CDLL(None).unshare(0x10000000 | 0x00020000):
    raise PermissionError("no namespaces")


class JsonlSessionStore(Right):
    pass
