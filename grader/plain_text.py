"""Text that a student chose, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Replace characters that would move a terminal's cursor, colour it, or break a log's line."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
