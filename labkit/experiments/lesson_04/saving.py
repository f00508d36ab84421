"""Kills a saver of JSON files at each of its file operations, and says what the file holds then. Standard library only.

    python saving.py SAVER        in a lab folder; SAVER is a function of its state_store, or of labkit/naive/spine.py

Prints a JSON list, one object a strike: ``op``, ``half`` (in the middle of a write) and ``holds``: old, new, empty, half.
One process dies for each strike. POSIX only, since it forks.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_KIT = Path(__file__).resolve().parents[2]
sys.path[:0] = [os.getcwd(), str(_KIT / "faults"), str(_KIT / "naive")]  # noqa: PTH109

OLD, NEW = {"phase": "claiming", "note": "old " * 30}, {"phase": "claimed", "note": "new " * 40}
_MARK = {"op": "change", "do": "slow", "seconds": 0, "times": None}

layer: Any = importlib.import_module("file_layer")


def in_a_child(save: Callable[..., None], path: Path, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Save once in a process of its own, under these rules; return the operations, unless it was killed."""
    seen, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            layer.arm(rules, path.parent)
            save(path, NEW)
            os.write(told, json.dumps(layer.log()).encode())
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(seen, "rb") as pipe:
        log = pipe.read()
    os.waitpid(child, 0)
    return [entry for entry in json.loads(log or "[]") if entry["did"] != "full"]


def strikes(save: Callable[..., None], path: Path) -> Iterator[dict[str, Any]]:
    """Strike before every operation that changes the disk, and in the middle of every write."""
    for number, entry in enumerate(in_a_child(save, path, [_MARK]), start=1):
        for half in (False, True) if entry["op"] == "write" else (False,):
            path.write_text(json.dumps(OLD, indent=2), "utf-8")
            in_a_child(
                save, path, [{"op": "change", "nth": number, "do": "half,kill" if half else "none,kill"}]
            )
            yield {"op": entry["op"], "half": half, "holds": holds(path)}


def holds(path: Path) -> str:
    """Say what a reader finds."""
    raw = path.read_bytes()
    try:
        return "old" if json.loads(raw) == OLD else "new"
    except ValueError:
        return "half" if raw else "empty"


def main() -> None:
    """Find the saver, strike it everywhere, tell."""
    layer.install()
    rooms = (importlib.import_module(name) for name in ("issue_garden.state_store", "spine"))
    save = next(getattr(room, sys.argv[1]) for room in rooms if hasattr(room, sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.json")
        path.write_text(json.dumps(OLD, indent=2), "utf-8")
        save(path, NEW)  # a saver that is not written yet says so here
        print(json.dumps(list(strikes(save, path))))


if __name__ == "__main__":
    main()
