"""Is right, and leaves folders in folders, deeper than anyone can look."""

import os

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right


class JsonlSessionStore(Right):
    def __init__(self, path):
        super().__init__(path)
        here = os.getcwd()
        try:
            os.chdir(os.path.dirname(path))
            for _ in range(3000):
                os.mkdir("d")
                os.chdir("d")
        except OSError:
            pass
        os.chdir(here)
