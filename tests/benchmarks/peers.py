"""Other people's programs, to compare with: each in an environment of its own, from a lock file of its own."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.benchmarks.commands import KIT

if TYPE_CHECKING:
    from pathlib import Path

PLACE = KIT / "build" / "peers"


def environment(name: str) -> Path:
    """Give the folder of programs of the environment `name`, made from `requirements-NAME.lock` when it is not there.

    Raises: RuntimeError when it cannot be made; the last line says what pip said.
    """
    lock = KIT / f"requirements-{name}.lock"
    mark = hashlib.sha256(lock.read_bytes()).hexdigest()
    place = PLACE / name
    ready = place / "ready.txt"
    if not ready.exists() or ready.read_text(encoding="utf-8") != mark:
        shutil.rmtree(place, ignore_errors=True)
        install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
        for words in ([sys.executable, "-m", "venv"], [place / "bin" / "python", *install, "-r", lock]):
            run([*words, place] if words[-1] == "venv" else words)
        ready.write_text(mark, encoding="utf-8")
    return place / "bin"


def run(words: list[str | Path], cwd: Path | None = None, bin_folder: Path | None = None) -> None:
    """Run one program of an environment to its end. Raises: RuntimeError with the last line that it printed."""
    path = (
        {"PATH": f"{bin_folder}:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(PLACE)} if bin_folder else None
    )
    ended = subprocess.run(words, cwd=cwd, env=path, capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"{words[0]}: ended with {ended.returncode}: {''.join(last)}")
