"""What commands of the lab came to, and what a round does to the disk, in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from labkit.views.sentences import Card
from labkit.views.spine import PHASES
from labkit.words import catalogue, t

_MARKS = {
    "completed": "good",
    "closed": "good",
    "interrupted": "surprise",
    "rejected": "bad",
    "refused": "bad",
    "blocked": "bad",
}
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp$")

Operation = Mapping[str, Any]
"""One entry of a file layer's log: ``op``, ``path`` and ``to`` below the lab, ``size`` in bytes."""


class CommandEnd(Protocol):
    """What ``labkit.lab_actions.Answer`` says of a command."""

    @property
    def exit_code(self) -> int | None:
        """None when a signal ended it."""
        ...

    @property
    def decision(self) -> str | None:
        """The decision that was printed, if any."""
        ...

    @property
    def reason(self) -> str | None:
        """Its reason."""
        ...

    @property
    def cause(self) -> str | None:
        """Its cause, for what needs a second look."""
        ...

    @property
    def message(self) -> str:
        """Its words to a person."""
        ...


def command_card(end: CommandEnd, signal: int | None, printed: Mapping[str, Any]) -> Card:
    """Say how a command ended and what it answered; ``printed`` is the object it printed, whatever that holds."""
    how = t("room.by-signal", signal=signal) if signal else t("room.exit", code=end.exit_code)
    words = [word for word in (end.decision, end.reason, end.cause) if word]
    others = [f"{name}: {_in_short(value)}" for name, value in printed.items() if name != "message"]
    headline = " / ".join(words) or " · ".join(others) or t("room.no-answer")
    mark = _MARKS.get(end.decision or "", "quiet" if end.exit_code == 0 else "bad")
    return Card(how, mark, headline, tuple(filter(None, (end.message,))))


def _in_short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(str(one) for one in value.values())
    return str(value)


# --- Operations of a round ---


def operation_line(operation: Operation) -> str:
    """Say what one operation does to which file; the random part of a temporary name is left out."""
    path, to = (_TEMPORARY.sub(".….tmp", str(operation.get(name) or "")) for name in ("path", "to"))
    key = "operation-to" if to else "operation"
    return t(f"room.{key}", op=operation["op"], path=path, to=to)


def operation_lines(operations: Sequence[Operation]) -> list[str]:
    """Say what each operation of a round does, with its number."""
    many = len(operations)
    return [
        t("room.operation-of", number=number, n=many, operation=operation_line(one))
        for number, one in enumerate(operations, start=1)
    ]


def operation_zones(operations: Sequence[Operation]) -> list[tuple[str, int]]:
    """Divide a round into stretches, by the phase that the state says when an operation begins: name and length."""
    ends = [at for at, one in enumerate(operations, start=1) if str(one.get("to")).endswith("/state.json")]
    if not ends or len(ends) > len(PHASES):
        return []
    first = len(PHASES) - len(ends)
    names = ["·" if first == 0 else PHASES[first - 1], *PHASES[first:]]
    sizes = [after - before for before, after in pairwise([0, *ends, len(operations)])]
    return [(name, size) for name, size in zip(names, sizes, strict=True) if size]


def crash_sentence(number: int, struck: Operation | None) -> str:
    """Say at which operation a round was killed, or that it never came so far."""
    if struck is None:
        return t("room.never-struck", number=number)
    key = "struck-halfway" if str(struck["did"]).startswith("half") else "struck"
    return t(f"room.{key}", number=number, operation=operation_line(struck))


# --- Refusals ---


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """What was changed, and what the runner said to it: texts. ``mark`` as of a card."""

    what: str
    exit: str
    decision: str
    cause: str
    message: str
    mark: str


def refusal_rows(
    results: Mapping[str, CommandEnd] | Iterable[tuple[str, CommandEnd]],
) -> Iterator[RefusalRow]:
    """Lay out what the runner said to each change. A name is one of ``tamper.…`` in words.toml, or stands for itself."""
    for kind, end in results.items() if isinstance(results, Mapping) else results:
        what = t(f"tamper.{kind}") if f"tamper.{kind}" in catalogue() else kind
        exit_code = "–" if end.exit_code is None else str(end.exit_code)
        decision = " / ".join(filter(None, (end.decision, end.reason))) or t("room.no-answer")
        mark = _MARKS.get(end.decision or "", "quiet")
        yield RefusalRow(what, exit_code, decision, end.cause or t("refusals.none"), end.message, mark)
