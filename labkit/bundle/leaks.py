"""What of a solution may not leave the instructor's machine, and the search for it in anything that is handed out.

A line tells an answer when it stands in a solution region, is long enough to be nobody's by chance, and stands nowhere
in what the lessons show anyway. The search opens what holds text inside: notebooks, archives, packed Git objects.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from labkit.generate import regions

SHORTEST = 24
"""Characters from which on a line of code is told from everyday Python."""
EVERYDAY = frozenset({"if isinstance(value, (list, tuple)):"})
"""Lines that are longer, and yet say nothing about any answer."""
SHOWN = ("solution/durable_log", "labkit/naive", "assets/issue-garden-lab")
"""Code that a learner is meant to read: the engineering version, the mistakes by name, lesson 3's lab."""
BYTE_CODE = (".pyc", ".pyo")
_ESCAPES = re.compile(r"\\+([\"'\\])")


def answers(root: Path) -> dict[str, str]:
    """Return every line that tells an answer, with its place (``path:line``, 1-based) in ``solution/``."""
    inside: dict[str, str] = {}
    given = [*EVERYDAY]
    for path in sorted(root.glob("solution/lesson_*/**/*.py")):
        name = path.relative_to(root).as_posix()
        for number, line, is_answer in regions(path.read_text("utf-8"), name):
            if is_answer:
                inside.setdefault(line.strip(), f"{name}:{number}")
            else:
                given.append(line)
    for folder in SHOWN:
        given += [path.read_text("utf-8") for path in (root / folder).rglob("*.py")]
    shown = "\n".join(given)
    return {line: place for line, place in inside.items() if len(line) >= SHORTEST and line not in shown}


def leaks(files: Mapping[str, bytes], forbidden: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Give (file, what it gives away) for each file that tells an answer, or is of a kind that could.

    ``forbidden`` maps text to what it is: the answers, and whatever else must not be handed out.
    """
    for name, raw in files.items():
        if name.endswith(BYTE_CODE) or ".git" in Path(name).parts:
            yield name, "byte code or Git's own files, which nobody can read over"
        texts = list(_texts(raw))
        for line, place in forbidden.items():
            if any(line in text for text in texts):
                yield name, place


def _texts(raw: bytes) -> Iterator[str]:
    """Give what a file says: as it is, without the escapes of a quotation, and what is packed in it."""
    text = raw.decode("utf-8", "replace")
    yield text
    if "\\" in text:
        yield _ESCAPES.sub(r"\1", text)
    if raw.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for member in archive.namelist():
                yield from _texts(archive.read(member))
    elif raw[:1] == b"\x78" or raw.startswith(b"\x1f\x8b"):
        try:
            yield from _texts(zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(raw))
        except zlib.error:
            return
    elif text.startswith("{"):
        try:
            yield "\n".join(_strings(json.loads(text)))
        except (ValueError, RecursionError):
            return


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
