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
    # BEGIN SOLUTION: 实现规范化摘要 (implement the canonical digest)
    _refuse_other_keys(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()
    # END SOLUTION


# BEGIN SOLUTION
def _refuse_other_keys(value: Any) -> None:
    """``json.dumps`` writes the key 1 as "1": two different values would share a digest."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("JSON 的键只能是文本 (keys of JSON are strings)")
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            _refuse_other_keys(item)


# END SOLUTION


# --- Whole files ---


def atomic_write_json(path: Path, value: Any) -> None:
    """Replace ``path`` by ``value`` as JSON (P3): whoever reads, and whenever we die, it is the old or the new file, whole.

    A symbolic link in its place is refused (OSError, ELOOP). On any error no temporary file stays, and unless only
    the last step failed, the old content does.
    """
    # BEGIN SOLUTION: 实现原子写入 (implement the atomic write)
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    temporary = _write_temporary(path, value)
    try:
        replace_file(temporary, path)
    except BaseException:
        _forget(temporary)
        raise
    # Without this a power cut may bring the old name back: the rename is in the folder, not in the file.
    sync_folder(path.parent)
    # END SOLUTION


def publish_json(path: Path, value: Any) -> None:
    """Create ``path`` with ``value`` as JSON, whole and exclusively (P2). Raises FileExistsError when it is there already.

    Created first and written then, a crash in between would leave an empty claim that blocks for ever. So the content
    is written under another name, and a link publishes it: of many that try, the kernel lets one win.
    """
    # BEGIN SOLUTION: 实现独占发布 (implement the exclusive publication)
    temporary = _write_temporary(path, value)
    try:
        os.link(temporary, path)
    finally:
        _forget(temporary)
    sync_folder(path.parent)
    # END SOLUTION


# BEGIN SOLUTION
def _write_temporary(path: Path, value: Any) -> Path:
    """Write ``value`` durably beside ``path`` and return where. The name is our own, so two writers never share one.

    In the same folder, since a rename cannot cross disks. Its mode is set here: after the rename, the name could
    already mean somebody else's file.
    """
    content = (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode("utf-8")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        try:
            set_private(descriptor)
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _forget(temporary)
        raise
    return temporary


def _forget(temporary: Path) -> None:
    """Remove a temporary file on the way out of an error; a second error must not hide the first."""
    with contextlib.suppress(OSError):
        temporary.unlink()


# END SOLUTION


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
    # BEGIN SOLUTION: 实现事件追加 (implement the event append)
    log = read_events(path)
    event = {"sequence": len(log.events) + 1, "type": event_type, "at": now_utc(), **fields}
    text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    line = b"\n" * log.missing_newline + text.encode("utf-8") + b"\n"
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        # What is there may come from a run that was killed before its own sync. Were our line on the disk and that one
        # not, a power cut would leave a hole in the middle, which nobody can tell from damage.
        if log.events or log.torn:
            os.fsync(descriptor)
        if log.torn:
            _save_torn(path, log)
            os.ftruncate(descriptor, log.good_bytes)
        _append_or_take_back(descriptor, log.good_bytes, line)
    finally:
        os.close(descriptor)
    if not log.events:
        sync_folder(path.parent)  # the log itself is new: its name must survive too
    return event
    # END SOLUTION


# BEGIN SOLUTION
def _append_or_take_back(descriptor: int, offset_bytes: int, line: bytes) -> None:
    """One write at the known end. On a full disk a part of it may be there: cut it, or the next read finds it torn."""
    try:
        os.lseek(descriptor, offset_bytes, os.SEEK_SET)
        write_all(descriptor, line)
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, offset_bytes)
        raise


def _save_torn(path: Path, log: EventLog) -> None:
    """Keep the torn bytes in a file of their own before they are cut: repair never destroys evidence."""
    name, attempt = f"{path.name}.torn-{log.good_bytes}", 1
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        try:
            descriptor = os.open(path.with_name(name), flags, 0o600)
            break
        except FileExistsError:
            attempt += 1
            name = f"{path.name}.torn-{log.good_bytes}-{attempt}"
    try:
        write_all(descriptor, log.torn)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


# END SOLUTION


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
