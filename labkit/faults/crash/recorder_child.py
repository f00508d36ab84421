"""Runs code with the file layer underneath, and writes down what it does to the disk while it does it.

    python -P recorder_child.py '{"root": FOLDER, "spool": FILE, "failure": FILE, ...}'

One JSON object orders what is run: `"scenario": FILE, "events": N` (its `prepare`, then its `work`), `"program": FILE,
"arguments": [...]` (as `python FILE` would), or `"call": "module:function", "arguments": [...]` (a command of the kit).
`spool` gets the lines of the trace, each at once; `failure` says in JSON how the code ended, if that was badly.
Both lie outside `root`. Standard library only, and the layer comes before everything else.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True
sys.path.append(__file__.rsplit("/labkit/", 1)[0])

from labkit.faults import file_layer  # noqa: E402

file_layer.install()

import importlib  # noqa: E402
import importlib.util  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import runpy  # noqa: E402
import tempfile  # noqa: E402
import traceback  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from labkit.faults.crash.observing import Observer  # noqa: E402
from labkit.faults.crash.spool import MOST_BYTES, Spool, real  # noqa: E402
from labkit.faults.crash.trace_file import HEADER  # noqa: E402
from labkit.faults.crash.watching import Bypass, OneOrder  # noqa: E402

ALONE = "run it without the recorder to see why"


class NoWorkError(Exception):
    """A scenario has nothing to record."""


class Lines(io.RawIOBase):
    """A standard output of which every line is an acknowledgement, as soon as it is whole and has left the buffer."""

    def __init__(self, spool: Spool) -> None:
        self._spool, self._rest = spool, b""

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Acknowledge the lines that are whole now."""
        raw = bytes(data)
        *whole, self._rest = (self._rest + raw).split(b"\n")
        for line in whole:
            acknowledge(self._spool, line.decode(errors="replace").rstrip("\r"))
        return len(raw)


def acknowledge(spool: Spool, value: Any) -> None:
    """Note that `value`, JSON, was said to be done. Raises: TypeError, ValueError for what is no JSON."""
    spool.step("acknowledge", value=json.loads(json.dumps(value, allow_nan=False)))


def main() -> None:
    """Carry out the order that the first argument is."""
    order = json.loads(sys.argv[1])
    tempfile.gettempdir()  # which tries folders out by writing: not the doing of the code under test
    spool = Spool(order["spool"], full=lambda: _give_up(order))
    spool.line(HEADER)
    os.chdir(order["root"])
    try:
        if "scenario" in order:
            work, said = _scenario(order, spool), None
        else:
            said = Lines(spool)
            work = _program(order, said)
        _watch(order["root"], spool, said)
        work()
    except SystemExit as end:
        if "scenario" in order:  # what it did until then is no whole run
            _leave(order, "ended by sys.exit before work had returned; let it return", end)
        elif end.code not in (None, 0):
            _leave(order, f"ended with the exit code {end.code if isinstance(end.code, int) else 1}; {ALONE}")
    except NoWorkError:
        _leave(order, "has no function work(folder, events, acknowledge); write one (docs/crash-lab.md)")
    except BaseException as error:  # noqa: BLE001 - whatever ended the code, it is told in one line
        _leave(order, f"ended with {type(error).__name__}; {ALONE}", error)


def _scenario(order: dict[str, Any], spool: Spool) -> Callable[[], object]:
    """Load a scenario and let it prepare the folder; return what is to be recorded."""
    file = Path(order["scenario"])
    sys.path[:0] = [*order["imports"], str(file.parent)]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = Path(order["root"])
    if not callable(getattr(module, "work", None)):
        raise NoWorkError
    if hasattr(module, "prepare"):
        module.prepare(folder)
    return lambda: module.work(folder, order["events"], lambda value: acknowledge(spool, value))


def _program(order: dict[str, Any], said: Lines) -> Callable[[], object]:
    """Return what is to be recorded: a program as `python FILE` would run it, or a function of the kit."""
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(said), encoding="utf-8", line_buffering=True)
    sys.__stdout__ = sys.stdout  # type: ignore[misc]
    if "call" in order:
        module, _, function = order["call"].partition(":")
        sys.argv = ["statelab", *order["arguments"]]
        return lambda: getattr(importlib.import_module(module), function)()  # noqa: PLW0108 - imported when recorded
    sys.argv = [order["program"], *order["arguments"]]
    sys.path.insert(0, str(Path(order["program"]).parent))
    return lambda: runpy.run_path(order["program"], run_name="__main__")


def _watch(root: str, spool: Spool, said: Lines | None) -> None:
    """Begin to record: what is there first, then everything that changes."""
    observer = Observer(root, spool, said=said.write if said else None)
    observer.look_around()
    observer.turn = OneOrder(spool).turn
    Bypass(observer).arm()
    file_layer.arm([], root, observe=observer)


def _give_up(order: dict[str, Any]) -> None:
    _leave(order, f"more than {MOST_BYTES >> 20} MiB to record; let it do less, or name a smaller folder")
    os._exit(1)


def _leave(order: dict[str, Any], what: str, error: BaseException | None = None) -> None:
    """Say how the code ended, and on which line of its own file. No message: it may quote what the code works on."""
    own = order.get("scenario") or order.get("program") or "statelab"
    frames = traceback.extract_tb(error.__traceback__) if error else []
    lines = [frame.lineno for frame in frames if frame.filename == own]
    lines += [error.lineno] if isinstance(error, SyntaxError) and error.filename == own else []
    told = {"where": f"{own}:{lines[-1]}" if lines else own, "what": what}
    told["error"] = type(error).__name__ if error else ""
    descriptor = real("open")(order["failure"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    real("write")(descriptor, json.dumps(told).encode())
    real("close")(descriptor)


if __name__ == "__main__":
    main()
