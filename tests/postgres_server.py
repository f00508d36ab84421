"""A real PostgreSQL server for one test session: an ordinary user's, in a temporary folder, on a Unix socket alone.

Debian's packages rather than a wheel with binaries: they have a distribution's care, and CI installs them anyway.
Whoever may enter the socket's folder, mode 0700, may connect. The server ends with this process, however that ends:
labkit's guard holds the other end of a pipe.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit import child_guard

INSTALL = "no PostgreSQL server on this machine; install it with: apt-get install postgresql"
READY = "database system is ready to accept connections"
ORDINARY_USERS = ("postgres", "nobody")  # PostgreSQL refuses to run as root
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "50",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",  # in its folder: one that is killed leaves nothing in /dev/shm
    "lc_messages": "C",
    "logging_collector": "off",
    "log_statement": "none",
}


def find_programs() -> Path | None:
    """Give the folder of `initdb` and `postgres`, of the newest version there is."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    installed = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(installed, key=lambda path: float(path.parts[-3]), default=None)
    return newest and newest.parent


class PostgresServer:
    """A running server. `conninfo` is how libpq reaches it; `stop` ends it and removes its folder."""

    def __init__(self, programs: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has at most 107 bytes
        self.conninfo = f"host={self.folder} user=tests dbname=postgres"
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            user = next(name for name in ORDINARY_USERS if _exists(name))
            self._as_user = ["setpriv", f"--reuid={user}", f"--regid={_group(user)}", "--clear-groups", "--"]
            shutil.chown(self.folder, user)
        self.log: list[str] = []
        self._ready = threading.Event()
        data = self.folder / "data"
        form = ("--auth=trust", "--username=tests", "--encoding=UTF8", "--locale=C", "--no-sync")
        self._run([programs / "initdb", "-D", data, *form])
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        self._guard = self._start(
            [programs / "postgres", "-D", data, f"--unix_socket_directories={self.folder}", *settings]
        )
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()
        self._ready.wait()
        if not any(READY in line for line in self.log):
            raise RuntimeError("".join(self.log))
        self.pid = int((data / "postmaster.pid").read_text("ascii").split("\n")[0])

    def _run(self, words: list[object]) -> None:
        done = subprocess.run(
            [*self._as_user, *map(str, words)], capture_output=True, text=True, check=False, cwd="/"
        )
        assert done.returncode == 0, done.stderr

    def _start(self, words: list[object]) -> subprocess.Popen[str]:
        guarded = [sys.executable, "-I", child_guard.__file__, "postgres", *self._as_user, *map(str, words)]
        return subprocess.Popen(
            guarded,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            start_new_session=True,  # a signal to the tests' whole group must not end the guard before its charge
        )

    def _follow(self) -> None:
        for line in self._guard.stderr or ():
            self.log.append(line)
            if READY in line:
                self._ready.set()
        self._ready.set()  # it ended: whoever waits has to look

    def stop(self) -> None:
        """End the server in good order, and remove what it wrote."""
        os.kill(self.pid, signal.SIGINT)
        with self._guard:
            self._guard.wait()
            self._follower.join()
        self.remove(self.folder)

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove a server's folder."""
        shutil.rmtree(folder)


def _exists(user: str) -> bool:
    import pwd  # noqa: PLC0415 - not on Windows

    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _group(user: str) -> int:
    import pwd  # noqa: PLC0415

    return pwd.getpwnam(user).pw_gid


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The session's server. Where there is none the tests are skipped, but never under CI=true."""
    programs = find_programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail(INSTALL, pytrace=False)
        pytest.skip(INSTALL)
    server = PostgresServer(programs)
    yield server
    server.stop()
