"""What a call answers, as a table can show it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple

from solution.durable_log import DurableLogError, Event


class Answer(NamedTuple):
    """The number of the event that was stored, or the name of the error; and the error's own words, empty for none."""

    short: int | str
    said: str = ""


async def answer_to(append: Awaitable[Event]) -> Answer:
    """Wait for an append; an error of the log or of the disk is an answer, too."""
    try:
        return Answer((await append).sequence)
    except (DurableLogError, OSError) as error:
        return Answer(type(error).__name__, str(error))
