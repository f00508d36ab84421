"""Set-up: makes `.venv` and puts the locked packages and this kit into it. Run by the system's own Python.

    python3 -m labkit.bootstrap            what a learner needs
    python3 -m labkit.bootstrap dev        and a developer's tools

Standard library only. The syntax is Python 3.6's, so that an old Python can read far enough to say it is too old.

`.venv/statelab-setup.json` records what is there. A set-up that was cut short begins anew, because a package
that is half unpacked can look whole to pip; by then the downloads are in pip's cache. Two set-ups at once wait
for each other (not on Windows, which has no such lock in the standard library).
"""

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from labkit.node import UnfitNodeError, find_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

OLDEST = (3, 11)
NEWEST = (3, 13)
LEARNER = "learner"
NODE = "node"
LOCKS = {LEARNER: "requirements.lock", "dev": "requirements-dev.lock", NODE: "requirements-node.lock"}
RECORD = "statelab-setup.json"
LOG = "statelab-setup.log"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"

# What a failed step printed, and what that means with what to do next. The first that fits is told.
CAUSES = (
    (r"No space left on device", "the disk is full; free about 1 GB, then start again"),
    (
        r"Read-only file system|Permission denied",
        "not writable; copy the kit to a folder that is yours, and start there",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "a download is not the file that the lock names; run python3 -m pip cache purge, then start again",
    ),
    (
        r"ConnectionError|NameResolution|name resolution|Timeout|unreachable|ProxyError|IncompleteRead|SSLError",
        "the package index cannot be reached; check the network and pip's proxy setting, then start again",
    ),
    (
        r"No matching distribution found for ([^\s(]+)",
        f"the package index has no {{}} for this machine and Python {HERE}; try another (make setup PYTHON=python3.12)",
    ),
)


class SetupError(Exception):
    """What stopped the set-up, in one line: where, what, what to do next."""


def main(arguments: "list[str] | None" = None) -> int:
    """Set up the parts that were asked for; 0 ready, 1 with one line on what is wrong, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python3 -m labkit.bootstrap",
        description="Make .venv and put the locked packages and this kit into it.",
        epilog="example: python3 -m labkit.bootstrap dev",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="besides what a learner needs: dev, node")
    parts = parser.parse_args(arguments).parts
    for part in set(parts) - set(LOCKS):
        parser.error(f"no part {part}; there are: {', '.join(LOCKS)}")
    root = Path(__file__).resolve().parent.parent
    try:
        use_fitting_python(arguments)
        set_up(root, [LEARNER, *parts])
    except (SetupError, UnfitNodeError) as error:
        say(str(error))
        return 1
    except OSError as error:
        cause = explain(str(error.strerror), f"{error.strerror}; put that right, then start again")
        say(f"{error.filename or root}: {cause}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; start it again, and it makes good what is unfinished")
        return 130
    return 0


def use_fitting_python(arguments: "list[str]") -> None:
    """Return if this Python fits; else go on with one that does, if the machine has one under its usual name."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        name = f"python3.{minor}"
        found = shutil.which(name)
        # A version manager's shim can be there without the Python behind it.
        if found and subprocess.call([found, "-c", ""], stderr=subprocess.DEVNULL) == 0:
            say(f"Python {HERE} does not fit; going on with {name}")
            os.execv(found, [found, "-m", "labkit.bootstrap", *arguments])  # noqa: S606 - no shell is meant
    age = "old" if sys.version_info[:2] < OLDEST else "new"
    raise SetupError(
        f"{sys.executable}: Python {HERE} is too {age} for this kit; "
        "install Python 3.11, 3.12 or 3.13, then name it: make setup PYTHON=python3.13"
    )


def set_up(root: Path, parts: "list[str]") -> None:
    """Bring `.venv` to what the lock files say: instant, and without network, when it is there already."""
    if shutil.which("git") is None:
        raise SetupError(
            "git: not found, and the labs use it; install it (Debian: apt-get install git), start again"
        )
    node = find_node()
    wanted = parts if node else [*parts, NODE]
    folder = root / ".venv"
    if missing_parts(root, folder, wanted):
        with only_one(root):
            missing = missing_parts(root, folder, wanted)  # another set-up may have just ended
            if missing:
                install(root, folder, missing)
    say(f"ready: Python {HERE}, Node {node or 'in .venv'}")


def install(root: Path, folder: Path, parts: "list[str]") -> None:
    """Install the parts. The record says `finished` only while nothing is half done."""
    installed = prepare_environment(root, folder)
    with (folder / LOG).open("w", encoding="utf-8") as log:
        for number, part in enumerate(parts, 1):
            lock = root / LOCKS[part]
            step = Step(f"[{number}/{len(parts)}] {lock.name}", lock.read_text(encoding="utf-8").count("=="))
            pip_install(folder, ["--only-binary", ":all:", "--require-hashes", "-r", str(lock)], log, step)
            if part == LEARNER:
                # All that the kit's own build needs is among the locked packages.
                options = ["--no-deps", "--no-index", "--no-build-isolation", "-e", str(root)]
                pip_install(folder, options, log, Step("      the kit itself"))
                make_location_relative(root, folder)
            installed[part] = fingerprint(root, part)
    write_record(root, folder, installed, finished=True)


def prepare_environment(root: Path, folder: Path) -> "dict[str, str]":
    """Make `.venv`, or keep the one that is there; gives the fingerprints of the parts that are in it."""
    record = read_record(folder)
    if is_whole(record, root, folder):
        installed = dict(record["parts"])
    elif not record and version_of(folder) == HERE:
        installed = {}  # made by hand, and it fits: keep it
    else:
        if folder.exists():
            discard(folder, ours=bool(record))
        create_environment(root, folder)
        installed = {}
    write_record(root, folder, installed, finished=False)
    return installed


def discard(folder: Path, *, ours: bool) -> None:
    """Remove what a set-up left unfinished. Raises `SetupError` for a folder that someone else filled."""
    killed_at_once = folder.is_dir() and all(path.name == RECORD + ".new" for path in folder.iterdir())
    if not (ours or killed_at_once):
        raise SetupError(f"{folder}: is no environment of Python {HERE}; move it away, then start again")
    # Out of the way first: a removal that is cut short must not look like someone else's folder.
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(str(old), ignore_errors=True)
    folder.rename(old)
    shutil.rmtree(str(old))


def create_environment(root: Path, folder: Path) -> None:
    """Make a new `.venv` with pip in it."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise SetupError(
                f"{sys.executable}: its {module} module is missing; "
                f"install it (Debian: apt-get install python{HERE}-venv), then start again"
            )
    import venv  # noqa: PLC0415 - Debian may lack it, which is told above

    folder.mkdir()
    write_record(root, folder, {}, finished=False)  # first of all: what has a record is ours to make anew
    with (folder / LOG).open("w", encoding="utf-8") as log:
        venv.EnvBuilder(symlinks=os.name != "nt").create(str(folder))
        run(
            [*isolated(folder), "-m", "ensurepip", "--default-pip"],
            log,
            Step(f"      .venv for Python {HERE}"),
        )


def pip_install(folder: Path, options: "list[str]", log: "TextIO", step: "Step") -> None:
    """Run pip inside `.venv`; a user's own pip settings still say which index and proxy."""
    quiet = ["--no-input", "--progress-bar", "off", "--disable-pip-version-check", "--retries", "2"]
    run([*isolated(folder), "-m", "pip", "install", *quiet, *options], log, step)


def run(command: "list[str]", log: "TextIO", step: "Step") -> None:
    """Run one command, its output into the log; raises `SetupError` with the cause when it fails."""
    output = []
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env=dict(os.environ, PIP_USER="0", PYTHONUTF8="1"),
        close_fds=False,  # it holds the lock as long as it lives, also when this process is killed
    )
    with process:
        try:
            for line in process.stdout or ():
                log.write(line)
                output.append(line)
                step.show(line)
        except BaseException:
            process.terminate()
            step.end("stopped")
            raise
    if process.returncode != 0:
        step.end("failed")
        said = [line for line in output if line.startswith("ERROR")] or output or ["nothing"]
        cause = explain("".join(output), f"pip says: {said[-1].strip()}; all of it is in {log.name}")
        raise SetupError(f"{step.title.strip()}: {cause}")
    step.end()


def explain(text: str, otherwise: str) -> str:
    """Find the cause in what was printed; the first line of it that is known, with what to do next."""
    for pattern, advice in CAUSES:
        match = re.search(pattern, text)
        if match:
            return advice.format(*match.groups())
    return otherwise


def make_location_relative(root: Path, folder: Path) -> None:
    """Write the kit's place into the environment as `../..`, without the folder's own name.

    Python before 3.13 reads a `.pth` file in the locale's encoding: a path in Chinese, written as UTF-8, is
    lost where the locale is another one, and the kit cannot be imported.
    """
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder)}))
    for entry in packages.glob("*.pth"):
        if entry.read_bytes().strip() == os.fsencode(str(root)):
            entry.write_text(os.path.relpath(str(root), str(packages)) + "\n", encoding="ascii")


def missing_parts(root: Path, folder: Path, wanted: "list[str]") -> "list[str]":
    """Name the wanted parts that are missing or differ from their lock file; all, where `.venv` cannot be kept."""
    record = read_record(folder)
    if not is_whole(record, root, folder):
        return wanted
    return [part for part in wanted if record["parts"].get(part) != fingerprint(root, part)]


def is_whole(record: "dict[str, Any]", root: Path, folder: Path) -> bool:
    """Tell whether a finished set-up is there, made here and for this Python: scripts hold absolute paths."""
    whole = {"finished": True, "python": HERE, "root": str(root)}
    return all(record.get(name) == value for name, value in whole.items()) and python_of(folder).exists()


def read_record(folder: Path) -> "dict[str, Any]":
    """Read what the last set-up left; empty when there was none. What cannot be read counts as unfinished."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError:
        return {"finished": False}
    return record if isinstance(record, dict) else {"finished": False}


def write_record(root: Path, folder: Path, parts: "dict[str, str]", *, finished: bool) -> None:
    """Replace the record in one step: a reader sees the old one or the new one."""
    record = {"finished": finished, "python": HERE, "root": str(root), "parts": parts}
    new = folder / (RECORD + ".new")
    new.write_text(json.dumps(record, indent=1), encoding="utf-8")
    new.replace(folder / RECORD)


def fingerprint(root: Path, part: str) -> str:
    """Hash what decides a part's contents: its lock file, and for the kit itself also pyproject.toml."""
    names = [LOCKS[part]] + (["pyproject.toml"] if part == LEARNER else [])
    return hashlib.sha256(b"".join((root / name).read_bytes() for name in names)).hexdigest()


def python_of(folder: Path) -> Path:
    """Give the environment's own Python."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def isolated(folder: Path) -> "list[str]":
    """Give the words that start the environment's Python without the user's PYTHON* settings."""
    return [str(python_of(folder)), "-I"]


def version_of(folder: Path) -> str:
    """Ask an environment for its Python version, like `3.11`; empty when there is none that runs."""
    try:
        question = "import sys; print('%d.%d' % sys.version_info[:2])"
        return subprocess.check_output([*isolated(folder), "-c", question]).decode("ascii").strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@contextlib.contextmanager
def only_one(root: Path) -> "Iterator[None]":
    """Let one set-up at a time work here; the operating system drops the lock with its last holder."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    with (root / "pyproject.toml").open("rb") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - its only form
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is at work here; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Step:
    """One line of progress: rewritten in place on a terminal, said at the start and end in a log."""

    def __init__(self, title: str, packages: int = 0) -> None:
        self.title = title
        self.packages = packages
        self.seen = 0
        self.began = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self._write("...")

    def show(self, line: str) -> None:
        """Take one line of pip's and show how far it has come."""
        if line.startswith(("Collecting ", "Requirement already ", "Ignoring ")):
            self.seen += 1
        elif self.packages and line.startswith("Installing collected"):
            self._write("unpacking ...")
            return
        if self.terminal and self.packages:
            name = line.split()[1] if line.startswith("Collecting ") else ""
            self._write(f"{min(self.seen, self.packages)} of {self.packages}  {name.split('==')[0]}")

    def end(self, word: str = "done") -> None:
        """Close the line with the time that the step took."""
        self._write(f"{word}, {time.monotonic() - self.began:.0f} s", last=True)

    def _write(self, text: str, *, last: bool = False) -> None:
        if self.terminal:
            print(
                f"\r\x1b[Ksetup: {self.title}: {text}", end="\n" if last else "", file=sys.stderr, flush=True
            )
        else:
            say(f"{self.title}: {text}")


def say(message: str) -> None:
    """Print one line for the person who waits."""
    print(f"setup: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
