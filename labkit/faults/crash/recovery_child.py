"""Lays crash states down, one after the other, and lets a scenario recover from each; or runs its work on a failing disk.

    python recovery_child.py '{"scenario": FILE, "imports": [FOLDER, ...], "folder": FOLDER, "layer": false}'

An order is one JSON line on stdin, its answer one on stdout. The first answer, unasked, is what the scenario promises.

    {"do": "recover", "tree": {PATH: [KIND, BASE64, MODE], ...}}   -> {"report": {...}}
    {"do": "work", "events": 10, "rules": [RULE, ...]}             -> {"tree": {...}, "acknowledged": [...], "log": [...], "error": null}
    either                                                         -> {"problem": "where: what"} when it could not be tried

Every state gets a fresh folder below `folder`, which lies on a memory file system where there is one. `layer` puts the
file layer underneath before the scenario is loaded. When stdin ends, or the parent is gone, however it went, this process
ends at once, also in the middle of a recovery, and takes `folder` with it.
"""

# ruff: noqa: PTH102, PTH108, PTH101, PTH106, PTH118, PTH211 - thousands of states: the quick way

from __future__ import annotations

import base64
import errno
import importlib.util
import json
import os
import queue
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

_SPARE_BYTES = 1 << 20
"""With less room than this, what looks like a broken promise may be a full disk of ours."""


def load(path: Path, name: str) -> ModuleType:
    """Return the module in the file at `path`, run now."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("no Python file; give it a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Bench:
    """One scenario, and the folder in which its states are laid down."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.folder = plan["folder"]
        self.layer = (
            load(Path(__file__).parents[1] / "file_layer.py", "file_layer") if plan["layer"] else None
        )
        if self.layer:
            self.layer.install()
        sys.path[:0] = plan["imports"]
        os.chdir(self.folder)  # a relative path means the state that is tried, never the caller's own files
        self.scenario = load(Path(plan["scenario"]), "crash_scenario")
        self._number = 0
        self._process = os.getpid()

    def promises(self) -> list[str]:
        """Return what the scenario promises; AttributeError names what it lacks."""
        for name in ("work", "recover"):
            getattr(self.scenario, name)
        if isinstance(self.scenario.PROMISES, str):
            raise TypeError('PROMISES is one text; write a tuple, as in ("readable",)')
        return list(self.scenario.PROMISES)

    def recover(self, order: dict[str, Any]) -> dict[str, Any]:
        """Lay one state down and let the scenario recover from it."""
        place = self._fresh()
        try:
            lay_down(place, order["tree"])
        except OSError as error:
            return {"problem": f"{self.folder}: {os.strerror(error.errno or 0)}"}
        report = self._report(Path(place))
        if os.getpid() != self._process:  # a fork that came back from the recovery has no answer to give
            os._exit(1)
        if report.get("error") == "OSError" and shutil.disk_usage(self.folder).free < _SPARE_BYTES:
            return {"problem": f"{self.folder}: {os.strerror(errno.ENOSPC)}"}
        clear(place)
        return {"report": report}

    def _report(self, place: Path) -> dict[str, Any]:
        try:
            return dict(self.scenario.recover(place))
        except NotImplementedError as error:
            return {"read": None, "error": "NotImplementedError", "after": None, "missing": str(error)}
        except Exception as error:  # noqa: BLE001 - which one it is, is the answer
            return {"read": None, "error": type(error).__name__, "after": None}

    def work(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run the work on a disk that fails as the rules say, and give what it leaves."""
        assert self.layer is not None
        place, acknowledged = self._fresh(), list[Any]()
        if hasattr(self.scenario, "prepare"):
            self.scenario.prepare(Path(place))
        gave_up = None
        self.layer.arm(order["rules"], place)
        try:
            self.scenario.work(
                Path(place), order["events"], lambda value: acknowledged.append(_as_it_is(value))
            )
        except Exception as error:  # noqa: BLE001 - the disk failed; whatever the code made of it is its answer
            gave_up = type(error).__name__
        self.layer.disarm()
        tree = taken_up(place)
        clear(place)
        return {"tree": tree, "acknowledged": acknowledged, "log": self.layer.log(), "error": gave_up}

    def _fresh(self) -> str:
        self._number += 1
        place = os.path.join(self.folder, str(self._number))
        os.mkdir(place, 0o700)
        os.chdir(place)
        return place


def _as_it_is(value: Any) -> Any:
    """Return an acknowledged value as it is now: the caller may go on to change it."""
    return json.loads(json.dumps(value, allow_nan=False))


def lay_down(place: str, tree: dict[str, tuple[str, str, int]]) -> None:
    """Make the files and folders of a state. Folders get their modes last: one may forbid writing. Raises: OSError."""
    folders = []
    for path in sorted(tree):
        kind, content, mode = tree[path]
        target = os.path.join(place, path)
        if kind == "folder":
            os.mkdir(target, 0o700)
            folders.append((target, mode))
        elif kind == "link":
            os.symlink(base64.b64decode(content).decode("utf-8", "surrogateescape"), target)
        else:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            data = base64.b64decode(content)
            taken = os.write(descriptor, data)
            os.close(descriptor)
            if taken < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if mode != 0o600:
                os.chmod(target, mode)
    for target, mode in reversed(folders):
        if mode != 0o700:
            os.chmod(target, mode)


def taken_up(place: str) -> dict[str, tuple[str, str, int]]:
    """Return what lies below `place`, as `lay_down` takes it."""
    tree = {}
    for path in sorted(Path(place).rglob("*")):
        name, mode = path.relative_to(place).as_posix(), path.lstat().st_mode & 0o7777
        if path.is_symlink():
            tree[name] = ("link", base64.b64encode(os.fsencode(path.readlink())).decode(), mode)
        elif path.is_dir():
            tree[name] = ("folder", "", mode)
        else:
            tree[name] = ("file", base64.b64encode(path.read_bytes()).decode(), mode)
    return tree


def clear(place: str) -> None:
    """Remove a state's folder, whatever the recovery made of it."""
    for entry in list(os.scandir(place)):
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, 0o700)
            clear(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(place)


def orders(folder: str) -> queue.SimpleQueue[dict[str, Any]]:
    """Return the queue into which a thread reads stdin; at its end that thread ends the whole process."""
    found: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    lines = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what the code under test reads is no order

    def read() -> None:
        for line in lines:
            found.put(json.loads(line))
        shutil.rmtree(folder, ignore_errors=True)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # with everything that the code under test has started
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return found


def main() -> None:
    """Carry out orders until stdin ends."""
    plan = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the code under test prints is no answer
    waiting = orders(plan["folder"])
    sys.dont_write_bytecode = True

    def answer(value: dict[str, Any]) -> None:
        try:
            line = json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            line = json.dumps({"wrong": f"gave what is no JSON ({type(error).__name__}: {error})"})
        answers.write(line + "\n")

    try:
        bench = Bench(plan)
        answer({"promises": bench.promises()})
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any file may be given as a scenario
        answer({"problem": f"{type(error).__name__}: {error}"})
        return
    while True:
        order = waiting.get()
        answer(bench.recover(order) if order["do"] == "recover" else bench.work(order))


if __name__ == "__main__":
    main()
