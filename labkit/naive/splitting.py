"""Keeping a log in pieces, by the size of the pieces alone."""

from __future__ import annotations

from pathlib import Path


def split_by_size(log: Path, size: int) -> list[Path]:
    """Mistake: cuts after so many bytes, as `split -b` does, wherever that is in a line. Returns the pieces, in order."""
    raw = log.read_bytes()
    pieces = []
    for number, at in enumerate(range(0, len(raw), size), start=1):
        piece = log.with_name(f"{log.stem}-{number}{log.suffix}")
        piece.write_bytes(raw[at : at + size])
        pieces.append(piece)
    return pieces
