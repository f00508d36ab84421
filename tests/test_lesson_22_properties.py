"""What holds for every history, cut and damaged byte: the store against the grader's own reading of the format."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.lab import Event
from grader.suites.lesson_22.drawn import line, log
from grader.suites.lesson_22.judge import judge
from solution.lesson_22 import CorruptLogError, JsonlSessionStore
from solution.lesson_22.session_store import scan

ZOO = Path(__file__).resolve().parents[1] / "assets/corruption-zoo"
VERDICTS = json.loads((ZOO / "verdicts.json").read_bytes())

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TYPE = TEXT.filter(str.strip).map(str.strip)
HISTORY = st.lists(st.tuples(TYPE, JSON), min_size=1, max_size=4)

same_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


def as_events(history: list[tuple[str, object]]) -> list[Event]:
    return [Event(number, kind, data) for number, (kind, data) in enumerate(history, start=1)]


def verdict_of_the_store(raw: bytes) -> tuple[list[tuple[int, str, object]], int | None]:
    try:
        return [(event.sequence, event.type, event.data) for event in scan(raw, Path("log")).events], None
    except CorruptLogError as error:
        return [], error.line


def verdict_of_the_judge(raw: bytes) -> tuple[list[tuple[int, str, object]], int | None]:
    found = judge(raw)
    if found.bad_line is not None:
        return [], found.bad_line
    return [(event.sequence, event.type, event.data) for event in found.events], None


@given(history=HISTORY)
@same_folder
def test_what_is_appended_is_what_is_read(tmp_path: Path, history):
    """Any history comes back from the file as it was returned, and as it was given."""
    path = tmp_path / "log.jsonl"
    path.unlink(missing_ok=True)

    async def run():
        store = JsonlSessionStore(path)
        returned = [await store.append(kind, data) for kind, data in history]
        return returned, await JsonlSessionStore(path).read()

    returned, read = asyncio.run(run())

    assert returned == read
    assert [(event.type, event.data) for event in read] == history


@given(history=HISTORY)
@same_folder
def test_every_cut_gives_exactly_the_records_before_it(history):
    """Cut anywhere, a log reads as the records that are whole before the cut, and never raises."""
    events = as_events(history)
    ends, raw = [], log(events)
    for event in events:
        ends.append((ends[-1] if ends else 0) + len(line(event)))

    for cut in range(len(raw) + 1):
        whole = sum(end - 1 <= cut for end in ends)  # a record counts without its newline
        assert len(scan(raw[:cut], Path("log")).events) == whole


@given(history=HISTORY, data=st.data())
@same_folder
def test_every_cut_can_be_appended_to(tmp_path: Path, history, data):
    """Cut anywhere, one more append keeps every whole record and saves every torn byte."""
    raw = log(as_events(history))
    cut = data.draw(st.integers(0, len(raw)))
    path = tmp_path / "log.jsonl"
    for left in tmp_path.iterdir():
        left.unlink()
    path.write_bytes(raw[:cut])
    before = scan(raw[:cut], path)

    added = asyncio.run(_append(path))

    assert asyncio.run(JsonlSessionStore(path).read()) == [*before.events, added]
    assert path.read_bytes().startswith(raw[: before.good_bytes])
    saved = [left.read_bytes() for left in tmp_path.iterdir() if left != path]
    assert saved == ([before.torn] if before.torn else [])


async def _append(path: Path):
    return await JsonlSessionStore(path).append("added", {"after": "the cut"})


@given(history=HISTORY, data=st.data())
@settings(deadline=None, max_examples=300)
def test_two_readers_agree_on_any_damage(history, data):
    """The store and the grader's own reader, written apart, give one verdict on any changed stretch of bytes."""
    raw = log(as_events(history))
    at = data.draw(st.integers(0, len(raw) - 1))
    length = data.draw(st.integers(0, 4))
    damaged = raw[:at] + data.draw(st.binary(max_size=4)) + raw[at + length :]

    assert repr(verdict_of_the_store(damaged)) == repr(verdict_of_the_judge(damaged))


@pytest.mark.parametrize("name", VERDICTS)
def test_the_judge_knows_the_whole_zoo(name: str):
    """The grader's own reader gives every damaged log of the zoo its verdict."""
    found, verdict = judge((ZOO / name).read_bytes()), VERDICTS[name]

    assert found.bad_line == verdict["line"]
    assert verdict["kind"] == "corrupt" or len(found.events) == verdict["events"]
