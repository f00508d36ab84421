"""The house keeps its plan: docs/architecture.md says which room may know which, and this reads every import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from labkit import cli, devgate

ROOT = Path(__file__).resolve().parent.parent
OUR_ROOMS = ("labkit", "grader", "solution", "starter")
LONGEST_BODY_LINES = 40

# Room -> the rooms of ours that it may import. The first name that fits a module is its room.
ARROWS: dict[str, tuple[str, ...]] = {
    "solution.lesson_04": ("issue_garden",),
    "solution": ("solution",),
    "labkit.cli": (),
    "labkit.bootstrap": ("labkit.node",),
    "labkit.node": (),
    "labkit.bundle": (
        *("labkit.bundle", "labkit.generate", "labkit.lab_folder", "labkit.notebook_strip"),
        *("labkit.words", "labkit.workspace", "solution.durable_log"),
    ),
    "labkit.devgate": (),
    "labkit.workspace": (),
    "labkit.words": ("labkit.workspace",),
    "labkit.watch": (),
    "labkit.child_guard": (),
    "labkit.owned_child": (),
    "labkit.faults.crash.command": ("labkit.faults", "labkit.views", "labkit.words", "labkit.workspace"),
    "labkit.faults.crash": (
        *("labkit.faults", "labkit.naive", "labkit.workspace", "issue_garden"),
        *("solution.lesson_22", "solution.durable_log"),
    ),
    "labkit.faults": ("labkit.faults", "issue_garden"),
    "labkit.naive": ("labkit.naive", "solution.lesson_22", "issue_garden"),
    "labkit.views": (
        *("labkit.views", "labkit.words", "labkit.workspace", "labkit.faults.crash", "solution.lesson_22"),
    ),
    "labkit.actions": (
        "labkit.workspace",
        "labkit.faults",
        "labkit.naive",
        "labkit.generate",
        "labkit.lab_folder",
    ),
    "labkit.lab_actions": (
        *("labkit.workspace", "labkit.faults", "labkit.lab_folder", "labkit.node", "labkit.owned_child"),
    ),
    "labkit.crash_actions": ("labkit.workspace", "labkit.faults", "labkit.owned_child"),
    "labkit.crash_child": ("labkit.crash_actions", "labkit.faults"),
    "labkit.widgets": (
        *(
            "labkit.widgets",
            "labkit.actions",
            "labkit.crash_actions",
            "labkit.lab_actions",
            "labkit.owned_child",
            "labkit.views",
            "labkit.watch",
            "labkit.words",
            "labkit.workspace",
        ),
        "labkit.naive",
    ),
    "labkit.experiments": (
        *("labkit.experiments", "labkit.actions", "labkit.views", "labkit.words", "labkit.workspace"),
        *("labkit.naive", "labkit.faults", "labkit.generate", "solution.lesson_22", "solution.durable_log"),
        *("labkit.lab_actions", "labkit.lab_folder", "labkit.node", "labkit.child_guard"),
    ),
    "labkit": (),
    "grader.child": (),
    "grader.suites.lesson_04.scenarios": ("issue_garden",),  # sent as text, run beside the student's code
    "grader": (
        *("labkit.workspace", "labkit.lab_folder", "labkit.node", "labkit.faults", "labkit.generate"),
        "solution.lesson_22",
    ),
}


def modules(*rooms: str) -> list[Path]:
    """List the Python files of some folders, but for what is wrong on purpose, and a learner's own tests."""
    paths = (path for room in rooms for path in sorted((ROOT / room).rglob("*.py")))
    return [
        path for path in paths if not {"mutants", "sample-class", "my-tests", "__pycache__"} & set(path.parts)
    ]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def name_of(path: Path) -> str:
    """Give a file's module name: labkit/views/folder.py -> labkit.views.folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Give (line, full module name) of each import; `from labkit import words` counts as labkit.words."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}" if is_module(f"{base}.{alias.name}") else base


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (
        place.is_dir() and name.split(".", maxsplit=1)[0] in OUR_ROOMS
    )


def is_within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def is_ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in (*OUR_ROOMS, "issue_garden", "tests")


def at(path: Path, line: int, what: str) -> str:
    return f"{path.relative_to(ROOT)}:{line}: {what}"


def room_of(path: Path) -> str:
    return next(room for room in ARROWS if is_within(name_of(path), room))


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_knows_only_the_rooms_below_it(room: str) -> None:
    """Each import of our own code follows an arrow of the plan."""
    known = (room, *ARROWS[room])
    wrong = [
        at(path, line, name)
        for path in modules("labkit", "grader", "solution")
        if room_of(path) == room
        for line, name in imports_of(path)
        if is_ours(name) and not any(is_within(name, other) for other in known)
    ]

    assert wrong == []


def test_only_the_roof_names_the_grader() -> None:
    """labkit reaches the grader through the table of doors alone, by name: a command, never an import."""
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in modules("labkit")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and re.match(r"grader[.:]", str(node.value))
    }

    assert naming == {"labkit/cli.py"}
    assert {door.where.split(".")[0] for door in cli.DOORS.values()} == {"labkit", "grader", "solution"}


def test_lesson_code_can_be_read_in_one_sitting() -> None:
    """Lesson code, and the child that loads a student's, import the standard library and their own package only."""
    read_by_learners = [
        *modules("solution/lesson_22", "solution/lesson_04", "assets"),
        ROOT / "grader/child/host.py",
    ]
    read_by_an_unready_python = [ROOT / "labkit/bootstrap.py", ROOT / "labkit/node.py"]
    wrong = [
        at(path, line, name)
        for path in [*read_by_learners, *read_by_an_unready_python]
        for line, name in imports_of(path)
        if name.split(".")[0] not in (*sys.stdlib_module_names, "issue_garden", "lab_case")
        and not is_within(name, name_of(path.parent / "__init__.py"))
        and name != "labkit.node"
    ]

    assert wrong == []


def test_what_is_imported_is_declared() -> None:
    """Each library that we import is a dependency of pyproject.toml or of an extra, not a guest of another one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    brings = packages_distributions()
    wrong = [
        at(path, line, name)
        for path in modules("labkit", "grader", "solution")
        for line, name in imports_of(path)
        if not is_ours(name)
        and name.split(".")[0] not in sys.stdlib_module_names
        and not declared & {canonicalize_name(brought) for brought in brings.get(name.split(".")[0], ())}
    ]

    assert wrong == []


def test_only_the_cluster_file_knows_dask() -> None:
    """How a class is spread over machines is one file's secret."""
    knowing = {
        path.relative_to(ROOT).as_posix()
        for path in modules("labkit", "grader", "solution")
        for _, name in imports_of(path)
        if name.split(".")[0] in ("dask", "distributed")
    }

    assert knowing <= {"grader/cluster.py"}


def test_views_never_write() -> None:
    """A view turns bytes into a model. It holds no call that could change a disk."""
    writing = {
        *("write_text", "write_bytes", "write", "writelines", "mkdir", "makedirs", "touch", "truncate"),
        *(
            "unlink",
            "remove",
            "rmdir",
            "rmtree",
            "rename",
            "renames",
            "symlink_to",
            "chmod",
            "copy",
            "copytree",
            "move",
        ),
    }
    wrong = [
        at(path, node.lineno, node.func.attr)
        for path in modules("labkit/views")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in writing
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("setting", "reader"),
    [
        ("LAB_TARGET", "labkit/workspace.py"),
        ("LAB_STATE", "labkit/workspace.py"),
        ("LAB_LANG", "labkit/workspace.py"),
        ("LAB_NODE", "labkit/node.py"),
    ],
)
def test_a_setting_is_read_in_one_place(setting: str, reader: str) -> None:
    """Which code, folder, language and Node are meant is decided once; everyone else asks there.

    durable_log stands without the kit, so it has one reader of its own where it needs one.
    """
    readers = {
        path.relative_to(ROOT).as_posix()
        for path in modules("labkit", "grader", "solution")
        if any(setting in read for read in map(constants_read, ast.walk(tree_of(path))))
    }
    apart = {name for name in readers if name.startswith("solution/durable_log/")}

    assert readers - apart == {reader}
    assert len(apart) <= 1


def constants_read(node: ast.AST) -> set[object]:
    """Give the constants by which a node looks something up: x["A"], x.get("A"), getenv("A"), or in a loop of names."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        places = [node.slice]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("get", "getenv", "pop"):
        places = node.args
    elif isinstance(node, ast.comprehension):
        places = [node.iter]
    return {part.value for place in places for part in ast.walk(place) if isinstance(part, ast.Constant)}


def test_no_room_is_a_junk_drawer() -> None:
    """A file is called after what it is for."""
    names = {path.stem for path in modules(*devgate.OUR_CODE, "assets")}

    assert names & {"utils", "helpers", "common", "manager", "misc", "util", "helper"} == set()


def test_a_function_fits_on_a_screen() -> None:
    """No body is longer than 40 lines, its docstring not counted."""
    functions = (
        (path, node)
        for path in modules("labkit", "grader", "solution")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    long = [
        at(path, node.lineno, node.name) for path, node in functions if body_lines(node) > LONGEST_BODY_LINES
    ]

    assert long == []


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@cache
def tracked_texts() -> dict[str, str]:
    """Give what git would hand to others: path -> text, for everything that is text."""
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listing, text=True).split("\0")[:-1]
    texts = {}
    for name in names:
        if (ROOT / name).is_file():
            raw = (ROOT / name).read_bytes()
            if b"\0" not in raw[:8000]:
                texts[name] = raw.decode("utf-8", errors="replace")
    return texts


def test_no_machine_shows_in_the_files() -> None:
    """No tracked file names a folder of the machine that it was written on."""
    here = {str(ROOT), str(Path.home()), sys.base_prefix} - {"/", "/usr"}
    wrong = {name: place for name, text in tracked_texts().items() for place in here if f"{place}/" in text}

    assert wrong == {}


def test_no_registry_shows_in_the_files() -> None:
    """Addresses in tracked files lead to this machine or are names of standards; packages come by name alone."""
    allowed = {"127.0.0.1", "localhost", "www.w3.org"}
    found = {
        (name, host)
        for name, text in tracked_texts().items()
        for host in re.findall(r"https?://([A-Za-z0-9.-]+)", text.replace("\\", ""))
    }

    assert {(name, host) for name, host in found if host not in allowed} == set()
