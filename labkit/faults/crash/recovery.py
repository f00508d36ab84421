"""The recovery under test, run on thousands of crash states: long-lived children, one a core, on a memory file system.

A child that hangs or dies takes nothing with it: the state that it was at is tried once more, alone, in a new one, and
what happens twice is the report of that state.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from labkit.faults.crash.trace import CrashState, Entry

CHILD = Path(__file__).with_name("recovery_child.py")
KIT = Path(__file__).resolve().parents[3]
MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps its memory file system
_ENOUGH_BYTES = 64 << 20
_PREFIX = "statelab-crash-"
_FORGOTTEN_SECONDS = 3600
_BATCH = 8
_START_SECONDS = 60.0
"""How long a scenario may take to load: it may import much, on a busy machine."""
_ALONE = 12
"""So many batches are one child's: to start another costs as much as to recover from them."""
_REMEMBERED = 4096

Report = dict[str, Any]
Tree = Mapping[str, Entry]


class CrashLabError(Exception):
    """The crash lab cannot do what was asked; says where, what, and what to do next."""


class NotWrittenError(CrashLabError, NotImplementedError):
    """The code under test says itself that it is not written yet."""


@dataclass(frozen=True, slots=True)
class Code:
    """What is under test: a scenario's file, and folders to import from before the kit itself."""

    scenario: Path
    imports: tuple[Path, ...] = ()


def scratch_folder() -> Path:
    """Make a private folder for states, on the memory file system where there is one with room.

    It carries this process in its name: what one left that was killed with all its children is swept up here.

    Raises: CrashLabError when no folder can be made.
    """
    prefix = f"{_PREFIX}{os.getpid()}-"
    with contextlib.suppress(OSError):
        _sweep(MEMORY)
        if shutil.disk_usage(MEMORY).free >= _ENOUGH_BYTES:
            return Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY))
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        raise CrashLabError(
            f"temporary folder: {error.strerror}; free some room, or set TMPDIR to a folder that can be written"
        ) from None


def _sweep(place: Path) -> None:
    """Remove folders of ours whose process is gone, and that nothing was made in for an hour. Raises: OSError."""
    for folder in place.glob(f"{_PREFIX}*"):
        owner, status = folder.name.removeprefix(_PREFIX).partition("-")[0], folder.lstat()
        # The hour is for another container's process, which shares the memory file system and cannot be seen from here.
        old = status.st_mtime < time.time() - _FORGOTTEN_SECONDS
        if owner.isdigit() and old and not psutil.pid_exists(int(owner)) and _is_mine(status):
            shutil.rmtree(folder, ignore_errors=True)


def _is_mine(status: os.stat_result) -> bool:
    return os.name != "posix" or status.st_uid == os.geteuid()


class RecoveryChild:
    """One child. `ask` has an answer, or None when there will be none: then `ended` says why, and the child is gone."""

    def __init__(self, code: Code, *, seconds: float, layer: bool = False) -> None:
        """Start it. `seconds` is how long a batch of orders may take. Raises: CrashLabError for a scenario that cannot be used."""
        self.ended = ""
        self._closed = False
        self._seconds = max(seconds, _START_SECONDS)
        self._folder = scratch_folder()
        plan = {
            "scenario": str(code.scenario.resolve()),
            "imports": [*(str(folder.resolve()) for folder in code.imports), str(KIT)],
            "folder": str(self._folder),
            "layer": layer,
        }
        # A session of its own: Ctrl-C on the terminal is the parent's to handle.
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD), json.dumps(plan)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        hello = next(self.ask([]), None)
        if hello is None or "promises" not in hello:
            self.close()
            problem = hello["problem"] if hello else f"could not be loaded, {self.ended}"
            raise CrashLabError(
                f"{code.scenario}: {problem}; see docs/crash-lab.md for what a scenario holds"
            )
        self.promises = tuple(map(str, hello["promises"]))
        self._seconds = seconds

    def ask(self, orders: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Give the answers, as they come; fewer than orders when the child hangs or dies. No order waits for its first word."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Timer(self._seconds, self._too_late)
        late.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(b"".join(json.dumps(order).encode() + b"\n" for order in orders))
                self._process.stdin.flush()
            for _ in range(max(1, len(orders))):
                line = self._process.stdout.readline()
                if not line.endswith(b"\n"):
                    self.ended = self.ended or _how_it_ended(self._process.wait())
                    return
                yield json.loads(line)
        finally:
            late.cancel()

    def _too_late(self) -> None:
        self.ended = f"no answer within {self._seconds:g} s"
        self._process.kill()

    def close(self) -> None:
        """End the child, whatever it is doing, and remove its folder. Twice is harmless."""
        if self._closed:
            return
        self._closed = True
        self.ended = self.ended or "stopped"
        if hasattr(
            os, "killpg"
        ):  # its session is its own: with it goes whatever the code under test has started
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        shutil.rmtree(self._folder, ignore_errors=True)


def _how_it_ended(code: int) -> str:
    return f"died of signal {-code}" if code < 0 else f"ended its process with exit code {code}"


class Recoveries:
    """Children that recover from states. Use as a context manager; leaving it ends every child at once."""

    def __init__(self, code: Code, *, seconds: float = 10.0, children: int | None = None) -> None:
        """Start the first child; `seconds` is how long a recovery may take. Raises: CrashLabError."""
        self._code, self._seconds = code, seconds
        self._count = children or os.cpu_count() or 1
        self._all: set[RecoveryChild] = set()
        self._idle: queue.SimpleQueue[RecoveryChild | None] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="crash-recovery")
        self._closing = threading.Event()
        self._batches = 0
        self._known: OrderedDict[bytes, Report] = OrderedDict()
        first = self._start()
        self.promises = first.promises
        self._idle.put(first)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        for child in list(self._all):
            child.close()
        for _ in range(self._count):  # nobody waits for a child that will not come
            self._idle.put(None)
        self._pool.shutdown(cancel_futures=True)
        for child in list(self._all):  # one may have been started meanwhile
            child.close()

    def reports(
        self, states: Iterable[CrashState], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[CrashState, Report]]:
        """Give each state with its report, in their order. Raises: CrashLabError when a state cannot be laid down."""
        under_way: deque[Future[list[tuple[CrashState, Report]]]] = deque()
        batch: list[CrashState] = []
        for state in states:
            batch.append(state)
            if len(batch) == _BATCH:
                under_way.append(self._pool.submit(self._recover, batch))
                batch = []
                self._batches += 1
                if self._batches == _ALONE:
                    for _ in range(self._count - 1):
                        self._idle.put(None)  # a place for another child
            if len(under_way) > 2 * self._count:
                yield from under_way.popleft().result()
            if stop():
                return
        under_way.append(self._pool.submit(self._recover, batch))
        while under_way and not stop():
            yield from under_way.popleft().result()

    def report(self, tree: Tree) -> Report:
        """Give the report of one state. Raises: CrashLabError."""
        return next(self.reports([CrashState(0, (), dict(tree), ())]))[1]

    def _recover(self, batch: list[CrashState]) -> list[tuple[CrashState, Report]]:
        """Recover from a batch with a child that has nothing to do. Trees that were met lately are not tried again."""
        trees = {digest(state.tree): state.tree for state in batch}
        found = {key: report for key in trees if (report := self._known.get(key)) is not None}
        missing = {key: tree for key, tree in trees.items() if key not in found}
        if missing:
            found |= zip(missing, self._ask(list(missing.values())), strict=True)
            self._known.update((key, found[key]) for key in missing)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return [(state, found[digest(state.tree)]) for state in batch]

    def _ask(self, trees: list[Tree]) -> list[Report]:
        reports: list[Report] = []
        alone = False
        while len(reports) < len(trees):
            child = self._take()
            waiting = trees[len(reports) : len(reports) + 1] if alone else trees[len(reports) :]
            answers = child.ask([_order(tree) for tree in waiting])
            reports += [_report(answer, self._code) for answer in answers]
            if not child.ended:
                alone = False
                self._idle.put(child)
                continue
            self._discard(child)
            if alone:  # it happened twice
                reports.append({"ended": child.ended})
            alone = not alone
        return reports

    def _take(self) -> RecoveryChild:
        child = self._idle.get()
        return child or self._start()

    def _start(self) -> RecoveryChild:
        if self._closing.is_set():
            raise CrashLabError("crash lab: was stopped; start it again")
        child = RecoveryChild(self._code, seconds=self._seconds)
        self._all.add(child)
        return child

    def _discard(self, child: RecoveryChild) -> None:
        child.close()
        self._all.discard(child)
        self._idle.put(None)


def digest(tree: Tree) -> bytes:
    """Return a short digest of a state's files."""
    known = blake2b(digest_size=16)
    for path in sorted(tree):
        entry = tree[path]
        known.update(
            f"{path}\0{entry.kind}{entry.mode}\0{len(entry.content)}\0".encode("utf-8", "surrogateescape")
        )
        known.update(entry.content)
    return known.digest()


def files_of(tree: Tree) -> dict[str, tuple[str, str, int]]:
    """Return a tree as JSON: path -> kind, content in base64, mode."""
    return {
        path: (entry.kind, base64.b64encode(entry.content).decode(), entry.mode)
        for path, entry in tree.items()
    }


def tree_of(files: Mapping[str, tuple[Any, str, int]]) -> dict[str, Entry]:
    """Return the tree that `files_of` showed."""
    return {
        path: Entry(kind, base64.b64decode(content), mode) for path, (kind, content, mode) in files.items()
    }


def _order(tree: Tree) -> dict[str, Any]:
    return {"do": "recover", "tree": files_of(tree)}


def _report(answer: dict[str, Any], code: Code) -> Report:
    if "problem" in answer:
        raise CrashLabError(
            f"{answer['problem']}; free some room there, or set TMPDIR to a folder that has it"
        )
    if "wrong" in answer:
        raise CrashLabError(
            f"{code.scenario}: recover {answer['wrong']}; see docs/crash-lab.md for what it returns"
        )
    return dict(answer["report"])
