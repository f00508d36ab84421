"""A session's log in pieces: closed segments, which nothing alters, and the active one (E12).

A rotation is one atomic replacement of the manifest and nothing else, so a crash leaves the log before it or after it.
Opening looks at names and sizes only; `prove` and the readers read.
"""

from __future__ import annotations

import os
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Self

import msgspec

from .atomic_file import sweep_temporary_files, sync_file, sync_folder
from .errors import CorruptLogError, EventsRemovedError, PlaceError
from .manifest import Closed, Manifest, new_manifest, read_manifest, write_manifest
from .record import Head, encode_text
from .segment_file import NAME, SegmentFile, segment_name
from .segment_index import SegmentIndex, carried_hash, fingerprint
from .session_folder import SessionFolder

_MOST_OPEN_INDEXES = 256  # each holds a descriptor, and many systems give a process no more than 1024


class Segments:
    """The segments of one session. Changing methods are for the process that holds the writer's lock, one at a time."""

    def __init__(self, folder: SessionFolder, manifest: Manifest) -> None:
        self.folder = folder
        self._manifest = manifest
        self._indexes: dict[int, SegmentIndex] = {}

    @classmethod
    def open(cls, folder: SessionFolder) -> Self:
        """Open for writing, under the writer's lock: begin a new session, or finish what a crash cut short.

        Raises: CorruptLogError when manifest and files do not fit, UnknownVersionError for a newer manifest, PlaceError
        for another owner's; then nothing was changed. OSError.
        """
        manifest = read_manifest(folder.manifest_path, folder.session)
        segments = cls(folder, manifest or new_manifest(folder.session))
        segments._check_owner()
        segments._check()
        sweep_temporary_files(folder.path)
        if manifest is None:
            write_manifest(folder.manifest_path, segments._manifest)
        # A rename that an earlier process could not sync is durable before anything builds on it.
        sync_folder(folder.path)
        segments._finish_removing()
        return segments

    @classmethod
    def look(cls, folder: SessionFolder) -> Self:
        """Open for reading, beside a writer or without one: nothing is changed. Raises: as `open`, but for PlaceError."""
        manifest = read_manifest(folder.manifest_path, folder.session)
        while True:
            segments = cls(folder, manifest or new_manifest(folder.session))
            try:
                segments._check()
            except CorruptLogError:
                # A writer may have rotated or removed between our look at the manifest and that at the folder.
                seen, manifest = manifest, read_manifest(folder.manifest_path, folder.session)
                if manifest == seen:
                    raise
            else:
                return segments

    # --- What there is ---

    @property
    def active(self) -> Path:
        """The file to append to. It is there once it holds its first event."""
        return self.folder.path / segment_name(self.before.sequence + 1)

    @property
    def before(self) -> Head:
        """The last event before the active segment."""
        return self._manifest.closed_head

    @property
    def base(self) -> Head:
        """The last event that retention removed; sequence 0 while the log is complete."""
        return self._manifest.base

    @property
    def closed(self) -> tuple[Closed, ...]:
        """The closed segments, oldest first."""
        return self._manifest.closed

    def recorded_head(self) -> Head:
        """Return an event that the log reached durably: a log without it was cut."""
        return self._manifest.head

    def files(self, after: int | None = None) -> list[SegmentFile]:
        """Return, oldest first, the segments that hold events behind sequence `after`; the active one is the last.

        None asks for all that is there. Raises: EventsRemovedError when retention removed an event that was asked for.
        """
        manifest = self._manifest  # once: a rotation may replace it, in the writer's thread
        if after is not None and after < manifest.base.sequence:
            raise self._removed()
        found, before = [], manifest.base
        for closed in manifest.closed:
            if after is None or closed.last > after:
                found.append(self._file(closed.first, before, closed))
            before = Head(closed.last, closed.head)
        return [*found, self._file(before.sequence + 1, before, None)]

    def require(self, file: SegmentFile) -> None:
        """Stop at a file, given earlier, that retention has removed since. Raises: EventsRemovedError."""
        if file.before.sequence < self.base.sequence:
            raise self._removed()

    def _removed(self) -> EventsRemovedError:
        return EventsRemovedError(self.folder.session, self.base.sequence, self.base.hash)

    def _file(self, first: int, before: Head, closed: Closed | None) -> SegmentFile:
        return SegmentFile(self.folder.path / segment_name(first), before, closed)

    # --- Changes, each one replacement of the manifest ---

    def rotate(self, head: Head, size: int, sha256: str, *, named: bool = True) -> None:
        """Close the active segment at `head`; its `size` in bytes and `sha256` are of all its lines.

        `named` says whether a caller gave one of its events an id; True costs an index once ids are looked up. The
        lines are synced first: the manifest never promises what a power cut could take.

        Raises: CorruptLogError when the file is not of that size; OSError, after which the log must be closed: whether
        the manifest on the disk is the new one is not known until it is opened again.
        """
        if head.sequence == self.before.sequence:
            return  # nothing to close: the active segment holds no event
        if (found := self.active.stat().st_size) != size:
            raise CorruptLogError(str(self.active), f"has {found} bytes, and {size} were written")
        first = self.before.sequence + 1
        closed = Closed(
            first=first, last=head.sequence, bytes=size, sha256=sha256, head=head.hash, named=named
        )
        sync_file(self.active)
        self._replace(closed=(*self.closed, closed), head=head)

    def record_head(self, head: Head) -> None:
        """Record that the log reached `head`, after syncing the lines. Raises: OSError, as `rotate`."""
        if head != self._manifest.head:
            if head.sequence > self.before.sequence:
                sync_file(self.active)
            self._replace(head=head)

    def _replace(self, **changes: object) -> None:
        manifest = msgspec.structs.replace(self._manifest, **changes)
        write_manifest(self.folder.manifest_path, manifest)
        self._manifest = manifest

    def remove_through(self, sequence: int) -> None:
        """Remove the closed segments that end at `sequence` or before it: `retention.remove_before` is what may ask.

        The manifest says first that they are gone; a crash after that is finished at the next opening.

        Raises: OSError, as `rotate`.
        """
        going = [closed for closed in self.closed if closed.last <= sequence]
        if going:
            self._replace(
                base=Head(going[-1].last, going[-1].head),
                closed=self.closed[len(going) :],
                removing=(*self._manifest.removing, *(closed.first for closed in going)),
            )
            self._finish_removing()

    # --- Work off the append path ---

    def compress(self) -> int:
        """Compress the closed segments that are plain; returns how many. May run in a thread beside appends.

        Raises: CorruptLogError for one that is not what was closed, which stays as it is; OSError.
        """
        done = 0
        for file in self.files()[:-1]:
            if file.path.exists():
                file.compress()
                done += 1
        return done

    # --- Finding one event ---

    def find(self, event_id: str) -> int | None:
        """Return the sequence of the event to which a caller gave this id, in a closed segment; None when none has it.

        The answer is read from the segment itself; an index that is missing or damaged is made anew. Ids of events
        that retention removed are forgotten. Raises: CorruptLogError, OSError.
        """
        stored_id = encode_text(event_id)
        wanted = fingerprint(stored_id)
        for closed in reversed(self.closed):
            if not closed.named:
                continue
            index = self._index(closed)
            for ordinal in index.ordinals(wanted):
                if index.stored_id(ordinal) == stored_id:
                    return closed.first + ordinal
        return None

    def line(self, sequence: int) -> bytes:
        """Return the stored line of one event of a closed segment, `0A` included.

        Raises: LookupError when no closed segment has it; CorruptLogError; OSError.
        """
        for closed in self.closed:
            if closed.first <= sequence <= closed.last:
                return self._index(closed).line(sequence - closed.first)
        raise LookupError(f"{self.folder.path}: no closed segment holds event {sequence}")

    def hash_at(self, sequence: int) -> str | None:
        """Return the `event_hash` that event `sequence` carries; None when the log does not hold it.

        The end of a segment is known without reading; an event inside one is read. Raises: CorruptLogError, OSError.
        """
        known = {closed.last: closed.head for closed in self.closed} | {self.base.sequence: self.base.hash}
        if sequence in known:
            return known[sequence]
        if self.base.sequence < sequence < self.before.sequence:
            return carried_hash(self.line(sequence))
        place = sequence - self.before.sequence - 1
        try:
            with closing(SegmentFile(self.active, self.before, None).lines()) as lines:
                line = next(islice(lines, place, None), b"") if place >= 0 else b""
        except FileNotFoundError:
            return None
        return carried_hash(line) if line.endswith(b"\n") else None

    def index(self) -> None:
        """Make the indexes that are missing, so that no `find` has to. May run in a thread beside appends."""
        for file in self.files()[:-1]:
            if file.closed and file.closed.named:
                SegmentIndex.load(file).close()

    def _index(self, closed: Closed) -> SegmentIndex:
        index = self._indexes.get(closed.first)
        if index is None:
            while len(self._indexes) >= _MOST_OPEN_INDEXES:
                del self._indexes[next(iter(self._indexes))]
            file = next(file for file in self.files(closed.first - 1) if file.closed == closed)
            index = self._indexes[closed.first] = SegmentIndex.load(file)
        return index

    # --- Opening ---

    def _check(self) -> None:
        """Compare manifest and folder. Raises: CorruptLogError, OSError."""
        known = {file.path.name: file for file in self.files()}
        removing = {segment_name(first) for first in self._manifest.removing}
        for name in sorted(os.listdir(self.folder.path)):  # noqa: PTH208 - names alone
            if not NAME.fullmatch(name):
                continue
            plain = name.removesuffix(".gz")
            active_compressed = plain == self.active.name and name != plain
            if (plain not in known and plain not in removing) or active_compressed:
                raise CorruptLogError(
                    str(self.folder.path / name), "a segment file that the manifest does not know"
                )
        for file in known.values():
            if file.closed is not None:
                file.check_size()

    def _check_owner(self) -> None:
        owner, mine = self._manifest.owner, new_manifest(self.folder.session).owner
        if owner != mine:
            raise PlaceError(
                f"{self.folder.manifest_path}: belongs to user {owner}, and you are {mine}; restore a backup of it instead"
            )

    def _finish_removing(self) -> None:
        """Remove the files that a confirmed retention left, and forget them."""
        if not self._manifest.removing:
            return
        for first in self._manifest.removing:
            if index := self._indexes.pop(first, None):
                index.close()
            self._file(first, self.base, None).remove()
        sync_folder(self.folder.path)
        self._replace(removing=())
