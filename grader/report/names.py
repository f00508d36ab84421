"""File names for submissions: legible, safe on every system, unique also where case and accents do not count."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from itertools import chain, count, groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 100
"""Longest name in UTF-8, without its ending. File systems allow 255, archives and synchronised folders often less."""
_RESERVED = re.compile(r"(con|prn|aux|nul|conin|conout|com[0-9¹²³]|lpt[0-9¹²³])([.].*)?", re.IGNORECASE)
_EXTRA = "-_. "


def file_names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Give each row a file name without ending, in the rows' order.

    A name that is fit stays as it is. One that had to be changed, or that another row's differs from in case or
    accents only, carries eight digits of a hash of what was handed in: it does not depend on the order of the class.
    """
    plain = [_fit(str(row["submission"])) for row in rows]
    claimed = Counter(_folded(name) for name in plain)
    names: list[str] = []
    taken: set[str] = set()
    for row, name in zip(rows, plain, strict=True):
        clear = name == row["submission"] and claimed[_folded(name)] == 1
        wanted = name if clear else f"{name}-{_hash(row)}"
        tries = chain([wanted], (f"{wanted}-{number}" for number in count(2)))
        names.append(next(unique for unique in tries if _folded(unique) not in taken))
        taken.add(_folded(names[-1]))
    return names


def _fit(name: str) -> str:
    """Keep letters, digits, marks, spaces within, hyphen, underscore and dot; runs of all else become one hyphen."""
    composed = unicodedata.normalize("NFC", name)
    runs = groupby(composed, lambda letter: letter in _EXTRA or unicodedata.category(letter)[0] in "LMN")
    kept = "".join("".join(run) if fit else "-" for fit, run in runs)
    fit = kept.encode("utf-8")[:MAX_BYTES].decode("utf-8", "ignore").strip(_EXTRA)
    return f"submission-{fit}".rstrip("-") if not fit or _RESERVED.fullmatch(fit) else fit


def _folded(name: str) -> str:
    """Give what two names share when some file system takes one for the other."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _hash(row: dict[str, Any]) -> str:
    whole = f"{row['submission']}\0{row.get('handed_in', '')}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
