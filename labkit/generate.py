"""Make what is generated from ``solution/``: the learner's ``starter/`` and the lesson overlays. Write, or check.

A region between ``# BEGIN SOLUTION: message`` and ``# END SOLUTION`` holds a body that the learner writes. In the starter it
becomes one line that raises NotImplementedError(message); at module level, without a message, it vanishes. Files without
regions are copied byte for byte.

    python -m labkit.generate              write what is missing or stale
    python -m labkit.generate --check      say what is stale, change nothing, exit 1
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labkit.workspace import (
    HOMEWORK,
    HOMEWORK_FILE,
    LESSON_FOLDERS,
    kit_root,
    lesson_source,
    reference_left_out,
    scratch,
    set_aside,
)

_BEGIN = re.compile(r"^(?P<indent> *)# BEGIN SOLUTION(?:: (?P<message>.+))?$")
_END = re.compile(r"^ *# END SOLUTION$")
_BANNER = (
    "# 由 solution/ 生成的练习：补全每处 NotImplementedError。重来：statelab workspace reset\n"
    "# Generated from solution/ for you to edit: fill in each NotImplementedError. "
    "Start over: statelab workspace reset\n"
)
_RECORD = (
    "starter/.generated.json"  # path -> SHA-256 of what was generated, so that a learner's edit is recognised
)


class GenerateError(Exception):
    """A source that cannot be turned into a starter, or a learner's edit that must not be lost."""


@dataclass(frozen=True)
class Tree:
    """One generated tree: where it comes from, where it goes, whether bodies are left out."""

    source: str
    target: str
    leave_out: bool


TREES = (
    Tree("solution/lesson_22", "starter/lesson_22", leave_out=True),
    Tree("solution/lesson_04", "starter/lesson_04", leave_out=True),
    Tree("solution/lesson_04/issue_garden", "assets/lesson-04-state/issue_garden", leave_out=False),
    Tree("solution/lesson_22", "assets/sample-class/right/lesson_22", leave_out=False),
    Tree("solution/lesson_22", "assets/sample-class/untouched-starter/lesson_22", leave_out=True),
    Tree("solution/lesson_04", "assets/sample-class/right/lesson_04", leave_out=False),
    Tree("solution/lesson_04", "assets/sample-class/untouched-starter/lesson_04", leave_out=True),
)


def starter_text(source: str, where: str) -> str:
    """Return a source with its solution regions left out.

    Raises: GenerateError naming file and line (1-based) for a region that is nested, unclosed or never opened.
    """
    kept: list[str] = []
    for number, line, is_answer in regions(source, where):
        if begin := _BEGIN.match(line.rstrip("\n")):
            kept.extend(_stub(begin, where, number))
        elif not is_answer and not _END.match(line.rstrip("\n")):
            kept.append(line)
    text = "".join(kept)
    return text if text == source else _BANNER + text


def regions(source: str, where: str) -> Iterator[tuple[int, str, bool]]:
    """Give each line with its number (1-based) and whether it is part of an answer; the markers themselves are not.

    Raises: GenerateError as `starter_text` does.
    """
    opened: int | None = None
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        begins = _BEGIN.match(line.rstrip("\n"))
        ends = _END.match(line.rstrip("\n"))
        if (begins and opened) or (ends and not opened):
            raise GenerateError(
                f"{where}:{number}: region out of place; close one region before the next begins"
            )
        yield number, line, bool(opened and not ends)
        opened = number if begins else None if ends else opened
    if opened:
        raise GenerateError(f"{where}:{opened}: region is never closed; add '# END SOLUTION'")


def _stub(begin: re.Match[str], where: str, number: int) -> Iterator[str]:
    indent, message = begin["indent"], begin["message"]
    if indent and not message:
        raise GenerateError(
            f"{where}:{number}: a body needs a message; write '# BEGIN SOLUTION: 实现 … (implement …)'"
        )
    if indent:
        yield f"{indent}raise NotImplementedError({json.dumps(message, ensure_ascii=False)})\n"


def generated(root: Path, tree: Tree) -> dict[str, bytes]:
    """Return relative path -> bytes of everything the tree should hold."""
    source = root / tree.source
    made = {}
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if not path.is_file() or "__pycache__" in name:
            continue
        raw = path.read_bytes()
        if tree.leave_out and path.suffix == ".py":
            raw = starter_text(raw.decode(), f"{tree.source}/{name}").encode()
        made[name] = raw
    return made


def stale(root: Path, tree: Tree) -> list[str]:
    """Return the paths, relative to ``root``, that differ from what the source gives, or should not be there.

    The record of what was generated is one of them: with an old one, a learner's own edit could not be told.
    """
    made, target = generated(root, tree), root / tree.target
    present = {
        path.relative_to(target).as_posix()
        for path in target.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wrong = {name for name in made.keys() & present if (target / name).read_bytes() != made[name]}
    differing = sorted(f"{tree.target}/{name}" for name in wrong | (made.keys() ^ present))
    record = _load_record(root)
    known = all(record.get(f"{tree.target}/{name}") == _digest(raw) for name, raw in made.items())
    return differing if known else [*differing, _RECORD]


def write(root: Path, tree: Tree, *, force: bool = False) -> list[str]:
    """Bring the tree up to date; return the paths written, relative to ``root``.

    Raises: GenerateError, before anything is written, when a file was edited since it was generated and ``force`` is off.
    """
    made = {f"{tree.target}/{name}": raw for name, raw in generated(root, tree).items()}
    record = _load_record(root)
    outdated = [name for name, raw in made.items() if _read(root / name) != raw]
    gone = [n for n in record.keys() - made.keys() if n.startswith(tree.target + "/") and (root / n).exists()]
    edited = [name for name in outdated + gone if _is_edited(root / name, record.get(name))]
    if edited and not force:
        raise GenerateError(
            f"{edited[0]}: edited since it was generated; keep it, or set it aside with "
            "'statelab workspace reset' and run this again"
        )
    for name in gone:
        (root / name).unlink()
    for name in outdated:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(made[name])
    kept = {name: digest for name, digest in record.items() if not name.startswith(tree.target + "/")}
    _save_record(root, kept | {name: _digest(raw) for name, raw in made.items()})
    return sorted(outdated + gone)


def reset(lesson: str) -> Path:
    """Set a learner's starter of one lesson, or the homework, aside, make it anew, and return where the old one is kept.

    Raises: WorkspaceError when the lesson is unknown or there is nothing to set aside.
    """
    root = kit_root()
    if lesson == HOMEWORK:
        return _reset_homework(root)
    aside = set_aside(lesson_source(lesson, "starter"), into=scratch("aside"))
    for tree in TREES:
        if tree.target == f"starter/{LESSON_FOLDERS[lesson]}":
            write(root, tree)
    return aside


def _reset_homework(root: Path) -> Path:
    """Make the one file anew; what the learner wrote for the lesson beside it stays."""
    file = lesson_source(HOMEWORK, "starter") / HOMEWORK_FILE
    tree = next(tree for tree in TREES if root / tree.target == file.parent)
    aside = set_aside(file, into=scratch("aside"))
    file.write_bytes(generated(root, tree)[HOMEWORK_FILE])
    return aside


def _is_kept_back(tree: Tree) -> bool:
    """Tell whether a tree of right answers is missing on purpose: this kit was handed out without them."""
    return reference_left_out() and tree.target.startswith("assets/sample-class/right/")


def _load_record(root: Path) -> dict[str, str]:
    path = root / _RECORD
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def _save_record(root: Path, record: dict[str, str]) -> None:
    path = root / _RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")


def _is_edited(path: Path, digest: str | None) -> bool:
    raw = _read(path)
    return raw is not None and _digest(raw) != digest


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m labkit.generate", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say what is stale and change nothing")
    parser.add_argument("--force", action="store_true", help="overwrite edited files too")
    options = parser.parse_args(arguments)
    root = kit_root()
    trees = [tree for tree in TREES if (root / tree.source).is_dir() and not _is_kept_back(tree)]
    try:
        if options.check:
            names = list(dict.fromkeys(name for tree in trees for name in stale(root, tree)))
        else:
            names = [name for tree in trees for name in write(root, tree, force=options.force)]
    except GenerateError as problem:
        print(problem, file=sys.stderr)
        return 1
    for name in names:
        print(f"{name}: {'stale; run python -m labkit.generate' if options.check else 'written'}")
    return 1 if options.check and names else 0


if __name__ == "__main__":
    sys.exit(main())
