"""Records what code does to the disk: in a child, with the file layer underneath, and nothing inside the code knows of it.

    trace = record_scenario(Path("lesson.py"), empty_folder, events=10)
    trace = record(Path("program.py"), folder)          each line that it prints is an acknowledgement
    trace = record_command(("log", "repair", "a.jsonl"), folder)

A trace with an `unseen` is no ground for an all-clear: the recorder says what it could not follow (docs/formats-crash.md).
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labkit.faults.crash.states import build
from labkit.faults.crash.trace import Entry, Trace, Unseen
from labkit.faults.crash.trace_file import parse

CHILD = Path(__file__).with_name("recorder_child.py")
GUARD = Path(__file__).parents[2] / "child_guard.py"
SECONDS = 60.0
"""How long code may run, unless the caller says otherwise."""


class RecordError(Exception):
    """Nothing could be recorded; says where, what, and what to do next.

    `ended_with` is the name of the exception that ended the code, such as `NotImplementedError`; "" when none did.
    """

    def __init__(self, message: str, ended_with: str = "") -> None:
        super().__init__(message)
        self.ended_with = ended_with


def record(program: Path, root: Path, *, arguments: Sequence[str] = (), seconds: float = SECONDS) -> Trace:
    """Record `python PROGRAM ARGUMENT...`, run in the folder `root`; each line on its standard output is acknowledged.

    Raises: RecordError when there is no such program or folder, or when the program ended badly.
    """
    file = _file(program, "program")
    order = {"program": str(file), "arguments": list(arguments)}
    return _record(order, _folder(root), seconds, str(file))


def record_scenario(
    scenario: Path, root: Path, *, events: int = 10, imports: Sequence[Path] = (), seconds: float = SECONDS
) -> Trace:
    """Record the `work` of a scenario on the empty folder `root`, after its `prepare` (docs/crash-lab.md).

    `imports` are folders to import from before any other.

    Raises: RecordError, as `record`; also when `root` is not empty.
    """
    file, folder = _file(scenario, "scenario"), _folder(root)
    if any(folder.iterdir()):
        raise RecordError(f"{root}: not empty; a scenario prepares its folder itself: name an empty one")
    order = {"scenario": str(file), "events": events, "imports": [str(path.resolve()) for path in imports]}
    return _record(order, folder, seconds, str(file))


def record_command(words: Sequence[str], root: Path, *, seconds: float = SECONDS) -> Trace:
    """Record `statelab WORD...`, run in the folder `root`; each line that it prints is acknowledged.

    Raises: RecordError, as `record`.
    """
    order = {"call": "labkit.cli:main", "arguments": list(words)}
    return _record(order, _folder(root), seconds, shlex.join(["statelab", *words]))


def _file(path: Path, what: str) -> Path:
    if not path.is_file():
        raise RecordError(f"{path}: no such file; name a {what} that is there")
    return path.resolve()


def _folder(root: Path) -> Path:
    if os.name != "posix":
        raise RecordError(
            "recorder: runs on Linux and macOS only; the traces it makes can be explored anywhere"
        )
    if not root.is_dir():
        raise RecordError(f"{root}: {'no folder' if root.exists() else 'not there'}; make the folder first")
    return root.resolve()


def _record(order: dict[str, Any], root: Path, seconds: float, shown: str) -> Trace:
    with tempfile.TemporaryDirectory(prefix="statelab-record-") as name:
        spool, failure = Path(name) / "trace.jsonl", Path(name) / "failure.json"
        order |= {"root": str(root), "spool": str(spool), "failure": str(failure)}
        code, last_line = _run(order, seconds, Path(name))
        if failure.exists() or code:
            raise _ended_badly(failure, code or 0, shown, last_line)
        if not spool.exists():
            raise RecordError(f"{shown}: did not begin within {seconds} s; give it more time")
        with spool.open("rb") as lines:
            trace = parse(lines, shown, whole=False)
    try:
        differs = differences(trace, root)
    except ValueError:  # something that is not seen moved the files between two steps
        why = ", ".join(sorted({unseen.what for unseen in trace.unseen})) or "c-writer"
        raise RecordError(
            f"{shown}: not all of its changes are seen ({why}); no state can be computed"
        ) from None
    if code is None:
        return _with(trace, [Unseen("unfinished", shown)])
    return _with(trace, [Unseen("c-writer", path) for path in differs])


def _with(trace: Trace, unseen: list[Unseen]) -> Trace:
    return replace(trace, unseen=tuple(dict.fromkeys([*trace.unseen, *unseen])))


def _run(order: dict[str, Any], seconds: float, scratch: Path) -> tuple[int | None, str]:
    """Run the child below a guard; return its exit code, None if it had to be killed, and its last line of errors."""
    argv = [sys.executable, "-I", str(GUARD), "recorder", sys.executable, "-P", str(CHILD), json.dumps(order)]
    with (scratch / "out").open("wb") as out, (scratch / "err").open("wb") as err:
        guard = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True)
        try:
            code: int | None = guard.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            assert guard.stdin is not None
            guard.stdin.close()  # whatever still runs below the guard ends now
            guard.wait()
    said = (scratch / "err").read_text("utf-8", errors="replace").strip().splitlines()
    return code, said[-1] if said[1:] else ""


def _ended_badly(failure: Path, code: int, shown: str, last_line: str) -> RecordError:
    if failure.exists():
        told = json.loads(failure.read_bytes())
        return RecordError(f"{told['where']}: {told['what']}", told["error"])
    what = f"ended by signal {-code}" if code < 0 else f"ended with the exit code {code}"
    why = f" ({last_line})" if last_line and code > 0 else ""
    return RecordError(f"{shown}: {what}{why}; run it without the recorder to see why")


_ODD = Entry("file", mode=-1)
"""A pipe, a device, a socket: no step makes one."""


def differences(trace: Trace, root: Path) -> list[str]:
    """List the paths at which the steps say something else than the disk does."""
    said = build(trace, len(trace.steps), ()).tree
    found = dict(_entries(root, root))
    return sorted(path for path in said.keys() | found.keys() if said.get(path) != found.get(path))


def _entries(folder: Path, root: Path) -> Iterator[tuple[str, Entry]]:
    """Read everything below a folder."""
    for path in folder.iterdir():
        status, name = path.lstat(), path.relative_to(root).as_posix()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            yield name, Entry("folder", mode=mode)
            yield from _entries(path, root)
        elif stat.S_ISLNK(status.st_mode):
            yield name, Entry("link", os.fsencode(path.readlink()), mode)
        else:
            yield name, Entry("file", path.read_bytes(), mode) if stat.S_ISREG(status.st_mode) else _ODD
