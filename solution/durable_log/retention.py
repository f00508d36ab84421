"""Removing old events for good: only whole closed segments, only behind a proved checkpoint, only when confirmed (E12)."""

from __future__ import annotations

from .checkpoint import Checkpoints
from .errors import RetentionError
from .manifest import Closed
from .segments import Segments


def remove_before(segments: Segments, sequence: int, *, confirmed: bool) -> tuple[Closed, ...]:
    """Remove the closed segments whose events all lie before `sequence`; returns them. Under the writer's lock.

    The active segment never goes, nor one that begins before `sequence` and ends behind it. What the removed events
    knew is lost but for the checkpoint: their content, and their ids, so a retry of one of them is appended anew.

    Raises: RetentionError when no sound checkpoint of this log covers them, or `confirmed` is not True: then nothing
    was removed; CorruptLogError; OSError, as `Segments.rotate`.
    """
    going = tuple(closed for closed in segments.closed if closed.last < sequence)
    if not going:
        return ()
    last, session = going[-1].last, segments.folder.session
    refused: list[str] = []
    covered = [
        checkpoint.head.sequence
        for checkpoint in Checkpoints(segments.folder).sound(refused)
        if segments.hash_at(checkpoint.head.sequence) == checkpoint.head.hash
    ]
    if max(covered, default=0) < last:
        why = "".join(f" ({reason})" for reason in refused)
        raise RetentionError(
            f"{session}: no sound checkpoint covers event {last}; save one at or behind it{why}"
        )
    if confirmed is not True:
        raise RetentionError(
            f"{session}: events {going[0].first} to {last} would be gone for good; pass confirmed=True if they may go"
        )
    segments.remove_through(last)
    return going
