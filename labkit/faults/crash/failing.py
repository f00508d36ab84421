"""The other crash: the disk says no. Every operation of a run fails once, in every way that it can, and the run goes on.

What the run then leaves is judged by the same promises: what it said was done is there, and what it refused leaves no hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from labkit.faults.crash.recovery import Code, CrashLabError, RecoveryChild, tree_of
from labkit.faults.crash.trace import CrashState
from labkit.faults.round_sweep import MARK_CHANGES

WRITES = ("write", "pwrite", "writev", "pwritev", "sendfile")
SYNCS = ("fsync", "fdatasync")
_ANYTHING = ("none,ENOSPC", "none,EIO", "none,EINTR")
_WRITING = (*_ANYTHING, "short", "half,ENOSPC", "half,EIO")
_SYNCING = (*_ANYTHING, "full,EIO")


@dataclass(frozen=True, slots=True)
class Fault:
    """How an operation fails: the `nth` that changes the disk (1-based), which one it is, and what is done to it.

    `do` is in the words of `file_layer`: "none,ENOSPC" does nothing and says so, "half,EIO" writes half and fails, "short"
    writes a byte and says so, "full,EIO" is a sync that fails although everything arrived.
    """

    nth: int
    op: str
    path: str
    do: str

    @property
    def rule(self) -> dict[str, Any]:
        """The file layer's rule for it."""
        return {"op": "change", "nth": self.nth, "do": self.do}


@dataclass(frozen=True, slots=True)
class FailedRun(CrashState):
    """What a run left in which one operation failed. Nothing crashed: `after` counts the steps of a run without failure.

    `ended`, in words, says that the run gave no answer: it hung, or its process died. Then nothing is known of its files.
    """

    fault: Fault
    ended: str = ""


class Failures:
    """All the ways in which one operation can fail, each tried in a run of its own. Use as a context manager."""

    def __init__(self, code: Code, events: int, after: int, *, seconds: float) -> None:
        """Start the child that runs the work, and look once what it does. Raises: CrashLabError."""
        self.tried = 0
        self._events, self._after = events, after
        self._code, self._seconds = code, seconds
        self._child = RecoveryChild(code, seconds=seconds, layer=True)
        seen = self._run([MARK_CHANGES])
        if seen is None:
            raise CrashLabError(f"{code.scenario}: work gave no answer, {self._child.ended}; let it end")
        self._faults = list(faults(seen["log"]))
        if not self._faults:
            self._child.close()
            raise CrashLabError(
                f"{code.scenario}: work changed nothing before it returned, so nothing can fail; "
                "let it wait for its threads and processes"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.close()

    @property
    def possible(self) -> int:
        """How many there are."""
        return len(self._faults)

    @property
    def distinct(self) -> int:
        """How many were tried: none is left out for leaving what another left."""
        return self.tried

    def __iter__(self) -> Iterator[FailedRun]:
        for fault in self._faults:
            self.tried += 1
            yield self.run(fault)

    def run(self, fault: Fault) -> FailedRun:
        """Run the work once with this fault."""
        left = self._run([fault.rule])
        if left is None:
            return FailedRun(self._after, (), {}, (), fault, self._child.ended)
        return FailedRun(self._after, (), tree_of(left["tree"]), tuple(left["acknowledged"]), fault)

    def _run(self, rules: list[dict[str, Any]]) -> dict[str, Any] | None:
        if self._child.ended:
            self._child = RecoveryChild(self._code, seconds=self._seconds, layer=True)
        left = next(self._child.ask([{"do": "work", "events": self._events, "rules": rules}]), None)
        if left is None:
            self._child.close()
            return None
        if "problem" in left:
            self._child.close()
            raise CrashLabError(
                f"{left['problem']}; free some room there, or set TMPDIR to a folder that has it"
            )
        return left


def faults(log: list[dict[str, Any]]) -> Iterator[Fault]:
    """List the faults of every operation in the log of a run with MARK_CHANGES."""
    changes = [entry for entry in log if entry["did"] != "full"]
    for nth, entry in enumerate(changes, start=1):
        ways = _WRITING if entry["op"] in WRITES and entry["size"] else _ANYTHING
        for do in _SYNCING if entry["op"] in SYNCS else ways:
            yield Fault(nth, entry["op"], entry["path"], do)
