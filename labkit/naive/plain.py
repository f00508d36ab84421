"""What the naive stores have in common, and what is right about them: the format, the strict reader, one write a line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

from solution.lesson_22.event_line import SessionEvent
from solution.lesson_22.session_store import scan

if TYPE_CHECKING:
    import os


class PlainStore:
    """One log, with nothing that guards it. Each store of this package adds one mistake, named in its docstring."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    async def read(self) -> list[SessionEvent]:
        """Return the events on disk, read in a worker thread as real file libraries do."""
        return await asyncio.to_thread(self._read_now)

    async def _write(self, line: bytes) -> None:
        await asyncio.to_thread(self._write_now, line)

    def _read_now(self) -> list[SessionEvent]:
        raw = self.path.read_bytes() if self.path.exists() else b""
        return list(scan(raw, self.path).events)

    def _write_now(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            file.write(line)


def record(sequence: int, type_: str, data: object) -> tuple[SessionEvent, bytes]:
    """Return the event and its line, taken from the caller's values as they are now."""
    event = {"sequence": sequence, "type": type_, "data": data}
    line = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return SessionEvent(sequence, type_, data), line.encode() + b"\n"
