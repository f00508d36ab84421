"""What an experiment reads back: the records of a session, and a hash that tells whether any byte of it has changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def lines(session: Path) -> list[bytes]:
    """Return the lines of a session's log, newlines included, in file order; none where nothing was appended."""
    logs = sorted(session.glob("0*.jsonl"))
    return [line for log in logs for line in log.read_bytes().splitlines(keepends=True)]


def records(session: Path) -> list[dict[str, Any]]:
    """Return what stands on these lines, as plain objects. Raises: ValueError for a line that is no JSON."""
    return [json.loads(line) for line in lines(session)]


def digest(folder: Path) -> str:
    """Return the SHA-256 of all names and all bytes below a folder."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        whole.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()
