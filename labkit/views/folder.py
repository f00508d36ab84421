"""A folder as a tree, one of its files as lines, and what changed since a remembered moment."""

from __future__ import annotations

import difflib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from labkit import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_ENTRIES = 2500
"""A longer tree is cut here, and says so."""
REMEMBERED_BYTES = 64 * 1024
"""Files up to this size are remembered whole, so that their changed lines can be shown."""
MOST_COMPARISONS = 1_000_000
"""Lines that differ, before times after, up to which they are compared one by one."""
SHOWN_BYTES = 64 * 1024
"""No more than this of one file is shown; a larger one shows its end, where a log grows."""


class Change(StrEnum):
    """What happened to a file, or to a line, since the remembered moment."""

    SAME = "same"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name below the folder: ``path`` relative with forward slashes, ``kind`` folder, file, link or other."""

    path: str
    kind: str
    size: int
    change: Change


@dataclass(frozen=True, slots=True)
class Tree:
    """Everything below a folder, parents before children. ``exists`` is false when there is no such folder.

    ``latest`` is the file that was written last, empty when there is none.
    """

    exists: bool
    entries: tuple[Entry, ...] = ()
    cut: bool = False
    latest: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, ``number`` 1-based (0 for a line that is gone)."""

    number: int
    text: str
    change: Change


class FileKind(StrEnum):
    """What a file turned out to be when it was opened."""

    TEXT = "text"
    BINARY = "binary"
    EMPTY = "empty"
    ABSENT = "absent"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FileView:
    """One file. ``skipped`` counts bytes before the first line shown; ``bad_bytes`` those that are not UTF-8."""

    kind: FileKind
    size: int = 0
    lines: tuple[Line, ...] = ()
    skipped: int = 0
    bad_bytes: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """A folder as it was: what tells each file from its later self, and the content of the small ones."""

    signatures: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)


def remember(folder: Path, only: Sequence[str] = ()) -> Moment:
    """Take note of every file below the folder, to compare with later; ``only`` names the parts of it that count."""
    signatures: dict[str, tuple[int, int, int]] = {}
    contents: dict[str, bytes] = {}
    for name, status in islice(_walk(folder, only), MOST_ENTRIES):
        signatures[name] = _signature(status)
        if stat.S_ISREG(status.st_mode) and status.st_size <= REMEMBERED_BYTES:
            try:
                contents[name] = (folder / name).read_bytes()
            except OSError:  # no content to compare with: the file view will say why it cannot be read
                continue
    return Moment(signatures, contents)


def tree(folder: Path, since: Moment, only: Sequence[str] = ()) -> Tree:
    """List the folder as it is now, each name with what happened to it since the moment; ``only`` as in `remember`."""
    if not folder.is_dir():
        return Tree(exists=False)
    found = list(islice(_walk(folder, only), MOST_ENTRIES + 1))
    entries = [
        Entry(name, _kind(status), status.st_size, _change(name, status, since))
        for name, status in found[:MOST_ENTRIES]
    ]
    names = {entry.path for entry in entries}
    if len(found) <= MOST_ENTRIES:
        entries += [Entry(name, "file", 0, Change.GONE) for name in since.signatures if name not in names]
    entries.sort(key=lambda entry: entry.path.split("/"))
    times = ((status.st_mtime_ns, name) for name, status in found if stat.S_ISREG(status.st_mode))
    latest = max(times, default=(0, ""))[1]
    return Tree(exists=True, entries=tuple(entries), cut=len(found) > MOST_ENTRIES, latest=latest)


def file_view(folder: Path, name: str, since: Moment) -> FileView:
    """Show one file below the folder, as lines when it is text; otherwise say what it is. Never raises for it."""
    path = folder / name
    try:
        status = path.lstat()
        if kind := _not_a_file(status):
            return FileView(kind, status.st_size, reason=_link_target(path) if kind is FileKind.LINK else "")
        with path.open("rb") as file:
            skipped = max(0, status.st_size - SHOWN_BYTES)
            file.seek(skipped)
            raw = file.read(SHOWN_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return FileView(FileKind.ABSENT)
    except OSError as error:
        return FileView(FileKind.UNREADABLE, reason=error.strerror or type(error).__name__)
    return _text_view(
        raw, status.st_size, skipped, since.contents.get(name, b"" if name not in since.signatures else None)
    )


def shown_path(path: Path) -> str:
    """Return a path as a reader knows it: below the kit where it is there, else whole."""
    root = workspace.kit_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def saved_tails(log: Path) -> tuple[Entry, ...]:
    """List the torn bytes that stores saved beside a log before they cut it (S11)."""
    saved = sorted(log.parent.glob(f"{log.name}.torn-*"))
    return tuple(Entry(path.name, "file", path.stat().st_size, Change.NEW) for path in saved)


def _text_view(raw: bytes, size: int, skipped: int, before: bytes | None) -> FileView:
    if not raw:
        return FileView(FileKind.EMPTY, size)
    if b"\0" in raw and raw.count(b"\0") * 10 > len(raw):
        return FileView(FileKind.BINARY, size)
    text = raw.decode(errors="replace")
    bad = text.count("\ufffd") - raw.count("\ufffd".encode())
    if bad * 10 > len(text):
        return FileView(FileKind.BINARY, size, bad_bytes=bad)
    old = None if before is None or skipped else before.decode(errors="replace")
    return FileView(FileKind.TEXT, size, tuple(_compared(text, old)), skipped, bad)


def _compared(text: str, old: str | None) -> Iterator[Line]:
    """Yield the lines of ``text``, and between them, numbered 0, those of ``old`` that are gone."""
    now = text.removesuffix("\n").split("\n")
    if old is None or old == text:
        yield from (Line(number, line, Change.SAME) for number, line in enumerate(now, start=1))
        return
    was = old.removesuffix("\n").split("\n") if old else []
    for tag, was_from, was_to, now_from, now_to in _opcodes(was, now):
        if tag in ("delete", "replace"):
            yield from (Line(0, line, Change.GONE) for line in was[was_from:was_to])
        change = Change.SAME if tag == "equal" else Change.NEW
        yield from (Line(at + 1, now[at], change) for at in range(now_from, now_to))


def _opcodes(was: list[str], now: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """Compare lines as difflib does. Between equal beginnings and ends, thousands of lines count as replaced whole."""
    shorter = min(len(was), len(now))
    head = next((at for at in range(shorter) if was[at] != now[at]), shorter)
    tail = next((at for at in range(shorter - head) if was[-1 - at] != now[-1 - at]), shorter - head)
    was_end, now_end = len(was) - tail, len(now) - tail
    if (was_end - head) * (now_end - head) <= MOST_COMPARISONS:
        return difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
    return [
        ("equal", 0, head, 0, head),
        ("replace", head, was_end, head, now_end),
        ("equal", was_end, len(was), now_end, len(now)),
    ]


def _walk(folder: Path, only: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what stands below the folder, parents first, without following links; what vanishes meanwhile is left out.

    Plain names and one look each: a folder of a thousand files is walked at every change.
    """
    waiting = [""]
    while waiting:
        parent = waiting.pop()
        try:
            with os.scandir(folder / parent) as listing:
                found = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        below = []
        for entry in found:
            name = f"{parent}{entry.name}"
            if entry.name == ".gitkeep" or (only and not parent and name not in only):
                continue  # a placeholder says only that Git keeps no empty folder
            with suppress(OSError):
                yield name, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    below.append(f"{name}/")
        waiting += reversed(below)


def _kind(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    if stat.S_ISREG(status.st_mode):
        return "file"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def _not_a_file(status: os.stat_result) -> FileKind | None:
    return {"folder": FileKind.FOLDER, "link": FileKind.LINK, "other": FileKind.SPECIAL}.get(_kind(status))


def _link_target(path: Path) -> str:
    return os.fspath(path.readlink())


def _signature(status: os.stat_result) -> tuple[int, int, int]:
    if stat.S_ISDIR(status.st_mode):
        return (0, 0, 0)  # a folder's own times change with its children, who are listed themselves
    return status.st_ino, status.st_size, status.st_mtime_ns


def _change(name: str, status: os.stat_result, since: Moment) -> Change:
    before = since.signatures.get(name)
    if before is None:
        return Change.NEW
    return Change.SAME if before == _signature(status) else Change.CHANGED
