"""A PostgreSQL server of the notebook's own, where its programs are installed: a temporary folder, one Unix socket."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from labkit import child_guard

READY = "ready to accept connections"


class Server:
    """A running server; it ends with this process, however that ends."""

    def __init__(self, programs: Path) -> None:
        """Make a database and start. Raises: OSError, subprocess.SubprocessError, RuntimeError."""
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has at most 107 bytes
        self.conninfo = f"host={self.folder} user=lab dbname=postgres"
        data = self.folder / "data"
        form = ["--auth=trust", "--username=lab", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run([programs / "initdb", "-D", data, *form], check=True, capture_output=True, timeout=60)
        guarded = [sys.executable, "-I", child_guard.__file__, "postgres", programs / "postgres", "-D", data]
        settings = [f"--unix_socket_directories={self.folder}", "--listen_addresses=", "--lc_messages=C"]
        self._guard = subprocess.Popen(
            [*map(str, guarded), *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = next((line for line in self._guard.stderr or () if READY in line), "")
        if not said:
            raise RuntimeError("postgres: ended before it was ready")
        self._pid = int((data / "postmaster.pid").read_text("ascii").split("\n")[0])

    def stop(self) -> None:
        """End the server in good order, and remove its folder."""
        os.kill(self._pid, signal.SIGINT)
        self._guard.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


def start() -> tuple[Server | None, str]:
    """Start a server, or say by a word of the catalogue why there is none."""
    if os.name != "posix" or os.geteuid() == 0:
        return None, "postgres-root"
    installed = [*Path("/usr/lib/postgresql").glob("*/bin/postgres"), *filter(None, [_on_path()])]
    if not installed:
        return None, "postgres-missing"
    if importlib.util.find_spec("psycopg") is None:
        return None, "postgres-driver"
    try:
        return Server(installed[-1].parent), ""
    except (OSError, subprocess.SubprocessError, RuntimeError):
        return None, "postgres-failed"


def _on_path() -> Path | None:
    found = shutil.which("postgres")
    return Path(found).resolve() if found else None
