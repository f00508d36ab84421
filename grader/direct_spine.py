"""Lesson 04's labs in process: for a developer with a debugger, on the solution, the mutants and harmless samples.

No verdict comes from here. The pipe's own host does the work (`child/spine_host.py`), only without its forks: a round
or a question runs in this process, its modules loaded anew, from the files that the developer edits, so that a
breakpoint in them is met. Where the runner is to be killed, a fork it stays, without a box. Nothing is limited here, and
what a round leaves running is not ended.
"""

from __future__ import annotations

import bdb
import contextlib
import json
import os
import pdb  # noqa: T100 - this is for a developer who debugs
import sys
import tempfile
import warnings
from itertools import count
from typing import TYPE_CHECKING, Any

from grader import rungs, spine_template, temporary
from grader.child import spine_host
from grader.intake import Handin
from grader.lab import STUDENT_ERRORS
from grader.spine import Garden, Ran, SpineLab, rebuilt
from labkit.faults import file_layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from grader.lab import Rule

PACKAGE = spine_host.PACKAGE
_DEBUGGER = "PYTHONBREAKPOINT"  # names the developer's own


@contextlib.contextmanager
def direct_spine(package: Path) -> Iterator[Callable[[Random], SpineLab]]:
    """Give what makes the lab of one check, on the lesson folder `package` (for example `solution/lesson_04`).

    Raises: FileNotFoundError for a folder without the two files; SpineUnready when a tool of the lab is missing.
    """
    names = [f"{PACKAGE}/{name}.py" for name in spine_host.EXERCISE]
    handin = Handin("04", {name: (package / name).read_bytes() for name in names})
    root = temporary.make()
    try:
        for name in ("code", "work", "home"):
            (root / name).mkdir()
        spine_template.lay_down(handin, root / "code")
        host, numbers = DirectHost(root, package), count(1)
        yield lambda draw: DirectSpineLab(host, root / "work", f"{next(numbers):03}", draw)
    finally:
        temporary.remove(root)


class DirectSpineLab(SpineLab):
    """See `grader.spine.SpineLab`."""

    def __init__(self, host: DirectHost, root: Path, name: str, draw: Random) -> None:
        super().__init__(self._done, root, name, draw)
        (root / name).mkdir()
        self.host = host

    async def lay(self, kind: str = "bench") -> Garden:
        """Lay one more lab down."""
        return DirectGarden(self, (await super().lay(kind)).place)

    async def _done(self, op: str, _seconds: float, **fields: Any) -> Any:
        """Do one operation with what would arrive over the pipe: the same JSON, no shared object."""
        reply = self.host.answer(json.loads(json.dumps({"op": op, **fields})))
        if "err" in reply:
            raise rebuilt(reply["err"])
        return reply["ok"]


class DirectGarden(Garden):
    """See `grader.spine.Garden`."""

    _lab: DirectSpineLab

    async def asked(
        self, scenario: str, given: Any = None, *, rules: Sequence[Rule] | None = None, may_die: bool = False
    ) -> Ran:
        """Ask; an error comes with the student's own behind it, and so with its place and its values."""
        try:
            return await super().asked(scenario, given, rules=rules, may_die=may_die)
        except STUDENT_ERRORS as error:
            raise error from self._lab.host.raised


class DirectHost(spine_host.SpineHost):
    """The host of the pipe, in this process. `raised` is what the latest round or question let out, if it did.

    `root` holds `code`, `work` and an empty `home`.
    """

    def __init__(self, root: Path, package: Path) -> None:
        super().__init__(root / "work", root / "code", file_layer, in_fork=_print_to_the_descriptors)
        self._describer = spine_host.host.Describer(package)
        self._environment = rungs.environment(str(root / "home"))
        self._environment["PATH"] = os.pathsep.join([str(root / "code" / "tools"), os.defpath])
        if _DEBUGGER in os.environ:
            self._environment[_DEBUGGER] = os.environ[_DEBUGGER]
        self.raised: BaseException | None = None
        lesson = root / "code" / "lesson"
        for folder in (lesson / "tools", lesson / PACKAGE, package / PACKAGE):
            for file in folder.glob("*.py"):
                raw = file.read_bytes()
                with contextlib.suppress(SyntaxError, ValueError):  # the import of it says so, in its turn
                    self._compiled[raw] = compile(raw, str(file), "exec", dont_inherit=True)

    def _do_run(
        self,
        place: str,
        words: list[str],
        rules: list[Any] | None,
        env: dict[str, str],
        *,
        real: bool,  # noqa: ARG002 - a command of its own is out of a debugger's reach
    ) -> dict[str, Any]:
        """Run one of the lab's tools."""
        return super()._do_run(place, words, rules, env, real=False)

    def _apart(
        self, lab: Path, deed: Callable[[spine_host.Told], int], rules: list[Any] | None, env: dict[str, str]
    ) -> dict[str, Any]:
        """Do it here, or in a fork when it would end this process."""
        self.raised = None
        with _as_if_alone(lab, self._environment | env):
            if _kills(lab, rules):
                return super()._apart(lab, deed, rules, env)
            sys.path.insert(0, str(lab))
            sys.meta_path.insert(0, spine_host.LabFinder(lab, self._compiled))
            return self._here(lab, deed, rules)

    def _here(
        self, lab: Path, deed: Callable[[spine_host.Told], int], rules: list[Any] | None
    ) -> dict[str, Any]:
        told: spine_host.Told = {}
        with _printed() as texts:
            try:
                with _armed(rules, lab, told):
                    code = deed(told)
            except (KeyboardInterrupt, bdb.BdbQuit):
                raise
            except BaseException as error:  # noqa: BLE001 - whatever a student's code raises is an answer
                self.raised, code = error, 1
                told["error"] = self._describer.describe(error, "call")
        return {"exit": code, "signal": None, **texts, "told": json.dumps(told)}


def _kills(lab: Path, rules: Sequence[Mapping[str, Any]] | None) -> bool:
    """Say whether a fault, or a program of the lab by its orders, ends the process that runs the round."""
    orders = [path for path in (lab.parent / "orders").iterdir() if path.is_file()]
    return any("kill" in rule["do"] for rule in rules or ()) or any(
        b"$PPID" in path.read_bytes() for path in orders
    )


@contextlib.contextmanager
def _as_if_alone(lab: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Let a round find what it would in a process of its own; put back, after it, what it may have changed."""
    with contextlib.ExitStack() as back:
        back.callback(_take_package, _take_package({}))
        for name in ("argv", "breakpointhook", "meta_path", "path", "stderr", "stdout"):
            back.callback(setattr, sys, name, getattr(sys, name))
        sys.path, sys.meta_path = sys.path[:], sys.meta_path[:]
        if sys.breakpointhook is sys.__breakpointhook__ and _DEBUGGER not in os.environ:
            sys.breakpointhook = _debug_at_the_terminal
        back.callback(_replace_environment, dict(os.environ))
        _replace_environment(environment)
        back.callback(os.umask, os.umask(0o022))
        back.enter_context(contextlib.chdir(lab))
        back.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def _take_package(new: Mapping[str, Any]) -> dict[str, Any]:
    """Put these in place of the loaded modules of the lab's package; give those."""
    names = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    taken = {name: sys.modules.pop(name) for name in names}
    sys.modules.update(new)
    return taken


def _replace_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


@contextlib.contextmanager
def _printed() -> Iterator[dict[str, str]]:
    """Keep what is printed: the texts `out` and `err` are there once this is left."""
    texts: dict[str, str] = {}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as err,
    ):
        sys.stdout, sys.stderr = out, err
        yield texts
        for name, file in (("out", out), ("err", err)):
            file.seek(0)
            texts[name] = file.read()


@contextlib.contextmanager
def _armed(rules: list[Any] | None, lab: Path, told: spine_host.Told) -> Iterator[None]:
    """Have these faults below the lab; tell what the file layer saw."""
    if rules is None:
        yield
        return
    file_layer.install()
    try:
        file_layer.arm(rules, lab)
        yield
    finally:
        file_layer.disarm()
        told["log"] = file_layer.log()
        file_layer.uninstall()


def _print_to_the_descriptors() -> None:
    """In a fork: whoever runs this process may have put something else in the place of stdout and stderr."""
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115


def _debug_at_the_terminal(*_arguments: object, **_options: object) -> None:
    """Stop at the caller's `breakpoint()`, past stdout: what a round prints there is its answer."""
    asked, told = (open("/dev/tty", mode, encoding="utf-8") for mode in "rw")  # noqa: PTH123, SIM115
    pdb.Pdb(stdin=asked, stdout=told, nosigint=True).set_trace(sys._getframe(1))  # noqa: SLF001
