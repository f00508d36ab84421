"""The set-up, run for real on a kit in small: real environments, real pip, packages from a folder instead of a registry."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from labkit import bootstrap, node

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# The editable install of the kit in small: what hatchling does for the real one, an absolute path in UTF-8.
BACKEND = """
import pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    info = "agent_state_lab-0.1.dist-info/"
    with zipfile.ZipFile(pathlib.Path(folder, "agent_state_lab-0.1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("_agent_state_lab.pth", str(pathlib.Path.cwd()))
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: agent-state-lab\\nVersion: 0.1\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return "agent_state_lab-0.1-py3-none-any.whl"
"""
SMALL_PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def write_wheel(folder: Path, name: str) -> str:
    """Make a package of one empty module and give its line for a lock file."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info/"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "")
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def fake_node(folder: Path, answer: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / "node"
    path.write_text(f"#!/bin/sh\necho {answer}\n")
    path.chmod(0o755)
    return path


@dataclass(frozen=True)
class SmallKit:
    """A kit of the same form as ours, in a folder of its own."""

    root: Path
    packages: Path

    def start(self, *parts: str, **settings: str) -> subprocess.Popen[str]:
        pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.packages), "PIP_CONFIG_FILE": os.devnull}
        settings = {"LAB_NODE": str(self.packages.with_name("node") / "node"), **settings}
        return subprocess.Popen(
            [sys.executable, "-m", "labkit.bootstrap", *parts],
            cwd=self.root,
            env={**os.environ, **pip, **settings},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def set_up(self, *parts: str, **settings: str) -> tuple[int, str]:
        """Run the set-up to its end; its exit code and what it told."""
        process = self.start(*parts, **settings)
        told = process.communicate()[1]
        return process.returncode, told

    def python(self, code: str, **settings: str) -> str:
        """Run code in the environment that was made, from elsewhere."""
        command = [str(bootstrap.python_of(self.root / ".venv")), "-c", code]
        return subprocess.check_output(command, cwd="/", env={**os.environ, **settings}, text=True).strip()


def make_kit(folder: Path) -> SmallKit:
    root, packages = folder / "实验 kit", folder / "packages"
    (root / "labkit").mkdir(parents=True)
    packages.mkdir()
    fake_node(folder / "node", "v24.0.0")
    for name in ("__init__.py", "bootstrap.py", "node.py"):
        shutil.copy(ROOT / "labkit" / name, root / "labkit" / name)
    (root / "pyproject.toml").write_text(SMALL_PROJECT)
    (root / "backend.py").write_text(BACKEND)
    (root / "requirements.lock").write_text(write_wheel(packages, "grain"))
    (root / "requirements-dev.lock").write_text(write_wheel(packages, "chaff"))
    return SmallKit(root, packages)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> SmallKit:
    """A kit whose learner's part is set up; tests leave it so."""
    kit = make_kit(tmp_path_factory.mktemp("ready"))
    code, told = kit.set_up()
    assert code == 0, told
    return kit


@pytest.fixture
def kit(tmp_path: Path) -> SmallKit:
    """A fresh kit, nothing set up."""
    return make_kit(tmp_path)


def test_a_fresh_kit_imports_its_packages_and_itself_from_anywhere(ready: SmallKit) -> None:
    """One run makes `.venv` with the locked packages and the kit, in a folder with a space and Chinese letters."""
    assert ready.python("import grain, labkit; print(labkit.__file__)") == str(
        ready.root / "labkit/__init__.py"
    )


def test_a_ready_kit_starts_no_pip(ready: SmallKit) -> None:
    """The second run tells one line and needs no package source."""
    shutil.move(ready.packages, ready.packages.with_name("away"))
    try:
        code, told = ready.set_up()
    finally:
        shutil.move(ready.packages.with_name("away"), ready.packages)

    assert (code, told.count("\n")) == (0, 1)
    assert told.startswith("setup: ready: Python 3")


def test_the_kits_place_is_written_without_its_path(ready: SmallKit) -> None:
    """The `.pth` file is relative and ASCII: under a Chinese locale that is not UTF-8, Python could not read another."""
    (location,) = (ready.root / ".venv").rglob("_agent_state_lab.pth")
    text = location.read_text("ascii").strip()

    assert not Path(text).is_absolute()
    assert (location.parent / text).resolve() == ready.root


def test_a_changed_lock_is_installed_without_a_new_environment(kit: SmallKit) -> None:
    """After a change of the lock the next run installs the difference and keeps the rest."""
    kit.set_up()
    kept = kit.root / ".venv/kept"
    kept.touch()
    with (kit.root / "requirements.lock").open("a") as lock:
        lock.write(write_wheel(kit.packages, "straw"))
    code, told = kit.set_up("dev")

    assert code == 0, told
    assert kit.python("import grain, straw, chaff; print('all')") == "all"
    assert kept.exists()


@pytest.mark.parametrize("step", [".venv for Python", "requirements.lock"])
def test_a_killed_set_up_is_made_good_by_the_next(kit: SmallKit, step: str) -> None:
    """SIGKILL in a step: two runs at once afterwards wait for what still works there, and one makes all anew."""
    first = kit.start()
    assert first.stderr is not None
    assert any(step in line for line in first.stderr)
    (kit.root / ".venv/half-done").touch()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    both = [kit.start(), kit.start()]
    told = [process.communicate()[1] for process in both]

    assert [process.returncode for process in both] == [0, 0], told
    assert "".join(told).count("requirements.lock: done") == 1
    assert not (kit.root / ".venv/half-done").exists()
    assert kit.python("import grain, labkit; print('all')") == "all"


def test_what_a_set_up_starts_holds_its_lock(kit: SmallKit) -> None:
    """pip keeps others out even when the set-up that started it is killed."""
    look = (
        "import os, sys\n"
        "lock = os.stat(sys.argv[1])\n"
        "held = lambda fd: os.path.exists(f'/dev/fd/{fd}') and os.path.samestat(os.fstat(fd), lock)\n"
        "sys.exit(not any(held(fd) for fd in range(3, 64)))"
    )
    command = [sys.executable, "-c", look, str(kit.root / "pyproject.toml")]
    with bootstrap.only_one(kit.root), (kit.root / "log").open("w") as log:
        bootstrap.run(command, log, bootstrap.Step("look"))


def test_ctrl_c_ends_with_one_line(kit: SmallKit) -> None:
    """An interrupted run says that starting again makes it good, and exits 130."""
    process = kit.start()
    assert process.stderr is not None
    told = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    told += process.communicate()[1]

    assert process.returncode == 130
    assert told.endswith("setup: interrupted; start it again, and it makes good what is unfinished\n")


def test_a_moved_kit_makes_its_environment_anew(ready: SmallKit, tmp_path: Path) -> None:
    """Scripts of an environment hold absolute paths, so a copy elsewhere is not taken for whole."""
    record = bootstrap.read_record(ready.root / ".venv")

    assert bootstrap.is_whole(record, ready.root, ready.root / ".venv")
    assert not bootstrap.is_whole(record, tmp_path, ready.root / ".venv")


def test_no_network_is_said_in_one_line(kit: SmallKit) -> None:
    """An index that does not answer is named as the cause, and nothing of pip's own report is shown."""
    code, told = kit.set_up(PIP_NO_INDEX="0", PIP_FIND_LINKS="", PIP_INDEX_URL="http://127.0.0.1:9/simple")

    assert code == 1
    assert told.splitlines()[-1] == (
        "setup: [1/1] requirements.lock: the package index cannot be reached; "
        "check the network and pip's proxy setting, then start again"
    )


def test_a_package_that_is_not_the_locked_one_is_refused(ready: SmallKit) -> None:
    """Hashes are compared: another file of the same name and version is not installed."""
    lock = ready.root / "requirements-node.lock"
    lock.write_text(re.sub(r"[0-9a-f]{64}", "0" * 64, write_wheel(ready.packages, "chaff")))
    before = (ready.root / ".venv" / bootstrap.RECORD).read_bytes()
    code, told = ready.set_up("node")
    (ready.root / ".venv" / bootstrap.RECORD).write_bytes(before)

    assert code == 1
    assert "not the file that the lock names" in told.splitlines()[-1]


@pytest.mark.parametrize("there", ["a file", "a folder of someone's"])
def test_what_is_no_environment_is_left_alone(kit: SmallKit, there: str) -> None:
    """A `.venv` that the set-up did not make and cannot use is neither used nor deleted."""
    place = kit.root / ".venv"
    if there == "a file":
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "mine").touch()
    code, told = kit.set_up()

    assert code == 1
    assert (
        told
        == f"setup: {place}: is no environment of Python {bootstrap.HERE}; move it away, then start again\n"
    )
    assert place.is_file() or (place / "mine").exists()


@pytest.mark.parametrize("left", [[], [bootstrap.RECORD + ".new"]])
def test_a_set_up_killed_at_its_first_step_is_no_obstacle(tmp_path: Path, left: list[str]) -> None:
    """An empty `.venv`, or one with a half-written record, is the next set-up's to remove."""
    place = tmp_path / ".venv"
    place.mkdir()
    for name in left:
        (place / name).touch()
    bootstrap.discard(place, ours=False)

    assert list(tmp_path.iterdir()) == []


def test_a_removal_that_is_cut_short_is_out_of_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it removes an old environment, a set-up leaves no `.venv` that the next could misjudge."""
    place = tmp_path / ".venv"
    place.mkdir()
    monkeypatch.setattr(bootstrap.shutil, "rmtree", lambda *_, **__: None)
    bootstrap.discard(place, ours=True)

    assert [path.name for path in tmp_path.iterdir()] == [".venv.old"]


def test_a_missing_git_is_named(kit: SmallKit, tmp_path: Path) -> None:
    """Without git the set-up stops before it makes anything, and says how to get it."""
    code, told = kit.set_up(PATH=str(tmp_path / "empty"))

    assert (code, told.count("\n")) == (1, 1)
    assert told.startswith("setup: git: not found")
    assert not (kit.root / ".venv").exists()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_missing_venv_module_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Debian keeps these in a package of its own; the message names it. (Shown for real by tests/bare_root.sh.)"""
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None if name == module else name)
    with pytest.raises(
        bootstrap.SetupError, match=rf"{module} module is missing; .*python{bootstrap.HERE}-venv"
    ):
        bootstrap.create_environment(tmp_path, tmp_path / ".venv")

    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(("oldest", "newest", "age"), [((99, 0), (99, 0), "old"), ((3, 0), (3, 1), "new")])
def test_an_unfit_python_says_which_fit(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    oldest: tuple[int, int],
    newest: tuple[int, int],
    age: str,
) -> None:
    """Where no other Python is found, the line says whether this one is too old or too new."""
    monkeypatch.setattr(bootstrap, "OLDEST", oldest)
    monkeypatch.setattr(bootstrap, "NEWEST", newest)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        bootstrap.SetupError, match=f"is too {age} for this kit; install Python 3.11, 3.12 or 3.13"
    ):
        bootstrap.use_fitting_python([])


def test_the_set_up_goes_on_with_a_python_that_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where python3 is too old but python3.12 is there and runs, that one takes over with the same words."""
    for name, answer in (("python3.13", 127), ("python3.12", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {answer}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 9, 1, "final", 0))
    monkeypatch.setenv("PATH", str(tmp_path))
    taken: list[list[str]] = []
    monkeypatch.setattr(bootstrap.os, "execv", lambda _path, words: taken.append(words))
    with pytest.raises(bootstrap.SetupError):  # the stand-in for execv comes back
        bootstrap.use_fitting_python(["dev"])

    assert taken[0] == [str(tmp_path / "python3.12"), "-m", "labkit.bootstrap", "dev"]


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk is full",
        ),
        ("[Errno 30] Read-only file system: 'x'", "not writable"),
        ("[Errno 13] Permission denied: 'x'", "not writable"),
        ("ConnectTimeoutError(...)\nERROR: No matching distribution found for a==1", "cannot be reached"),
        ("ERROR: No matching distribution found for a==1 (from versions: 2)", "has no a==1 for this machine"),
        ("ERROR: something new", "otherwise"),
    ],
)
def test_a_cause_is_found_in_what_was_printed(printed: str, told: str) -> None:
    """Each known failure is told as what it means; an unknown one keeps its own words."""
    assert told in bootstrap.explain(printed, "otherwise")


def test_an_unreadable_record_counts_as_unfinished(tmp_path: Path) -> None:
    """A record that was damaged makes the set-up begin anew; it is no reason to stop."""
    (tmp_path / bootstrap.RECORD).write_text('{"finished": tr')

    assert bootstrap.read_record(tmp_path) == {"finished": False}


@pytest.mark.parametrize("name", ["__init__.py", "bootstrap.py", "node.py"])
def test_an_old_python_can_read_the_set_up(name: str) -> None:
    """The files that run before anything is installed hold no syntax newer than Python 3.6's."""
    source = (ROOT / "labkit" / name).read_text("utf-8")

    ast.parse(source, feature_version=(3, 6))
    assert "from __future__ import annotations" not in source


def test_the_wished_node_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`LAB_NODE` wins over PATH."""
    wished = fake_node(tmp_path / "wished", "v22.1.0")
    monkeypatch.setenv("PATH", str(fake_node(tmp_path / "path", "v24.0.0").parent))
    monkeypatch.setenv("LAB_NODE", str(wished))

    assert node.find_node() == str(wished)


@pytest.mark.parametrize("answer", ["v18.19.0", "hello"])
def test_an_unfit_node_on_path_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str
) -> None:
    """A Node that is too old, or is none, is as good as missing: the wheel will be installed."""
    monkeypatch.delenv("LAB_NODE", raising=False)
    monkeypatch.setenv("PATH", str(fake_node(tmp_path / "path", answer).parent))
    monkeypatch.setattr(node.sys, "executable", str(tmp_path / "python"))

    assert node.find_node() is None


def test_an_unfit_wish_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A `LAB_NODE` that does not serve is an error, never passed over in silence."""
    monkeypatch.setenv("LAB_NODE", str(fake_node(tmp_path / "old", "v18.0.0")))
    with pytest.raises(node.UnfitNodeError, match="not a Node 20 or later; correct it, or unset it"):
        node.find_node()


def pins(lock: str) -> dict[str, set[Version]]:
    """Read a lock file: package name -> its versions (more than one where they depend on the machine)."""
    found: dict[str, set[Version]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE):
        found.setdefault(name, set()).add(Version(version))
    return found


WANTED = {
    "requirements.lock": PYPROJECT["project"]["dependencies"] + PYPROJECT["dependency-groups"]["build"],
    "requirements-dev.lock": PYPROJECT["dependency-groups"]["dev"],
    "requirements-node.lock": PYPROJECT["dependency-groups"]["node"],
    "requirements-nbgrader.lock": PYPROJECT["dependency-groups"]["nbgrader"],
    "requirements-otter.lock": PYPROJECT["dependency-groups"]["otter"],
}


@pytest.mark.parametrize("lock", WANTED)
def test_a_lock_holds_what_the_project_wants(lock: str) -> None:
    """Each dependency of pyproject.toml is pinned in its lock, at a version that it allows."""
    pinned = pins(lock)
    for wanted in map(Requirement, WANTED[lock]):
        versions = pinned.get(wanted.name.lower(), set())

        assert versions, f"{wanted}: not in {lock}; run python -m labkit.devgate lock"
        assert all(version in wanted.specifier for version in versions), f"{wanted}: {lock} has {versions}"


@pytest.mark.parametrize("lock", WANTED)
def test_a_lock_has_hashes_and_no_address(lock: str) -> None:
    """Every pin brings at least one hash, and no line says where packages come from."""
    text = (ROOT / lock).read_text("utf-8")

    assert all("--hash=sha256:" in entry for entry in re.split(r"\n(?=\S)", text.strip()))
    assert "//" not in text
    assert "--index" not in text


def test_locks_agree() -> None:
    """A package in two locks has one version, or the second installation would undo the first."""
    base = pins("requirements.lock")
    for lock in ("requirements-dev.lock", "requirements-node.lock"):
        assert {name: found for name, found in pins(lock).items() if base.get(name, found) != found} == {}


def test_the_python_range_is_said_once() -> None:
    """The set-up accepts just the versions that pyproject.toml names."""
    oldest, newest = bootstrap.OLDEST, bootstrap.NEWEST

    assert (
        PYPROJECT["project"]["requires-python"] == f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"
    )


def test_what_builds_the_kit_is_installed_with_it() -> None:
    """The kit's build backend is among the locked packages, so that its own installation needs no network."""
    build = {Requirement(line).name for line in PYPROJECT["build-system"]["requires"]}

    assert build <= pins("requirements.lock").keys()


def test_the_record_says_what_is_there(ready: SmallKit) -> None:
    """The record names Python, place and the fingerprint of each part."""
    record = json.loads((ready.root / ".venv" / bootstrap.RECORD).read_text("utf-8"))

    assert record == {
        "finished": True,
        "python": bootstrap.HERE,
        "root": str(ready.root),
        "parts": {"learner": bootstrap.fingerprint(ready.root, "learner")},
    }
