"""Replaying a history, and doing once more what it tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def replay_and_act(types: Iterable[str], send: Callable[[], None]) -> int:
    """Mistake: acts while it replays. History says that a mail was sent, and so another one goes out. Returns the events."""
    count = 0
    for type_ in types:
        count += 1
        if type_ == "mail_sent":
            send()
    return count
