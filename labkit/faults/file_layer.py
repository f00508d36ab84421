"""A file layer that fails, shortens, holds or kills at a chosen operation, underneath the code under test.

Standard library only, and one file, because it is loaded by path into a child process where nothing else of
the kit can be imported (`python -I`). Python 3.11 to 3.13.

    layer.install()                        once, before the code under test is imported
    layer.arm(rules, root="/some/folder")  count, log and disturb what happens below `root`, from now on
    layer.log()                            the operations seen since arming, oldest first
    layer.release()                        lets held operations go on
    layer.disarm()                         every operation is plain again
    layer.uninstall()                      puts the functions of `os` and `open` back

`arm(..., observe=callback)` adds an observer: `callback(op, args, kwargs)` is asked before each operation that may change
the disk, wherever, in the thread that makes it and with the arguments that go down; what it returns, if anything, is
called with the result once the operation has succeeded.

A rule is plain JSON. Only `op` and `do` are required:

    {"op": "write", "match": "*.jsonl", "nth": 2, "times": 1, "do": "ENOSPC"}

    op      a name of OPERATIONS, a list of names, "change" (whatever alters the disk) or "*" (everything)
    match   glob over the file's name, or over its path below `root` if the glob holds a "/"; default "*"
    nth     the rule's first turn, 1-based, among the operations it matches since arming; default 1
    times   how many of them in a row; null means for ever; default 1 (with "hold": `until`)
    do      words joined by commas, in this order, each optional:
              wait   "hold" or "slow"
              part   "none", "short:N" (the first N bytes), "short" (one byte), "half", "full"
              end    an error's name such as "ENOSPC", or "kill" (ends the process, nothing is flushed)
            A part without an end returns a short count, as a real disk may. An end without a part means that
            nothing was done. "full,EIO" fails although everything was written ("raise-after" says the same);
            "half,kill" dies in the middle of a write; "none" alone makes a sync lie; "full" alone only waits.
            With a group, "short" and "half" leave whole what moves no bytes, unless an end follows.
    until   with "hold": go on when so many operations have come; without it, at `release()` or `disarm()`
    seconds "hold": go on after so long at the latest (10); "slow": how long to wait (0.05)

The first rule whose turn it is acts; every rule counts. "hold" makes a race certain: three appends held at
their first write have all finished reading. A store that never lets two in cannot fill such a barrier, so it
is let go after `seconds`, and the log says how many had come.

A log entry: `op`, `path` (below root, "." for the root itself), `to` (second path of a rename or link, else
null), `size` (bytes asked for, else null), `did` (the words that acted, "full" for a plain operation); of a
hold also `arrived` (how many had come) and `went_on` ("together", "released" or "timeout").

Not seen: C extensions that write by themselves, `mmap`, `sqlite3`, the import system, and child processes
that install no layer of their own. A function taken by `from os import write` before `install` stays plain.
"""

# pathlib works through the very functions that are replaced here:
# ruff: noqa: PTH100, PTH109, PTH118

from __future__ import annotations

import _pyio  # type: ignore[import-not-found]  # the standard library's `io`, written in Python
import builtins
import errno
import fnmatch
import functools
import io
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """How one function of `os` is met.

    `on` names its leading parameters that say which file ("" for one that does not); `changes` says whether
    it alters the disk; `moves` is the kind of argument that carries or counts bytes, and `at` its position.
    """

    on: tuple[str, ...]
    changes: bool = False
    moves: str = ""
    at: int = 1


OPERATIONS: dict[str, Operation] = {
    "open": Operation(("path",)),  # alters the disk when it may create or truncate
    "close": Operation(("fd",)),
    "read": Operation(("fd",), moves="count"),
    "pread": Operation(("fd",), moves="count"),
    "readv": Operation(("fd",), moves="buffers"),
    "preadv": Operation(("fd",), moves="buffers"),
    "write": Operation(("fd",), changes=True, moves="data"),
    "pwrite": Operation(("fd",), changes=True, moves="data"),
    "writev": Operation(("fd",), changes=True, moves="buffers"),
    "pwritev": Operation(("fd",), changes=True, moves="buffers"),
    "sendfile": Operation(("out_fd",), changes=True, moves="count", at=3),
    "fsync": Operation(("fd",), changes=True),
    "fdatasync": Operation(("fd",), changes=True),
    "truncate": Operation(("path",), changes=True),
    "ftruncate": Operation(("fd",), changes=True),
    "posix_fallocate": Operation(("fd",), changes=True),
    "copy_file_range": Operation(("", "dst"), changes=True, moves="count", at=2),
    "rename": Operation(("src", "dst"), changes=True),
    "replace": Operation(("src", "dst"), changes=True),
    "link": Operation(("src", "dst"), changes=True),
    "symlink": Operation(("", "dst"), changes=True),
    "unlink": Operation(("path",), changes=True),
    "remove": Operation(("path",), changes=True),
    "mkdir": Operation(("path",), changes=True),
    "rmdir": Operation(("path",), changes=True),
    "chmod": Operation(("path",), changes=True),
    "fchmod": Operation(("fd",), changes=True),
    "utime": Operation(("path",), changes=True),
    "stat": Operation(("path",)),
    "lstat": Operation(("path",)),
    "fstat": Operation(("fd",)),
    "listdir": Operation(("path",)),
    "scandir": Operation(("path",)),
}
_GROUPS = ("change", "*")
_GIVES_A_VALUE = {"open", "stat", "lstat", "fstat", "listdir", "scandir", *_GROUPS}
_RULE_FIELDS = ("op", "do", "match", "nth", "times", "until", "seconds")


class Call(NamedTuple):
    """One operation under way: `paths` are absolute, `size` is in bytes and None where no bytes move."""

    op: str
    operation: Operation
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    paths: list[str]
    changes: bool
    size: int | None


class Fault(NamedTuple):
    """What a rule's `do` asks for: how to wait, how much to let through, and how to end."""

    wait: str
    part: str
    end: str

    @classmethod
    def parse(cls, do: str) -> Fault:
        """Read the words of `do`; ValueError names the first that is unknown or out of order."""
        words = ["full", "EIO"] if do == "raise-after" else do.split(",")
        wait = words.pop(0) if words[0] in ("hold", "slow") else ""
        part = words.pop(0) if words and _is_part(words[0]) else ""
        end = words.pop(0) if words and (words[0] == "kill" or words[0] in errno.errorcode.values()) else ""
        if words:
            raise ValueError(
                f'do "{do}": "{words[0]}" is not known here; use [hold|slow,] [part,] [error|kill]'
            )
        return cls(wait, part or ("none" if end else "full"), end)

    def bytes_through(self, size: int | None) -> int | None:
        """Say how many of `size` bytes go through; None means the whole operation, as it was asked."""
        if self.part == "full" or (size is None and self.part != "none" and not self.end):
            return None
        if self.part == "none" or size is None:
            return 0
        if self.part == "half":
            return size // 2
        return min(size, int(self.part.partition(":")[2] or "1"))


def _is_part(word: str) -> bool:
    kind, colon, count = word.partition(":")
    return count.isdigit() and kind == "short" if colon else word in ("none", "short", "half", "full")


class Rule:
    """One checked rule, counting the operations it matched and those that came to its hold."""

    def __init__(self, op: str | list[str], do: str, match: str = "*", nth: int = 1, **limits: Any) -> None:
        """Take the fields of a rule; ValueError says what cannot be meant."""
        self.ops = frozenset([op] if isinstance(op, str) else op)
        self.fault = Fault.parse(do)
        self.match = match
        self.nth = nth
        self.until: float = limits.get("until") or math.inf
        self.times: float = limits.get("times", limits.get("until", 1)) or math.inf
        self.seconds: float = limits.get("seconds", 10 if self.fault.wait == "hold" else 0.05)
        self.seen = 0
        self.arrived = 0
        self._check()

    def _check(self) -> None:
        if unknown := self.ops - OPERATIONS.keys() - set(_GROUPS):
            raise ValueError(f'unknown operation "{min(unknown)}"; use {", ".join([*OPERATIONS, *_GROUPS])}')
        byteless = [op for op in self.ops if op in OPERATIONS and not OPERATIONS[op].moves]
        if byteless and self.fault.part not in ("none", "full"):
            raise ValueError(
                f'"{self.fault.part}" needs an operation that moves bytes, and {byteless[0]} does not'
            )
        valued = self.ops & _GIVES_A_VALUE
        if valued and self.fault.part == "none" and not self.fault.end:
            raise ValueError(
                f'"none" needs an error or "kill" after it, as "{min(valued)}" has to give something'
            )
        if min(self.nth, self.times, self.until) < 1:
            raise ValueError("nth, times and until are counted from 1")

    def concerns(self, call: Call, below_root: list[str]) -> bool:
        """Say whether this rule counts `call`, whose paths below the root are given too."""
        if not (call.op in self.ops or "*" in self.ops or ("change" in self.ops and call.changes)):
            return False
        names = below_root if "/" in self.match else [path.rpartition("/")[2] for path in below_root]
        return any(fnmatch.fnmatchcase(name, self.match) for name in names)

    def takes_turn(self) -> bool:
        """Count one more operation, and say whether the rule acts on it."""
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


def _rule(number: int, plain: dict[str, Any]) -> Rule:
    """Make a rule of plain JSON; ValueError says which rule is wrong, and how."""
    try:
        unknown = [field for field in plain if field not in _RULE_FIELDS]
        missing = [field for field in ("op", "do") if field not in plain]
        if unknown or missing:
            what = f'unknown field "{unknown[0]}"' if unknown else f'field "{missing[0]}" is missing'
            raise ValueError(f"{what}; the fields are {', '.join(_RULE_FIELDS)}")  # noqa: TRY301
        return Rule(**plain)
    except ValueError as error:
        raise ValueError(f"rule {number}: {error}") from None
    except (TypeError, AttributeError):
        raise ValueError(f"rule {number}: a value has the wrong type: {plain!r}") from None


Observer = Callable[[str, tuple[Any, ...], dict[str, Any]], Callable[[Any], object] | None]


class Plan:
    """All that one `arm` set up: the rules and their counts, the log, and whoever is being held."""

    def __init__(
        self,
        rules: list[dict[str, Any]],
        root: str,
        last_words: Callable[[], object],
        observe: Observer | None,
    ) -> None:
        self.last_words = last_words
        self.observe = observe
        self.rules = [_rule(number, plain) for number, plain in enumerate(rules, start=1)]
        self.roots = {os.path.abspath(root), os.path.realpath(root)}
        self.armed = True
        self.entries: list[dict[str, Any]] = []
        self.moved_on = threading.Condition()
        self.released = False

    def below_root(self, path: str) -> str | None:
        """Return `path` relative to the root, with forward slashes; None when it lies outside."""
        for root in self.roots:
            if path == root or path.startswith(root + os.sep):
                return os.path.relpath(path, root).replace(os.sep, "/")
        return None

    def meet(self, call: Call) -> tuple[Rule | None, dict[str, Any]]:
        """Log and count `call`; return the rule that acts on it, if any, and the log entry."""
        below = [name for path in call.paths if (name := self.below_root(path)) is not None]
        if not below:
            return None, {}
        entry = {"op": call.op, "path": below[0], "to": below[1] if below[1:] else None, "size": call.size}
        entry["did"] = "full"
        with self.moved_on:
            self.entries.append(entry)
            acting = [rule for rule in self.rules if rule.concerns(call, below) and rule.takes_turn()]
        return (acting[0] if acting else None), entry

    def wait(self, rule: Rule, entry: dict[str, Any]) -> None:
        """Hold or slow the calling thread as `rule` says."""
        if rule.fault.wait == "slow":
            time.sleep(rule.seconds)
            return
        with self.moved_on:
            rule.arrived += 1
            self.moved_on.notify_all()
            in_time = self.moved_on.wait_for(
                lambda: self.released or rule.arrived >= rule.until, rule.seconds
            )
            entry["arrived"] = rule.arrived
            why = "together" if rule.arrived >= rule.until else "released"
            entry["went_on"] = why if in_time else "timeout"

    def release(self) -> None:
        """Let everyone go who is held now, and hold nobody any more."""
        with self.moved_on:
            self.released = True
            self.moved_on.notify_all()


class Interposed:
    """One function of `os`, replaced: an object, so that as a class attribute it never becomes a method."""

    def __init__(self, op: str, real: Any) -> None:
        functools.update_wrapper(self, real)
        self.op = op
        self.real = real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the real function does, unless a rule has its turn."""
        paths = _paths(OPERATIONS[self.op], args, kwargs)
        if self.op == "close":  # before it really closes: another thread may get the same number at once
            _open_files.pop(args[0] if args else kwargs["fd"], None)
        plan = _plan
        if plan and plan.armed and paths:
            result = self._disturbed(plan, _call(self.op, paths, args, kwargs))
        else:
            result = self._really(args, kwargs)
        _follow(self.op, paths, result)
        return result

    def _really(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do it, and let an observer know that it succeeded."""
        plan = _plan
        if not (plan and plan.armed and plan.observe and (OPERATIONS[self.op].changes or self.op == "open")):
            return self.real(*args, **kwargs)
        succeeded = plan.observe(self.op, args, kwargs)
        result = self.real(*args, **kwargs)
        if succeeded:
            succeeded(result)
        return result

    def _disturbed(self, plan: Plan, call: Call) -> Any:
        """Wait, let a part through, then return, fail or die, as the acting rule says."""
        rule, entry = plan.meet(call)
        if rule is None:
            return self._really(call.args, call.kwargs)
        entry["did"] = ",".join(filter(None, rule.fault))
        if rule.fault.wait:
            plan.wait(rule, entry)
        through = rule.fault.bytes_through(call.size)
        result = None
        if through is None or call.op == "close":  # a close that fails has closed all the same
            result = self._really(call.args, call.kwargs)
        elif through or (call.operation.moves and not rule.fault.end):
            result = self._really(*_shortened(call, through))
        if rule.fault.end == "kill":
            plan.last_words()
            _die()
        elif rule.fault.end:
            number = getattr(errno, rule.fault.end)
            raise OSError(
                number, os.strerror(number), *([] if "fd" in call.operation.on[0] else call.paths[:1])
            )
        return result


def _die() -> None:
    """End the process as a power cut would: no handler runs, no buffer is flushed."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


def _call(op: str, paths: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    operation = OPERATIONS[op]
    size = None
    if operation.moves == "count":
        size = int(args[operation.at] if len(args) > operation.at else kwargs["count"])
    elif operation.moves == "data":
        size = memoryview(args[operation.at]).nbytes
    elif operation.moves == "buffers":
        size = sum(memoryview(buffer).nbytes for buffer in args[operation.at])
    flags = (args[1] if len(args) > 1 else kwargs.get("flags", 0)) if op == "open" else 0
    changes = operation.changes or bool(flags & (os.O_CREAT | os.O_TRUNC))
    return Call(op, operation, args, kwargs, paths, changes, size)


def _shortened(call: Call, count: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of `call`, changed so that at most `count` bytes move."""
    at = call.operation.at
    if len(call.args) <= at:
        return call.args, call.kwargs | {"count": count}
    whole = call.args[at]
    part: Any = count
    if call.operation.moves == "data":
        part = memoryview(whole).cast("B")[:count]
    elif call.operation.moves == "buffers":
        part = []
        for buffer in whole:
            part.append(memoryview(buffer).cast("B")[:count])
            count -= len(part[-1])
    return (*call.args[:at], part, *call.args[at + 1 :]), call.kwargs


class _OpenFile(NamedTuple):
    """Where a descriptor was opened, and which file that was: numbers are used again, files are not."""

    path: str
    identity: tuple[int, int]


_SUPPORTS: list[set[Any]] = [os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks]
_real_fstat = os.fstat
_open_files: dict[int, _OpenFile] = {}
_originals: dict[tuple[Any, str], Any] = {}
_plan: Plan | None = None


def _paths(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return the absolute paths that a call speaks of, as far as they can be known."""
    found = []
    for position, name in enumerate(operation.on):
        if not name:
            continue
        target: Any = args[position] if position < len(args) else kwargs.get(name)
        try:
            # fsync and its like take an open file, too
            descriptor = target.fileno() if hasattr(target, "fileno") else target
            path = _path_of(descriptor) if isinstance(descriptor, int) else _absolute(target, name, kwargs)
        except (TypeError, ValueError, OSError):  # a nonsensical argument: the real function will say so
            path = None
        if path:
            found.append(path)
    return found


def _absolute(target: Any, name: str, kwargs: dict[str, Any]) -> str | None:
    folder = kwargs.get(f"{name}_dir_fd", kwargs.get("dir_fd"))
    base = os.getcwd() if folder is None else _path_of(folder)
    return base and os.path.normpath(os.path.join(base, os.fsdecode(target or os.curdir)))


def _path_of(descriptor: int) -> str | None:
    opened = _open_files.get(descriptor)
    return opened.path if opened and opened.identity == _identity(descriptor) else None


def _identity(descriptor: int) -> tuple[int, int]:
    status = _real_fstat(descriptor)
    return status.st_dev, status.st_ino


def _follow(op: str, paths: list[str], result: Any) -> None:
    """Remember what a new descriptor stands for; a rename moves what an open one writes to."""
    if op == "open" and paths:
        _open_files[result] = _OpenFile(paths[0], _identity(result))
    elif op in ("rename", "replace") and len(paths) == 2:
        for descriptor, opened in list(_open_files.items()):
            if opened.path == paths[0]:
                _open_files[descriptor] = opened._replace(path=paths[1])


def install() -> None:
    """Put the layer underneath `os`, `open`, `pathlib`, `tempfile` and `shutil`. Once is enough; twice is harmless."""
    if _originals:
        return
    for op in OPERATIONS:
        if hasattr(os, op):  # not every system has all of them
            real = getattr(os, op)
            _put(os, op, Interposed(op, real))
            for support in _SUPPORTS:
                if real in support:  # otherwise shutil.rmtree would fall back to its unsafe form
                    support.add(getattr(os, op))
    # The files of `_pyio` end in `os.write`, so a buffer is seen at the moment when it really goes down.
    _put(builtins, "open", _pyio.open)
    _put(io, "open", _pyio.open)
    _put(io, "FileIO", _pyio.FileIO)


def _put(module: Any, name: str, new: Any) -> None:
    _originals[module, name] = getattr(module, name)
    setattr(module, name, new)


def uninstall() -> None:
    """Put back everything that `install` replaced."""
    disarm()
    for (module, name), real in _originals.items():
        for support in _SUPPORTS:
            support.discard(getattr(module, name))
        setattr(module, name, real)
    _originals.clear()
    _open_files.clear()


def arm(
    rules: list[dict[str, Any]],
    root: str | os.PathLike[str],
    last_words: Callable[[], object] = lambda: None,
    observe: Observer | None = None,
) -> None:
    """Let `rules` act on what happens below `root` from now on; counts and log start anew.

    `last_words` is called before a rule kills the process: its log would be lost with it. It writes outside `root`.
    `observe` is told of what changes the disk, as the module says.

    Raises ValueError for a rule that cannot be meant, RuntimeError when the layer is not installed.
    """
    global _plan  # noqa: PLW0603 - one process has one file layer
    if not _originals:
        raise RuntimeError("file layer: not installed; call install() before the code under test is imported")
    plan = Plan(rules, os.fspath(root), last_words, observe)
    disarm()
    _plan = plan


def disarm() -> None:
    """Let held operations go on, and everything be plain from now on; the log can still be read."""
    release()
    if _plan:
        _plan.armed = False


def release() -> None:
    """Let the operations go on that are held; none is held after that."""
    if _plan:
        _plan.release()


def log() -> list[dict[str, Any]]:
    """Return the operations seen since the last `arm`, oldest first."""
    return [dict(entry) for entry in _plan.entries] if _plan else []
