"""Is right, and starts sixty programs that stay, each in a session of its own."""

import subprocess
import sys

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

for _ in range(60):
    subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", "statelab-hostile"],
        start_new_session=True,
    )


class JsonlSessionStore(Right):
    pass
