"""Faults seen in the field in folders, segments, manifests and saved state, as tests of `durable_log`.

One test for each reported fault, named by its number and titled by its kind, which it covers: the report was a sample.
What is about records and the writer alone is in test_known_faults_durable.py.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from solution.durable_log.atomic_file import replace_file
from solution.durable_log.backup import back_up
from solution.durable_log.blobs import Blobs
from solution.durable_log.checkpoint import Checkpoints, Replayed
from solution.durable_log.errors import CorruptLogError, PlaceError, UnknownVersionError
from solution.durable_log.limits import Limits
from solution.durable_log.log import DurableLog
from solution.durable_log.manifest import read_manifest, write_manifest
from solution.durable_log.segment_file import segment_name
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import SessionFolder, open_session_folder
from tests.child_process import KIT, answer_of, run_child
from tests.durable_session import SESSION, Session, three_segments, verdict

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX only")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """20 events in three segments."""
    return three_segments(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


# --- Rotation, compaction, chain ---


@pytest.mark.parametrize("border", [9, 10, 99, 100, 999, 1000])
def test_68_digits_of_names_never_change_the_order(tmp_path: Path, border: int) -> None:
    """Segments that end around each power of ten: all events, in order, by name and by number alike."""
    session = Session(tmp_path)
    for _ in range(2):
        session.write(border)
        session.rotate()
    session.write(1)

    names = [file.path.name for file in Segments.look(session.folder).files()]

    assert names == sorted(names)
    assert verdict(session.folder)[0] == "sound"


def test_68_names_have_room_for_every_sequence() -> None:
    """No padding is outgrown: the largest 64-bit number has 20 digits."""
    assert len({len(segment_name(first)) for first in (1, 99_999, 100_000, 2**64 - 1)}) == 1


def test_74_a_rotation_beside_appends_leaves_no_gap(tmp_path: Path) -> None:
    """Callers append without a pause while the log is rotated, by size and on request: numbers stay contiguous."""

    async def story() -> list[int]:
        async with await DurableLog.open("a", root=tmp_path, limits=Limits(segment_bytes=4096)) as log:
            events = []
            for number in range(12):
                appends = [log.append("t", {"n": number, "x": "y" * 50}) for _ in range(20)]
                rotation = asyncio.create_task(log.rotate())
                appends += [log.append("t", {"n": number}) for _ in range(5)]
                events += await asyncio.gather(*appends)
                await asyncio.gather(rotation, return_exceptions=True)  # refused when size was faster
            assert (await log.verify()).verdict == "sound"
            assert await log.read() == events
            return [event.sequence for event in events]

    assert asyncio.run(story()) == [*range(1, 301)]
    assert len(Segments.look(open_session_folder(tmp_path, "a")).closed) >= 12


@pytest.mark.parametrize("change", ["compress", "index", "rotate"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_75_a_read_that_fails_stops_the_work_and_changes_nothing(
    session: Session, change: str, nth: int
) -> None:
    """EIO at each read of a compaction, an index, a rotation: an error, and every file is as it was."""
    root, before = session.folder.path.parent, contents(session.folder.path)
    source = f"""
import os
from tests.durable_changes import CHANGES
act = CHANGES[{change!r}](folder)
layer.arm([{{"op": ["read", "stat"], "do": "EIO", "match": "*.jsonl", "nth": {nth}, "times": None}}], folder)
try:
    act()
    answer("done")
except OSError as error:
    answer(error.errno)
"""
    said = answer_of(run_child(source, root, imports=(KIT,)))

    if said == "done":
        assert nth > 1, "nothing was read"
        assert verdict(session.folder)[0] == "sound"
        return
    after = contents(session.folder.path)
    assert said == 5
    assert {name: after[name] for name in before if name in after} == {
        name: raw for name, raw in before.items() if name in after
    }
    assert all(f"{name}.gz" in after for name in before if name not in after)
    assert not [name for name in after if name.endswith(".tmp")]


@pytest.mark.parametrize("lost", [1, 2, 5])
@pytest.mark.parametrize("compressed", [False, True])
def test_80_deleted_newest_events_are_missed(tmp_path: Path, lost: int, compressed: bool) -> None:
    """The chain alone still verifies; the head in the manifest does not, at opening, verifying and reading alike."""

    async def story() -> None:
        async with await DurableLog.open("a", root=tmp_path) as log:
            for number in range(8):
                await log.append("t", number)
                if number == 2:
                    await log.rotate()

    asyncio.run(story())
    folder = open_session_folder(tmp_path, "a")
    segments = Segments.open(folder)
    if compressed:
        segments.compress()
    lines = segments.active.read_bytes().splitlines(keepends=True)
    segments.active.write_bytes(b"".join(lines[:-lost]))
    before = contents(folder.path)

    assert verdict(folder)[:2] == ("corrupt", segments.active.name)
    with pytest.raises(CorruptLogError, match="cut"):
        asyncio.run(DurableLog.open("a", root=tmp_path))
    assert contents(folder.path) == before


def test_80_a_deleted_active_segment_is_missed(session: Session) -> None:
    """The whole file gone is only a longer cut."""
    session.segments.record_head(session.head)
    session.segments.active.unlink()

    assert verdict(session.folder)[0] == "corrupt"


def test_81_a_second_copy_in_the_same_moment_never_replaces_the_first(
    session: Session, tmp_path: Path
) -> None:
    """No name is made of a clock: a backup's name is given, and one that is there is refused."""
    back_up(session.folder, tmp_path / "copy")
    before = contents(tmp_path / "copy")
    session.write(1)

    with pytest.raises(PlaceError):
        back_up(session.folder, tmp_path / "copy")

    assert contents(tmp_path / "copy") == before


@pytest.mark.parametrize("version", [0, 2, 99, 2**63, -1])
def test_83_a_store_of_another_version_is_refused_untouched(session: Session, version: int) -> None:
    """Newer or older, it is never moved aside, emptied or begun anew; both versions are named."""
    manifest = read_manifest(session.folder.manifest_path, SESSION)
    assert manifest is not None
    write_manifest(session.folder.manifest_path, type(manifest)(**{**_fields(manifest), "v": version}))
    before = contents(session.folder.path)

    with pytest.raises(UnknownVersionError, match=f"version {version}, and this code knows version 1"):
        asyncio.run(DurableLog.open(SESSION, root=session.folder.path.parent))

    after = contents(session.folder.path)
    after.pop("lock", None)
    assert after == before


def _fields(manifest: object) -> dict[str, object]:
    return {name: getattr(manifest, name) for name in manifest.__struct_fields__}  # type: ignore[attr-defined]


def test_84_a_log_of_many_segments_keeps_its_count_over_a_reopening(tmp_path: Path) -> None:
    """Nothing of the history is hidden by opening it again, compressed or not."""

    async def count() -> int:
        async with await DurableLog.open("a", root=tmp_path, limits=Limits(segment_bytes=2000)) as log:
            await asyncio.gather(*(log.append("t", number) for number in range(20)))
            return len(await log.read())

    assert [asyncio.run(count()) for _ in range(3)] == [20, 40, 60]
    Segments.open(open_session_folder(tmp_path, "a")).compress()
    assert asyncio.run(count()) == 80


# --- Privacy ---


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_85_nothing_of_a_session_is_open_to_others(tmp_path: Path, mask: int) -> None:
    """Log, lock, manifest, index, compressed segment, blob, checkpoint, backup; whatever the umask."""
    before = os.umask(mask)
    try:
        folder = asyncio.run(_everything(tmp_path / "root"))
        back_up(folder, tmp_path / "copy")
    finally:
        os.umask(before)

    found = [path for place in ("root", "copy") for path in (tmp_path / place).rglob("*")]
    kinds = {"".join(path.suffixes) for path in found}
    assert {".jsonl", ".jsonl.gz", ".index", ".json", ""} <= kinds
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}


async def _everything(root: Path) -> SessionFolder:
    async with await DurableLog.open("a", root=root, limits=Limits(segment_bytes=2000)) as log:
        for number in range(20):
            event = await log.append("t", Blobs(log.folder).put(b"picture"), event_id=f"id-{number}")
        await log.append("t", event.data, event_id="id-19")
        folder = log.folder
    segments = Segments.open(folder)
    segments.find("id-1")
    segments.files()[0].compress()
    Checkpoints(folder).save(Replayed(state=1, head=segments.recorded_head()))
    return folder


@pytest.mark.parametrize("session_id", ["../../x", "/x", "..", "", ".", "a/b", "a\\b"])
def test_86_an_id_never_leads_out_of_the_root(tmp_path: Path, session_id: str) -> None:
    """Through the front door: refused, and nothing is there afterwards."""
    with pytest.raises(PlaceError):
        asyncio.run(DurableLog.open(session_id, root=tmp_path / "root"))

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("session_id", ["a:b", "a:", ":a", "C:"])
def test_87_an_id_never_names_a_stream(tmp_path: Path, session_id: str) -> None:
    """On every system, as the same id may be used on another."""
    with pytest.raises(PlaceError):
        asyncio.run(DurableLog.open(session_id, root=tmp_path))


@pytest.mark.parametrize("session_id", ["con", "CON", "aux.", "x.", "nul", "COM1", "lpt9", "x "])
def test_88_an_id_never_names_a_device(tmp_path: Path, session_id: str) -> None:
    """Nor a name that Windows would change by taking its last dot."""
    with pytest.raises(PlaceError):
        asyncio.run(DurableLog.open(session_id, root=tmp_path))


@pytest.mark.parametrize(
    "session_id", ["\u00e9", "e\u0301", "\ufb01", "\u00c5", "\u212b", "\u0130", "\u0131", "\u017f"], ids=ascii
)
def test_90_an_id_has_one_way_to_be_written(tmp_path: Path, session_id: str) -> None:
    """Composed and decomposed, look-alikes, letters whose case folds to ASCII: none is allowed."""
    with pytest.raises(PlaceError):
        asyncio.run(DurableLog.open(session_id, root=tmp_path))


# --- Saved files: manifest and checkpoint are this kind ---

SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "NUL": lambda raw: bytes(len(raw)),
    "zero length": lambda _raw: b"",
    "NUL tail": lambda raw: raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_93_94_a_file_emptied_by_a_power_cut_is_never_a_fresh_start(session: Session, kind: str) -> None:
    """Right size and all NUL, or nothing: the log refuses to open and to number from 1."""
    path = session.folder.manifest_path
    path.write_bytes(SPOILED[kind](path.read_bytes()))
    before = contents(session.folder.path)

    with pytest.raises(CorruptLogError, match=r"manifest\.json"):
        asyncio.run(DurableLog.open(SESSION, root=session.folder.path.parent))

    after = contents(session.folder.path)
    after.pop("lock", None)
    assert after == before


@pytest.mark.parametrize("kind", SPOILED)
def test_96_a_good_temporary_file_is_not_taken_for_the_spoiled_one(session: Session, kind: str) -> None:
    """It may be older or newer than anything; the damage is reported, the temporary file stays for whoever looks."""
    path = session.folder.manifest_path
    temporary = path.with_name(".manifest.json.0123456789abcdef.tmp")
    temporary.write_bytes(path.read_bytes())
    path.write_bytes(SPOILED[kind](path.read_bytes()))

    with pytest.raises(CorruptLogError):
        Segments.open(session.folder)

    assert temporary.exists()


def test_95_a_new_name_is_durable_before_it_counts(tmp_path: Path) -> None:
    """The folder is synced behind every rename: of manifests, checkpoints, blobs, compressed segments, backups."""
    source = """
from tests.durable_changes import CHANGES
from tests.durable_session import three_segments
three_segments(folder)
seen = {}
for name in ("head", "rotate", "compress", "checkpoint", "blob", "backup"):
    act = CHANGES[name](folder)
    layer.arm([], folder)
    act()
    steps = layer.log()
    layer.disarm()
    renames = [number for number, step in enumerate(steps) if step["op"] in ("replace", "rename")]
    parents = [steps[number]["to"].rpartition("/")[0] or "." for number in renames]
    seen[name] = [any(step["op"] == "fsync" and step["path"] == parent for step in steps[number:])
                  for number, parent in zip(renames, parents)]
answer(seen)
"""
    seen = answer_of(run_child(source, tmp_path, imports=(KIT,)))

    assert all(synced and all(synced) for synced in seen.values()), seen


@pytest.mark.parametrize("error", ["EACCES", "EPERM", "EROFS"])
def test_98_a_refused_replacement_is_an_error_and_no_copy(session: Session, error: str) -> None:
    """No second way is tried behind the caller's back; the old manifest stays, byte for byte."""
    before = contents(session.folder.path)
    source = f"""
from tests.durable_session import Session
session = Session(folder)
layer.arm([{{"op": ["replace", "rename"], "do": {error!r}, "times": None}}], folder)
try:
    session.rotate()
except OSError as problem:
    answer(problem.errno)
"""
    assert answer_of(run_child(source, session.folder.path.parent, imports=(KIT,))) == getattr(errno, error)
    assert contents(session.folder.path) == before


def test_99_102_writers_of_one_file_never_share_a_temporary_name(tmp_path: Path) -> None:
    """Two processes replace one file 500 times each, and every look meanwhile meets one whole version."""
    source = f"""
import sys
sys.path.insert(0, {str(KIT)!r})
from pathlib import Path
from solution.durable_log.atomic_file import replace_file
letter = sys.argv[1].encode()
for _ in range(500):
    replace_file(Path({str(tmp_path / "file")!r}), [letter * 5000, letter * 5000])
"""
    replace_file(tmp_path / "file", [b"start"])
    writers = [subprocess.Popen([sys.executable, "-I", "-c", source, letter]) for letter in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add((tmp_path / "file").read_bytes())

    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen | {(tmp_path / "file").read_bytes()} <= {b"start", b"a" * 10_000, b"b" * 10_000}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_100_what_killed_saves_left_is_swept_and_what_others_left_is_not(session: Session) -> None:
    """Only temporary files of our own form go, and only under the writer's lock."""
    folder = session.folder.path
    ours = [f".manifest.json.{number:016x}.tmp" for number in range(13)]
    others = [".manifest.json.tmp", ".manifest.json.xyz.tmp", "manifest.json.0123456789abcdef.tmp", ".x.tmp"]
    for name in (*ours, *others):
        (folder / name).write_bytes(b"half")

    Segments.open(session.folder)

    left = {path.name for path in folder.iterdir()}
    assert not left & set(ours)
    assert left >= set(others)


def test_101_a_half_written_file_is_no_item_of_a_listing(session: Session) -> None:
    """Neither a checkpoint, nor a blob, nor a segment."""
    Blobs(session.folder).put(b"x")
    Checkpoints(session.folder).save(Replayed(state=1, head=session.head))
    for place, name in (
        (session.folder.path, f"{21:020d}.jsonl"),
        (session.folder.checkpoints_path, f"{21:020d}.json"),
        (session.folder.blobs_path, "blob"),
    ):
        (place / f".{name}.0123456789abcdef.tmp").write_bytes(b"half")

    assert [found.head.sequence for found in Checkpoints(session.folder).sound([])] == [20]
    assert len(Blobs(session.folder).unreferenced(session.segments, older_than_seconds=0)) == 1
    assert verdict(session.folder)[0] == "sound"


@pytest.mark.parametrize("do", ["ENOSPC", "half,ENOSPC", "full,ENOSPC"])
@pytest.mark.parametrize("op", ["write", "fsync", "open"])
def test_103_a_full_disk_leaves_the_old_file_whole(tmp_path: Path, op: str, do: str) -> None:
    """At the first byte, in the middle, at the sync: the old content stays, and no zero-byte file comes."""
    if op != "write" and do.startswith("half"):
        do = "ENOSPC"
    replace_file(tmp_path / "file", [b"old"])
    source = f"""
from solution.durable_log.atomic_file import replace_file
layer.arm([{{"op": {op!r}, "do": {do!r}, "match": ".file.*"}}], folder)
try:
    replace_file(folder / "file", [b"new" * 1000])
except OSError as error:
    answer(error.errno)
"""
    assert answer_of(run_child(source, tmp_path, imports=(KIT,))) == 28
    assert (tmp_path / "file").read_bytes() == b"old"
    if op != "open":
        assert [path.name for path in tmp_path.iterdir()] == ["file"]


@posix
def test_105_the_mode_is_there_before_the_name(tmp_path: Path) -> None:
    """Nothing is done to a file by its name once it stands in its place: a link put there leads nowhere."""
    source = """
from solution.durable_log.atomic_file import replace_file
layer.arm([], folder)
replace_file(folder / "file", [b"new"])
answer([step["op"] for step in layer.log()])
"""
    steps = answer_of(run_child(source, tmp_path, imports=(KIT,)))

    assert not {"chmod", "fchmod"} & set(steps)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("target", ["victim", "nothing"])
def test_105_a_link_in_the_place_of_a_saved_file_is_replaced_not_followed(
    tmp_path: Path, target: str
) -> None:
    """The file that it led to is untouched."""
    (tmp_path / "victim").write_bytes(b"theirs")
    (tmp_path / "file").symlink_to(tmp_path / target)

    replace_file(tmp_path / "file", [b"ours"])

    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "victim").read_bytes() == b"theirs"
    assert not (tmp_path / "nothing").exists()
