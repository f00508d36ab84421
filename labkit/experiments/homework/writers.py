"""Who may write: one process a session, each session in a place of its own, and nobody where locks do not hold."""

from __future__ import annotations

import json
import os
from pathlib import Path

from labkit.experiments.asking import Answer
from labkit.experiments.homework.children import Child, children
from labkit.experiments.homework.on_disk import records
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import PlaceError, open_session_folder


def ask(writer: Child, command: str) -> Answer:
    """Give a writer one command; `commanded_writer` says what it understands. Raises: RuntimeError when it is gone."""
    writer.tell(command)
    return Answer(*json.loads(writer.hear()))


def sessions_apart(events: int = 100) -> Table:
    """Let two processes write at the same time: to a session each, then to the same one (C22-37)."""
    place = fresh_place("apart")
    rows: dict[str, dict[str, Cell]] = {}
    with children(2, "commanded_writer", place) as pair:
        for name, sessions in (("own-session", ("alpha", "beta")), ("one-session", ("common", "common"))):
            opened = [ask(one, f"open {session}") for one, session in zip(pair, sessions, strict=True)]
            inside = [one for one, answer in zip(pair, opened, strict=True) if answer.short == "opened"]
            for one in inside:  # all who are in write at once, and none leaves before all are done
                one.tell(f"append {events}")
            for one in inside:
                one.hear()
            rows[name] = {
                "first-opens": opened[0].short,
                "second-opens": opened[1].short,
                "on-disk": sum(len(records(place / session)) for session in {*sessions}),
            }
            for one in inside:
                ask(one, "close")
    return Table(rows)


def strange_ids(session: str = "../../x") -> Table:
    """Ask for a session by a strange id, and for one that belongs to another user (C22-37).

    The second only where folders have owners, which leaves out Windows.
    """
    place = fresh_place("ids")
    wanted = {session: (place, session)}
    if os.name == "posix":
        strangers = _strangers_session(place / "strangers")
        wanted["strangers"] = strangers.parent, strangers.name
    rows: dict[str, dict[str, Cell]] = {}
    for name, (root, asked) in wanted.items():
        before = _around(root, asked)
        try:
            open_session_folder(root, asked)
        except PlaceError as refusal:
            answer = Answer(type(refusal).__name__, str(refusal))
        else:
            answer = Answer("opened")
        rows[name] = {
            "answer": answer.short,
            "new-files": len(_around(root, asked) - before),
            "said": answer.said,
        }
    return Table(rows)


def _strangers_session(place: Path) -> Path:
    """Return a folder of another user's with a name that a session may have."""
    if os.geteuid():
        return Path("/usr")  # the system's, on every POSIX machine
    session = place / "theirs"
    session.mkdir(mode=0o700, parents=True)
    os.chown(session, 65534, -1)  # "nobody"
    return session


def _around(root: Path, session: str) -> set[Path]:
    """Return what lies in the root, beside what the id would lead to, and in that."""
    asked = Path(os.path.normpath(root / session))
    return {path for folder in (root, asked.parent, asked) if folder.is_dir() for path in folder.iterdir()}


def one_writer(events: int = 3) -> Table:
    """Open a session beside its writer; kill that; try again; then open one where the system cannot lock (C22-39)."""
    place = fresh_place("one-writer")
    rows: dict[str, dict[str, Cell]] = {}

    def note(step: str, answer: Answer, session: str = "demo") -> None:
        kept = len(records(place / session))
        rows[step] = {"answer": answer.short, "on-disk": kept, "said": answer.said}

    program = "commanded_writer"
    with (
        children(2, program, place) as (first, second),
        children(1, program, place, "no-locks") as (lockless,),
    ):
        opened = ask(first, "open demo")
        ask(first, f"append {events}")
        note("first-writer", opened)
        note("beside-it", ask(second, "open demo"))
        first.kill()
        retried = ask(second, "open demo")
        ask(second, "append 1")
        note("after-sigkill", retried)
        note("no-locks", ask(lockless, "open elsewhere"), "elsewhere")
    return Table(rows)
