"""What code did to the disk, step by step, and what was there before it began (docs/formats-crash.md).

A trace is data: it is recorded once (`recorder`), and every crash state is computed from it (`states`), so that the same
trace and the same seed give the same states on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["file", "folder", "link"]
Op = Literal[
    "create",  # a new, empty file got the name `path` ("": none yet)
    "mkdir",  # a new folder got the name `path`
    "symlink",  # `path` now points to `to`
    "write",  # `data` was written into `node` at offset `at`
    "truncate",  # `node` was cut, or grown with zeros, to `at` bytes
    "link",  # the file `path` got a second name, `to` ("": its first)
    "rename",  # `path` became `to`, whatever had that name before is gone (rename and replace)
    "unlink",  # the name `path` is gone
    "rmdir",  # the folder `path` is gone
    "chmod",  # `node` got the mode `at`
    "sync",  # `node`, a file or a folder, was synced (fsync, fdatasync)
    "acknowledge",  # the code said of `value` that it is done: from here on its promises hold for it
]
CONTENT: frozenset[str] = frozenset({"write", "truncate", "chmod"})
"""What changes a file and waits for a sync of that file."""
NAMES: frozenset[str] = frozenset({"create", "mkdir", "symlink", "link", "rename", "unlink", "rmdir"})
"""What changes a folder and waits for a sync of that folder. Rename and link are atomic in every model."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or symbolic link. `content` is a file's bytes, or where a link points (UTF-8)."""

    kind: Kind
    content: bytes = b""
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Start:
    """What was on the disk, and synced, before the recording began: an entry, its name below the root, its number."""

    path: str
    node: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that changed the disk, as it succeeded, or one acknowledgement.

    `number` is 1-based. `node` numbers files and folders as they are met (0 is the root): a descriptor stays with its
    file when the name moves. Paths are POSIX, below the root, "." for the root itself; that of `write`, `truncate`,
    `chmod` and `sync` is the latest name that is known, for the reader. `thread` is 1 for the first thread met.
    """

    number: int
    op: Op
    node: int = -1
    path: str = ""
    to: str = ""
    at: int = 0
    data: bytes = b""
    mode: int = 0o600
    value: Any = None
    thread: int = 1


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that the recorder could not follow, so that no all-clear may be given.

    `what` is one of: "outside" (a file outside the root was opened to write), "c-writer" (the disk does not hold what
    the steps say), "mmap", "sqlite3", "child" (a process was started), "threads" (more than one wrote: the order is one of
    many), "unfinished" (the code never ended). `where` is a name or a command, never content.
    """

    what: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole recording."""

    start: tuple[Start, ...]
    steps: tuple[Step, ...]
    unseen: tuple[Unseen, ...] = ()

    @property
    def acknowledged(self) -> tuple[Any, ...]:
        """Every value that was said to be done, in this order."""
        return tuple(step.value for step in self.steps if step.op == "acknowledge")


# --- What a crash keeps and leaves ---


@dataclass(frozen=True, slots=True)
class Choice:
    """One step that did not reach the disk whole: `kept` bytes of a write arrived (0 for a step of another kind).

    `filled` says that the file has its full length all the same, and zeros in the place of what is missing.
    """

    step: int
    kept: int = 0
    filled: bool = False


@dataclass(frozen=True, slots=True)
class CrashState:
    """One thing that a crash can leave.

    The crash comes after the first `after` steps; of these, everything arrived but for the `choices`. `tree` is the
    folder then, by path (root left out). `acknowledged` are the values that had been said to be done.
    """

    after: int
    choices: tuple[Choice, ...]
    tree: dict[str, Entry]
    acknowledged: tuple[Any, ...]
