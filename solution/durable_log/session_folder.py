"""Where a session's files lie: a private folder under a safe name, of this user, outside any Git repository (E8).

One host writes a session. Two hosts that share a home directory (NFS, a synced folder) are outside the promise: their
kernels do not share locks reliably, so keep the root on a local disk.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from .atomic_file import sync_folder
from .errors import PlaceError

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)}
)


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """A checked folder. `session` is its id and its name."""

    path: Path
    session: str

    @property
    def lock_path(self) -> Path:
        """The file that the writer's process keeps locked."""
        return self.path / "lock"

    @property
    def manifest_path(self) -> Path:
        """The file that says which segments there are."""
        return self.path / "manifest.json"

    @property
    def blobs_path(self) -> Path:
        """The folder of big contents, named by their hash; there once it is needed."""
        return self.path / "blobs"

    @property
    def checkpoints_path(self) -> Path:
        """The folder of state snapshots, named by their sequence; there once it is needed."""
        return self.path / "checkpoints"


def default_root() -> Path:
    """Return where sessions lie when nobody says otherwise: `sessions` in `LAB_STATE`, else in the user's state folder."""
    chosen = os.environ.get("LAB_STATE")
    base = Path(chosen) if chosen else platformdirs.user_state_path("agent-state-lab", appauthor=False)
    return base.expanduser() / "sessions"


def open_session_folder(
    root: str | os.PathLike[str] | None, session: str, *, create: bool = True
) -> SessionFolder:
    """Return the folder of `session` below `root` (None: `default_root()`), made with mode 0700 if it may be.

    Nothing on the disk is looked at before the id is known to be safe, and nothing is made inside a Git repository.

    Raises: PlaceError for an unsafe id or place, or a session that is missing and may not be made; OSError.
    """
    path = _path_of(root, session)
    made = create and _make_private(path)
    try:
        _refuse_unsafe_root(path.parent)
        _refuse_twin(path)
        _refuse_unsafe_folder(path)
    except PlaceError:
        if made:
            # Another process may have begun to use it: then it is not ours to remove.
            with contextlib.suppress(OSError):
                path.rmdir()
        raise
    return SessionFolder(path, session)


def open_root(root: str | os.PathLike[str] | None, session: str) -> Path:
    """Return where a new session would lie, its root made and checked, itself not made. Raises: PlaceError, OSError."""
    path = _path_of(root, session)
    _make_private(path.parent)
    _refuse_unsafe_root(path.parent)
    _refuse_twin(path)
    return path


def _path_of(root: str | os.PathLike[str] | None, session: str) -> Path:
    require_safe_id(session)
    path = Path(default_root() if root is None else root).expanduser().resolve() / session
    refuse_git(path)
    return path


def require_safe_id(session: str) -> None:
    """Refuse a session id that could mean another place on any system. Raises: PlaceError, which never shows the id."""
    if not isinstance(session, str) or not _SAFE_ID.fullmatch(session):
        raise PlaceError(
            "session id: is not 1 to 80 of the letters A-Z and a-z, digits, _ and -; choose such a name"
        )
    if session.lower() in _DEVICES:
        raise PlaceError(
            f"session id {session}: is the name of a device on Windows; choose another, for example {session}-1"
        )


def private_subfolder(path: Path) -> None:
    """Make a folder inside a session's, mode 0700 and durable, if it is missing. Raises: PlaceError, OSError."""
    _make_private(path)
    _refuse_unsafe_folder(path)


def refuse_git(path: Path) -> None:
    """Stop where Git would see the log, and a project's own scripts could forge it (C22-49)."""
    for folder in (path, *path.parents):
        if os.path.lexists(folder / ".git") or _is_bare_repository(folder):
            raise PlaceError(
                f"{path}: lies inside the Git repository {folder}; set LAB_STATE or the root to a folder outside"
            )


def _is_bare_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _make_private(folder: Path) -> bool:
    """Make the folder and its missing parents, each mode 0700 and durable. Returns whether the folder itself was made.

    Whoever made the deepest one that is there may have been killed before its name was durable; what is above it was made
    durable before it was made.
    """
    if os.path.lexists(folder):
        _sync_name(folder)
        return False
    _make_private(folder.parent)
    made = True
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:  # another process was faster; what it made is checked like any other
        made = False
    sync_folder(folder.parent)
    return made


def _sync_name(folder: Path) -> None:
    """Make the name of a folder that is there durable, unless it is none of ours: a mount, or in a folder closed to us."""
    above = folder.parent
    with contextlib.suppress(PermissionError):
        if folder.lstat().st_dev == above.lstat().st_dev:
            sync_folder(above)


def _refuse_unsafe_root(root: Path) -> None:
    """Stop where somebody else could put another folder in the session's place."""
    status = _folder_status(root)
    if os.name != "posix":
        return  # Windows keeps access lists, which a new folder takes from the user's own
    if status.st_uid not in (os.geteuid(), 0):
        raise _strange(root, status)
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise PlaceError(f"{root}: anyone may write there; close it with: chmod o-w {root}")


def _refuse_unsafe_folder(path: Path) -> None:
    """Stop at a session's folder that is another user's, or that another user may look into."""
    status = _folder_status(path)
    if os.name != "posix":
        return
    if status.st_uid != os.geteuid():
        raise _strange(path, status)
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PlaceError(f"{path}: is open to other users; close it with: chmod go-rwx {path}")


def _folder_status(folder: Path) -> os.stat_result:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        raise PlaceError(f"{folder}: there is no such folder; check the id and the root") from None
    if not stat.S_ISDIR(status.st_mode):
        raise PlaceError(f"{folder}: is a link or a file, not a folder; remove it or choose another id")
    return status


def _strange(folder: Path, status: os.stat_result) -> PlaceError:
    return PlaceError(
        f"{folder}: belongs to user {status.st_uid}, and you are {os.geteuid()}; choose a root of your own"
    )


def _refuse_twin(path: Path) -> None:
    """Stop where two ids differ only in case: some file systems would give both the same folder."""
    wanted = path.name.casefold()
    for name in os.listdir(path.parent):  # noqa: PTH208 - names alone, perhaps thousands of them
        if name.casefold() == wanted and name != path.name:
            raise PlaceError(f"{path}: differs from the session {name} only in case; choose another id")
