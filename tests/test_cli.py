"""The roof: every door is named, opens, explains itself, and costs nothing until it is opened."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from labkit import cli

ROOT = Path(__file__).resolve().parent.parent


def statelab(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command."""
    command = Path(sys.executable).parent / "statelab"
    return subprocess.run(
        [command, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def commands(words: tuple[str, ...], command: click.Command) -> list[tuple[str, ...]]:
    """Give the words of a command and of all below it."""
    found = [words]
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            found += commands((*words, name), below)
    return found


def test_help_names_every_door_in_order() -> None:
    """`statelab --help` lists the doors as a learner meets them, with what each is for."""
    told = statelab("--help").stdout
    places = [told.index(f"\n  {name} ") for name in cli.DOORS]

    assert places == sorted(places)
    assert all(" ".join(told.split()).count(door.purpose) == 1 for door in cli.DOORS.values())


@pytest.mark.parametrize("door", cli.DOORS)
def test_every_command_explains_itself_with_an_example(door: str) -> None:
    """Each door opens, and the --help of every command behind it shows a line that can be typed."""
    command = cli.main.get_command(click.Context(cli.main), door)
    assert command is not None
    for words in commands((door,), command):
        told = CliRunner().invoke(cli.main, [*words, "--help"], prog_name="statelab")

        assert told.exit_code == 0, told.output
        assert f"Example: statelab {' '.join(words)}" in " ".join(told.output.split())


def test_help_loads_nothing_behind_a_door() -> None:
    """Start-up stays fast: listing the doors imports click and the table, no other room and no notebook machinery."""
    code = (
        "import sys; from labkit import cli; cli.main(['--help'], standalone_mode=False);"
        "ours = {n for n in sys.modules if n.split('.')[0] in ('labkit', 'grader', 'solution', 'starter')};"
        "heavy = {'asyncio', 'rich', 'nbformat', 'ipywidgets', 'anywidget', 'tornado', 'watchfiles'} & sys.modules.keys();"
        "print(sorted(ours | heavy), file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr

    assert told.strip() == "['labkit', 'labkit.cli']"


def test_an_unknown_command_is_refused() -> None:
    """A wrong word exits 2 and is repeated, with the way to the list; nothing is printed as a result."""
    told = statelab("verfy")

    assert (told.returncode, told.stdout) == (2, "")
    assert "No such command 'verfy'" in told.stderr
    assert "statelab --help" in told.stderr


def test_a_door_that_is_no_command_is_our_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong line in the table is named as such."""
    monkeypatch.setitem(cli.DOORS, "odd", cli.Door("labkit.workspace:kit_root", "Not a command."))
    with pytest.raises(TypeError, match=r"labkit\.workspace:kit_root: not a click command"):
        cli.main(["odd"], standalone_mode=False)


def test_the_version_is_the_projects() -> None:
    """`--version` tells the version of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert statelab("--version").stdout == f"statelab {project['version']}\n"


def test_a_reset_keeps_the_learners_work(tmp_path: Path) -> None:
    """`statelab workspace reset` lays a fresh starter down and says where the edited one is kept."""
    for room in ("labkit", "solution", "starter"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    store = tmp_path / "starter/lesson_22/session_store.py"
    fresh = store.read_bytes()
    store.write_text("mine = True\n")
    told = subprocess.run(
        [sys.executable, "-c", "from labkit.cli import main; main()", "workspace", "reset", "--lesson", "22"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0, told.stderr
    assert store.read_bytes() == fresh
    (kept,) = (tmp_path / "workspace/aside").glob("*/session_store.py")
    assert kept.read_text() == "mine = True\n"
    assert str(kept.parent) in told.stdout


def test_a_reset_of_the_homework_leaves_the_lesson(tmp_path: Path) -> None:
    """`--lesson 22-homework` begins that one file anew: what was written beside it stays as it is."""
    for room in ("labkit", "solution", "starter"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    homework, store = (tmp_path / "starter/lesson_22" / name for name in ("homework.py", "session_store.py"))
    fresh = homework.read_bytes()
    for file in (homework, store):
        file.write_text("mine = True\n")
    told = subprocess.run(
        [
            *(sys.executable, "-c", "from labkit.cli import main; main()"),
            *("workspace", "reset", "--lesson", "22-homework"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0, told.stderr
    assert (homework.read_bytes(), store.read_text()) == (fresh, "mine = True\n")
    (kept,) = (tmp_path / "workspace/aside").glob("homework.py*")
    assert kept.read_text() == "mine = True\n"
    assert str(kept) in told.stdout
