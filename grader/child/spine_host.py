"""The one program that runs a student's spine: every round, and every question, in a process of its own.

Started like `host.py`, and on the same line (docs/grader-pipe.md, "Lesson 04"). It loads what the lab is given with
once, and the student's modules never: those are loaded in its forks, which cannot reach the line. A round is the lab's
own command. Standard library only, and nothing is judged here.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

Told = dict[str, Any]
"""What a fork tells at its end, as far as there is any: `loaded`, `value`, `error`, and `log` of the file layer."""

PACKAGE = "issue_garden"
EXERCISE = ("state_store", "stateful_round")
HANDED_IN = "handed-in"
"""Stands before the names of the student's files, so that a place in them is known as theirs."""

_GIVEN_FIRST = ("_pyio", "argparse", "ctypes", "hashlib", "secrets", "threading")
"""What every round would load by itself."""

_MAX_OUT = (
    48 * 1024
)  # bytes kept of what a process printed: both outputs, at six characters a byte, fit into one reply
_MAX_TOLD = 1024 * 1024
_FAILED = 70


def _sibling(name: str) -> ModuleType:
    """Load another program of this folder: nothing of the kit can be imported by its name here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


host = _sibling("host")


class KnownLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of the lab from the bytes that stand there now, compiled only once for all forks."""

    def __init__(self, name: str, path: str, compiled: dict[bytes, CodeType]) -> None:
        super().__init__(name, path)
        self._compiled = compiled

    def get_code(self, fullname: str) -> CodeType:
        """Give the code of these very bytes."""
        raw = Path(self.path).read_bytes()
        return self._compiled.get(raw) or compile(raw, shown_name(fullname), "exec", dont_inherit=True)


class LabFinder:
    """Finds the lab's modules in the lab, whatever else is on the path; `refused` are not to be loaded at all."""

    def __init__(self, lab: Path, compiled: dict[bytes, CodeType], refused: Sequence[str] = ()) -> None:
        self._lab = lab
        self._compiled = compiled
        self._refused = refused

    def find_spec(
        self,
        fullname: str,
        path: Any = None,  # noqa: ARG002 - the finder protocol's
        target: Any = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Answer Python's import."""
        package, _, name = fullname.partition(".")
        file = self._lab / PACKAGE / f"{name}.py"
        if package != PACKAGE or not name or not file.is_file():
            return None
        if name in self._refused:
            raise ImportError(f"{name}: only a fork loads this")
        loader = KnownLoader(fullname, str(file), self._compiled)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


def shown_name(fullname: str) -> str:
    """Give the name under which a module's lines stand in a traceback."""
    name = fullname.rpartition(".")[2]
    return f"{HANDED_IN if name in EXERCISE else PACKAGE}/{name}.py"


class SpineHost:
    """Does what the grader asks for: lays labs down, changes them, runs rounds in them, asks the student's functions.

    `work` is the folder below which labs stand, `code` the one that holds the templates, `layer` the file layer;
    `in_fork` is called first in every fork.
    """

    def __init__(
        self, work: Path, code: Path, layer: ModuleType, in_fork: Callable[[], None] = lambda: None
    ) -> None:
        self._work = work
        self._code = code
        self._layer = layer
        self._in_fork_first = in_fork
        self._gates: list[int] = []
        self._templates: dict[str, list[tuple[str, bytes | str | None]]] = {}
        self._compiled: dict[bytes, CodeType] = {}
        self._describer = host.Describer(Path(HANDED_IN))

    def prepare(self) -> None:
        """Load what every fork needs, and compile the rest: compiling runs nothing of it."""
        for name in _GIVEN_FIRST:
            importlib.import_module(name)
        lab = self._code / "lesson"
        for file in [*(lab / PACKAGE).glob("*.py"), *(lab / "tools").glob("*.py")]:
            raw = file.read_bytes()
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                self._compiled[raw] = compile(raw, shown_name(file.stem), "exec", dont_inherit=True)
        finder = LabFinder(lab, self._compiled, EXERCISE)
        sys.meta_path.insert(0, finder)
        sys.path.insert(0, str(lab))
        for file in sorted((lab / PACKAGE).glob("*.py")):
            with contextlib.suppress(ImportError):  # it needs the student's, or is it
                importlib.import_module(f"{PACKAGE}.{file.stem}")
        sys.path.remove(str(lab))
        sys.meta_path.remove(finder)
        gc.freeze()  # a fork would copy what is only counted

    def answer(self, operation: dict[str, Any]) -> dict[str, Any]:
        """Do one operation; give its answer as `ok`, or the described error as `err`."""
        try:
            return {"ok": getattr(self, f"_do_{operation.pop('op')}")(**operation)}
        except (OSError, ValueError, subprocess.CalledProcessError) as error:  # the lab is not as it was left
            return {"err": self._describer.describe(error, "call")}

    # --- what the lab is made of ---

    def _do_lay(self, kind: str, place: str) -> list[Any]:
        """Make `place` a folder with a lab, what its programs are ordered, what they saw, and the program itself.

        The lab of kind `bare` has nothing but the code.
        """
        folder = self._work / place
        (folder / "lab").mkdir(parents=True)
        if kind == "bare":
            (folder / "lab" / PACKAGE).symlink_to(self._code / "lesson" / PACKAGE)
        else:
            self._lay_template(kind, folder / "lab")
        for name in ("orders", "seen"):
            (folder / name).mkdir()
        (folder / "look").symlink_to(self._code / "look")
        return []

    def _lay_template(self, kind: str, lab: Path) -> None:
        """Write a template out, from memory after the first time: there are dozens of labs in one submission."""
        if kind not in self._templates:
            self._templates[kind] = list(_read_folder(self._code / kind))
        for name, content in self._templates[kind]:
            path = f"{lab}/{name}"
            if content is None:
                os.mkdir(path)  # noqa: PTH102 - as plain and fast as can be
            elif isinstance(content, str):
                os.symlink(content, path)  # noqa: PTH211
            else:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
                os.write(descriptor, content)
                os.close(descriptor)

    def _do_deeds(self, place: str, deeds: list[list[Any]]) -> list[Any]:
        for name, *arguments in deeds:
            getattr(self, f"_deed_{name}")(self._work / place, *arguments)
        return []

    def _deed_write(self, lab: Path, name: str, content: str) -> None:
        path = lab / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(bytes.fromhex(content))

    def _deed_mode(self, lab: Path, name: str, octal: str) -> None:
        (lab / name).chmod(int(octal, 8))

    def _deed_delete(self, lab: Path, name: str) -> None:
        (lab / name).unlink()

    def _deed_move(self, lab: Path, name: str, target: str) -> None:
        (lab / name).rename(lab / target)

    def _deed_link(self, lab: Path, name: str, target: str) -> None:
        (lab / name).unlink(missing_ok=True)
        (lab / name).symlink_to(target)

    def _deed_folder(self, lab: Path, name: str) -> None:
        (lab / name).mkdir(parents=True)

    def _deed_git(self, lab: Path, *arguments: str) -> None:
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", *arguments], cwd=lab, env=os.environ | quiet, capture_output=True, check=True)

    def _deed_gate(self, lab: Path, name: str) -> None:
        """Make a gate at which a program of the lab waits until it is opened."""
        os.mkfifo(lab / name)
        self._gates.append(os.open(lab / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))

    def _deed_open(self, _lab: Path) -> None:
        """Open all gates."""
        for gate in self._gates:
            os.write(gate, b"\n")

    def _deed_await_unlocked(self, lab: Path, name: str) -> None:
        """Wait until nobody holds the lock of this file."""
        with (lab / name).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)

    # --- what runs beside the student's code ---

    def _do_run(
        self, place: str, words: list[str], rules: list[Any] | None, env: dict[str, str], *, real: bool
    ) -> dict[str, Any]:
        """Run one of the lab's tools: in a fork that has Python started already, or `real`ly as its command."""
        lab = self._work / place

        def as_command(_told: Told) -> NoReturn:
            os.execve(  # noqa: S606 - no shell is meant
                sys.executable, [sys.executable, "-I", "-S", "-B", "-X", "utf8", *words], dict(os.environ)
            )

        def in_python(_told: Told) -> int:
            sys.argv = words
            raw = (lab / words[0]).read_bytes()
            code = self._compiled.get(raw) or compile(raw, words[0], "exec", dont_inherit=True)
            names = {"__name__": "__main__", "__file__": str(lab / words[0])}
            try:
                exec(code, names)  # noqa: S102 - the lab's own command, as Python would start it
            except SystemExit as leaving:
                return leaving.code if type(leaving.code) is int else int(leaving.code is not None)
            return 0

        return self._apart(lab, as_command if real else in_python, rules, env)

    def _do_ask(self, place: str, source: str, given: Any, rules: list[Any] | None) -> dict[str, Any]:
        """Run `scenario(lab, given)` of trusted source, with the student's modules loaded."""
        lab = self._work / place

        def scenario(told: Told) -> int:
            self._load(told)
            names: dict[str, Any] = {"__name__": "scenario"}
            exec(compile(source, "<scenario>", "exec"), names)  # noqa: S102 - the grader's own source
            told["value"] = host.plain(names["scenario"](lab, given))
            return 0

        return self._apart(lab, scenario, rules, {})

    def probe(self) -> dict[str, Any] | None:
        """Load the student's modules once, in a fork; give the described error when that fails."""
        ended = self._apart(self._code / "lesson", self._load, None, {})
        try:
            told = json.loads(ended["told"])
        except ValueError:
            told = {}
        if "loaded" in told:
            return None
        cut_short = self._describer.describe(ImportError("the import did not come to its end"), "load")
        return {**told.get("error", cut_short), "when": "load"}

    @staticmethod
    def _load(told: Told) -> int:
        for name in EXERCISE:
            importlib.import_module(f"{PACKAGE}.{name}")
        told["loaded"] = True
        return 0

    def _apart(
        self, lab: Path, deed: Callable[[Told], int], rules: list[Any] | None, env: dict[str, str]
    ) -> dict[str, Any]:
        """Do it in a fork, wait for its end, end what it left in its group, and say how it ended."""
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            tempfile.TemporaryFile() as told,
        ):
            files = [file.fileno() for file in (out, err, told)]
            child = os.fork()
            if child == 0:
                self._in_fork(lab, deed, rules, env, files)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            texts = [
                _content(file, most)
                for file, most in zip(files, (_MAX_OUT, _MAX_OUT, _MAX_TOLD), strict=True)
            ]
        ended = {"exit": status if status >= 0 else None, "signal": -status if status < 0 else None}
        return ended | dict(zip(("out", "err", "told"), texts, strict=True))

    def _in_fork(
        self,
        lab: Path,
        deed: Callable[[Told], int],
        rules: list[Any] | None,
        env: dict[str, str],
        files: list[int],
    ) -> NoReturn:
        """Become the process of one round: do the deed, tell of it, and end with its exit code."""
        write, leave, encode, layer = os.write, os._exit, json.dumps, self._layer
        told: Told = {}
        code = _FAILED
        try:
            self._in_fork_first()
            os.setsid()
            os.chdir(lab)
            os.dup2(files[0], 1)
            os.dup2(files[1], 2)
            os.environ.update(env)
            if rules is not None:
                layer.install()
                layer.arm(rules, lab)
            sys.path.insert(0, str(lab))
            sys.meta_path.insert(0, LabFinder(lab, self._compiled))
            code = deed(told)
        except BaseException as error:  # noqa: BLE001 - whatever a student's code raises is an answer
            told["error"], code = self._describer.describe(error, "call"), 1
        try:
            sys.stdout.flush()
            if rules is not None:
                layer.disarm()
                told["log"] = layer.log()
            write(files[2], encode(told).encode())
        finally:
            leave(code)


def _read_folder(root: Path) -> Iterator[tuple[str, bytes | str | None]]:
    """Give every folder (None), link (where it points) and file below `root`, each after the folder that it is in."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        yield (
            name,
            str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes(),
        )


def _content(descriptor: int, most: int) -> str:
    """Give what stands in a file of our own, as text; of more than `most` bytes, the last ones."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, most, max(0, size - most)).decode("utf-8", "replace")


def main() -> None:
    """Close the student in, see whether the code loads, and serve the line until it closes."""
    settings = json.loads(sys.argv.pop())
    channel = socket.socket(fileno=settings["channel"])
    channel.set_inheritable(False)
    host.limit_self(settings["limits"])
    os.environ["PATH"] = os.pathsep.join([f"{settings['code']}/tools", os.environ["PATH"]])
    layer = host.load("file_layer", Path(settings["faults"]))

    def in_fork() -> None:
        os.close(settings["channel"])
        host.keep_from_looks(kept=False)
        host.look_into_nobody()

    host.keep_from_looks(kept=True)  # else a fork, of the same user, would take the line out of this process
    spine = SpineHost(Path.cwd(), Path(settings["code"]), layer, in_fork)
    spine.prepare()
    error = spine.probe()
    with channel, channel.makefile("rb") as lines:
        _send(channel, {"id": 0, "err": error} if error else {"id": 0, "ok": []})
        for line in lines:
            for operation in json.loads(line):
                _send(channel, {"id": operation.pop("id"), **spine.answer(operation)})


def _send(channel: socket.socket, reply: dict[str, Any]) -> None:
    channel.sendall(json.dumps(reply, allow_nan=False, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
