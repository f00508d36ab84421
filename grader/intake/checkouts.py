"""A submission that is a Git repository, read at HEAD: what was committed, not what lies in the work tree.

The student's repository is never opened as one. Its configuration, hooks, filters, replace refs, submodules and
promisor remotes could run programs or read elsewhere, so git gets an empty repository of ours, with the student's
objects as its object store, and is asked for single objects by id. HEAD itself is read here, from plain files.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from grader.intake.folders import read_plain
from grader.intake.names import decoded, is_tools_own, tidy
from grader.intake.reasons import UnreadableError
from grader.intake.source import MAX_ENTRIES, MIB, Deadline, Entry, each_name_once

MAX_OBJECT_FILES = 200_000
MAX_LISTING_BYTES = 8 * MIB
MAX_REFS_BYTES = 4 * MIB
_MAX_SYMBOLIC = 5
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs(?:/[^/\x00-\x20\x7f~^:?*\[\\]+)+")
_PLAIN_FILES = (b"100644", b"100755", b"100664")
_ELSEWHERE = ("commondir", "objects/info/alternates")
_CONFIG = {
    40: "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    64: "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n",
}


def repository_of(folder: Path) -> Path | None:
    """Give the repository of a checkout, or of a bare one; None for a folder that is neither."""
    for place in (folder / ".git", folder):
        whole = (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir()
        if whole and not place.is_symlink():
            return place
    return None


class CheckoutSource:
    """The files of one commit."""

    def __init__(self, objects: _Objects, commit: str) -> None:
        """List the commit's files. Raises: UnreadableError."""
        self._objects = objects
        self._blobs: dict[str, tuple[str, int]] = {}
        found = []
        for mode, blob, size, raw_name in objects.listing(commit):
            name, why = tidy(decoded(raw_name))
            if not name or is_tools_own(name):
                continue
            plain = mode in _PLAIN_FILES
            found.append(
                Entry(name, why or ("" if plain and size.isdigit() else "damaged" if plain else "odd"))
            )
            self._blobs[name] = blob, int(size) if size.isdigit() else 0
        self.entries = each_name_once(found)

    def read(self, name: str, most: int) -> bytes | str:
        """Read one file as it was committed."""
        blob, size = self._blobs[name]
        return "large" if size > most else self._objects.blob(blob, size)


@contextlib.contextmanager
def open_checkout(repository: Path, deadline: Deadline) -> Iterator[CheckoutSource]:
    """Open a repository at HEAD. Raises: UnreadableError, OSError."""
    git = shutil.which("git")
    if git is None:
        raise UnreadableError("no-git")
    commit = _head(repository)
    _refuse_what_is_elsewhere(repository)
    with tempfile.TemporaryDirectory(prefix="statelab-git-") as folder:
        objects = _Objects(git, _empty_repository(Path(folder), commit), repository / "objects", deadline)
        try:
            yield CheckoutSource(objects, commit)
        finally:
            objects.close()


class _Objects:
    """Asks git for single objects of a store. One process serves all blobs; a watchdog ends it."""

    def __init__(self, git: str, ours: Path, store: Path, deadline: Deadline) -> None:
        self._git, self._ours, self._deadline = git, ours, deadline
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ},
            "HOME": str(ours),
            "LC_ALL": "C",
            "GIT_DIR": str(ours),
            "GIT_OBJECT_DIRECTORY": str(store.resolve()),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOC_LIMIT": "64m",
        }
        self._server: subprocess.Popen[bytes] | None = None
        self._watchdog: threading.Timer | None = None

    def listing(self, commit: str) -> list[tuple[bytes, str, str, bytes]]:
        """Give (mode, object id, size, name) of each file of a commit, read as a stream: a tree may be endless."""
        process = self._start("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
        watchdog = self._watch(process)
        try:
            raw = process.stdout.read(MAX_LISTING_BYTES + 1) if process.stdout else b""
        finally:
            watchdog.cancel()
            whole = len(raw) <= MAX_LISTING_BYTES
            _end(process, kill=not whole)
        self._deadline.check()
        lines = raw.split(b"\0")[:-1]
        if not whole or len(lines) > MAX_ENTRIES:
            raise UnreadableError("too-many", most=MAX_ENTRIES)
        if process.returncode:
            raise UnreadableError("git-failed")
        return [_listed(line) for line in lines]

    def blob(self, blob: str, size: int) -> bytes | str:
        """Give a blob of a known size."""
        if self._server is None:
            self._server = self._start("cat-file", "--batch")
            self._watchdog = self._watch(self._server)
        asked, told = self._server.stdin, self._server.stdout
        if asked is None or told is None:
            return "damaged"
        raw = b""
        with contextlib.suppress(OSError):  # it died of an object
            asked.write(f"{blob}\n".encode())
            asked.flush()
            if told.readline(256) == f"{blob} blob {size}\n".encode():
                raw = told.read(size + 1)
        self._deadline.check()
        return raw[:-1] if len(raw) == size + 1 else "damaged"

    def close(self) -> None:
        """End the process that serves blobs."""
        if self._watchdog:
            self._watchdog.cancel()
        if self._server:
            _end(self._server, kill=True)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._git, "-c", "core.fsmonitor=", "-c", "protocol.allow=never", *arguments],
            cwd=self._ours,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _watch(self, process: subprocess.Popen[bytes]) -> threading.Timer:
        watchdog = threading.Timer(self._deadline.left, process.kill)
        watchdog.daemon = True
        watchdog.start()
        return watchdog


def _end(process: subprocess.Popen[bytes], *, kill: bool) -> None:
    if kill:
        process.kill()
    process.communicate()


def _listed(line: bytes) -> tuple[bytes, str, str, bytes]:
    facts, _, name = line.partition(b"\t")
    mode, _, blob, size = facts.split()
    return mode, blob.decode(), size.decode(), name


def _empty_repository(folder: Path, commit: str) -> Path:
    """Make a repository of ours that knows nothing but its object format."""
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n", "ascii")
    (folder / "config").write_text(_CONFIG[len(commit)], "ascii")
    return folder


def _head(repository: Path) -> str:
    """Give the commit that HEAD leads to. Raises: UnreadableError for none, or a HEAD that is not plain."""
    name = "HEAD"
    for _ in range(_MAX_SYMBOLIC):
        text = _ref_text(repository, name)
        if _ID.fullmatch(text):
            return text
        target = text.removeprefix("ref:").strip()
        if target == text or not _REF.fullmatch(target) or ".." in target:
            break
        name = target
    raise UnreadableError("no-commit")


def _ref_text(repository: Path, name: str) -> str:
    place = repository / name
    linked = any(above.is_symlink() for above in place.parents if above.is_relative_to(repository))
    raw = "odd" if linked else read_plain(place, 1024)
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace").strip()
    packed = read_plain(repository / "packed-refs", MAX_REFS_BYTES)
    lines = packed.decode("utf-8", "replace").splitlines() if isinstance(packed, bytes) else []
    return next((line.split(" ")[0] for line in lines if line.partition(" ")[2] == name), "")


def _refuse_what_is_elsewhere(repository: Path) -> None:
    """Refuse a repository that would have git read outside of it. Raises: UnreadableError."""
    for name in _ELSEWHERE:
        if os.path.lexists(repository / name):
            raise UnreadableError("borrowed-objects", name=name)
    if (repository / "objects").is_symlink():
        raise UnreadableError("borrowed-objects", name="objects")
    seen = 0
    for root, folders, files in os.walk(repository / "objects", followlinks=False):
        seen += len(files) + len(folders)
        if seen > MAX_OBJECT_FILES:
            raise UnreadableError("too-many", most=MAX_OBJECT_FILES)
        for name in (*folders, *files):
            path = Path(root, name)
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise UnreadableError("borrowed-objects", name=f"objects/…/{name}"[:80])
