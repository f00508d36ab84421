"""Stores that forgive what must not be forgiven, or refuse what is whole."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from labkit.naive.plain import PlainStore, record
from solution.lesson_22.event_line import SessionEvent, decode_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class GluingStore(PlainStore):
    """Mistake: appends at the end of the file without looking. A torn tail and the new record become one bad line."""

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event right behind whatever bytes stand last."""
        event, line = record(len(await self.read()) + 1, type, data)
        await self._write(line)
        return event


class SkippingStore(PlainStore):
    """Mistake: skips every line that does not parse. The history has holes, and nobody is told."""

    def _read_now(self) -> list[SessionEvent]:
        return list(_readable(self.path.read_bytes()))


class RisingStore(PlainStore):
    """Mistake: asks only that numbers rise. After 1 and 3 nobody knows whether 2 was lost or never was."""

    def _read_now(self) -> list[SessionEvent]:
        events: list[SessionEvent] = []
        for line, event in enumerate(_readable(self.path.read_bytes()), start=1):
            if events and event.sequence <= events[-1].sequence:
                raise ValueError(
                    f"{self.path}: 第 {line} 行序号没有增大 (line {line}: the number does not rise)"
                )
            events.append(event)
        return events


class NewlineStore(PlainStore):
    """Stricter, and not wrong: only the newline commits. A last record that is whole but not ended is dropped."""

    def _read_now(self) -> list[SessionEvent]:
        raw = self.path.read_bytes()
        return list(_readable(raw[: raw.rfind(b"\n") + 1]))


class HopefulStore(PlainStore):
    """Mistake: takes every read error for "no history". After one disk error the numbers begin at 1 again."""

    def _read_now(self) -> list[SessionEvent]:
        try:
            return super()._read_now()
        except OSError:
            return []

    async def append(self, type: str, data: object) -> SessionEvent:  # noqa: A002
        """Append one event under the number that follows whatever could be read."""
        event, line = record(len(await self.read()) + 1, type, data)
        await self._write(line)
        return event


def _readable(raw: bytes) -> Iterator[SessionEvent]:
    for piece in raw.split(b"\n"):
        with contextlib.suppress(ValueError):
            yield decode_line(piece)
