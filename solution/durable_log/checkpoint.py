"""State at a sequence, saved: replay begins there instead of at event 1, and effects that were done stay done (C22-56).

    checkpoints = Checkpoints(folder)
    replayed = await replay(log, apply, {}, checkpoints=checkpoints)
    checkpoints.save(replayed)

A checkpoint is a cache of the log, never an authority: it counts only if it is sound and the log still has the event
that it was made at. One that does not count is named in `Replayed.refused`, and replay begins further back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from .atomic_file import sweep_temporary_files
from .contract import Event, EventStore
from .effects import Effects
from .errors import CorruptLogError, EventsRemovedError, UnknownVersionError
from .limits import Limits
from .record import BEGINNING, Head, encode_data
from .sealed_json import read_sealed, write_sealed
from .session_folder import SessionFolder, private_subfolder

CHECKPOINT_VERSION = 1
MOST_BYTES = 1 << 30
"""A checkpoint of more bytes is refused, by writer and reader."""


@dataclass(kw_only=True)
class Replayed:
    """Where a log stands: `state` and `effects` behind event `head`.

    `begun_at` is the sequence whose checkpoint saved the way there, 0 for none; `refused` says which did not count.
    """

    state: Any
    head: Head = BEGINNING
    effects: Effects = field(default_factory=Effects)
    begun_at: int = 0
    refused: tuple[str, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkpoint as it is stored: `state` is a JSON value (serialised, to be written), `begun` and `done` are the fingerprints of effects."""

    v: int
    session: str
    head: Head
    begun: tuple[str, ...]
    done: tuple[str, ...]
    state: Any

    def replayed(self, refused: tuple[str, ...]) -> Replayed:
        """Return what the checkpoint saved, as fresh values."""
        return Replayed(
            state=self.state,
            head=self.head,
            effects=Effects(self.done, self.begun),
            begun_at=self.head.sequence,
            refused=refused,
        )


class Checkpoints:
    """The checkpoints of one session: files named by their sequence, the newest few of them kept."""

    def __init__(self, folder: SessionFolder, *, keep: int = 2) -> None:
        self._folder = folder
        self._keep = keep

    def save(self, replayed: Replayed) -> Path:
        """Store where the log stood, whole and synced, then remove all but the newest `keep`. Under the writer's lock.

        Raises: RefusedError or LimitError for a state that is no JSON value, PlaceError, OSError; older ones stay.
        """
        state, _copy = encode_data(replayed.state, Limits().depth)
        checkpoint = Checkpoint(
            v=CHECKPOINT_VERSION,
            session=self._folder.session,
            head=replayed.head,
            begun=tuple(sorted(replayed.effects.begun)),
            done=tuple(sorted(replayed.effects.done)),
            state=msgspec.Raw(state),
        )
        private_subfolder(self._folder.checkpoints_path)
        path = self._folder.checkpoints_path / f"{replayed.head.sequence:020d}.json"
        write_sealed(path, checkpoint)
        sweep_temporary_files(self._folder.checkpoints_path)
        for old in self.paths()[self._keep :]:
            old.unlink()
        return path

    def paths(self) -> list[Path]:
        """List the files, newest first."""
        return sorted(self._folder.checkpoints_path.glob("[0-9]" * 20 + ".json"), reverse=True)

    def sound(self, refused: list[str]) -> Iterator[Checkpoint]:
        """Give the checkpoints that are whole and this session's, newest first; say in `refused` why others are not."""
        for path in self.paths():
            try:
                checkpoint = read_sealed(path, Checkpoint, CHECKPOINT_VERSION, MOST_BYTES)
            except (CorruptLogError, UnknownVersionError, OSError) as error:
                refused.append(str(error))
                continue
            if checkpoint.session == self._folder.session:
                yield checkpoint
            else:
                refused.append(f"{path}: is a checkpoint of another session; remove it")


async def replay(
    store: EventStore,
    apply: Callable[[Any, Event], Any],
    initial: Any,
    *,
    checkpoints: Checkpoints | None = None,
) -> Replayed:
    """Return where the log stands: the newest checkpoint that counts, and the events behind it, one by one.

    `apply(state, event)` returns the next state and does nothing else; `initial` is the state before event 1.

    Raises: CorruptLogError; EventsRemovedError when no checkpoint reaches over what retention removed; what `apply` raises.
    """
    start, refused = Replayed(state=initial), list[str]()
    for checkpoint in checkpoints.sound(refused) if checkpoints else ():
        if await _has(store, checkpoint.head):
            start = checkpoint.replayed(())
            break
        refused.append(
            f"{store.session}: the checkpoint at event {checkpoint.head.sequence} is not of this log; remove it"
        )
    start.refused = tuple(refused)
    return await _onward(store, apply, start)


async def _has(store: EventStore, head: Head) -> bool:
    """Say whether the log went through `head`."""
    if head == BEGINNING:
        return True
    try:
        async with aclosing(store.stream(after=head.sequence - 1)) as events:  # type: ignore[type-var]  # all stores': generators
            async for event in events:
                return (event.sequence, event.event_hash) == (head.sequence, head.hash)
    except EventsRemovedError as removed:
        return (removed.sequence, removed.hash) == (head.sequence, head.hash)
    return False


async def _onward(store: EventStore, apply: Callable[[Any, Event], Any], at: Replayed) -> Replayed:
    async for event in store.stream(after=at.head.sequence):
        at.state = apply(at.state, event)
        at.effects.take(event)
        at.head = Head(event.sequence, event.event_hash)
    return at
