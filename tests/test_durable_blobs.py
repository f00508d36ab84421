"""Big content by hash and reference (E6): stored before the event, proved at each reading, removed only on request."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from solution.durable_log.blobs import Blobs
from solution.durable_log.checkpoint import Checkpoints, Replayed
from solution.durable_log.errors import BlobError, CorruptLogError, LimitError, PlaceError, RetentionError
from solution.durable_log.retention import remove_before
from tests.durable_session import Session

BIG = bytes(range(256)) * 20_480  # 5 MiB: more than a record may have, and more than one piece
NOW = {"older_than_seconds": 0.0}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


@pytest.fixture
def blobs(session: Session) -> Blobs:
    return Blobs(session.folder)


def only_blob(session: Session) -> Path:
    (path,) = session.folder.blobs_path.iterdir()
    return path


@pytest.mark.parametrize("content", [b"", b"x", b"\n\0\xff", BIG], ids=["empty", "one", "binary", "5 MiB"])
@pytest.mark.parametrize("as_file", [False, True])
def test_content_comes_back_by_its_reference(
    blobs: Blobs, session: Session, content: bytes, as_file: bool
) -> None:
    """The reference is short, plain data: digest and size. The file has the digest's name."""
    reference = blobs.put(io.BytesIO(content) if as_file else content)

    digest = hashlib.sha256(content).hexdigest()
    assert reference == {"$blob": {"sha256": digest, "bytes": len(content)}}
    assert only_blob(session).name == digest
    assert blobs.get(reference) == content


def test_equal_content_is_stored_once(blobs: Blobs, session: Session) -> None:
    """Its name is its content."""
    assert blobs.put(b"same") == blobs.put(io.BytesIO(b"same"))
    assert only_blob(session).read_bytes() == b"same"


def test_storing_again_heals_a_damaged_copy(blobs: Blobs, session: Session) -> None:
    """That a name is there proves nothing about what is behind it."""
    reference = blobs.put(b"content")
    only_blob(session).write_bytes(b"c0ntent")

    blobs.put(b"content")

    assert blobs.get(reference) == b"content"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_blobs_are_private(blobs: Blobs, session: Session, mask: int) -> None:
    """File 0600, folder 0700, under any umask."""
    before = os.umask(mask)
    try:
        blobs.put(b"x")
    finally:
        os.umask(before)

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (session.folder.blobs_path, only_blob(session))]
    assert modes == [0o700, 0o600]


def test_a_missing_blob_is_named(blobs: Blobs, session: Session) -> None:
    """With its file, and what to do."""
    reference = blobs.put(b"x")
    only_blob(session).unlink()

    with pytest.raises(BlobError, match=reference["$blob"]["sha256"] + ": is missing; restore"):
        blobs.get(reference)


@pytest.mark.parametrize(
    "altered",
    [b"", b"conten", b"content2", b"Content", bytes(7)],
    ids=["emptied", "cut", "grown", "flipped", "NUL"],
)
def test_an_altered_blob_is_never_given(blobs: Blobs, session: Session, altered: bytes) -> None:
    """Not one byte of it: it is proved from end to end before the first."""
    reference = blobs.put(b"content")
    only_blob(session).write_bytes(altered)

    for read in (blobs.get, blobs.open):
        with pytest.raises(BlobError, match=f"was altered \\({len(altered)} bytes, its reference says 7\\)"):
            read(reference)


def test_a_reference_with_another_size_is_refused(blobs: Blobs) -> None:
    """Digest and size are both the event's word."""
    reference = blobs.put(b"content")
    reference["$blob"]["bytes"] = 6

    with pytest.raises(BlobError, match="altered"):
        blobs.get(reference)


DIGEST = "0" * 64


@pytest.mark.parametrize(
    "value",
    [
        *(None, "x", [], {}, {"$blob": None}, {"$blob": DIGEST}, {"$blob": {"sha256": DIGEST}}),
        *(
            {"$blob": {"sha256": name, "bytes": 1}}
            for name in ("../manifest.json", "/etc/passwd", "0" * 63, "A" * 64)
        ),
        *({"$blob": {"sha256": DIGEST + "\n", "bytes": 1}}, {"$blob": {"sha256": DIGEST, "bytes": "1"}}),
    ],
    ids=repr,
)
def test_what_is_no_reference_leads_to_no_file(blobs: Blobs, value: Any) -> None:
    """Data come from anywhere: only 64 hex digits ever become a file's name."""
    with pytest.raises(BlobError, match="no reference"):
        blobs.get(value)


def test_a_blob_over_the_limit_leaves_nothing(session: Session) -> None:
    """Also when it comes piece by piece and nobody knew its size."""
    blobs = Blobs(session.folder, most_bytes=1 << 20)

    with pytest.raises(LimitError, match="1048576 bytes"):
        blobs.put(io.BytesIO(BIG))

    assert not list(session.folder.blobs_path.iterdir())


def test_a_blob_folder_that_is_a_link_is_refused(blobs: Blobs, session: Session, tmp_path: Path) -> None:
    """Content would go where somebody else chose."""
    (tmp_path / "elsewhere").mkdir(0o700)
    session.folder.blobs_path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PlaceError, match="link"):
        blobs.put(b"x")

    assert not list((tmp_path / "elsewhere").iterdir())


def test_only_blobs_that_nothing_names_are_listed_and_removed(blobs: Blobs, session: Session) -> None:
    """Closed, compressed and active segments and checkpoints are all asked."""
    kept = [blobs.put(content) for content in (b"compressed", b"closed", b"active", b"checkpoint")]
    lost = blobs.put(b"lost")["$blob"]["sha256"]
    session.write(data={"deep": [{"picture": kept[0]}]})
    session.rotate()
    session.segments.compress()
    session.write(data=kept[1])
    session.rotate()
    session.write(data=kept[2])
    Checkpoints(session.folder).save(Replayed(state=[kept[3]], head=session.head))

    assert [path.name for path in blobs.unreferenced(session.segments, **NOW)] == [lost]
    removed = blobs.remove_unreferenced(session.segments, confirmed=True, **NOW)

    assert [path.name for path in removed] == [lost]
    assert [blobs.get(reference) for reference in kept] == [
        b"compressed",
        b"closed",
        b"active",
        b"checkpoint",
    ]
    assert len(list(session.folder.blobs_path.iterdir())) == 4


def test_nothing_is_removed_without_a_yes(blobs: Blobs, session: Session) -> None:
    """The message says how many it would be."""
    reference = blobs.put(b"lost")

    with pytest.raises(RetentionError, match="1 blobs are named by no event"):
        blobs.remove_unreferenced(session.segments, confirmed=False, **NOW)

    assert blobs.get(reference) == b"lost"


def test_a_young_blob_stays(blobs: Blobs, session: Session) -> None:
    """Its event may be about to be appended."""
    blobs.put(b"young")

    assert blobs.remove_unreferenced(session.segments, confirmed=True) == []
    assert only_blob(session).read_bytes() == b"young"


def test_a_damaged_log_removes_no_blob(blobs: Blobs, session: Session) -> None:
    """What it names is not known then."""
    reference = blobs.put(b"x")
    session.write(data=reference)
    session.rotate()
    path = session.segments.files()[0].path
    path.write_bytes(path.read_bytes().replace(b'"$blob"', b'"$blab"'))

    with pytest.raises(CorruptLogError):
        blobs.remove_unreferenced(session.segments, confirmed=True, **NOW)

    assert blobs.get(reference) == b"x"


def test_a_blob_goes_when_retention_removed_its_last_event(blobs: Blobs, session: Session) -> None:
    """On request, as ever."""
    reference = blobs.put(b"old")
    session.write(data=reference)
    session.rotate()
    Checkpoints(session.folder).save(Replayed(state={}, head=session.head))
    remove_before(session.segments, 2, confirmed=True)

    assert len(blobs.remove_unreferenced(session.segments, confirmed=True, **NOW)) == 1
    with pytest.raises(BlobError):
        blobs.get(reference)


def test_what_a_killed_put_left_is_swept_on_request(blobs: Blobs, session: Session) -> None:
    """Temporary files have a form of their own; others in the folder are nobody's business."""
    blobs.put(b"x")
    (session.folder.blobs_path / ".blob.0123456789abcdef.tmp").write_bytes(b"half")
    (session.folder.blobs_path / "note").write_bytes(b"mine")
    session.write(data=[path.name for path in session.folder.blobs_path.iterdir()])

    blobs.remove_unreferenced(session.segments, confirmed=True, **NOW)

    assert sorted(path.name for path in session.folder.blobs_path.iterdir())[1:] == ["note"]


def test_a_session_without_blobs_has_none_to_remove(blobs: Blobs, session: Session) -> None:
    """The folder comes with the first blob."""
    assert blobs.remove_unreferenced(session.segments, confirmed=True) == []
    assert not session.folder.blobs_path.exists()
