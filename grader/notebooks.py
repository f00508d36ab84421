"""Handed-in notebooks, executed with nbclient in the same sandbox (G14). What they show is reported, never marked.

    code/kit/           a copy of the kit whose `starter/` is the submission
    code/notebooks/     the notebooks, numbered; their saved outputs are cleared before anything runs
    code/libraries      the libraries of the kit's own environment, for reading

The kernel's folder for scratch work is the box's work folder. Program: `grader/child/notebook_host.py`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.channel import Allowance, Channel, ChildLost
from grader.child.notebook_host import KIT, LIBRARIES, MAX_ERRORS, MAX_TEXT, NOTEBOOKS
from grader.plain_text import printable
from grader.rungs import HOST
from grader.sandbox import open_box, start
from labkit.workspace import kit_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.intake import Handin
    from grader.sandbox import Box
    from grader.settings import Limits, Settings

LESSON = "notebooks"
"""Stands where a lesson's number does: in the record, and in `grading.toml` as `[limits.notebooks]`."""
PROGRAM = HOST.with_name("notebook_host.py")
STATUSES = ("ok", "error", "timeout", "crash", "unreadable")
_SHARED = ("labkit", "grader", "solution", "starter", "assets")  # what a notebook of the kit imports or reads
_ROOMIER: dict[str, Any] = {
    "submission_seconds": 600,  # all notebooks of one submission
    "check_seconds": 120,  # one cell
    "start_seconds": 60,
    "cpu_seconds": 120,
    "memory_mib": 2048,
    "address_space_mib": 8192,
    "open_files": 1024,
    "processes": 512,
}


class NotebookTask(NamedTuple):
    """The notebooks of one submission by name, the lessons they import, and what they are run within."""

    notebooks: Mapping[str, bytes]
    handins: Sequence[Handin]
    settings: Settings
    rung: str
    suite: str

    @property
    def lesson(self) -> str:
        """What its grading is recorded under."""
        return LESSON

    @property
    def seconds(self) -> float:
        """The wall clock that it may take."""
        return limits_of(self.settings).submission_seconds


def limits_of(settings: Settings) -> Limits:
    """Give the limits of one submission's notebooks: those of the kit, but for what the settings say."""
    return replace(settings.limits, **{**_ROOMIER, **settings.by_lesson.get(LESSON, {})})


def execute(task: NotebookTask) -> dict[str, Any]:
    """Execute the notebooks; give what each showed, in the shape of an outcome without tests.

    A notebook that stops its kernel, or does not end, costs the others nothing but time. Raises: OSError.
    """
    limits = limits_of(task.settings)
    with open_box(limits, (PROGRAM, libraries())) as box:
        _lay_down(task, box)
        shown = asyncio.run(_execute_all(box, list(task.notebooks)))
    verdict = "ok" if all(notebook["status"] == "ok" for notebook in shown) else "fail"
    return {"verdict": verdict, "tests": [], "notebooks": shown}


def not_executed(task: NotebookTask, fault: str) -> dict[str, Any]:
    """Stand in for what would have been shown where the grader itself failed."""
    errors = [{"cell": 0, "name": "grader-error", "text": fault}]
    shown = [
        {"name": name, "status": "grader-error", "cells": 0, "done": 0, "errors": errors}
        for name in task.notebooks
    ]
    return {"verdict": "grader-error", "tests": [], "notebooks": shown}


def libraries() -> Path:
    """Give the folder that nbclient and what it needs are installed in."""
    spec = importlib.util.find_spec("nbclient")
    if spec is None or spec.origin is None:
        raise OSError("nbclient is not installed; run make setup")
    return Path(spec.origin).resolve().parents[1]


def _lay_down(task: NotebookTask, box: Box) -> None:
    code = box.code
    (code / LIBRARIES).symlink_to(libraries())
    (code / NOTEBOOKS).mkdir()
    for number, raw in enumerate(task.notebooks.values()):
        (code / NOTEBOOKS / f"{number}.ipynb").write_bytes(raw)
    for name in _SHARED:
        shutil.copytree(kit_root() / name, code / KIT / name, ignore=shutil.ignore_patterns("__pycache__"))
    (code / KIT / "workspace").symlink_to(box.place.work / "workspace")
    for handin in task.handins:
        for name, raw in handin.files.items():
            target = code / KIT / "starter" / handin.package / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
    for root, folders, names in os.walk(code):  # for a child that is another user, whatever the umask
        for name in (*folders, *names):
            path = Path(root) / name
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)


async def _execute_all(box: Box, names: Sequence[str]) -> list[dict[str, Any]]:
    """Ask for one notebook after the other; a child that is lost is replaced for the next."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + box.limits.submission_seconds
    channel: Channel | None = None
    shown = []
    try:
        for number, name in enumerate(names):
            try:
                if channel is None:
                    channel = await _begin(box)
                left = max(0.1, ends_at - loop.time())
                seconds = min(box.limits.check_seconds, left)
                asked = {"op": "run", "file": f"{number}.ipynb", "cell_seconds": seconds}
                told = _checked(channel, await channel.ask(channel.new_id(), left, **asked))
            except ChildLost as lost:
                channel = None
                told = {"status": "timeout" if lost.reason == "timeout" else "crash", "cells": 0, "done": 0}
                told["errors"] = [{"cell": 0, "name": lost.reason, "text": lost.seen.en}]
            shown.append({"name": name, **told})
    finally:
        if channel is not None:
            channel.close()
    return shown


async def _begin(box: Box) -> Channel:
    """Start a child. Raises: OSError; no submission's code has a part in that yet."""
    channel = Channel(start(box, "", faults=False, host=PROGRAM), box.limits.call_seconds, Allowance())
    try:
        async with asyncio.timeout(box.limits.start_seconds):
            await channel.begin()
    except (TimeoutError, ChildLost):
        channel.close()
        raise OSError("nbclient does not start in the sandbox") from None
    except BaseException:
        channel.close()
        raise
    return channel


def _checked(channel: Channel, reply: dict[str, Any]) -> dict[str, Any]:
    """Take what a child told of a notebook, in the shape that its program has. Raises: ChildLost for any other."""
    told = reply.get("ok")
    if not isinstance(told, dict) or told.keys() != {"status", "cells", "done", "errors"}:
        raise channel.forged()
    errors = told["errors"]
    sound = told["status"] in STATUSES and type(told["cells"]) is int and type(told["done"]) is int
    if not sound or not isinstance(errors, list) or len(errors) > MAX_ERRORS:
        raise channel.forged()
    return {**told, "errors": [_checked_error(channel, error) for error in errors]}


def _checked_error(channel: Channel, error: Any) -> dict[str, Any]:
    if (
        not isinstance(error, dict)
        or error.keys() != {"cell", "name", "text"}
        or type(error["cell"]) is not int
    ):
        raise channel.forged()
    texts = {name: printable(str(error[name]))[:MAX_TEXT] for name in ("name", "text")}
    return {"cell": error["cell"], **texts}
