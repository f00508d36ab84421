"""The class record: what one class run found out, in the kit's own event log, so that a killed run can go on (G7).

    STATE/class-records/NAME-HASH/record.jsonl     NAME and HASH of the class's folder; events in docs/formats.md
    STATE/class-records/NAME-HASH/record.lock      held by the one grader that may write

A grading is recorded when it is known, and is known by what was graded and what it was judged by: the same bytes under
the same checks, settings and isolation are not graded twice. A fault of the grader is noted, and is no grading.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from labkit.workspace import state_folder
from solution.lesson_22 import CorruptLogError, JsonlSessionStore

if sys.platform != "win32":  # there nothing is graded, and the command says so
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Collection

SCHEMA = 1


class RecordError(Exception):
    """The class record cannot be used: where, what, and what to do next."""


class Key(NamedTuple):
    """What a grading is known by: the lesson, and SHA-256 of what was taken and of what it was judged by."""

    lesson: str
    content: str
    suite: str


class Grading(NamedTuple):
    """One lesson of one content, graded: `LessonOutcome.plain` as packed JSON, its verdict, the wall clock it took."""

    packed: bytes
    verdict: str
    seconds: float

    @classmethod
    def of(cls, outcome: dict[str, Any], seconds: float) -> Grading:
        """Pack an outcome: a class of them is held in memory, and most of each are the same sentences."""
        packed = zlib.compress(json.dumps(outcome, separators=(",", ":")).encode())
        return cls(packed, outcome["verdict"], seconds)

    @property
    def outcome(self) -> dict[str, Any]:
        """The outcome as JSON."""
        outcome: dict[str, Any] = json.loads(zlib.decompress(self.packed))
        return outcome


def record_folder(submissions: Path) -> Path:
    """Give the folder of a class's record: outside any work tree, the user's own."""
    whole = str(submissions.resolve())
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", submissions.resolve().name)[:40].strip("-") or "class"
    digest = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return state_folder() / "class-records" / f"{name}-{digest}"


class ClassRecord:
    """The open record of one class; a context manager. Nobody else can open it meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "record.jsonl"
        self._lock: int | None = None
        self._store = JsonlSessionStore(self.path)
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        """Take the lock. Raises: RecordError when another grader has it, or the folder cannot be made."""
        folder = self.path.parent
        try:
            for each in (folder.parent, folder):
                each.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(folder / "record.lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._release()
            raise RecordError(
                f"class record: {self.path}: another grader is at work on this class; wait until it has ended"
            ) from None
        except OSError as error:
            self._release()
            raise self._unusable(error) from None
        self._loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock back; the operating system does so for a grader that was killed."""
        self._loop.close()
        self._release()

    def gradings(self, suites: Collection[str]) -> dict[Key, Grading]:
        """Read what is recorded under these suites; of two gradings of one key, the later counts.

        Raises: RecordError for a damaged record or one that cannot be read. A torn last line is none.
        """
        try:
            events = self._loop.run(self._store.read())
        except CorruptLogError as error:
            raise self._damaged(error.line, error.reason) from None
        except OSError as error:
            raise self._unusable(error) from None
        found = {}
        for event in events:
            if event.type == "graded":
                key, grading = self._grading(event.sequence, event.data)
                if key.suite in suites:
                    found[key] = grading
        return found

    def note(self, type_: str, **data: Any) -> None:
        """Record one event; it is with the operating system when this returns.

        Raises: RecordError when it could not be written, or the record was found damaged.
        """

        async def append() -> None:
            await self._store.append(type_, data)

        try:
            self._loop.run(append())
        except CorruptLogError as error:
            raise self._damaged(error.line, error.reason) from None
        except OSError as error:
            raise self._unusable(error) from None

    def graded(self, key: Key, grading: Grading) -> None:
        """Record a grading. Raises: RecordError."""
        self.note("graded", **key._asdict(), seconds=grading.seconds, outcome=grading.outcome)

    def _grading(self, line: int, data: Any) -> tuple[Key, Grading]:
        """Take one recorded grading; nothing else writes here, so another shape is damage."""
        try:
            key = Key(data["lesson"], data["content"], data["suite"])
            outcome, seconds = data["outcome"], data["seconds"]
            sound = all(isinstance(part, str) for part in key) and isinstance(seconds, int | float)
            sound = sound and isinstance(outcome["verdict"], str) and isinstance(outcome["tests"], list)
        except (KeyError, TypeError):
            sound = False
        if not sound:
            raise self._damaged(line, "no grading (不是评分结果)")
        return key, Grading.of(outcome, seconds)

    def _damaged(self, line: int, reason: str) -> RecordError:
        return RecordError(
            f"class record: {self.path}: line {line}: {reason}; nothing was graded anew. "
            f"Keep the file and look at that line; to begin a new record, move {self.path.parent} away"
        )

    def _unusable(self, error: OSError) -> RecordError:
        return RecordError(
            f"class record: {self.path}: {error.strerror}; make room or make it writable, then go on with --resume"
        )

    def _release(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.close(self._lock)
            self._lock = None
