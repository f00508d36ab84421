"""Programs of this folder in processes of their own, which are told a line and answer with a line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit import workspace


class Child:
    """One running program. It is started by its path: as a module of this package it would load every experiment first."""

    def __init__(self, program: str, *arguments: object) -> None:
        self._program = program
        self._process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name(f"{program}.py"), *map(str, arguments)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
        """Write one line to its input."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """Wait for one line of its output. Raises: RuntimeError when it has ended instead."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._program}: ended before its answer; run the cell again")
        return line.removesuffix("\n")

    def kill(self) -> None:
        """End it by SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def children(many: int, program: str, *arguments: object) -> Iterator[list[Child]]:
    """Give some processes of one program; none of them outlives the block."""
    started = [Child(program, *arguments) for _ in range(many)]
    try:
        yield started
    finally:
        for one in started:
            one.kill()


def environment() -> dict[str, str]:
    """Return what such a program needs to find the kit, and to speak UTF-8 everywhere."""
    return {**os.environ, "PYTHONPATH": str(workspace.kit_root()), "PYTHONUTF8": "1"}
