"""A backup is a state that the log once had, whatever its writer does meanwhile; a live `cp` need not be (E12, C22-48)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from solution.durable_log.backup import back_up, restore
from solution.durable_log.blobs import Blobs
from solution.durable_log.checkpoint import Checkpoints, Replayed
from solution.durable_log.errors import CorruptLogError, PlaceError, UnknownVersionError
from solution.durable_log.manifest import read_manifest, write_manifest
from solution.durable_log.retention import remove_before
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import SessionFolder, open_session_folder
from tests.child_process import KIT, answer_of, run_child
from tests.durable_session import SESSION, Session, closed_paths, three_segments, verdict


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """20 events in three segments, one of them compressed, and an event that refers to a blob."""
    session = three_segments(tmp_path / "root")
    Checkpoints(session.folder).save(Replayed(state={"n": 20}, head=session.head))
    session.write(data=Blobs(session.folder).put(b"picture"))
    session.segments.files()[0].compress()
    return session


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def as_session(place: Path) -> SessionFolder:
    return SessionFolder(place, SESSION)


@pytest.mark.parametrize("hard_links", [False, True])
def test_a_backup_holds_everything_that_counts(session: Session, tmp_path: Path, hard_links: bool) -> None:
    """Segments in their form, blobs, checkpoints, a manifest of its own; what is derived and the lock stay behind."""
    session.segments.index()
    session.folder.lock_path.touch()

    report = back_up(session.folder, tmp_path / "copy", hard_links=hard_links)

    copied, original = contents(tmp_path / "copy"), contents(session.folder.path)
    assert (report.verdict, report.events, report.last_sequence) == ("sound", 21, 21)
    assert {name for name in original if name not in copied} == {
        "lock",
        f"{1:020d}.index",
        f"{8:020d}.index",
    }
    assert all(original[name] == copied[name] for name in copied if name != "manifest.json")
    assert Segments.look(as_session(tmp_path / "copy")).recorded_head() == session.head


def test_a_backup_is_durable_before_it_has_its_name(session: Session) -> None:
    """Every file and folder of it is synced, then it is renamed, then the folder around it is synced."""
    source = """
from tests.durable_changes import CHANGES
act = CHANGES["backup"](folder)
layer.arm([], folder)
act()
answer([(entry["op"], entry["path"]) for entry in layer.log()])
"""
    steps = [tuple(step) for step in answer_of(run_child(source, session.folder.path.parent, imports=(KIT,)))]

    named = next(number for number, (op, _path) in enumerate(steps) if op == "rename")
    made = {path for op, path in steps[:named] if op in ("write", "mkdir")}
    assert made <= {path for op, path in steps[:named] if op == "fsync"}
    assert len(made) >= 8
    assert steps[named + 1 :].count(("fsync", ".")) == 1


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_backup_is_private(session: Session, tmp_path: Path) -> None:
    """0700 and 0600, as the session itself, under umask 000."""
    before = os.umask(0)
    try:
        back_up(session.folder, tmp_path / "copy")
    finally:
        os.umask(before)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    folders = {
        stat.S_IMODE(path.stat().st_mode)
        for path in [tmp_path / "copy", *(tmp_path / "copy").iterdir()]
        if path.is_dir()
    }
    assert (modes, folders) == ({0o600}, {0o700})


def test_linked_segments_survive_what_happens_to_the_session(session: Session, tmp_path: Path) -> None:
    """A closed segment is never altered, only removed or replaced: the other name keeps it."""
    back_up(session.folder, tmp_path / "copy", hard_links=True)
    session.segments.compress()
    shutil.rmtree(session.folder.path)

    assert verdict(as_session(tmp_path / "copy"))[0] == "sound"


def test_a_backup_takes_whole_records_only(session: Session, tmp_path: Path) -> None:
    """What an append under way has written so far is not part of any moment, nor is a record without its newline."""
    for rest in (b'{"v":1,"session":"bui', session.lines.splitlines()[-1]):
        session.segments.active.write_bytes(session.lines[: session.lines.rfind(b"\n", 0, -1) + 1] + rest)
        place = tmp_path / f"copy-{len(rest)}"

        report = back_up(session.folder, place)

        assert (report.verdict, report.last_sequence) == ("sound", 20)
        assert (place / session.segments.active.name).read_bytes().endswith(b"}\n")


def _rotate_now(session: Session) -> None:
    session.rotate()
    session.write(2)


def _compress_now(session: Session) -> None:
    session.segments.compress()


def _append_now(session: Session) -> None:
    session.write(3)


def _remove_now(session: Session) -> None:
    remove_before(session.segments, 16, confirmed=True)


@pytest.mark.parametrize(
    "meanwhile", [_append_now, _rotate_now, _compress_now, _remove_now], ids=lambda do: do.__name__
)
@pytest.mark.parametrize("moment", ["before a segment", "before the active segment", "before the manifest"])
def test_a_backup_beside_a_writer_is_one_moment(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Session], None],
    moment: str,
) -> None:
    """Whatever the writer does between two steps of it, the copy verifies, and holds what was there when it began."""
    steps = {
        "before a segment": "_take_segment",
        "before the active segment": "_take_active",
        "before the manifest": "_finish",
    }
    name = f"solution.durable_log.backup.{steps[moment]}"
    real, done = getattr(sys.modules["solution.durable_log.backup"], steps[moment]), []

    def disturbed(*arguments: object, **more: object) -> object:
        if not done:
            done.append(True)
            meanwhile(session)
        return real(*arguments, **more)

    monkeypatch.setattr(name, disturbed)

    report = back_up(session.folder, tmp_path / "copy")

    assert done
    assert (report.verdict, verdict(as_session(tmp_path / "copy"))[0]) == ("sound", "sound")
    assert 21 <= report.last_sequence <= 24
    assert verdict(session.folder)[0] == "sound"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Path]:
    """A real process that appends, rotates and compresses as fast as it can until it is stopped."""
    root = tmp_path / "live"
    source = f"""
import sys
sys.path.insert(0, {str(KIT)!r})
from pathlib import Path
from tests.durable_session import Session
session = Session(Path({str(root)!r}))
print("ready", flush=True)
while True:
    session.write(5)
    session.rotate()
    session.segments.compress()
"""
    child = subprocess.Popen([sys.executable, "-I", "-c", source], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield root
    child.kill()
    child.wait()
    child.stdout.close()


def test_backups_of_a_living_session_verify_every_time(writer: Path, tmp_path: Path) -> None:
    """A second process writes without a pause; ten backups later not one is torn."""
    folder = open_session_folder(writer, SESSION)

    heads = [back_up(folder, tmp_path / f"copy-{number}").last_sequence for number in range(10)]

    assert heads == sorted(heads)
    assert all(verdict(as_session(tmp_path / f"copy-{number}"))[0] == "sound" for number in range(10))


def test_a_live_copy_may_pair_an_old_manifest_with_new_segments(session: Session, tmp_path: Path) -> None:
    """Why `cp` is no backup: what it copies first and last are two moments."""
    copy = tmp_path / "cp"
    copy.mkdir()
    shutil.copy(session.folder.manifest_path, copy)
    session.rotate()
    session.write(3)
    for path in session.folder.path.glob("*.jsonl*"):
        shutil.copy(path, copy)

    assert verdict(as_session(copy))[0] == "corrupt"


@pytest.mark.parametrize("there", ["a folder", "an empty folder", "a file", "a link to nothing"])
def test_nothing_is_ever_copied_over(session: Session, tmp_path: Path, there: str) -> None:
    """Yesterday's backup is not today's to replace."""
    target = tmp_path / "copy"
    if there == "a file":
        target.write_bytes(b"x")
    elif there == "a link to nothing":
        target.symlink_to(tmp_path / "nothing")
    else:
        target.mkdir()
        if there == "a folder":
            (target / "x").touch()

    with pytest.raises(PlaceError, match="is there already"):
        back_up(session.folder, target)

    assert not list(tmp_path.glob(".copy*"))


def test_a_backup_inside_a_git_repository_is_refused(session: Session, tmp_path: Path) -> None:
    """It holds what the session holds."""
    subprocess.run(["git", "init", "--quiet", tmp_path / "repository"], check=True)

    with pytest.raises(PlaceError, match="Git"):
        back_up(session.folder, tmp_path / "repository/copy")

    assert not (tmp_path / "repository/copy").exists()


DAMAGE: dict[str, Callable[[Session], object]] = {
    "closed segment": lambda session: _flip(closed_paths(session)[1]),
    "active segment": lambda session: _flip(session.segments.active),
    "manifest": lambda session: _flip(session.folder.manifest_path),
    "missing segment": lambda session: closed_paths(session)[1].unlink(),
    "cut tail": lambda session: os.truncate(session.segments.active, 0),
}


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_session_gives_no_backup(session: Session, tmp_path: Path, kind: str) -> None:
    """A copy of damage would replace a good one; the file is named, and nothing half made is left."""
    session.segments.record_head(session.head)
    DAMAGE[kind](session)

    with pytest.raises(CorruptLogError):
        back_up(session.folder, tmp_path / "copy")

    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_session_whose_old_events_are_gone_is_saved_with_its_checkpoint(
    session: Session, tmp_path: Path
) -> None:
    """From its new beginning on; the checkpoint is what makes it whole."""
    remove_before(session.segments, 16, confirmed=True)

    report = back_up(session.folder, tmp_path / "copy")
    folder = restore(tmp_path / "copy", tmp_path / "fresh")

    assert (report.events, report.last_sequence) == (6, 21)
    assert Segments.open(folder).base == session.segments.base
    assert [found.head.sequence for found in Checkpoints(folder).sound([])] == [20]


# --- Restore ---


def test_a_restored_session_is_the_one_that_was_saved(session: Session, tmp_path: Path) -> None:
    """Into a fresh root; it verifies, holds its blobs and checkpoints, and goes on from its head."""
    back_up(session.folder, tmp_path / "copy")

    folder = restore(tmp_path / "copy", tmp_path / "fresh")

    assert folder == open_session_folder(tmp_path / "fresh", SESSION, create=False)
    assert contents(folder.path) == contents(tmp_path / "copy")
    again = Session(tmp_path / "fresh")
    assert again.head == session.head
    again.write(2)
    again.rotate()
    assert verdict(folder)[0] == "sound"
    assert contents(tmp_path / "copy") != contents(folder.path)


def test_a_restore_never_replaces_a_session(session: Session, tmp_path: Path) -> None:
    """What is there may be newer than the backup."""
    back_up(session.folder, tmp_path / "copy")
    before = contents(session.folder.path)

    with pytest.raises(PlaceError, match="is there already"):
        restore(tmp_path / "copy", tmp_path / "root")

    assert contents(session.folder.path) == before


@pytest.mark.parametrize("kind", ["closed segment", "manifest", "missing segment", "cut tail"])
def test_a_damaged_backup_is_not_restored(session: Session, tmp_path: Path, kind: str) -> None:
    """It is proved first; the fresh place stays empty."""
    back_up(session.folder, tmp_path / "copy")
    copy = tmp_path / "copy"
    path = {"manifest": copy / "manifest.json", "cut tail": copy / f"{16:020d}.jsonl"}.get(
        kind, copy / f"{8:020d}.jsonl"
    )
    if kind == "missing segment":
        path.unlink()
    elif kind == "cut tail":
        os.truncate(path, 0)
    else:
        _flip(path)

    with pytest.raises(CorruptLogError):
        restore(copy, tmp_path / "fresh")

    assert not list((tmp_path / "fresh").glob("*")) if (tmp_path / "fresh").exists() else True
    assert not list((tmp_path / "fresh").glob(".*"))


def test_another_user_s_backup_is_restored_as_one_s_own(session: Session, tmp_path: Path) -> None:
    """The manifest of the restored session names who restored it."""
    back_up(session.folder, tmp_path / "copy")
    manifest = read_manifest(tmp_path / "copy/manifest.json", SESSION)
    assert manifest is not None
    write_manifest(tmp_path / "copy/manifest.json", msgspec.structs.replace(manifest, owner=4711))

    folder = restore(tmp_path / "copy", tmp_path / "fresh")

    Segments.open(folder)


def test_a_backup_of_a_newer_version_is_refused(session: Session, tmp_path: Path) -> None:
    """Both versions are named, nothing is made."""
    back_up(session.folder, tmp_path / "copy")
    manifest = read_manifest(tmp_path / "copy/manifest.json", SESSION)
    assert manifest is not None
    write_manifest(tmp_path / "copy/manifest.json", msgspec.structs.replace(manifest, v=2))

    with pytest.raises(UnknownVersionError, match=r"version 2.*version 1"):
        restore(tmp_path / "copy", tmp_path / "fresh")

    assert not (tmp_path / "fresh").exists()


@pytest.mark.parametrize("where", ["nothing", "an empty folder"])
def test_what_is_no_backup_is_said_to_be_none(tmp_path: Path, where: str) -> None:
    """A wrong path is a plain error."""
    if where == "an empty folder":
        (tmp_path / "copy").mkdir()

    with pytest.raises(PlaceError, match="is no backup"):
        restore(tmp_path / "copy", tmp_path / "fresh")
