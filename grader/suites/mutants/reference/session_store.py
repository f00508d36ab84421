"""The lesson's own store, carried over to Python with its two known limits.

It takes the number before it writes, so a failed write leaves a hole; and it appends onto a torn tail as it is.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from .event_line import SessionEvent


class CorruptLogError(Exception):
    def __init__(self, path, line, reason):
        super().__init__(f"{path}: 第 {line} 行 (line {line}): {reason}")
        self.path, self.line, self.reason = path, line, reason


class JsonlSessionStore:
    def __init__(self, path):
        self.path = Path(path)
        self._last = None
        self._next = None

    def append(self, type, data):
        if not type.strip():
            raise ValueError("the event type is blank")
        self._last = asyncio.ensure_future(self._after(self._last, type, data))
        return self._last

    async def _after(self, before, type, data):
        if before is not None:
            await asyncio.wait([before])
        if self._next is None:
            self._next = len(await self.read()) + 1
        event = SessionEvent(self._next, type, data)
        self._next += 1
        line = json.dumps({"sequence": event.sequence, "type": type, "data": data}) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
        return event

    async def read(self):
        try:
            text = self.path.read_bytes().decode("utf-8", errors="replace")
        except FileNotFoundError:
            return []
        lines = text.split("\n")
        terminated = lines[-1] == ""
        events = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except ValueError:
                if number == len(lines) and not terminated:
                    break
                raise CorruptLogError(self.path, number, "not JSON") from None
            if not isinstance(value, dict) or not isinstance(value.get("sequence"), int):
                raise CorruptLogError(self.path, number, "not an event")
            if not isinstance(value.get("type"), str):
                raise CorruptLogError(self.path, number, "not an event")
            if value["sequence"] != len(events) + 1:
                found = value["sequence"]
                raise CorruptLogError(self.path, number, f"expected {len(events) + 1}, found {found}")
            events.append(SessionEvent(value["sequence"], value["type"], value.get("data")))
        return events
