"""Between two steps: what a crash leaves, of one file and of several."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from labkit import actions
from labkit.experiments.bench import in_short
from labkit.experiments.lesson_04.garden import TASK, Garden
from labkit.experiments.lesson_04.scenes import Scenes, Script, compare, scenes
from labkit.naive import spine

RIGHT_AFTER_THE_MOVE = {"op": "rename", "match": f"tasks/processing/{TASK}.json", "do": "full,kill"}
_SAVING = Path(__file__).with_name("saving.py")


async def crash_after_the_move() -> Scenes:
    """Kill two claims as soon as the task has moved: one that moves first, and one that records first (C04-15)."""

    def script(*program: str) -> Script:
        def play(garden: Garden) -> None:
            garden.kill_at(RIGHT_AFTER_THE_MOVE, *program)
            garden.note("tasks/processing", garden.queue("processing"))
            garden.note(".loop", _records(garden))
            garden.run()

        return play

    moved = await scenes("moved-first", {"move_first": script(spine.__file__)}, "ready")
    return Scenes((*moved.sides, *(await compare("recorded-first", script(), "ready")).sides))


def _records(garden: Garden) -> list[str]:
    paths = (path for path in garden.loop.rglob("*.json*") if not path.name.startswith("."))
    return sorted(path.relative_to(garden.loop).as_posix() for path in paths)


async def kill_savers() -> Scenes:
    """Kill a saver that writes in place, and one that replaces, at each of their operations (C04-16).

    Each finding is what the file holds afterwards: old, new, empty or half. A third puts its temporary file on another disk.
    """

    def script(saver: str) -> Script:
        def play(garden: Garden) -> None:
            step = garden.quietly("python", str(_SAVING), saver)
            for number, strike in enumerate(json.loads(step.out), start=1):
                garden.note(f"{number} {strike['op']}{' ½' if strike['half'] else ''}", strike["holds"])

        return play

    naive = {"save_in_place": script("save_in_place"), "save_from_elsewhere": _from_another_disk}
    wrong = await scenes("saved-in-place", naive, "ready")
    return Scenes((*wrong.sides, *(await compare("replaced", script("atomic_write_json"), "ready")).sides))


def _from_another_disk(garden: Garden) -> None:
    """Put the temporary file on another disk than the one it is to end up on; where there is none, the layer says so."""
    path = garden.root / "state.json"
    path.write_text("{}", "utf-8")
    elsewhere = _another_disk(garden.root)
    rules = [] if elsewhere else [{"op": "replace", "match": path.name, "do": "EXDEV"}]
    with actions.disturbed(garden.root, *rules):
        try:
            spine.save_from_elsewhere(path, {"phase": "claimed"}, elsewhere or garden.beside)
        except OSError as error:
            garden.note("os.replace", in_short(error))
    garden.note("state.json", path.read_text("utf-8"))


def _another_disk(here: Path) -> Path | None:
    candidates = (Path("/dev/shm"), Path(tempfile.gettempdir()), Path.home())  # noqa: S108 — to be told apart from here
    disk = here.stat().st_dev
    usable = (folder for folder in candidates if folder.is_dir() and os.access(folder, os.W_OK))
    return next((folder for folder in usable if folder.stat().st_dev != disk), None)
