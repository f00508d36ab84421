"""Replay from a checkpoint equals full replay, damage costs time and never truth, and an effect happens once (C22-56)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from solution.durable_log.checkpoint import CHECKPOINT_VERSION, Checkpoint, Checkpoints, Replayed, replay
from solution.durable_log.contract import Event
from solution.durable_log.effects import BEGUN, DONE, Effects, fingerprint_of
from solution.durable_log.errors import EventsRemovedError, InDoubtError, LimitError, RefusedError
from solution.durable_log.record import Head
from solution.durable_log.retention import remove_before
from solution.durable_log.sealed_json import write_sealed
from tests.durable_session import SESSION, Session, three_segments


def tally(state: dict[str, Any], event: Event) -> dict[str, Any]:
    """Count and sum: a state that any missing or doubled event changes."""
    number = event.data["n"] if isinstance(event.data, dict) and "n" in event.data else 0
    return {"events": state["events"] + 1, "sum": state["sum"] + number, "last": event.event_id}


START: dict[str, Any] = {"events": 0, "sum": 0, "last": None}


def run(awaitable: Awaitable[Any]) -> Any:
    async def inner() -> Any:
        return await awaitable

    return asyncio.run(inner())


def stand(session: Session, checkpoints: Checkpoints | None = None) -> Replayed:
    replayed: Replayed = run(replay(session, tally, START, checkpoints=checkpoints))
    return replayed


def same(one: Replayed, other: Replayed) -> bool:
    return (one.state, one.head, one.effects.done, one.effects.begun) == (
        *(other.state, other.head),
        *(other.effects.done, other.effects.begun),
    )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return three_segments(tmp_path)


@pytest.fixture
def checkpoints(session: Session) -> Checkpoints:
    return Checkpoints(session.folder)


def state_at(session: Session, sequence: int) -> Replayed:
    """Replay a session's first events only."""

    class Shorter:
        session = SESSION

        async def stream(self, *, after: int = 0) -> Any:
            async for event in full.stream(after=after):
                if event.sequence <= sequence:
                    yield event

    full = session
    replayed: Replayed = run(replay(Shorter(), tally, START))  # type: ignore[arg-type]
    return replayed


# --- Replay ---


@pytest.mark.parametrize("at", range(21))
def test_replay_from_a_checkpoint_equals_full_replay(
    session: Session, checkpoints: Checkpoints, at: int
) -> None:
    """Wherever it was made: inside a segment, at its end, at the log's end, before its first event."""
    checkpoints.save(state_at(session, at))

    replayed = stand(session, checkpoints)

    assert same(replayed, stand(session))
    assert (replayed.begun_at, replayed.refused) == (at, ())


def test_only_the_events_behind_the_checkpoint_are_applied(
    session: Session, checkpoints: Checkpoints
) -> None:
    """That is what it is for."""
    checkpoints.save(state_at(session, 18))
    applied = []

    run(
        replay(
            session,
            lambda state, event: applied.append(event.sequence) or state,
            START,
            checkpoints=checkpoints,
        )
    )

    assert applied == [19, 20]


def test_the_state_is_what_was_saved_types_included(session: Session, checkpoints: Checkpoints) -> None:
    """Numbers beyond 64 bit, halves of pairs, the order of keys."""
    state = {"z": 2**70, "a": [1.0, 1, True, None, -0.0], "\ud83d": "é", "": {}}
    checkpoints.save(Replayed(state=state, head=session.head))

    replayed = stand(session, checkpoints)

    assert repr(replayed.state) == repr(state)


@pytest.mark.parametrize("state", [float("nan"), (1,), {1: 2}, b"x", {"a": object()}])
def test_a_state_that_json_would_alter_is_refused_and_older_checkpoints_stay(
    session: Session, checkpoints: Checkpoints, state: Any
) -> None:
    """A checkpoint never says something else than the state did."""
    checkpoints.save(state_at(session, 7))

    with pytest.raises(RefusedError):
        checkpoints.save(Replayed(state=state, head=session.head))

    assert stand(session, checkpoints).begun_at == 7


def test_a_state_too_deep_is_refused(session: Session, checkpoints: Checkpoints) -> None:
    """The same limit as for data."""
    deep: Any = 0
    for _ in range(101):
        deep = [deep]

    with pytest.raises(LimitError):
        checkpoints.save(Replayed(state=deep, head=session.head))


def test_the_newest_two_are_kept(session: Session, checkpoints: Checkpoints) -> None:
    """One to use, one to fall back on."""
    for at in (3, 9, 15, 20):
        checkpoints.save(state_at(session, at))

    assert [int(path.stem) for path in checkpoints.paths()] == [20, 15]


# --- Damage ---

DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "NUL": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "cut": lambda path: os.truncate(path, path.stat().st_size - 1),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b'"events":', b'"Events":')),
    "no JSON": lambda path: path.write_bytes(b"x"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: (path.rename(path.with_name("x")), path.symlink_to("x")),
    "newer version": lambda path: write_sealed(path, msgspec.defstruct("Newer", [("v", int, 99)])()),
    "another session's": lambda path: write_sealed(
        path, msgspec.structs.replace(msgspec.json.decode(_body(path), type=Checkpoint), session="other")
    ),
}


def _body(path: Path) -> bytes:
    return path.read_bytes()[: -len(b',"file_hash":"') - 67] + b"}"


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_falls_back_and_says_so(
    session: Session, checkpoints: Checkpoints, kind: str
) -> None:
    """To the one before it; the state is the same, the report names the file."""
    checkpoints.save(state_at(session, 9))
    path = checkpoints.save(state_at(session, 18))
    DAMAGE[kind](path)

    replayed = stand(session, checkpoints)

    assert same(replayed, stand(session))
    assert replayed.begun_at == 9
    assert len(replayed.refused) == 1
    assert path.name in replayed.refused[0]


def test_no_sound_checkpoint_means_full_replay(session: Session, checkpoints: Checkpoints) -> None:
    """Both damaged: from event 1, with both named."""
    for at in (9, 18):
        os.truncate(checkpoints.save(state_at(session, at)), 40)

    replayed = stand(session, checkpoints)

    assert same(replayed, stand(session))
    assert (replayed.begun_at, len(replayed.refused)) == (0, 2)


def test_every_flipped_byte_of_a_checkpoint_is_found(session: Session, checkpoints: Checkpoints) -> None:
    """Never a silently wrong state."""
    path = checkpoints.save(state_at(session, 18))
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        refused: list[str] = []
        assert list(checkpoints.sound(refused)) == []
        assert len(refused) == 1, at


@pytest.mark.parametrize(
    "head", [Head(18, "a" * 64), Head(99, "a" * 64)], ids=["other hash", "ahead of the log"]
)
def test_a_checkpoint_of_another_log_does_not_count(
    session: Session, checkpoints: Checkpoints, head: Head
) -> None:
    """Well sealed, this session's, and the log has no such event: as after restoring an older backup."""
    checkpoints.save(Replayed(state={"events": 1000, "sum": 0, "last": "x"}, head=head))

    replayed = stand(session, checkpoints)

    assert same(replayed, stand(session))
    assert "is not of this log" in replayed.refused[0]


def test_damage_with_segments_costs_time_and_without_them_everything(
    session: Session, checkpoints: Checkpoints
) -> None:
    """C22-47: covered events may go only because the checkpoint stays; when that is lost too, it is an error, no guess."""
    path = checkpoints.save(stand(session))
    remove_before(session.segments, 16, confirmed=True)
    assert stand(session, checkpoints).state["events"] == 20

    os.truncate(path, 40)

    with pytest.raises(EventsRemovedError, match="up to 15"):
        stand(session, checkpoints)


@pytest.mark.parametrize("at", [15, 16, 20])
def test_replay_goes_on_from_what_retention_left(session: Session, checkpoints: Checkpoints, at: int) -> None:
    """Also when the checkpoint was made exactly at the last removed event."""
    full = stand(session)
    checkpoints.save(state_at(session, at))
    remove_before(session.segments, 16, confirmed=True)

    assert same(stand(session, checkpoints), full)


def test_a_checkpoint_before_what_retention_left_does_not_count(
    session: Session, checkpoints: Checkpoints
) -> None:
    """Events between the two are gone: nothing is skipped silently."""
    checkpoints.save(state_at(session, 7))
    checkpoints.save(state_at(session, 20))
    remove_before(session.segments, 16, confirmed=True)
    checkpoints.paths()[0].unlink()

    with pytest.raises(EventsRemovedError):
        stand(session, checkpoints)


def test_a_log_without_checkpoints_is_replayed_from_its_beginning(
    session: Session, checkpoints: Checkpoints
) -> None:
    """No folder, no report, no error."""
    assert same(stand(session, checkpoints), stand(session))
    assert not session.folder.checkpoints_path.exists()


def test_other_files_among_checkpoints_are_left_alone(session: Session, checkpoints: Checkpoints) -> None:
    """Only what a killed save left is swept."""
    path = checkpoints.save(state_at(session, 7))
    for name in ("note", "1.json", "00000000000000000009.json.bak"):
        path.with_name(name).write_bytes(b"mine")
    path.with_name(".00000000000000000009.json.0123456789abcdef.tmp").write_bytes(b"half")

    checkpoints.save(state_at(session, 9))

    names = {other.name for other in path.parent.iterdir()}
    assert names == {"note", "1.json", "00000000000000000009.json.bak", f"{7:020d}.json", f"{9:020d}.json"}


# --- Effects ---


class World:
    """Where effects happen: it counts them."""

    def __init__(self, fails: bool = False) -> None:
        self.counter = 0
        self.fails = fails

    async def act(self) -> None:
        self.counter += 1
        if self.fails:
            raise ConnectionError


def test_an_effect_happens_once_however_often_it_is_asked_for(session: Session) -> None:
    """The counter stays 1: in one run, after replaying all, and after replaying from a checkpoint."""
    world, checkpoints = World(), Checkpoints(session.folder)
    first = stand(session)
    outcomes = [run(first.effects.once(session, "send", {"to": "a"}, world.act)) for _ in range(2)]
    outcomes.append(run(stand(session).effects.once(session, "send", {"to": "a"}, world.act)))
    checkpoints.save(stand(session))
    session.rotate()
    session.write(3)
    from_checkpoint = stand(session, checkpoints)
    outcomes.append(run(from_checkpoint.effects.once(session, "send", {"to": "a"}, world.act)))

    assert outcomes == [True, False, False, False]
    assert world.counter == 1
    assert from_checkpoint.begun_at == 22


def test_an_effect_stays_done_when_retention_removed_its_events(session: Session) -> None:
    """The fingerprint in the checkpoint is all that is left of it."""
    world, checkpoints = World(), Checkpoints(session.folder)
    run(stand(session).effects.once(session, "send", 1, world.act))
    session.rotate()
    checkpoints.save(stand(session))
    remove_before(session.segments, 10**6, confirmed=True)

    assert run(stand(session, checkpoints).effects.once(session, "send", 1, world.act)) is False
    assert world.counter == 1


@pytest.mark.parametrize("arguments", [{"to": "b"}, {"to": "a", "n": 1}, None, {"to": 1}, ["a"]], ids=repr)
def test_other_arguments_are_another_effect(session: Session, arguments: Any) -> None:
    """And another name, and another attempt."""
    world, effects = World(), Effects()
    run(effects.once(session, "send", {"to": "a"}, world.act))

    run(effects.once(session, "send", arguments, world.act))
    run(effects.once(session, "post", {"to": "a"}, world.act))
    run(effects.once(session, "send", {"to": "a"}, world.act, attempt=2))

    assert world.counter == 4


def test_the_order_of_keys_is_no_difference() -> None:
    """At any depth; that of a list is."""
    assert fingerprint_of("x", {"a": {"b": 1, "c": 2}, "d": 3}) == fingerprint_of(
        "x", {"d": 3, "a": {"c": 2, "b": 1}}
    )
    assert fingerprint_of("x", [1, 2]) != fingerprint_of("x", [2, 1])


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_an_effect_that_was_cut_short_is_in_doubt_and_not_repeated(
    session: Session, from_checkpoint: bool
) -> None:
    """It may have happened: whoever can look settles it, or takes another attempt."""
    world = World(fails=True)
    with pytest.raises(ConnectionError):
        run(Effects().once(session, "send", 1, world.act))
    checkpoints = Checkpoints(session.folder)
    if from_checkpoint:
        checkpoints.save(stand(session))
    effects = stand(session, checkpoints).effects

    with pytest.raises(InDoubtError, match="may have happened"):
        run(effects.once(session, "send", 1, world.act))
    assert world.counter == 1

    run(effects.settle(session, "send", 1))

    assert run(stand(session).effects.once(session, "send", 1, world.act)) is False
    assert world.counter == 1


def test_two_tasks_that_want_one_effect_get_it_once(session: Session) -> None:
    """The second finds it begun, even while the first still waits for the log."""
    world, effects = World(), Effects()

    async def both() -> list[Any]:
        wanted = [effects.once(session, "send", 1, world.act) for _ in range(2)]
        return await asyncio.gather(*wanted, return_exceptions=True)

    first, second = run(both())

    assert first is True
    assert second is False or isinstance(second, InDoubtError)
    assert world.counter == 1


def test_an_append_that_fails_before_the_effect_leaves_it_undone(session: Session) -> None:
    """Begun is recorded first: what could not be recorded did not happen."""
    world = World()

    class FullDisk:
        session = SESSION

        async def append(self, *_arguments: Any, **_more: Any) -> Event:
            raise OSError(28, "No space left on device")

    effects = Effects()
    with pytest.raises(OSError, match="No space"):
        run(effects.once(FullDisk(), "send", 1, world.act))  # type: ignore[arg-type]

    assert world.counter == 0
    assert run(effects.once(session, "send", 1, world.act)) is True


@pytest.mark.parametrize("data", [None, [], {}, {"fingerprint": 1}, {"fingerprint": None}, "x"], ids=repr)
@pytest.mark.parametrize("type_", [BEGUN, DONE])
def test_events_that_only_look_like_effects_say_nothing(session: Session, type_: str, data: Any) -> None:
    """Anybody may use the type; no replay breaks on it."""
    session.write(type_=type_, data=data)

    effects = stand(session).effects

    assert (effects.begun, effects.done) == (set(), set())


def test_a_checkpoint_says_its_version(session: Session, checkpoints: Checkpoints) -> None:
    """So that a later program knows what it meets."""
    path = checkpoints.save(state_at(session, 7))

    assert msgspec.json.decode(path.read_bytes())["v"] == CHECKPOINT_VERSION == 1
    shutil.rmtree(path.parent)
