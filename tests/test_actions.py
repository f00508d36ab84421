"""Actions: one function per click, judged by the bytes that are on disk afterwards."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from labkit import actions, naive, workspace
from solution.lesson_22 import JsonlSessionStore
from solution.lesson_22.session_store import scan
from solution.lesson_22.todo import replay

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The sample task's log."""
    path = tmp_path / "events.jsonl"
    asyncio.run(actions.make_sample_log(path))
    return path


def numbers(path: Path) -> list[int]:
    """The numbers on disk, line by line, whatever a strict reader would say about them."""
    return [json.loads(line)["sequence"] for line in path.read_bytes().splitlines()]


# --- the sample, cuts and damage ---


def test_the_sample_is_a_legal_task_with_characters_of_every_length(log: Path) -> None:
    """A strict read takes every event, replay accepts them, and characters of two, three and four bytes are there."""
    raw = log.read_bytes()
    found = scan(raw, log)

    assert len(found.events) == len(actions.SAMPLE_EVENTS)
    assert replay(found.events).needs_resume
    assert {len(character.encode()) for character in raw.decode()} >= {1, 2, 3}


def test_making_the_sample_again_begins_a_new_log(log: Path) -> None:
    """The same bytes as the first time, not eight more events."""
    before = log.read_bytes()
    size = asyncio.run(actions.make_sample_log(log))

    assert (log.read_bytes(), size) == (before, len(before))


def test_a_cut_leaves_exactly_the_first_bytes(log: Path) -> None:
    """The copy is the original's beginning; the original is untouched, in whichever order one cuts."""
    raw, copy = log.read_bytes(), log.with_name("copy.jsonl")

    for size in (len(raw) - 1, 0, 500, len(raw), 3):
        actions.cut(log, copy, size)
        assert copy.read_bytes() == raw[:size]
    assert log.read_bytes() == raw


@pytest.mark.parametrize("size", [-1, 100_000])
def test_a_cut_outside_the_file_changes_nothing(log: Path, size: int) -> None:
    """A position that the file does not have is refused, and says which it has."""
    copy = log.with_name("copy.jsonl")
    copy.write_bytes(b"before")

    with pytest.raises(ValueError, match=f"no byte {size}; choose 0 to 844"):
        actions.cut(log, copy, size)
    assert copy.read_bytes() == b"before"


def test_restore_takes_everything_back(log: Path) -> None:
    """After a tear and a repair the copy is the original again, and what was saved beside it is gone."""
    copy = log.with_name("copy.jsonl")
    actions.cut(log, copy, 800)
    asyncio.run(actions.append_task(JsonlSessionStore, copy, "more"))
    assert len(list(log.parent.iterdir())) == 3

    actions.restore(log, copy)
    assert copy.read_bytes() == log.read_bytes()
    assert sorted(path.name for path in log.parent.iterdir()) == ["copy.jsonl", "events.jsonl"]


def test_a_flip_changes_one_bit_in_place(log: Path) -> None:
    """One byte differs in one bit, the file keeps its identity, and the same flip again takes it back."""
    raw, inode = log.read_bytes(), log.stat().st_ino
    actions.flip_bit(log, 100, 7)
    flipped = log.read_bytes()

    assert [(at, a ^ b) for at, (a, b) in enumerate(zip(raw, flipped, strict=True)) if a != b] == [(100, 128)]
    assert log.stat().st_ino == inode
    actions.flip_bit(log, 100, 7)
    assert log.read_bytes() == raw


@pytest.mark.parametrize(("offset", "bit"), [(-1, 0), (844, 0), (0, 8), (0, -1)])
def test_a_flip_that_cannot_be_changes_nothing(log: Path, offset: int, bit: int) -> None:
    """No such byte, no such bit: refused with what there is."""
    raw = log.read_bytes()

    with pytest.raises(ValueError, match=r"events\.jsonl: no (byte|bit)"):
        actions.flip_bit(log, offset, bit)
    assert log.read_bytes() == raw


def test_damage_replaces_one_line_alone(log: Path) -> None:
    """Line 2 reads not-json; every other line and every newline stays."""
    before = log.read_bytes().split(b"\n")
    actions.damage_line(log, 2)

    assert log.read_bytes().split(b"\n") == [before[0], b"not-json", *before[2:]]


@pytest.mark.parametrize("line", [0, 9, 100])
def test_a_line_that_is_not_there_cannot_be_damaged(log: Path, line: int) -> None:
    """The empty piece behind the last newline is no line either."""
    with pytest.raises(ValueError, match=f"no line {line} to damage; the file has 8 lines"):
        actions.damage_line(log, line)


def test_append_task_stays_legal_however_often(log: Path) -> None:
    """Each appended task has an id of its own, so that replay accepts all of them."""
    for _ in range(3):
        asyncio.run(actions.append_task(JsonlSessionStore, log, "more"))

    assert len(replay(scan(log.read_bytes(), log).events).todos) == 5


# --- faults underneath ---


def test_a_disturbance_ends_with_its_block(tmp_path: Path) -> None:
    """Below the folder the write fails; elsewhere it does not; afterwards `os` is as it was, also after an error."""
    functions = (os.write, os.open, open)
    with (
        pytest.raises(OSError, match="No space left"),
        actions.disturbed(tmp_path / "disk", {"op": "write", "do": "ENOSPC"}) as log,
    ):
        (tmp_path / "other").write_text("fine")
        (tmp_path / "disk").mkdir()
        (tmp_path / "disk" / "log").write_bytes(b"x")

    assert (os.write, os.open, open) == functions
    assert [entry["did"] for entry in log if entry["op"] == "write"] == ["none,ENOSPC"]


def test_a_rule_that_cannot_be_meant_leaves_nothing_behind(tmp_path: Path) -> None:
    """An unknown operation is refused, and the file layer is taken out again."""
    function = os.write

    with (
        pytest.raises(ValueError, match="teleport"),
        actions.disturbed(tmp_path, {"op": "teleport", "do": "EIO"}),
    ):
        pass
    assert os.write is function


# --- races and cuts ---


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        (naive.UnsafeStore, [1, 1, 1]),
        (naive.WriteLockedStore, [1, 1, 1]),
        (naive.LuckyStore, [1, 2, 3]),
        (naive.CoroutineStore, [1, 2, 3]),
        (JsonlSessionStore, [1, 2, 3]),
    ],
)
def test_a_race_is_certain(tmp_path: Path, store: Any, expected: list[int]) -> None:
    """A store that lets everybody read before anybody writes numbers all of them 1, every time; the others do not."""
    path = tmp_path / "log.jsonl"

    async def run() -> list[actions.Step]:
        return await actions.race(store(path))

    steps = asyncio.run(run())
    assert numbers(path) == expected
    calls = [step for step in steps if step.kind == "call"]
    assert sorted(step.number for step in calls) == expected
    assert [step.lane for step in sorted(calls, key=lambda step: step.began)] == ["a", "b", "c"]


def test_a_race_tells_who_read_before_whom(tmp_path: Path) -> None:
    """In the unsafe store everybody reads "nothing yet" before anybody begins to write."""

    async def run() -> list[actions.Step]:
        return await actions.race(naive.UnsafeStore(tmp_path / "log.jsonl"))

    steps = asyncio.run(run())
    reads = [step for step in steps if step.kind == "read"]
    assert [step.number for step in reads] == [0, 0, 0]
    assert max(step.began for step in reads) < min(step.began for step in steps if step.kind == "write")


def test_cut_everywhere_gives_a_verdict_at_every_byte(log: Path) -> None:
    """Solution: whole at record ends, torn between them, nothing else. Newline-only: loses what lacks its newline."""
    ends = {0, *(at + 1 for at, byte in enumerate(log.read_bytes()) if byte == 0x0A)}
    ours = asyncio.run(actions.cut_everywhere(log, JsonlSessionStore))
    strict = asyncio.run(actions.cut_everywhere(log, naive.NewlineStore))

    whole = ends | {end - 1 for end in ends if end}
    assert ours == ["whole" if at in whole else "torn" for at in range(845)]
    assert [at for at, verdict in enumerate(strict) if verdict == "lost"] == sorted(
        end - 1 for end in ends if end
    )
    assert sorted(path.name for path in log.parent.iterdir()) == ["events.jsonl"]


class Refusing(naive.SkippingStore):
    """Refuses every file, or returns one event too many."""

    def _read_now(self) -> list[Any]:
        events = super()._read_now()
        if len(events) == 8:
            raise ValueError
        return [*events, *events[:1]]


def test_cut_everywhere_names_wrong_and_refused(log: Path) -> None:
    """Events that are not in the file are wrong, an error is a refusal; the cut copy is taken away all the same."""
    verdicts = asyncio.run(actions.cut_everywhere(log, Refusing))

    assert verdicts[0] == "whole"
    assert verdicts[300] == "wrong"
    assert verdicts[-1] == "refused"
    assert sorted(path.name for path in log.parent.iterdir()) == ["events.jsonl"]


# --- predictions ---


@pytest.fixture
def playground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of this test's own."""
    monkeypatch.setattr(
        workspace, "scratch", lambda name: (tmp_path / name).mkdir(exist_ok=True) or tmp_path / name
    )
    return tmp_path


def test_predictions_are_kept_on_disk(playground: Path) -> None:
    """Each question keeps its last answer, in words that a person can read."""
    actions.remember_prediction("how many?", "三")
    actions.remember_prediction("which?", "1")
    actions.remember_prediction("how many?", "四")

    assert actions.predictions() == {"how many?": "四", "which?": "1"}
    assert "四" in (playground / "predictions" / "answers.json").read_text("utf-8")


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_a_broken_prediction_file_is_no_answer(playground: Path, content: bytes) -> None:
    """Half a file, a list, bytes: no answer is known, and the next one is kept."""
    (playground / "predictions").mkdir()
    (playground / "predictions" / "answers.json").write_bytes(content)

    assert actions.predictions() == {}
    actions.remember_prediction("q", "a")
    assert actions.predictions() == {"q": "a"}
