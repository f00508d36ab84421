"""One source, two notebooks: notebooks/source/X.md -> notebooks/zh/X.ipynb and notebooks/en/X.ipynb (N2).

A source is Markdown. A comment line opens each cell and gives its id:

    <!-- zh ID -->            prose, Chinese
    <!-- en ID of HASH -->    the same cell in English; HASH is taken over the Chinese text it stands for
    <!-- code ID -->          one ```python fence, shared by both languages

`python -m labkit.notebook_build` writes, `--check` compares, `--accept ID` records that a translation was read again.
The form and the reasons for it: docs/notebooks.md.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import click

from labkit import notebook_strip, workspace
from labkit.notebook_strip import Notebook, NotNotebookError

LANGUAGES = ("zh", "en")

_MARKER = re.compile(r"<!--\s*(?P<kind>zh|en|code)\b\s*(?P<rest>.*?)\s*-->\s*")
# A code cell called x-zh would share its id with the Chinese half of the pair x.
_REST = re.compile(
    r"(?P<name>[a-z][a-z0-9-]{0,60}(?<!-zh)(?<!-en))(?: of (?P<of>[0-9a-f]{8}))?(?: hidden(?P<hidden>))?"
)
_FENCE = re.compile(r"```python\n(?P<code>.*)\n```", re.DOTALL)


class SourceError(ValueError):
    """A source that cannot become a notebook; the text says where, what, and what to do next."""


@dataclass(frozen=True)
class Cell:
    """One cell of a source: `kind` is zh, en or code; `line` (1-based) is where its marker stands."""

    kind: str
    name: str
    text: str
    line: int
    of: str | None = None
    hidden: bool = False


def text_hash(text: str) -> str:
    """Return the 8 hex digits by which an English cell names the Chinese text that it stands for."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def parse(path: Path) -> list[Cell]:
    """Split a source into its cells. Raises SourceError at the first line that is not in the form above."""
    cells: list[Cell] = []
    marker: re.Match[str] | None = None
    start, body = 0, list[str]()
    for number, line in enumerate([*path.read_text("utf-8").split("\n"), "<!-- code end -->"], start=1):
        found = _MARKER.fullmatch(line)
        if found is None:
            body.append(line)
            continue
        if marker is not None:
            cells.append(_cell(f"{path}:{start}", start, marker, "\n".join(body).strip("\n")))
        elif "".join(body).strip():
            raise SourceError(f"{path}:1: text before the first cell; open it with <!-- zh ID -->")
        marker, start, body = found, number, []
    return cells


def _cell(where: str, line: int, marker: re.Match[str], text: str) -> Cell:
    kind, rest = marker["kind"], _REST.fullmatch(marker["rest"])
    if rest is None:
        raise SourceError(f"{where}: unnamed or badly named cell; write <!-- {kind} lower-case-id -->")
    if not text:
        raise SourceError(f"{where}: cell {rest['name']} is empty; give it content or remove its marker")
    if kind == "code":
        fence = _FENCE.fullmatch(text)
        if fence is None or "\n```" in fence["code"]:
            raise SourceError(
                f"{where}: cell {rest['name']} is not exactly one ```python fence; keep prose in zh and en cells"
            )
        text = fence["code"]
    return Cell(kind, rest["name"], text, line, of=rest["of"], hidden=rest["hidden"] is not None)


def problems(path: Path, cells: list[Cell]) -> list[str]:
    """Return what a reader in one of the languages would miss: broken pairs, repeated ids, stale translations."""
    found: list[str] = []
    seen: dict[tuple[str, str], Cell] = {}
    for index, cell in enumerate(cells):
        where = f"{path}:{cell.line}"
        before = cells[index - 1] if index else None
        family = "code" if cell.kind == "code" else "prose"
        twin = seen.get((family, cell.name))
        if twin is not None and (cell.kind != "en" or twin is not before or twin.kind != "zh"):
            found.append(
                f"{where}: id {cell.name} is used twice (first on line {twin.line}); give one a new id"
            )
        elif cell.kind == "en":
            found += _check_english(where, cell, before)
        if cell.kind == "zh" and not _followed(cells, index):
            found.append(
                f"{where}: cell {cell.name} has no English; add <!-- en {cell.name} --> right after it"
            )
        seen.setdefault((family, cell.name), cell)
    return found


def _followed(cells: list[Cell], index: int) -> bool:
    after = cells[index + 1] if index + 1 < len(cells) else None
    return after is not None and (after.kind, after.name) == ("en", cells[index].name)


def _check_english(where: str, english: Cell, before: Cell | None) -> list[str]:
    if before is None or (before.kind, before.name) != ("zh", english.name):
        return [
            f"{where}: cell {english.name} has no Chinese; put <!-- zh {english.name} --> right before it"
        ]
    if english.of == text_hash(before.text):
        return []
    stale = f"{where}: the English of {english.name} is older than its Chinese"
    return [f"{stale}; read both, mend it, then run python -m labkit.notebook_build --accept {english.name}"]


def notebook(name: str, cells: list[Cell], language: str) -> Notebook:
    """Return one language of a source as a stripped notebook (nbformat 4.5)."""
    chosen = [_notebook_cell(cell) for cell in cells if cell.kind in ("code", language)]
    return {
        "cells": chosen,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "state_lab": {
                "source": f"notebooks/source/{name}.md",
                "language": language,
                "digest": digest(chosen),
            },
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _notebook_cell(cell: Cell) -> Notebook:
    source = cell.text.splitlines(keepends=True)
    if cell.kind != "code":
        return {
            "cell_type": "markdown",
            "id": f"{cell.name}-{cell.kind}",
            "metadata": {"tags": [f"lang-{cell.kind}"]},
            "source": source,
        }
    metadata = {"jupyter": {"source_hidden": True}} if cell.hidden else {}
    return {
        "cell_type": "code", "id": cell.name, "metadata": metadata, "source": source,
        "outputs": [], "execution_count": None,
    }  # fmt: skip


def digest(cells: list[Notebook]) -> str:
    """Return a hash over what people write in a notebook (order, ids, sources), not over what a run adds."""
    written = [f"{cell['cell_type']} {cell.get('id')}\n{''.join(cell['source'])}" for cell in cells]
    return hashlib.sha256("\0".join(written).encode()).hexdigest()[:16]


def build(folder: Path, *, check: bool) -> list[str]:
    """Write both languages of every source in `folder`/source, or with `check` only compare.

    Returns the problems found, each one `where: what; what to do`. A source with a problem builds nothing;
    a built notebook edited by hand is never overwritten.
    """
    found: list[str] = []
    sources = sorted((folder / "source").glob("*.md"))
    if not sources:
        return [f"{folder / 'source'}: no source notebooks here; run this in a checkout of the kit"]
    for path in sources:
        try:
            cells = parse(path)
            wrong = problems(path, cells)
        except (SourceError, UnicodeDecodeError) as error:
            wrong = [str(error) if isinstance(error, SourceError) else f"{path}: not UTF-8; save it as UTF-8"]
        if not wrong:
            wrong = [
                line
                for language in LANGUAGES
                for line in _build_one(
                    folder / language / f"{path.stem}.ipynb",
                    notebook(path.stem, cells, language),
                    check=check,
                )
            ]
        found += wrong
    return found + _orphans(folder, {path.stem for path in sources})


def _build_one(path: Path, new: Notebook, *, check: bool) -> list[str]:
    try:
        old = notebook_strip.load(path) if path.exists() else None
    except NotNotebookError as error:
        return [str(error)]
    if check:
        return _compare(path, old, new)
    if old is not None and old["metadata"].get("state_lab", {}).get("digest") != digest(old["cells"]):
        return [
            f"{path}: edited by hand; carry the edit into {new['metadata']['state_lab']['source']}, delete this file, build again"
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    notebook_strip.save(path, new)
    return []


def _compare(path: Path, old: Notebook | None, new: Notebook) -> list[str]:
    if old is None:
        return [f"{path}: missing; run python -m labkit.notebook_build"]
    ran = notebook_strip.leftovers(old)
    if ran:
        return [f"{path}: holds outputs or run numbers (first in cell {ran[0]}); run statelab clean"]
    if path.read_bytes() != notebook_strip.dumps(new):
        return [f"{path}: differs from its source; run python -m labkit.notebook_build"]
    return []


def _orphans(folder: Path, names: set[str]) -> list[str]:
    built = [path for language in LANGUAGES for path in sorted((folder / language).glob("*.ipynb"))]
    return [
        f"{path}: has no source; write notebooks/source/{path.stem}.md or remove it"
        for path in built
        if path.stem not in names
    ]


def accept(folder: Path, names: tuple[str, ...]) -> list[str]:
    """Record in the sources that the English cells `names` were read against their Chinese as it is now.

    Returns the names that no source holds as a pair.
    """
    missing = set(names)
    for path in sorted((folder / "source").glob("*.md")):
        text = path.read_text("utf-8")
        for cell in parse(path):
            if cell.kind == "zh" and cell.name in names:
                marker = rf"<!-- en {cell.name}(?: of [0-9a-f]{{8}})? -->"
                text, count = re.subn(marker, f"<!-- en {cell.name} of {text_hash(cell.text)} -->", text)
                missing -= {cell.name} if count else set()
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
    return sorted(missing)


@click.command(epilog="Example: python -m labkit.notebook_build --accept torn-tail")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if anything is missing, stale or edited.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="ID",
    help="The English of cell ID was read again and is right.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The notebooks folder (default: the kit's).",
)
def main(*, check: bool, accepted: tuple[str, ...], folder: Path | None) -> None:
    """Build the zh and en notebooks from their one source."""
    where = folder or workspace.kit_root() / "notebooks"
    try:
        unknown = accept(where, accepted)
    except SourceError as error:
        raise SystemExit(str(error)) from None
    found = [f"{where / 'source'}: no pair of cells is called {name}; check the id" for name in unknown]
    found += build(where, check=check)
    for line in found:
        click.echo(line, err=True)
    if not found:
        click.echo(f"{where}: both languages {'match their source' if check else 'built'}")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
