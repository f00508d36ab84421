"""Makes every kind of file that a session can have, in a process whose umask somebody else has chosen.

python private_files.py FOLDER

FOLDER/ordinary holds what a store makes that gives modes no thought, FOLDER/private what `durable_log` makes.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from labkit.naive import GluingStore
from solution.durable_log import Blobs, DurableLog, replay


async def main(folder: Path) -> None:
    """Write both. Raises: OSError, DurableLogError."""
    ordinary, private = folder / "ordinary", folder / "private"
    await GluingStore(ordinary / "build" / "events.jsonl").append("step", {"number": 1})
    await _segments(private)
    _tear(next((private / "build").glob("0*2.jsonl")))
    async with await DurableLog.open("build", root=private) as log:
        await log.back_up(private / "backup")


async def _segments(root: Path) -> None:
    """Leave a compressed segment with its index, an active one, a blob, a checkpoint."""
    async with await DurableLog.open("build", root=root) as log:
        page = Blobs(log.folder).put(b"a page")
        first = await log.append("page_fetched", {"page": page}, event_id="fetch-1")
        await log.checkpoint(await replay(log, lambda state, _event: state, {}))
        await log.compress()
        await log.append("page_fetched", {"page": page}, event_id="fetch-1")  # looks the id up, in an index
        await log.append("step", {"after": first.sequence})


def _tear(log: Path) -> None:
    """Leave half a record at the end, as a crash does: the next opening keeps a copy of the file and mends it."""
    with log.open("ab") as file:
        file.write(b'{"v":1,"session":"bui')


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
