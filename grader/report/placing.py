"""Puts a set of made files in a folder: all of them or none, none of an earlier set left, nothing else touched.

The whole set is written aside first, so a full disk changes nothing. Then each top entry changes places with its
predecessor, by renaming. Beside what was made lies a list of it (`.made.json`, name -> SHA-256); a file that is not on
it, or was edited since, is somebody's: it stays, and under another name where the new set needs its own.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MADE = ".made.json"
_ASIDE = ".reports-"
_KEPT = "kept-"


def place(out: Path, files: Iterable[tuple[str, str]], folders: tuple[str, ...]) -> None:
    """Put `files` (path below `out`, at most one folder deep, and text) there, and empty these folders of what was made.

    Raises: OSError; then the earlier set is still in place, or is put back.
    """
    out.mkdir(parents=True, exist_ok=True)
    _clear_up(out)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=out))
    try:
        (aside / "old").mkdir()
        _write(aside / "new", files, folders)
        _swap(out, aside / "new", aside / "old")
    finally:
        _clear_up(out)


def _write(new: Path, files: Iterable[tuple[str, str]], folders: tuple[str, ...]) -> None:
    made: dict[str, dict[str, str]] = {folder: {} for folder in ("", *folders)}
    for folder in made:
        (new / folder).mkdir(parents=True)
    for name, text in files:
        raw = text.encode("utf-8")
        (new / name).write_bytes(raw)
        folder, _, file = name.rpartition("/")
        made[folder][file] = hashlib.sha256(raw).hexdigest()
    for folder, hashes in made.items():
        (new / folder / MADE).write_text(json.dumps(hashes, indent=0), encoding="ascii")


def _swap(out: Path, new: Path, old: Path) -> None:
    """Let each entry change places with what is there; at an error everything goes back."""
    moved: list[tuple[Path, Path]] = []
    try:
        for entry in sorted(
            new.iterdir(), key=lambda path: path.is_file()
        ):  # folders first, what leads to them last
            target = out / entry.name
            if _is_there(target):
                target.rename(old / entry.name)
                moved.append((old / entry.name, target))
            entry.rename(target)
            moved.append((target, entry))
    except OSError:
        for now, before in reversed(moved):
            now.rename(before)
        raise


def _clear_up(out: Path) -> None:
    """Remove what was set aside, here or by a run that was killed; what is not of our making goes back first."""
    for aside in sorted(out.glob(f"{_ASIDE}*")):
        if (aside / "old").is_dir():
            _bring_back(aside / "old", out)
        shutil.rmtree(aside)


def _bring_back(old: Path, new: Path) -> None:
    """Move what is not of our making from an old folder into the new one; a run that was killed lost none of it."""
    made = _made(old)
    for entry in sorted(old.iterdir()):
        target = new / entry.name
        if _is_folder(entry) and _is_folder(target):
            _bring_back(entry, target)
        elif entry.name != MADE and not _is_ours(entry, made):
            entry.rename(_free(target))


def _made(folder: Path) -> dict[str, str]:
    try:
        made = json.loads((folder / MADE).read_bytes())
    except (OSError, ValueError):
        return {}
    return made if isinstance(made, dict) else {}


def _is_ours(path: Path, made: dict[str, str]) -> bool:
    if path.is_symlink() or not path.is_file() or path.name not in made:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == made[path.name]


def _free(path: Path) -> Path:
    """Give this place, or the first beside it where nothing stands."""
    number, free = 1, path
    while _is_there(free):
        free, number = path.with_name(f"{_KEPT}{number}-{path.name}"), number + 1
    return free


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
