"""Content too big for a record: a file of its own, named by its SHA-256; the event's data holds a reference (E6).

    reference = blobs.put(picture)
    await log.append("picture_taken", {"picture": reference, "camera": 2})
    blobs.get(reference)

A reference is ordinary data, `{"$blob": {"sha256": "…64 hex digits…", "bytes": 5242880}}`, so the chain covers it, and
it covers the content. What a secret policy masks or encrypts in an event, it does not in a blob.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .atomic_file import sweep_temporary_files, sync_folder, temporary_file, write_all
from .errors import BlobError, LimitError, RetentionError
from .reading import open_log
from .segments import Segments
from .session_folder import SessionFolder, private_subfolder

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ANY_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_CHUNK_BYTES = 1 << 20
_DAY_SECONDS = 86_400.0


class Blobs:
    """The big contents of one session. `most_bytes` is the largest that `put` takes (1 GiB)."""

    def __init__(self, folder: SessionFolder, *, most_bytes: int = 1 << 30) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    def put(self, content: bytes | IO[bytes]) -> dict[str, Any]:
        """Store content, or a file's content from where it stands, durably; return the reference to it.

        The same content is stored once. An append comes after it, never before: then no event refers to nothing.

        Raises: LimitError when it is too long, PlaceError for a strange folder, OSError; then nothing was stored.
        """
        source = io.BytesIO(content) if isinstance(content, bytes) else content
        private_subfolder(self._folder.blobs_path)
        digest, size = hashlib.sha256(), 0
        with temporary_file(self._folder.blobs_path / "blob") as (descriptor, temporary):
            while piece := source.read(_CHUNK_BYTES):
                size += len(piece)
                if size > self._most_bytes:
                    raise LimitError(
                        f"{self._folder.session}: a blob is over {self._most_bytes} bytes; store it in parts"
                    )
                digest.update(piece)
                write_all(descriptor, piece)
            os.fsync(descriptor)
            # Also when it is there already: should that copy be damaged, this one is not.
            os.replace(temporary, self._folder.blobs_path / digest.hexdigest())  # noqa: PTH105 - the step's name
        sync_folder(self._folder.blobs_path)
        return {"$blob": {"sha256": digest.hexdigest(), "bytes": size}}

    def get(self, reference: Any) -> bytes:
        """Return the content behind a reference, proved. Raises: BlobError, OSError."""
        with self.open(reference) as file:
            return file.read()

    def open(self, reference: Any) -> IO[bytes]:
        """Open the content behind a reference, proved from end to end before the first byte is given.

        Raises: BlobError when the reference is none, or the content is missing or altered; OSError.
        """
        path, size = self._named_by(reference)
        try:
            file = open_log(path)
        except FileNotFoundError:
            raise BlobError(f"{path}: is missing; restore it from a backup of the session") from None
        digest, found = hashlib.sha256(), 0
        while piece := file.read(_CHUNK_BYTES):
            digest.update(piece)
            found += len(piece)
        if (found, digest.hexdigest()) != (size, path.name):
            file.close()
            raise BlobError(
                f"{path}: was altered ({found} bytes, its reference says {size}); restore it from a backup"
            )
        file.seek(0)
        return file

    def _named_by(self, reference: Any) -> tuple[Path, int]:
        match reference:
            case {"$blob": {"sha256": str(digest), "bytes": int(size)}} if _DIGEST.fullmatch(digest):
                return self._folder.blobs_path / digest, size
        raise BlobError(f'{self._folder.blobs_path}: the value is no reference; pass one as {{"$blob": …}}')

    def unreferenced(self, segments: Segments, *, older_than_seconds: float = _DAY_SECONDS) -> list[Path]:
        """List the blobs that no event and no checkpoint names. All segments are read, and proved.

        A young blob may belong to an append that has not come yet, so it is not listed.

        Raises: CorruptLogError when the log cannot be trusted to name them all; OSError.
        """
        if not self._folder.blobs_path.is_dir():
            return []
        named = set(_digests_in(segments))
        youngest = time.time() - older_than_seconds
        return sorted(
            path
            for path in self._folder.blobs_path.iterdir()
            if _DIGEST.fullmatch(path.name) and path.name not in named and path.lstat().st_mtime <= youngest
        )

    def remove_unreferenced(
        self, segments: Segments, *, confirmed: bool, older_than_seconds: float = _DAY_SECONDS
    ) -> list[Path]:
        """Remove what `unreferenced` lists, and what killed `put` left; return the list. Only under the writer's lock.

        Raises: RetentionError when nobody confirmed; as `unreferenced`: then nothing was removed.
        """
        going = self.unreferenced(segments, older_than_seconds=older_than_seconds)
        if not confirmed:
            raise RetentionError(
                f"{self._folder.blobs_path}: {len(going)} blobs are named by no event; pass confirmed=True to remove them"
            )
        for path in going:
            path.unlink()
        if self._folder.blobs_path.is_dir():
            sweep_temporary_files(self._folder.blobs_path)
            sync_folder(self._folder.blobs_path)
        return going


def _digests_in(segments: Segments) -> Iterator[str]:
    """Give everything that looks like a digest in events and checkpoints: too many is harmless here, too few is not."""
    for file in segments.files():
        try:
            for line in file.lines(prove=file.closed is not None):
                yield from (digest.decode() for digest in _ANY_DIGEST.findall(line))
        except FileNotFoundError:
            continue  # the active segment, before its first event
    folder = segments.folder.checkpoints_path
    for path in folder.iterdir() if folder.is_dir() else ():
        yield from (digest.decode() for digest in _ANY_DIGEST.findall(path.read_bytes()))
