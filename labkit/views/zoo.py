"""The corruption zoo: small logs, sound, torn or damaged, each with the right verdict beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One log of the zoo: what happened to it, in both languages, and its kind: sound, torn or corrupt."""

    path: Path
    kind: str
    story: dict[str, str]


def zoo(folder: Path) -> tuple[Exhibit, ...]:
    """List the logs that ``verdicts.json`` names, in its order. Raises: OSError, ValueError for a broken list."""
    verdicts = json.loads((folder / "verdicts.json").read_bytes())
    return tuple(
        Exhibit(folder / name, one["kind"], {"zh": one["zh"], "en": one["en"]})
        for name, one in verdicts.items()
    )
