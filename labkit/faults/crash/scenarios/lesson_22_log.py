"""How any store with the face of lesson 22's is used and recovered: what the scenarios of such stores share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.faults.crash.promises import AFTER_CRASH
from labkit.faults.crash.scenarios.one_thread import run

Store = Any
"""`append(type, data)`, awaitable, and `async read()`; the naive ones append in ways of their own."""


def work(
    folder: Path, events: int, acknowledge: Callable[[int], object], store: Callable[[Path], Store]
) -> None:
    """Append the numbers from 1 to `events`, one after the other, with one store."""

    async def append_all() -> None:
        log = store(_path(folder))
        for number in range(1, events + 1):
            try:
                await log.append("event", {"n": number})
            except OSError:  # the disk said no, and the caller was told: the next one may go through
                continue
            acknowledge(number)

    run(append_all())


def recover(folder: Path, store: Callable[[Path], Store]) -> dict[str, Any]:
    """Read; append one more with a store newly opened; read again with a third."""

    async def recovered() -> dict[str, Any]:
        report: dict[str, Any] = {"read": None, "error": None, "after": None}
        try:
            report["read"] = [event.data["n"] for event in await store(_path(folder)).read()]
            await store(_path(folder)).append("event", {"n": AFTER_CRASH})
            report["after"] = [event.data["n"] for event in await store(_path(folder)).read()]
        except NotImplementedError:
            raise
        except Exception as error:  # noqa: BLE001 - which one it is, is the answer
            report["error"] = type(error).__name__
        return report

    return run(recovered())


def _path(folder: Path) -> Path:
    return folder / "session.jsonl"
