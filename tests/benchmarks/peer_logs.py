"""Other people's logs, each used as its own documentation shows, with its own settings. Runs in their environment.

    python peer_logs.py WAY FILE DATA       appends each line of DATA to FILE, one by one; prints the seconds

Imports nothing of the kit: it is not there.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def through_jsonlines(file: str, data: list[dict[str, Any]]) -> float:
    """Write with `jsonlines`, flushed after each record; nothing is synced."""
    import jsonlines  # noqa: PLC0415 - one peer a run

    with jsonlines.open(file, "a", compact=True, flush=True) as writer:
        start = time.perf_counter()
        for sequence, one in enumerate(data, 1):
            writer.write({"sequence": sequence, "type": "tool_result", "data": one})
        return time.perf_counter() - start


def through_eventsourcing(file: str, data: list[dict[str, Any]]) -> float:
    """Store with the SQLite recorder of `eventsourcing`, an event a call."""
    import uuid  # noqa: PLC0415

    from eventsourcing.persistence import StoredEvent  # noqa: PLC0415
    from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore  # noqa: PLC0415

    recorder = SQLiteApplicationRecorder(SQLiteDatastore(file))
    recorder.create_table()
    log = uuid.uuid4()
    start = time.perf_counter()
    for sequence, one in enumerate(data, 1):
        state = json.dumps(one, separators=(",", ":")).encode()
        recorder.insert_events([StoredEvent(log, sequence, "tool_result", state)])
    return time.perf_counter() - start


def through_langgraph(file: str, data: list[dict[str, Any]]) -> float:
    """Store with LangGraph's SQLite saver: a checkpoint an event, as a graph's step leaves one."""
    from langgraph.checkpoint.base import empty_checkpoint  # noqa: PLC0415
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    saver = SqliteSaver(sqlite3.connect(file, check_same_thread=False))
    saver.setup()
    config = {"configurable": {"thread_id": "tea", "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint()
    start = time.perf_counter()
    for sequence, one in enumerate(data, 1):
        checkpoint = {**checkpoint, "id": f"{sequence:032d}", "channel_values": {"event": one}}
        config = saver.put(config, checkpoint, {"source": "loop", "step": sequence}, {})
    return time.perf_counter() - start


WAYS: dict[str, Callable[[str, list[dict[str, Any]]], float]] = {
    "jsonlines": through_jsonlines,
    "eventsourcing": through_eventsourcing,
    "langgraph": through_langgraph,
}


def main() -> None:
    """Run one way."""
    way, file, data = sys.argv[1:]
    lines = Path(data).read_text(encoding="utf-8").splitlines()
    print(WAYS[way](file, [json.loads(line) for line in lines]))


if __name__ == "__main__":
    main()
