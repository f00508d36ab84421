"""A learner's tests as good as they get: nine tests, and none of the eleven wrong stores gets past them.

That it is possible, with `append`, `read`, the file on disk and one fault underneath, is what this file proves.
"""

import json

import pytest

from lesson_22 import CorruptLogError, JsonlSessionStore


def line(sequence, text="x"):
    """One record as it stands on disk, newline included."""
    return json.dumps({"sequence": sequence, "type": "note", "data": text}).encode() + b"\n"


async def numbers(path):
    return [event.sequence for event in await JsonlSessionStore(path).read()]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "task.jsonl"


async def test_calls_made_at_once_are_stored_in_call_order(log):
    store = JsonlSessionStore(log)
    waiting = [store.append("note", n) for n in range(20)]
    for result in reversed(waiting):
        await result

    assert [(event.sequence, event.data) for event in await store.read()] == [(n + 1, n) for n in range(20)]


async def test_a_failed_append_burns_no_number(log, fault):
    store = JsonlSessionStore(log)
    await store.append("note", 1)
    with fault("write", "ENOSPC"), pytest.raises(OSError):
        await store.append("note", 2)

    assert (await store.append("note", 3)).sequence == 2
    assert await numbers(log) == [1, 2]


async def test_what_waits_behind_a_failure_is_still_written(log, fault):
    store = JsonlSessionStore(log)
    with fault("write", "EIO"):
        first, second = store.append("note", 1), store.append("note", 2)
        with pytest.raises(OSError):
            await first
        await second

    assert await numbers(log) == [1]


async def test_a_bad_line_is_refused_by_its_number(log):
    log.write_bytes(line(1) + b"not-json\n" + line(2))
    with pytest.raises(CorruptLogError) as caught:
        await JsonlSessionStore(log).read()

    assert caught.value.line == 2


async def test_a_gap_is_refused(log):
    log.write_bytes(line(1) + line(3))
    with pytest.raises(CorruptLogError):
        await JsonlSessionStore(log).read()


async def test_a_whole_record_without_its_newline_counts(log):
    log.write_bytes(line(1) + line(2).rstrip(b"\n"))

    assert await numbers(log) == [1, 2]


async def test_nothing_is_glued_onto_a_torn_tail(log):
    log.write_bytes(line(1) + line(2)[:9])
    await JsonlSessionStore(log).append("note", "after the crash")

    assert await numbers(log) == [1, 2]


async def test_a_log_that_cannot_be_read_is_no_empty_history(log):
    log.mkdir()
    with pytest.raises(OSError):
        await JsonlSessionStore(log).read()


async def test_only_a_newline_ends_a_line(log):
    await JsonlSessionStore(log).append("note", "one\u2028two\u0085three")

    assert await numbers(log) == [1]
