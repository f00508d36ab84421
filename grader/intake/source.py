"""What every kind of submission looks like to intake: named entries, of which single ones can be read, within bounds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from grader.intake.reasons import UnreadableError

MIB = 1024 * 1024
MAX_ENTRIES = 20_000
MAX_ARCHIVE_BYTES = 256 * MIB
MAX_UNPACKED_BYTES = 256 * MIB
MAX_SECONDS = 20


class Entry(NamedTuple):
    """One thing in a submission that is no folder: its name below it, and why it is not read ("" when it may be)."""

    name: str
    why: str = ""


class Source(Protocol):
    """An opened folder, archive or repository. Nothing in it is followed, extracted or run."""

    @property
    def entries(self) -> list[Entry]:
        """Everything that is no folder and not a tool's own, each name once."""

    def read(self, name: str, most: int) -> bytes | str:
        """Give an entry's bytes, at most `most`; a text says why not: a key of `reasons.LEFT_OUT`."""


class Deadline:
    """The time that one submission may take to be read."""

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self._ends = time.monotonic() + seconds
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._ends - time.monotonic())

    def check(self) -> None:
        """Raise: UnreadableError when the time is up."""
        if not self.left:
            raise UnreadableError("slow", most=round(self._seconds))


def each_name_once(entries: Iterable[Entry]) -> list[Entry]:
    """Give the entries, those that share a name as one that is not read: nobody can tell which was meant."""
    found = list(entries)
    times = Counter(entry.name for entry in found)
    single = {
        entry.name: entry if times[entry.name] == 1 else Entry(entry.name, "duplicate") for entry in found
    }
    return list(single.values())
