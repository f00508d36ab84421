"""Text that a student chose, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Replace characters that would move a terminal's cursor, colour it, or break a log's line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def encodable(text: str) -> str:
    """Write what UTF-8 has no bytes for (half a surrogate pair, a byte of a file name) as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
