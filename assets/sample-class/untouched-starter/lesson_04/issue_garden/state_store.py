# 由 solution/ 生成的练习：补全每处 NotImplementedError。重来：statelab workspace reset
# Generated from solution/ for you to edit: fill in each NotImplementedError. Start over: statelab workspace reset
"""Where the runner's memory lives, and the only ways to change it. Rules P1 and P3 to P5; docs/formats-spine.md has the bytes.

Read it from the top: a digest that tells values apart, a file that is replaced whole, a file that is published once,
a log that only grows, and the folder that holds them. Each function protects one file. Nothing here makes several files
change together; the order in which ``stateful_round`` calls them has to.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from issue_garden.json_files import BadFileError, load_object, parse_object, parse_value, read_regular
from issue_garden.records import Claim, Facts, State, now_utc
from issue_garden.task import sync_folder

RECORD_LIMIT_BYTES = 262_144
RESULT_LIMIT_BYTES = 4_194_304
EVENTS_LIMIT_BYTES = 16_777_216
_TEMP_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


# --- One value, one digest ---


def canonical_digest(value: Any) -> str:
    """Return ``sha256:HEX`` of a JSON value (P5): key order and white space do not matter, any value does.

    Raises ValueError for NaN and infinities, TypeError for what is no JSON, such as a key that is not a string.
    """
    raise NotImplementedError("实现规范化摘要 (implement the canonical digest)")




# --- Whole files ---


def atomic_write_json(path: Path, value: Any) -> None:
    """Replace ``path`` by ``value`` as JSON (P3): whoever reads, and whenever we die, it is the old or the new file, whole.

    A symbolic link in its place is refused (OSError, ELOOP). On any error no temporary file stays, and unless only
    the last step failed, the old content does.
    """
    raise NotImplementedError("实现原子写入 (implement the atomic write)")


def publish_json(path: Path, value: Any) -> None:
    """Create ``path`` with ``value`` as JSON, whole and exclusively (P2). Raises FileExistsError when it is there already.

    Created first and written then, a crash in between would leave an empty claim that blocks for ever. So the content
    is written under another name, and a link publishes it: of many that try, the kernel lets one win.
    """
    raise NotImplementedError("实现独占发布 (implement the exclusive publication)")




def replace_file(source: Path, target: Path) -> None:
    """Rename over ``target``. On Windows that fails while somebody has the target open; the error is passed on."""
    os.replace(source, target)  # noqa: PTH105 - by the name under which the lesson speaks of it


def set_private(descriptor: int) -> None:
    """Give an open file mode 0600, whatever the umask; Windows keeps no such modes."""
    if os.name != "nt":
        os.fchmod(descriptor, 0o600)


def write_all(descriptor: int, content: bytes) -> None:
    """Hand ``content`` to the system: ``os.write`` may take a part only, and says so only in its result."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


# --- The event log ---


class CorruptEventsError(Exception):
    """A line of the log that no interrupted append leaves behind. ``line`` is physical and 1-based."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line, self.reason = line, reason

    def __str__(self) -> str:
        return f"第 {self.line} 行 (line {self.line}): {self.reason}"


@dataclass(frozen=True)
class EventLog:
    """What a log's bytes say: its events, the offset in bytes behind the last of them, and what stands after it.

    ``torn`` is the beginning of an append that was cut short; ``missing_newline``: the last event lacks only its end.
    """

    events: list[dict[str, Any]]
    good_bytes: int
    torn: bytes
    missing_newline: bool

    @property
    def types(self) -> list[str]:
        """Types of the events, in order."""
        return [event["type"] for event in self.events]


def read_events(path: Path) -> EventLog:
    """Read a log and change nothing (P4). No file is no history. Raises CorruptEventsError, BadFileError or OSError."""
    if not os.path.lexists(path):
        return EventLog([], 0, b"", missing_newline=False)
    return scan_events(read_regular(path, EVENTS_LIMIT_BYTES))


def scan_events(raw: bytes) -> EventLog:
    """Give the verdict on a log's bytes. Only the byte 0A ends a line; only an unended last line may be torn."""
    events: list[dict[str, Any]] = []
    *ended, last = raw.split(b"\n")
    for line in ended:
        events.append(_decode_event(line, len(events) + 1))
    if not last:
        return EventLog(events, len(raw), b"", missing_newline=False)
    try:
        parse_value(last)
    except BadFileError:  # killed in the middle of its append: a beginning of an object never parses
        return EventLog(events, len(raw) - len(last), last, missing_newline=False)
    events.append(_decode_event(last, len(events) + 1))
    return EventLog(events, len(raw), b"", missing_newline=True)


def _decode_event(line: bytes, due: int) -> dict[str, Any]:
    """Return the event of one line; as sequences are contiguous, its number is also its line."""
    try:
        event = parse_object(line)
    except BadFileError as bad:
        raise CorruptEventsError(due, bad.reason) from None
    if type(event.get("sequence")) is not int or event["sequence"] != due:
        raise CorruptEventsError(due, f"sequence 应为 {due} (sequence should be {due})")
    if not all(isinstance(event.get(key), str) and event[key].strip() for key in ("type", "at")):
        raise CorruptEventsError(due, "缺少 type 或 at (type or at is missing)")
    return event


def append_event(path: Path, event_type: str, **fields: Any) -> dict[str, Any]:
    """Append one event, durably, and return it (P4). The caller holds the runner's lock: nobody else appends.

    A torn tail is saved as ``NAME.torn-OFFSET`` and cut off first, so that no line ever holds a fragment and an event.
    A failed write is taken back. Raises CorruptEventsError rather than continue a damaged log.
    """
    raise NotImplementedError("实现事件追加 (implement the event append)")




# --- The folder ---


class StateFolder:
    """Names every file below ``.loop`` (P1), makes its folders, and loads its records."""

    def __init__(self, lab: Path) -> None:
        self.lab, self.root = lab, lab / ".loop"
        self.lock = self.root / "runner.lock"

    def claim(self, task_id: str) -> Path:
        """Name the file that says who owns the task."""
        return self.root / "claims" / f"{task_id}.json"

    def result(self, task_id: str) -> Path:
        """Name the file of the final decision."""
        return self.root / "results" / f"{task_id}.json"

    def facts(self, task_id: str) -> Path:
        """Name the file that keeps what was true at the claim."""
        return self.root / "tasks" / task_id / "facts.json"

    def state(self, task_id: str) -> Path:
        """Name the file that says how far the task has come."""
        return self.root / "tasks" / task_id / "state.json"

    def events(self, task_id: str) -> Path:
        """Name the log of what happened."""
        return self.root / "tasks" / task_id / "events.jsonl"

    def attempt(self, task_id: str, number: int) -> Path:
        """Name the file of what one round did and saw."""
        return self.root / "tasks" / task_id / "attempts" / f"round-{number:03d}.json"

    def relative(self, path: Path) -> str:
        """Return a path as it is printed: from the lab folder, with forward slashes."""
        return path.relative_to(self.lab).as_posix()

    def make_root(self) -> None:
        """Make ``.loop`` itself, for the lock."""
        _make_folder(self.root)

    def prepare(self, task_id: str) -> None:
        """Make all folders that a task needs, and remove what killed writers left half written in them.

        The caller holds the runner's lock, so no temporary file of our form has a living writer.
        """
        attempts = self.attempt(task_id, 1).parent
        for folder in (
            self.root / "claims",
            self.root / "results",
            self.root / "tasks",
            attempts.parent,
            attempts,
        ):
            _make_folder(folder)
            for path in folder.iterdir():
                if _TEMP_NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                    path.unlink()

    def records(self) -> dict[str, list[str]]:
        """Say for each task id ever met which of claim, facts, state and result exist (P8)."""
        found: dict[str, list[str]] = {}
        for task_id in _names(self.root / "claims", ".json"):
            found.setdefault(task_id, []).append("claim")
        for task_id in _names(self.root / "tasks", ""):
            for kind, path in (("facts", self.facts(task_id)), ("state", self.state(task_id))):
                if os.path.lexists(path):
                    found.setdefault(task_id, []).append(kind)
        for task_id in _names(self.root / "results", ".json"):
            found.setdefault(task_id, []).append("result")
        return found

    def attempts(self, task_id: str) -> int:
        """Return the highest round that has an attempt on disk, 0 when none has."""
        names = _names(self.attempt(task_id, 1).parent, ".json")
        return max(
            (int(match[1]) for name in names if (match := re.fullmatch(r"round-(\d+)", name))), default=0
        )

    def load_claim(self, task_id: str) -> Claim:
        """Read the claim. Raises FileNotFoundError or BadFileError; so do the next two."""
        return Claim.parse(load_object(self.claim(task_id), RECORD_LIMIT_BYTES))

    def load_facts(self, task_id: str) -> Facts:
        """Read the facts."""
        return Facts.parse(load_object(self.facts(task_id), RECORD_LIMIT_BYTES))

    def load_state(self, task_id: str) -> State:
        """Read the state. NUL bytes or an empty file are a damaged state, never a new task."""
        return State.parse(load_object(self.state(task_id), RECORD_LIMIT_BYTES))


def _names(folder: Path, suffix: str) -> list[str]:
    """Names in a folder without their suffix, sorted; hidden and temporary files, and other kinds, are no records."""
    if not folder.exists():
        return []
    return sorted(
        path.name.removesuffix(suffix)
        for path in folder.iterdir()
        if path.name.endswith(suffix) and not path.name.startswith(".") and (suffix or path.is_dir())
    )


def _make_folder(folder: Path) -> None:
    """Make one private folder durably. A symbolic link in its place would let records land elsewhere: refused."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder)) from None
    # Also where it was there: whoever made it may have been killed before its sync, and we build on it.
    sync_folder(folder.parent)
