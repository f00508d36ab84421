"""Kills, or fails, a round of the lab at every file operation, one at a time, and hands over what the disk holds.

It judges nothing: a test, or a matrix in a notebook, does. The lab's code runs in a child only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHILD = Path(__file__).with_name("round_child.py")
# Does nothing to every operation that changes the disk, and so marks it in the log.
MARK_CHANGES = {"op": "change", "do": "slow", "seconds": 0, "times": None}
_ROUND = {"do": "round", "agent": "simulated", "interrupt": False}


@dataclass(frozen=True)
class Ended:
    """How one order ended: a signal or an exit code, the answer that was printed, and the operations seen."""

    signal: int | None
    exit_code: int | None
    answer: dict[str, Any] | None
    log: list[dict[str, Any]]


@dataclass(frozen=True)
class Point:
    """One place to strike: the `number`th operation that changes the disk (1-based), what it is, and what is done."""

    number: int
    op: str
    path: str
    do: str

    @property
    def rule(self) -> dict[str, Any]:
        """The file layer's rule for it."""
        return {"op": "change", "nth": self.number, "do": self.do}


class RoundRunner:
    """A child that runs rounds with the code of one lab, on any copy of it. Use as a context manager.

    `env` replaces the child's environment. No byte code is written beside the lab's code.
    """

    def __init__(self, code: Path, env: dict[str, str] | None = None) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", str(CHILD), str(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=env,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()

    def run(self, lab: Path, ledger: Path, rules: list[dict[str, Any]] | None = None, **order: Any) -> Ended:
        """Carry one order out on `lab`; fields beyond a plain round are round_child's. Raises: RuntimeError."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        line = json.dumps(_ROUND | order | {"lab": str(lab), "ledger": str(ledger), "rules": rules or []})
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise RuntimeError(
                f"{CHILD.name}: ended with code {self._child.wait()}; look at its stderr above"
            )
        return Ended(**json.loads(answer))


def points(log: list[dict[str, Any]], ends: tuple[str, ...] = ("kill",)) -> Iterator[Point]:
    """List where a round can be struck, given the log of one run with MARK_CHANGES.

    Before each operation, and in the middle of each write. After an operation is before the next; after the last
    one the round is over.
    """
    changes = [entry for entry in log if entry["did"] != "full"]
    for number, entry in enumerate(changes, start=1):
        for end in ends:
            yield Point(number, entry["op"], entry["path"], f"none,{end}")
            if entry["op"] == "write" and (entry["size"] or 0) > 1:
                yield Point(number, entry["op"], entry["path"], f"half,{end}")


def fresh_copy(template: Path, place: Path) -> Path:
    """Make `place` a copy of a lab, repository and all; what was there before is removed. Returns `place`."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place, symlinks=True)
    return place


def starts(ledger: Path) -> int:
    """Return how many times an agent was started."""
    return ledger.stat().st_size if ledger.exists() else 0


def clean_environment() -> dict[str, str]:
    """Return the environment without what hides byte code: some machines set it, and so hide what Git would list."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
