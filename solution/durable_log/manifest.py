"""The file that says which segments a session has: its form, its proof, its replacement (docs/formats-durable.md)."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from .errors import CorruptLogError
from .record import BEGINNING, Head
from .sealed_json import read_sealed, write_sealed

MANIFEST_VERSION = 1
MOST_BYTES = 64 << 20
"""A manifest of more bytes is refused unread; one of 100,000 segments has about a third."""


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A segment that no append will touch again: events `first` to `last`, both included.

    `bytes` and `sha256` are of its lines, whether they are stored compressed or not; `head` is the last one's hash.
    `named` says whether callers gave ids to events of it: where none did, no id has to be looked up.
    """

    first: int
    last: int
    bytes: int
    sha256: str
    head: str
    named: bool


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is recorded about a session's segments.

    base      events up to here are gone, by a retention that was confirmed; sequence 0 while all are there
    closed    the segments after `base`, contiguous; the active one follows the last of them
    removing  first sequences of segments before `base` whose files a retention may not have removed yet
    head      the log reached this event once, durably; a log that ends before it was cut
    """

    v: int
    session: str
    owner: int | None
    base: Head
    closed: tuple[Closed, ...]
    removing: tuple[int, ...]
    head: Head

    @property
    def closed_head(self) -> Head:
        """The last event before the active segment."""
        return Head(self.closed[-1].last, self.closed[-1].head) if self.closed else self.base


def new_manifest(session: str) -> Manifest:
    """Return the manifest of a session without events, owned by this user (None where users have no number)."""
    owner = os.geteuid() if os.name == "posix" else None
    return Manifest(
        v=MANIFEST_VERSION,
        session=session,
        owner=owner,
        base=BEGINNING,
        closed=(),
        removing=(),
        head=BEGINNING,
    )


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Put `manifest` in the place of the old one, whole and synced. Raises: OSError, as `replace_file` says."""
    write_sealed(path, manifest)


def read_manifest(path: Path, session: str) -> Manifest | None:
    """Return the manifest of `session`, proved; None when there is no file.

    Raises: CorruptLogError when it is damaged, contradicts itself or is another session's; UnknownVersionError; OSError.
    """
    try:
        manifest = read_sealed(path, Manifest, MANIFEST_VERSION, MOST_BYTES)
    except FileNotFoundError:
        return None
    if manifest.session != session:
        raise CorruptLogError(str(path), "is the manifest of another session")
    if reason := _contradiction(manifest):
        raise CorruptLogError(str(path), reason)
    return manifest


def _contradiction(manifest: Manifest) -> str:
    """Say what cannot be true in a manifest, in words; empty when nothing is wrong."""
    last = manifest.base.sequence
    for closed in manifest.closed:
        if closed.first != last + 1 or closed.last < closed.first or closed.bytes < 1:
            return f"segment {closed.first} does not follow event {last}"
        last = closed.last
    if manifest.head.sequence < last:
        return f"its head {manifest.head.sequence} lies before the end of its segments, {last}"
    if manifest.head.sequence == last and manifest.head != manifest.closed_head:
        return f"its head and its segments disagree about event {last}"
    return ""
