"""The changes of a session's folder that are struck: each prepares, and returns what is to be done under the strike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from solution.durable_log.backup import back_up
from solution.durable_log.backup import restore as put_back
from solution.durable_log.blobs import Blobs
from solution.durable_log.checkpoint import Checkpoints, Replayed
from solution.durable_log.retention import remove_before
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import open_session_folder
from tests.durable_session import SESSION, Session

Act = Callable[[], object]


def begin(root: Path) -> Act:
    return lambda: Segments.open(open_session_folder(root, SESSION))


def rotate(root: Path) -> Act:
    return Session(root).rotate


def head(root: Path) -> Act:
    session = Session(root)
    return lambda: session.segments.record_head(session.head)


def compress(root: Path) -> Act:
    return Session(root).segments.compress


def index(root: Path) -> Act:
    return Session(root).segments.index


def remove(root: Path) -> Act:
    session = Session(root)
    return lambda: remove_before(session.segments, session.head.sequence, confirmed=True)


def checkpoint(root: Path) -> Act:
    session = Session(root)
    return lambda: Checkpoints(session.folder).save(Replayed(state={"n": 20}, head=session.head))


def blob(root: Path) -> Act:
    session = Session(root)
    return lambda: Blobs(session.folder).put(b"picture" * 100)


def backup(root: Path) -> Act:
    session = Session(root)
    return lambda: back_up(session.folder, root / "copy")


def restore(root: Path) -> Act:
    return lambda: put_back(root / "copy", root / "elsewhere")


CHANGES = {
    act.__name__: act
    for act in (begin, rotate, head, compress, index, remove, checkpoint, blob, backup, restore)
}
