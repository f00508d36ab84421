"""Notebooks as git should see them: no outputs, no execution counts, ids kept (N10).

`statelab clean` strips what a run left behind, so that a diff shows only what a person wrote.
Plain JSON on purpose: importing nbformat costs seconds, and nothing here needs its schema.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from labkit import workspace

Notebook = dict[str, Any]

KEPT_CELL_METADATA = ("tags", "jupyter")
KEPT_NOTEBOOK_METADATA = ("kernelspec", "language_info", "state_lab")


class NotNotebookError(ValueError):
    """A file that should be a notebook is none; the text says where, what, and what to do."""


def load(path: Path) -> Notebook:
    """Read one notebook (nbformat 4 JSON) from `path`.

    Raises NotNotebookError for anything else, OSError when the file cannot be read.
    """
    try:
        notebook = json.loads(path.read_bytes())
        cells = notebook["cells"]
        shaped = isinstance(notebook["metadata"], dict) and all(
            isinstance(cell["cell_type"], str) and isinstance(cell["metadata"], dict) and "source" in cell
            for cell in cells
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        shaped = False
    if not shaped:
        raise NotNotebookError(
            f"{path}: not a notebook (nbformat 4 JSON); name an .ipynb file, or restore it from git"
        )
    return notebook  # type: ignore[no-any-return]


def strip(notebook: Notebook) -> Notebook:
    """Return a copy of `notebook` without anything a run leaves behind; sources and ids stay as they are."""
    return {
        **notebook,
        "cells": [_strip_cell(cell) for cell in notebook["cells"]],
        "metadata": _strip_metadata(notebook["metadata"]),
    }


def leftovers(notebook: Notebook) -> list[str]:
    """Return the ids of the cells that still hold outputs or an execution count."""
    return [
        str(cell.get("id", "?"))
        for cell in notebook["cells"]
        if cell.get("outputs") or cell.get("execution_count") is not None
    ]


def dumps(notebook: Notebook) -> bytes:
    """Return the bytes JupyterLab itself would save: one-space indent, sorted keys, UTF-8, final newline."""
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def save(path: Path, notebook: Notebook) -> bool:
    """Replace `path` in one step; return whether its bytes changed. A failed save leaves the old file whole."""
    new = dumps(notebook)
    if path.exists() and path.read_bytes() == new:
        return False
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as handle:
        temporary = Path(handle.name)
        try:
            handle.write(new)
            handle.close()
            temporary.chmod(mode)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return True


def _strip_cell(cell: dict[str, Any]) -> dict[str, Any]:
    kept = dict(cell)
    if cell["cell_type"] == "code":
        kept |= {"outputs": [], "execution_count": None}
    kept["metadata"] = {key: cell["metadata"][key] for key in KEPT_CELL_METADATA if key in cell["metadata"]}
    return kept


def _strip_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    kept = {key: metadata[key] for key in KEPT_NOTEBOOK_METADATA if key in metadata}
    if "language_info" in kept:
        # The kernel writes its own version here at every save; the language is all that stays true.
        kept["language_info"] = {"name": kept["language_info"].get("name", "python")}
    return kept


@click.command(name="clean", epilog="Example: statelab clean notebooks/zh/22-task-state.ipynb")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def main(paths: tuple[Path, ...]) -> None:
    """Remove outputs and run numbers from notebooks (all of the kit's when no PATHS are given)."""
    root = workspace.kit_root() / "notebooks"
    chosen = paths or tuple(sorted(root.glob("zh/*.ipynb")) + sorted(root.glob("en/*.ipynb")))
    failed = False
    for path in chosen:
        try:
            changed = save(path, strip(load(path)))
        except (NotNotebookError, OSError) as error:
            click.echo(_message(path, error), err=True)
            failed = True
        else:
            click.echo(f"{path}: {'stripped' if changed else 'already clean'}")
    raise SystemExit(1 if failed else 0)


def _message(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{path}: {error.strerror or error}; nothing was changed, check the path and its permissions"
    return str(error)


if __name__ == "__main__":
    main()
