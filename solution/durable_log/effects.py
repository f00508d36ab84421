"""What the program did in the world outside the log, done once: begun is recorded before, done behind it.

A crash between the two leaves the effect in doubt. Nobody but the world outside knows then, so it is not repeated: look
there, and either `settle` it as done, or do it again under the next `attempt`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from .contract import Event, EventStore
from .errors import IdReusedError, InDoubtError
from .record import encode_data

BEGUN, DONE = "effect_begun", "effect_done"
_DEPTH = 100


class Effects:
    """Fingerprints of the effects that a log says are done, and of those begun and not done."""

    def __init__(self, done: Iterable[str] = (), begun: Iterable[str] = ()) -> None:
        self.done = set(done)
        self.begun = set(begun)
        self._by = secrets.token_hex(4)

    def take(self, event: Event) -> None:
        """Note what `event` says about effects; most events say nothing."""
        if event.type not in (BEGUN, DONE) or not isinstance(event.data, dict):
            return
        fingerprint = event.data.get("fingerprint")
        if event.type == BEGUN and isinstance(fingerprint, str) and fingerprint not in self.done:
            self.begun.add(fingerprint)
        elif event.type == DONE and isinstance(fingerprint, str):
            self.done.add(fingerprint)
            self.begun.discard(fingerprint)

    async def once(
        self,
        store: EventStore,
        name: str,
        arguments: Any,
        act: Callable[[], Awaitable[object]],
        *,
        attempt: int = 1,
    ) -> bool:
        """Await `act()` unless the log says that it was done; returns whether it was awaited now.

        Append with a durability of `fsync` or `group`: what a power cut takes back is done again.

        Raises: InDoubtError when it was begun, by whomever, and not done; what `act` raises, and then it is in doubt;
        what the store raises.
        """
        mark = fingerprint_of(name, arguments, attempt)
        if mark in self.done:
            return False
        if mark in self.begun:
            raise _in_doubt(store, name)
        self.begun.add(mark)
        begun = {"fingerprint": mark, "effect": name, "by": self._by}
        try:
            await store.append(BEGUN, begun, event_id=f"{mark}-begun")
        except IdReusedError:  # another writer of the same log was faster: its data name another `by`
            raise _in_doubt(store, name) from None
        except BaseException:
            self.begun.discard(mark)  # whatever the log holds of it, the effect has not happened
            raise
        await act()
        await self._record_done(store, name, mark)
        return True

    async def settle(self, store: EventStore, name: str, arguments: Any, *, attempt: int = 1) -> None:
        """Record as done what was in doubt: somebody looked, and it had happened. Raises: what the store raises."""
        await self._record_done(store, name, fingerprint_of(name, arguments, attempt))

    async def _record_done(self, store: EventStore, name: str, mark: str) -> None:
        self.take(await store.append(DONE, {"fingerprint": mark, "effect": name}, event_id=f"{mark}-done"))


def fingerprint_of(name: str, arguments: Any, attempt: int = 1) -> str:
    """Return the SHA-256, 64 hex digits, of what makes an effect this one. Keys may stand in any order.

    Raises: RefusedError for arguments that are no JSON.
    """
    raw, _copy = encode_data(_sorted([name, arguments, attempt]), _DEPTH)
    return hashlib.sha256(raw).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _in_doubt(store: EventStore, name: str) -> InDoubtError:
    return InDoubtError(
        f"{store.session}: the effect {name!r} was begun and may have happened; look, then settle it or take attempt=2"
    )
