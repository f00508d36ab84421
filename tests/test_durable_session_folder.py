"""Where a session may lie (E8): safe ids, this user's private folder, no Git repository. Wrong places are refused untouched."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from solution.durable_log import session_folder
from solution.durable_log.errors import PlaceError
from solution.durable_log.session_folder import default_root, open_session_folder
from tests.child_process import KIT, answer_of, run_child

posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")

UNSAFE = (
    *(
        "",
        ".",
        "..",
        "../../x",
        "/x",
        "x/y",
        "x\\y",
        "C:x",
        "a:b",
        "~",
        "~root",
        "x.",
        "x ",
        " x",
        "a\0b",
        "a\nb",
        "x\n",
    ),
    *("é", "e\u0301", "ａ", "١", "名", "a" * 81, "a*", "a?", "$HOME", "%TEMP%", "a\u202eb", "a\ud800"),
    *("con", "CON", "Aux", "nul", "PRN", "com1", "COM9", "lpt1", "Lpt0", "aux.", "con.txt"),
)


def everything_below(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("session", UNSAFE, ids=ascii)
def test_an_unsafe_id_is_refused_before_any_file_call(tmp_path: Path, session: str) -> None:
    """Paths, streams, devices, trailing dots, two ways to write one letter: none is looked for."""
    with pytest.raises(PlaceError):
        open_session_folder(tmp_path / "root", session)

    assert not everything_below(tmp_path)


def test_a_refused_id_is_not_shown(tmp_path: Path) -> None:
    """What somebody passed by mistake may be a secret."""
    with pytest.raises(PlaceError) as refused:
        open_session_folder(tmp_path, "key=sk-12345")

    assert "12345" not in str(refused.value)


@pytest.mark.parametrize("session", [None, 7, b"x", True])
def test_an_id_that_is_no_text_is_refused(tmp_path: Path, session: object) -> None:
    """The type is checked as the letters are."""
    with pytest.raises(PlaceError):
        open_session_folder(tmp_path, session)  # type: ignore[arg-type]


def test_an_unsafe_id_meets_no_file_call(tmp_path: Path) -> None:
    """Watched from underneath: refusing an id opens, lists and asks nothing."""
    asked = answer_of(
        run_child(
            """
from solution.durable_log.errors import PlaceError
from solution.durable_log.session_folder import open_session_folder
layer.arm([], "/")
try:
    open_session_folder(folder, "../x")
except PlaceError:
    answer(layer.log())
""",
            tmp_path,
            imports=(KIT,),
        )
    )

    assert asked == []


@pytest.mark.parametrize("session", ["a", "Z", "_", "-", "0", "a" * 80, "build-7_B", "con1", "com10", "-rf"])
def test_a_safe_id_is_its_folder_s_name(tmp_path: Path, session: str) -> None:
    """Every one of the allowed letters is taken as it is."""
    folder = open_session_folder(tmp_path, session)

    assert folder.path == tmp_path.resolve() / session
    assert folder.path.is_dir()
    assert folder.lock_path.parent == folder.path


def test_a_new_folder_s_name_is_durable(tmp_path: Path) -> None:
    """The folder above is synced behind each one that is made: root, its parents, the session."""
    steps = answer_of(
        run_child(
            """
from solution.durable_log.session_folder import open_session_folder
layer.arm([], folder)
open_session_folder(folder / "a/b", "x")
answer([(entry["op"], entry["path"]) for entry in layer.log() if entry["op"] in ("mkdir", "fsync")])
""",
            tmp_path,
            imports=(KIT,),
        )
    )

    assert [tuple(step) for step in steps] == [
        *(("mkdir", "a"), ("fsync", ".")),
        *(("mkdir", "a/b"), ("fsync", "a")),
        *(("mkdir", "a/b/x"), ("fsync", "a/b")),
    ]


def test_an_id_that_differs_only_in_case_is_refused(tmp_path: Path) -> None:
    """On some file systems both would be one folder, so the second is refused on all, and not made."""
    open_session_folder(tmp_path, "Build")

    with pytest.raises(PlaceError, match="Build"):
        open_session_folder(tmp_path, "build")

    assert [path.name for path in tmp_path.iterdir()] == ["Build"]


def test_a_session_that_may_not_be_made_is_not(tmp_path: Path) -> None:
    """A reader asks for a session; a name that does not exist is an error, and still does not exist."""
    with pytest.raises(PlaceError, match="no such folder"):
        open_session_folder(tmp_path / "root", "x", create=False)

    assert not everything_below(tmp_path)


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folders_are_private_under_any_umask(tmp_path: Path, mask: int) -> None:
    """Root, its missing parents and the session: 0700."""
    before = os.umask(mask)
    try:
        folder = open_session_folder(tmp_path / "a/b", "x")
    finally:
        os.umask(before)

    assert [mode(path) for path in (tmp_path / "a", tmp_path / "a/b", folder.path)] == [0o700] * 3


@posix
@pytest.mark.parametrize("bits", [0o010, 0o040, 0o001, 0o004, 0o070, 0o002])
def test_a_session_folder_that_is_open_to_others_is_refused(tmp_path: Path, bits: int) -> None:
    """It is not closed silently: somebody may have read or changed what is in it."""
    folder = open_session_folder(tmp_path, "x")
    folder.path.chmod(0o700 | bits)

    with pytest.raises(PlaceError, match="chmod go-rwx"):
        open_session_folder(tmp_path, "x")

    assert mode(folder.path) == 0o700 | bits


@posix
def test_a_root_where_anybody_may_write_is_refused_unless_names_are_protected(tmp_path: Path) -> None:
    """Somebody could put another folder in the session's place; the sticky bit prevents it."""
    tmp_path.chmod(0o777)
    with pytest.raises(PlaceError, match="anyone may write"):
        open_session_folder(tmp_path, "x")
    assert not everything_below(tmp_path)

    tmp_path.chmod(0o1777)

    assert open_session_folder(tmp_path, "x").path.is_dir()


@pytest.mark.parametrize("what", ["link to a folder", "link to nothing", "file"])
def test_a_session_that_is_no_folder_of_its_own_is_refused(tmp_path: Path, what: str) -> None:
    """A link would lead the log to a place that somebody else chose."""
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir(0o700)
    if what == "file":
        (root / "x").touch()
    else:
        (root / "x").symlink_to(elsewhere)
    if what == "link to a folder":
        elsewhere.mkdir(0o700)

    with pytest.raises(PlaceError, match="link or a file"):
        open_session_folder(root, "x")

    assert not elsewhere.exists() or not everything_below(elsewhere)


def test_a_root_behind_a_link_is_named_by_its_real_path(tmp_path: Path) -> None:
    """Homes are often links; what is checked is where the folder really lies."""
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")

    assert open_session_folder(tmp_path / "home", "x").path == (tmp_path / "real/x").resolve()


@posix
@pytest.mark.parametrize("strange", ["session", "root"])
def test_another_user_s_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strange: str
) -> None:
    """Owner and user are compared. Only root can give a folder away; for anybody else the user changes."""
    path = open_session_folder(tmp_path, "x").path if strange == "session" else tmp_path
    if os.geteuid() == 0:
        os.chown(path, 4711, -1)
    else:
        monkeypatch.setattr(session_folder.os, "geteuid", lambda: 4711)
    before = everything_below(tmp_path)

    with pytest.raises(PlaceError, match="belongs to user"):
        open_session_folder(tmp_path, "x")

    assert everything_below(tmp_path) == before


def git(*arguments: str | Path) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("where", ["", "deep/er"])
@pytest.mark.parametrize("kind", ["repository", "worktree", "submodule", "bare", "inside .git"])
def test_a_place_inside_a_git_repository_is_refused(tmp_path: Path, kind: str, where: str) -> None:
    """Real repositories of every kind: `.git` as a folder and as a file, and none at all; at any depth; nothing is made."""
    repository = tmp_path / "repository"
    git("init", "--quiet", *(["--bare"] if kind == "bare" else []), repository)
    place = repository
    if kind == "worktree":
        author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        git("-C", repository, *author, "commit", "--quiet", "--allow-empty", "--message=x")
        place = tmp_path / "worktree"
        git("-C", repository, "worktree", "add", "--quiet", "--detach", place)
        assert (place / ".git").is_file()
    elif kind == "submodule":
        place = repository / "module"
        place.mkdir()
        (place / ".git").write_text("gitdir: ../.git/modules/module\n")
    elif kind == "inside .git":
        place = repository / ".git"
    before = everything_below(tmp_path)

    with pytest.raises(PlaceError, match="inside the Git repository"):
        open_session_folder(place / where, "x")

    assert everything_below(tmp_path) == before


def test_a_git_repository_reached_by_a_link_is_refused(tmp_path: Path) -> None:
    """What counts is where the folder really lies."""
    git("init", "--quiet", tmp_path / "repository")
    (tmp_path / "link").symlink_to(tmp_path / "repository")

    with pytest.raises(PlaceError, match="Git"):
        open_session_folder(tmp_path / "link", "x")


def test_a_session_in_which_somebody_began_a_repository_is_refused(tmp_path: Path) -> None:
    """Also later: each opening looks."""
    git("init", "--quiet", open_session_folder(tmp_path, "x").path)

    with pytest.raises(PlaceError, match="Git"):
        open_session_folder(tmp_path, "x")


def test_the_default_root_follows_lab_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests, classes and people set one variable and everything lies there."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path))

    assert default_root() == tmp_path / "sessions"
    assert open_session_folder(None, "x").path == tmp_path.resolve() / "sessions/x"


def test_without_lab_state_the_default_root_is_the_user_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform's place for a program's state, below the user's home."""
    monkeypatch.delenv("LAB_STATE", raising=False)
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    assert default_root().is_relative_to(tmp_path)
    assert default_root().name == "sessions"


def test_two_processes_that_make_one_session_both_get_it(tmp_path: Path) -> None:
    """The lock decides who writes; the folder is made once, whoever is faster."""
    source = """
from solution.durable_log.session_folder import open_session_folder
layer.arm([{"op": "mkdir", "do": "full,EEXIST", "match": "x"}], folder)
answer(open_session_folder(folder, "x").session)
"""

    assert answer_of(run_child(source, tmp_path, imports=(KIT,))) == "x"
    assert (tmp_path / "x").is_dir()
