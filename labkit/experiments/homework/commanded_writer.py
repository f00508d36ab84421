"""A writer in a process of its own, which does what its standard input says and answers each line with one line of JSON.

python commanded_writer.py ROOT [no-locks]

open SESSION   opens the session for appends
append N       appends N events
close          closes it

An answer is ["short", "said"]: a number or a word, and an error's own words. With `no-locks` the operating system
answers that it cannot lock, as it does on file systems that have no locks.
"""

from __future__ import annotations

import asyncio
import errno
import importlib
import json
import os
import sys
from pathlib import Path

from labkit.experiments.asking import Answer, answer_to
from solution.durable_log import DurableLog, DurableLogError


class Writer:
    """Has at most one session open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log: DurableLog | None = None

    async def open(self, session: str) -> Answer:
        """Open a session, or say why not."""
        try:
            self.log = await DurableLog.open(session, root=self.root, durability="os")
        except (DurableLogError, OSError) as error:
            return Answer(type(error).__name__, str(error))
        return Answer("opened")

    async def append(self, many: str) -> Answer:
        """Append events to the open session; the answer is that of the last."""
        assert self.log
        *_, last = [await answer_to(self.log.append("step", {"pid": os.getpid()})) for _ in range(int(many))]
        return last

    async def close(self) -> Answer:
        """Close the open session."""
        assert self.log
        await self.log.close()
        return Answer("closed")


async def main(root: Path) -> None:
    """Obey until standard input ends; then whatever is open stays as it is, and the process is gone."""
    writer = Writer(root)
    for line in sys.stdin:
        command, *argument = line.split()
        print(json.dumps(await getattr(writer, command)(*argument)), flush=True)


def _cannot_lock(*_: object) -> None:
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


if __name__ == "__main__":
    if "no-locks" in sys.argv:
        module, name = ("msvcrt", "locking") if os.name == "nt" else ("fcntl", "flock")
        setattr(importlib.import_module(module), name, _cannot_lock)
    asyncio.run(main(Path(sys.argv[1])))
