"""Is right only if it can change the rights of what is the grader's own."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

os.chmod("@OUTSIDE@", 0o777)


class JsonlSessionStore(Right):
    pass
