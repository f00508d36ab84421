"""Is right, and leaves a file wherever it may."""

from pathlib import Path

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

for place in ("/dev", "/dev/shm", "/var/tmp", "/tmp", "@KIT@/solution", "@KIT@", "@OUTSIDE@"):
    try:
        Path(place, "statelab-hostile").write_text("here", "utf-8")
    except OSError:
        pass


class JsonlSessionStore(Right):
    pass
