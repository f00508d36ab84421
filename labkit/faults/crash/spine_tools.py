"""Git and Node for a lab of the crash lab, answered at the process border: nothing is started, and the runner's own code runs whole.

Standard library only. A crash state costs milliseconds where real tools cost a second. What stands in: `subprocess.run`,
`subprocess.Popen`, `shutil.which`, and `ctypes.CDLL` for the kernel's word on orphans; a call without an answer is an
error. Git's answers are worked out from the folder and the files of its one commit, Node's from the source; a test asks
the real tools the same, so that neither can drift.
"""

from __future__ import annotations

import ctypes
import difflib
import hashlib
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Self

HEAD = "5ea1" * 10
NO_PROCESS = 2**31 - 1  # more than any system counts: a signal to it, or to its group, reaches nobody
_IGNORED = ".loop"
_REPORT = b"TAP version 13\n1..2\n# tests 2\n# suites 0\n# pass %d\n# fail %d\n# cancelled 0\n# skipped 0\n# todo 0\n"


@contextmanager
def replaced(module: ModuleType, name: str, new: object) -> Iterator[None]:
    """Put something else in the place of a module's function; `unittest.mock` would cost every child 50 ms to import."""
    real = getattr(module, name)
    setattr(module, name, new)
    try:
        yield
    finally:
        setattr(module, name, real)


class UnansweredError(LookupError):
    """The runner asked a program for something that nothing stands in for."""


class StandIns:
    """The tools of one lab: `commit` holds the tracked files by path, `accepted` the source that passes the task's test."""

    def __init__(self, commit: dict[str, bytes], accepted: bytes) -> None:
        self.commit, self.accepted = commit, accepted

    @contextmanager
    def border(self) -> Iterator[None]:
        """Answer for the tools within this block; it is not for several threads at once."""
        with (
            replaced(subprocess, "run", self.run),
            replaced(subprocess, "Popen", self.popen),
            replaced(shutil, "which", _which),
            replaced(ctypes, "CDLL", _Kernel),
        ):
            yield

    def run(self, argv: list[str], *, cwd: Path | None = None, **_: Any) -> subprocess.CompletedProcess[Any]:
        """Answer a command that is waited for: Git's three, and Node's version."""
        if argv[1:] == ["--version"]:
            return subprocess.CompletedProcess(argv, 0, "v20.0.0\n", "")
        asked = next((word for word in argv if word in ("status", "ls-files", "diff")), None)
        if asked is None or cwd is None:
            raise UnansweredError(" ".join(argv))
        answers = {"status": self._status, "ls-files": self._tracked, "diff": self._diff}
        return subprocess.CompletedProcess(argv, 0, answers[asked](cwd), b"")

    def popen(self, args: list[str], *, cwd: Path, **_: Any) -> Ended:
        """Answer a verification command: the task's own test, which passes for the source that it asks for."""
        if "--test" not in args:
            raise UnansweredError(" ".join(args))
        passes = _content(cwd / "src" / "search.mjs") == self.accepted
        return Ended(0 if passes else 1, _REPORT % ((2, 0) if passes else (0, 2)))

    def _status(self, lab: Path) -> bytes:
        """Say what `git status --porcelain=v2 --branch -z --untracked-files=all --ignored=matching` says."""
        found = dict(_files(lab))
        records = [f"# branch.oid {HEAD}", "# branch.head main"]
        for path, content in sorted(self.commit.items()):
            if found.get(path) != content:
                mark, mode = (".D", "000000") if path not in found else (".M", "100644")
                blob = _blob(content)
                records.append(f"1 {mark} N... 100644 100644 {mode} {blob} {blob} {path}")
        unknown = sorted(found.keys() - self.commit.keys())
        records += [f"? {path}" for path in unknown if not path.startswith(f"{_IGNORED}/")]
        records += [f"! {_IGNORED}/"] * any(path.startswith(f"{_IGNORED}/") for path in unknown)
        return "".join(f"{record}\0" for record in records).encode()

    def _tracked(self, lab: Path) -> bytes:  # noqa: ARG002 - as its siblings
        """Say what `git ls-files -v -z` says where nothing is hidden."""
        return "".join(f"H {path}\0" for path in sorted(self.commit)).encode()

    def _diff(self, lab: Path) -> bytes:
        """Say what `git diff --numstat --patch -z HEAD -- . :(exclude)tasks` says of modified and deleted text."""
        counts, patches, found = "", "", dict(_files(lab))
        for path, before in sorted(self.commit.items()):
            if found.get(path) == before or path.startswith("tasks/"):
                continue
            lines = list(_unified(path, before, found.get(path, b"")))
            added, removed = (sum(line.startswith(sign) for line in lines[2:]) for sign in "+-")
            counts += f"{added}\t{removed}\t{path}\0"
            patches += f"diff --git a/{path} b/{path}\n" + "".join(lines)
        return f"{counts}\0{patches}".encode() if counts else b""


class Ended:
    """A program that has ended already: what it printed waits in its pipe."""

    pid = NO_PROCESS

    def __init__(self, exit_code: int, output: bytes) -> None:
        read, write = os.pipe()
        os.write(write, output)
        os.close(write)
        self.stdin, self.stdout, self.returncode = io.BytesIO(), os.fdopen(read, "rb", buffering=0), exit_code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()

    def wait(self, timeout: float | None = None) -> int:  # noqa: ARG002 - as Popen has it
        """Give the exit code."""
        return self.returncode


class _Kernel:
    """The C library where nobody has children: it has nothing to say of orphans."""

    def __init__(self, _name: object) -> None:
        pass

    def prctl(self, *_: object) -> int:
        """Do nothing, and succeed."""
        return 0


def _which(name: str | Path, mode: int = 0, path: str | None = None) -> str:  # noqa: ARG001 - as shutil has it
    """Say that every program is there."""
    return str(name)


def _files(lab: Path, below: str = "") -> Iterator[tuple[str, bytes]]:
    """Give every file of the lab with its content, but for Git's own."""
    with os.scandir(lab / below) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if path != ".git":
                    yield from _files(lab, f"{path}/")
            else:
                yield path, _content(lab / path)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _unified(path: str, before: bytes, after: bytes) -> Iterator[str]:
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
