"""The program that executes handed-in notebooks: nbclient and its kernel, both in the box, one notebook a question.

Started like `host.py`, and on the same line. Beside it the box shows the kit's libraries, and a copy of the kit in which
`starter/` is the submission. Saved outputs are cleared before anything runs: what is told here was seen now. Kernel and
program share a box, so it is the submission's own word, to be read by a person; no mark is made of it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARIES, KIT, NOTEBOOKS = "libraries", "kit", "notebooks"  # below the folder of the code
MAX_ERRORS, MAX_TEXT = 50, 400


def _sibling(name: str) -> ModuleType:
    """Load another program of this folder: nothing of the kit can be imported by its name here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Say that it is ready, then execute what is asked for until the line closes."""
    settings = json.loads(sys.argv.pop())
    channel = socket.socket(fileno=settings["channel"])
    channel.set_inheritable(False)
    _sibling("host").limit_self(settings["limits"])
    code = Path(settings["code"])
    libraries = (code / LIBRARIES).resolve()
    prepare_environment(code, libraries)
    sys.path.append(str(libraries))
    import nbclient  # noqa: F401, PLC0415 - there is a way to it only now

    with channel.makefile("rwb") as line:
        say(line, {"id": 0, "ok": []})
        for asked in line:
            for operation in json.loads(asked):
                told = execute(code / NOTEBOOKS / operation["file"], operation["cell_seconds"])
                say(line, {"id": operation["id"], "ok": told})


def prepare_environment(code: Path, libraries: Path) -> None:
    """Give the kernel its place: the copy of the kit, the libraries, folders of its own in the work folder."""
    work = Path.cwd()
    for name in ("runtime", "state", "workspace", "config"):
        (work / name).mkdir(exist_ok=True)
    os.environ |= {
        "PYTHONPATH": os.pathsep.join([str(code / KIT), str(libraries)]),
        "JUPYTER_RUNTIME_DIR": str(work / "runtime"),
        "JUPYTER_CONFIG_DIR": str(work / "config"),
        "IPYTHONDIR": str(work / "config"),
        "LAB_STATE": str(work / "state"),
        "LAB_TARGET": "starter",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def say(line: Any, reply: dict[str, Any]) -> None:
    """Answer."""
    line.write(json.dumps(reply, allow_nan=False, separators=(",", ":")).encode() + b"\n")
    line.flush()


def execute(path: Path, seconds: float) -> dict[str, Any]:
    """Execute one notebook from the top, whatever fails on the way; each cell has `seconds`.

    Tells `status` (`ok`, `error`, `timeout`, `crash`, `unreadable`), how many of its code `cells` were `done`, and its
    `errors`: cell (1-based, among all cells), name and text.
    """
    import nbformat  # noqa: PLC0415 - there is a way to it only now
    from nbclient import NotebookClient  # noqa: PLC0415
    from nbclient.exceptions import CellTimeoutError, DeadKernelError  # noqa: PLC0415

    try:
        book: Any = nbformat.reads(  # type: ignore[no-untyped-call]
            path.read_text(encoding="utf-8"), as_version=4
        )
        cells = [cell for cell in book.cells if cell.cell_type == "code"]
        for cell in cells:
            cell.outputs, cell.execution_count = [], None
    except Exception as error:  # noqa: BLE001 - a file that is no notebook fails in many ways
        return told("unreadable", 0, 0, [fault(0, type(error).__name__, "")])
    client = NotebookClient(
        book,
        kernel_name="python3",
        timeout=seconds,
        allow_errors=True,
        store_widget_state=False,
        resources={"metadata": {"path": str(Path.cwd())}},
    )
    client.create_kernel_manager().transport = "ipc"  # there is no network, not even to itself
    status = ""
    try:
        client.execute()
    except CellTimeoutError:
        status = "timeout"
    except DeadKernelError:
        status = "crash"
    errors = list(errors_of(book.cells))
    done = sum(cell.execution_count is not None for cell in cells)
    return told(status or ("error" if errors else "ok"), len(cells), done, errors[:MAX_ERRORS])


def errors_of(cells: list[Any]) -> Any:
    """Give each error output; one that its author announced by the tag `raises-exception` is none."""
    for number, cell in enumerate(cells, 1):
        if "raises-exception" in cell.get("metadata", {}).get("tags", []):
            continue
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                yield fault(number, str(output.ename), str(output.evalue))


def fault(cell: int, name: str, text: str) -> dict[str, Any]:
    """Describe one error."""
    return {"cell": cell, "name": name[:MAX_TEXT], "text": text[:MAX_TEXT]}


def told(status: str, cells: int, done: int, errors: list[dict[str, Any]]) -> dict[str, Any]:
    """Describe one notebook."""
    return {"status": status, "cells": cells, "done": done, "errors": errors}


if __name__ == "__main__":
    main()
