"""Folders of this run's own, named so that a later run knows whose they were, and removes what a killed one left.

    statelab-PID-STARTED-RANDOM     in the system's folder for temporary files

A number is given to another process some day; together with the moment its owner started, it is not.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = re.compile(r"statelab-(\d+)-(\d+)-\w+", re.ASCII)
_TRIES = 50


def make() -> Path:
    """Make a new folder that is this process's own. Raises: OSError."""
    pid = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"statelab-{pid}-{_started(pid)}-"))


def left_behind() -> list[Path]:
    """List this user's folders whose process is gone."""
    found = []
    for path in Path(tempfile.gettempdir()).glob("statelab-*"):
        name = _NAME.fullmatch(path.name)
        with contextlib.suppress(OSError):  # another run removes it at the same moment
            status = path.lstat()
            if name and status.st_uid == os.geteuid() and _is_gone(int(name[1]), int(name[2])):
                found.append(path)
    return found


def remove(root: Path) -> None:
    """Remove a folder, whatever a student's code did to it. Processes of a killed child may write for a moment still."""
    for _ in range(_TRIES):
        try:
            shutil.rmtree(root, onerror=functools.partial(_open_up_and_retry, root))
        except RecursionError:  # folders in folders without an end: rm does not mind
            subprocess.run(["rm", "-rf", "--", root], capture_output=True, check=False)
        if not root.exists():
            return
        time.sleep(0.02)


def _is_gone(pid: int, started: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _started(pid) != started


def _started(pid: int) -> int:
    """Give the moment a process was started, in the kernel's ticks since the boot; 0 where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[19])


def _open_up_and_retry(root: Path, remove: Callable[[str], Any], path: str, _error: Any) -> None:
    """Forgive a folder that the student's code closed to everyone; what still cannot go stays behind.

    What stands above `root` is everybody's, and is left as it is.
    """
    with contextlib.suppress(OSError):
        if Path(path) != root:
            Path(path).parent.chmod(0o700)
        if not Path(path).is_symlink():
            Path(path).chmod(0o700)
        if remove in (os.open, os.scandir, os.listdir, os.lstat):
            shutil.rmtree(path, ignore_errors=True)
        else:
            remove(path)
