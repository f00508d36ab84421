"""The one program that loads a student's code. It does what the pipe says and answers in plain JSON.

Started as `python -I -S -B host.py SETTINGS` by `grader/sandbox.py`; the messages are in `docs/grader-pipe.md`.
Standard library only, and nothing is judged here: whatever runs beside a student's code can be lied to.
"""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures.thread  # noqa: F401 - nobody here needs it: with the next two, it is ready in every fork
import contextlib
import dataclasses  # noqa: F401
import gc
import hashlib  # noqa: F401
import importlib.util
import json
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_MAX_TEXT = 400  # characters of an error's own words
_MAX_TURN = 1 << 28  # bytes of one line from the grader, which is trusted
_SCALARS = (str, int, float, bool, type(None))
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def plain(value: Any) -> Any:
    """Copy a JSON value, by exact type: a subclass could compare, hash or print as it likes (G1).

    Raises: TypeError for anything else; RecursionError for a cycle.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        return [plain(item) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: plain(item) for key, item in value.items()}
    raise TypeError(f"gave back {kind.__name__} where plain JSON is due")


def event(value: Any) -> list[Any]:
    """Give one SessionEvent as [sequence, type, data]."""
    return [plain(value.sequence), plain(value.type), plain(value.data)]


def events(value: Any) -> list[Any]:
    """Give what `read` returned: a list of events, each as [sequence, type, data]."""
    if type(value) is not list:
        raise TypeError(f"read gave back {type(value).__name__} where a list is due")
    return [event(item) for item in value]


_SHAPES: dict[str, Callable[[Any], Any]] = {"append": event, "read": events}


class Raised(NamedTuple):
    """A call that failed before there was anything to await, already described."""

    error: dict[str, Any]


class Describer:
    """Tells what an exception is, although every part of it may be the student's own and may raise or lie."""

    def __init__(self, code: Path) -> None:
        self._code = str(code)
        known = [kind for kind in vars(builtins).values() if isinstance(kind, type)]
        self._names = {id(kind): kind.__name__ for kind in known if issubclass(kind, BaseException)}
        self._names[id(asyncio.CancelledError)] = "CancelledError"

    def know(self, kind: Any, name: str) -> None:
        """Call exactly this class by this name from now on."""
        self._names[id(kind)] = name

    def describe(self, error: BaseException, when: str) -> dict[str, Any]:
        """Give types (nearest first), attributes, text and place; `when` is load, call, await or encode."""
        return {
            "types": _guarded(lambda: self._types(error), []),
            "attrs": {
                name: found
                for name in ("line", "path", "errno")
                if (found := _attribute(error, name)) is not None
            },
            "text": _guarded(lambda: _text(str(error)), ""),
            "where": _guarded(lambda: self._place(error), ""),
            "when": when,
        }

    def _types(self, error: BaseException) -> list[str]:
        """Name known classes by identity. Any other gets a dot in its name: it cannot pass for a known one."""
        mro = type.__dict__["__mro__"].__get__(type(error))
        return [self._names.get(id(kind)) or _dotted(kind) for kind in mro[:-1]]

    def _place(self, error: BaseException) -> str:
        """Give the student's own line that raised it, as `file.py:line`."""
        place = ""
        if isinstance(error, SyntaxError) and error.filename:
            place = f"{Path(error.filename).name}:{error.lineno}"
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file.startswith(self._code):
                place = f"{Path(file).name}:{trace.tb_lineno}"
            trace = trace.tb_next
        return _text(place)


def _guarded(look: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return look()
    except BaseException:  # noqa: BLE001 - the student's own object raised while it was looked at
        return otherwise


def _dotted(kind: type) -> str:
    return f"{_text(kind.__module__).rpartition('.')[2]}.{_text(kind.__name__)}"


def _attribute(error: BaseException, name: str) -> Any:
    def look() -> Any:
        found = getattr(error, name, None)
        if isinstance(found, os.PathLike):
            found = os.fspath(found)
        if type(found) is str:
            return _text(found)
        _encode(found if type(found) in _SCALARS else None)  # NaN and endless integers are no attributes
        return found if type(found) in _SCALARS else type(found).__name__

    return _guarded(look, None)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("no plain text")
    return value[:_MAX_TEXT]


class Host:
    """The student's module, the stores and calls of this child, and the line on which it answers."""

    def __init__(
        self, answer: Callable[[bytes], Any], lesson: ModuleType, describer: Describer, faults: Any
    ) -> None:
        self._write = answer
        self._lesson = lesson
        self._describer = describer
        self._faults = faults
        self._stores: dict[int, Any] = {}
        self._calls: dict[int, tuple[Any, Callable[[Any], Any]]] = {}

    def take_turn(self, operations: list[dict[str, Any]]) -> None:
        """Do what the grader did in one turn of its loop, in that order and with nothing in between."""
        for operation in operations:
            deed = getattr(self, f"_do_{operation.pop('op')}")
            deed(operation.pop("id"), **operation)

    def _do_forget(self, _id: int) -> None:
        """Let go of what the last check opened: a store may own a thread, and threads are limited."""
        self._stores.clear()
        self._calls.clear()
        gc.collect()

    def _do_open(self, id_: int, path: str) -> None:
        self._stores[id_] = self._attempt(lambda: self._lesson.JsonlSessionStore(path))

    def _do_call(self, id_: int, on: int, m: str, a: list[Any]) -> None:
        store = self._stores[on]
        made = store if isinstance(store, Raised) else self._attempt(lambda: getattr(store, m)(*a))
        self._calls[id_] = made, _SHAPES[m]

    def _do_scenario(self, id_: int, source: str, folder: str, given: Any) -> None:
        names: dict[str, Any] = {"__name__": "scenario"}
        exec(compile(source, "<scenario>", "exec"), names)  # noqa: S102 - the grader's own source
        made = self._attempt(lambda: names["scenario"](self._lesson, Path(folder), given))
        self._calls[id_] = made, plain
        self._do_await(id_)

    def _do_await(self, id_: int) -> None:
        future = self._begin(id_)
        told = future
        if not isinstance(future, Raised):
            # A done-callback answers: a task around the future, cancelled before its first step, never would.
            told = self._attempt(lambda: future.add_done_callback(lambda done: self._finish(id_, done)))
        if isinstance(told, Raised):
            self._answer(id_, err=told.error)

    def _do_cancel(self, id_: int) -> None:
        if id_ in self._calls:  # an answered call is past cancelling
            future = self._begin(id_)
            self._attempt(lambda: None if isinstance(future, Raised) else future.cancel())

    def _do_arm(self, id_: int, rules: list[Any], folder: str) -> None:
        self._faults.arm(rules, root=folder)
        self._answer(id_, ok=[])

    def _do_disarm(self, id_: int) -> None:
        seen = self._faults.log()
        self._faults.disarm()
        self._answer(id_, ok=seen)

    def _attempt(self, deed: Callable[[], Any], when: str = "call") -> Any:
        try:
            return deed()
        except BaseException as error:  # noqa: BLE001 - whatever a student raises is an answer, not our end
            return Raised(self._describer.describe(error, when))

    def _begin(self, id_: int) -> Any:
        """Turn what the call gave back into a future; a coroutine runs only from here on, as when awaited."""
        made, shape = self._calls[id_]
        if not isinstance(made, Raised):
            made = self._attempt(lambda: asyncio.ensure_future(made), "await")
            self._calls[id_] = made, shape
        return made

    def _finish(self, id_: int, done: Any) -> None:
        shape = self._calls.pop(id_)[1]
        result = self._attempt(done.result, "await")
        if not isinstance(result, Raised):
            result = self._attempt(lambda: _encode(shape(result)), "encode")
        if isinstance(result, Raised):
            self._answer(id_, err=result.error)
        else:
            self._write(f'{{"id":{id_},"ok":{result}}}\n'.encode())

    def _answer(self, id_: int, **content: Any) -> None:
        self._write((_encode({"id": id_, **content}) + "\n").encode())


def limit_self(limits: dict[str, int]) -> None:
    """Keep these limits from now on, lower than what the system allows already; without root, there is no way back."""
    import resource  # noqa: PLC0415 - POSIX only, like every sandbox that starts this program

    for name, most in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        # Processor time: at the soft limit comes a signal that says so, at the hard one SIGKILL.
        top = most + 1 if name == "RLIMIT_CPU" else most
        top = top if hard == resource.RLIM_INFINITY else min(top, hard)
        try:
            resource.setrlimit(kind, (min(most, top), top))
        except (ValueError, OSError):
            if sys.platform == "linux":  # macOS has no address space limit; the report's rung says what holds
                raise


def load(name: str, file: Path) -> ModuleType:
    """Load one module or package from its file, under this name."""
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name}: is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


async def serve(channel: socket.socket, lesson: ModuleType, describer: Describer, faults: Any) -> None:
    """Say that this child is ready, then take turns until the grader closes the line."""
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=_MAX_TURN)
    host = Host(writer.write, lesson, describer, faults)
    writer.write(b'{"id":0,"ok":[]}\n')
    while line := await reader.readline():
        host.take_turn(json.loads(line))
        await asyncio.sleep(0)  # the grader's loop moved on between two lines, so this one does too


def run_to_the_end(task: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Run until the line closes, also over the SystemExit and KeyboardInterrupt that asyncio lets out of a task."""
    while not (task.done() or loop.is_closed()):
        try:
            loop.run_until_complete(task)
        except BaseException:  # noqa: BLE001, S112 - it has its answer: the failed call's
            continue


# --- one process from which all children of a box are forked ---

_KEPT_FROM_LOOKS, _ADOPTS_ORPHANS = 4, 36  # of prctl
_NO_NEW_PRIVILEGES = 38
_CREATE_RULES, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # Landlock's calls
_BELOW_PATH, _MOVE_BETWEEN_FOLDERS = 1, 1 << 13
_STILL_RUNNING = 999
_NATURAL_END_SECONDS = 0.5


def fork_when_asked(control: socket.socket) -> tuple[socket.socket, bool]:
    """Fork a child for each `+` or `f` on the line, tell how it ended for `?`, and end all but this process for `-`.

    Comes back in the children only, with their channel, and whether it was `f`: with the file layer. No student's code
    runs here: what a child does to its memory is lost with it. Other processes of its user may not look into this one;
    they may kill it, and everything ends with it.
    """
    keep_from_looks(kept=True)
    adopt_orphans(wanted=True)
    child, status = 0, None
    while True:
        word, lines, _, _ = socket.recv_fds(control, 1, 1)
        if word in (b"+", b"f"):
            child, status = os.fork(), None
            if child == 0:
                control.close()
                keep_from_looks(kept=False)
                look_into_nobody()
                adopt_orphans(wanted=False)
                os.setsid()
                return socket.socket(fileno=lines[0]), word == b"f"
            os.close(lines[0])
        else:
            status = _naturally_ended(child) if word == b"?" else _end_everyone(child, status)
            if not word:  # the grader is gone
                os._exit(0)
            control.sendall(b"%d\n" % (_STILL_RUNNING if status is None else status))


def keep_from_looks(*, kept: bool) -> None:
    """Let no other process of this user into the memory and the descriptors of this one, or let it again."""
    _control(_KEPT_FROM_LOOKS, int(not kept))


def look_into_nobody() -> None:
    """Reach the memory and the descriptors of no process from here on, but of those that begin below this one.

    A box that an ordinary user opens has a process 1 of that same user: code put there would outlive the grading. A
    Landlock domain ends at processes outside it; this one forbids nothing else. Without Landlock, nothing changes.
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - there is no other way to say it

    kernel = ctypes.CDLL(None)
    kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    asked = ctypes.c_uint64(_MOVE_BETWEEN_FOLDERS)  # every domain forbids it where no rule allows it
    rules = kernel.syscall(_CREATE_RULES, ctypes.byref(asked), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if rules < 0:
        return
    everywhere = os.open("/", os.O_PATH)
    allowed = struct.pack("=Qi", _MOVE_BETWEEN_FOLDERS, everywhere)
    if kernel.syscall(_ADD_RULE, rules, _BELOW_PATH, allowed, ctypes.c_uint32(0)) == 0:
        kernel.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0))
    os.close(everywhere)
    os.close(rules)


def adopt_orphans(*, wanted: bool) -> None:
    """Become the parent of whatever loses its own below this process, or no longer."""
    _control(_ADOPTS_ORPHANS, int(wanted))


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - there is no other way to say it

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _naturally_ended(child: int) -> int | None:
    """Give the exit code of a child that ends by itself in a moment."""
    until = time.monotonic() + _NATURAL_END_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(ChildProcessError):
            if (ended := os.waitpid(child, os.WNOHANG))[0]:
                return os.waitstatus_to_exitcode(ended[1])
        time.sleep(0.002)
    return None


def _end_everyone(child: int, known: int | None) -> int:
    """Kill every process that may be killed: all that is in this box. Give the exit code of the child."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, status = os.wait()
            if ended == child:
                known = os.waitstatus_to_exitcode(status)
    return -signal.SIGKILL if known is None else known


def main() -> None:
    """Be the child of a box, or what its children are forked from."""
    settings = json.loads(sys.argv.pop())
    # Before any fork: what is imported after one could have been written by a student's code.
    faults = load("file_layer", Path(settings["faults"])) if settings["faults"] else None
    if "control" not in settings:
        live(socket.socket(fileno=settings["channel"]), settings, faults)
        return
    # Compiled once for all forks, in the box's own folder for temporary files.
    sys.dont_write_bytecode, sys.pycache_prefix = False, f"{os.environ.get('TMPDIR', '/tmp')}/compiled"  # noqa: S108
    gc.freeze()  # a fork would copy what is only counted
    channel, with_layer = fork_when_asked(socket.socket(fileno=settings["control"]))
    try:
        live(channel, settings, faults if with_layer else None)
    finally:
        os._exit(0)


def live(channel: socket.socket, settings: dict[str, Any], faults: Any) -> None:
    """Close the student in, load the code, and serve the line."""
    channel.set_inheritable(False)
    limit_self(settings["limits"])
    if faults:
        faults.install()
    code = Path(settings["code"])
    describer = Describer(code)
    try:
        lesson = load(settings["package"], code / settings["package"] / "__init__.py")
        describer.know(lesson.CorruptLogError, "CorruptLogError")
        _ = lesson.JsonlSessionStore
    except BaseException as error:  # noqa: BLE001 - a student's import may raise anything
        channel.sendall((_encode({"id": 0, "err": describer.describe(error, "load")}) + "\n").encode())
        return
    gc.freeze()  # so that collecting after each check looks at that check's objects only
    loop = asyncio.new_event_loop()
    run_to_the_end(loop.create_task(serve(channel, lesson, describer, faults)), loop)


if __name__ == "__main__":
    main()
