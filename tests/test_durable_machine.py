"""A log under any sequence of appends, reads, reopenings, kills, cuts and rotations is the list that it should be (E1-E3, E11)."""

from __future__ import annotations

import asyncio
import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from solution.durable_log import ConflictError, Durability, DurableLog, Event, IdReusedError, Limits
from solution.durable_log.placing import Request
from solution.durable_log.record import same_data
from solution.durable_log.secrets import keep

SESSION = "build-7"
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9)
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
IDS = st.none() | st.sampled_from(["a", "b", "0123456789abcdef-3"])


class LogMachine(RuleBasedStateMachine):
    """The model is a list of events; the log must agree with it whatever happens in between."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.model: list[Event] = []
        self.log: DurableLog | None = None

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(
        durability=st.sampled_from(["os", "fsync", "group"]), segment_bytes=st.sampled_from([900, 10**6])
    )
    def begin(self, durability: Durability, segment_bytes: int) -> None:
        self.how: dict[str, Any] = {
            "durability": durability,
            "limits": Limits(segment_bytes=segment_bytes),
            "secrets": keep,  # a key that is drawn may be called "jwt"
        }
        self.open()

    def open(self) -> None:
        self.log = self.run(DurableLog.open(SESSION, root=self.root, **self.how))

    @property
    def opened(self) -> DurableLog:
        assert self.log is not None
        return self.log

    @rule(data=DATA, event_id=IDS, stale=st.sampled_from([None, 0, -1]))
    def append(self, data: Any, event_id: str | None, stale: int | None) -> None:
        """One append: new, a repeat, a repeat with other data, or from a stale writer."""
        given = copy.deepcopy(data)
        version = None if stale is None else len(self.model) + stale
        first = next(
            (event for event in self.model if event_id is not None and event.event_id == event_id), None
        )

        async def call() -> Event:
            return await self.opened.append("t", data, event_id=event_id, expected_version=version)

        if first is not None:
            if same_data(first.data, given):
                assert self.run(call()) == first
            else:
                with pytest.raises(IdReusedError):
                    self.run(call())
        elif stale == -1:
            with pytest.raises(ConflictError):
                self.run(call())
        else:
            event = self.run(call())
            assert (event.sequence, repr(event.data)) == (len(self.model) + 1, repr(given))
            self.model.append(event)

    @rule(many=st.lists(DATA, max_size=40), cancelled=st.sets(st.integers(0, 39)))
    def append_many(self, many: list[Any], cancelled: set[int]) -> None:
        """Many at once, some of whose callers stop waiting: all are stored, in order."""

        async def calls() -> list[Event]:
            futures = [self.opened.append("t", data) for data in many]
            for index in cancelled & set(range(len(many))):
                futures[index].cancel()
            await asyncio.gather(*futures, return_exceptions=True)
            return await self.opened.read(after=len(self.model))

        added = self.run(calls())
        assert [repr(event.data) for event in added] == [repr(data) for data in many]
        self.model += added

    @rule(after=st.integers(0, 60), verify_chain=st.booleans())
    def read(self, after: int, verify_chain: bool) -> None:
        assert self.run(self.opened.read(after=after, verify_chain=verify_chain)) == self.model[after:]

    @rule()
    def reopen(self) -> None:
        self.run(self.opened.close())
        self.open()

    @rule(cut=st.integers(0, 400))
    def kill_in_the_middle_of_a_write(self, cut: int) -> None:
        """The process is gone, and of one more append a part reached the disk; whole, it is an event."""
        before = self.opened
        line = cast("Any", before)._writer._placer  # what the killed writer would have written next
        raw = _next_line(line)[:cut]
        active = cast("Any", before)._writer._file.path
        cast("Any", before)._writer.disown()
        cast("Any", before)._lock.release()
        with active.open("ab") as file:
            file.write(raw)
        self.open()
        events = self.run(self.opened.read(after=len(self.model)))
        assert len(events) <= 1
        assert self.opened.metrics.torn_recoveries == (bool(raw) and not raw.endswith(b"\n"))
        self.model += events

    @precondition(lambda self: self.model)
    @rule()
    def rotate(self) -> None:
        if self.opened._writer._segments.before.sequence < len(self.model):
            assert self.run(self.opened.rotate()).sequence == len(self.model)

    @invariant()
    def agrees(self) -> None:
        if self.log is not None:
            assert self.run(self.log.version()) == len(self.model)

    def teardown(self) -> None:
        if self.log is not None:
            assert self.run(self.log.read()) == self.model
            assert self.run(self.log.verify()).verdict == "sound"
            self.run(self.log.close())
        self.run(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.root)


def _next_line(placer: Any) -> bytes:
    """Make the line of one more event, as this writer would."""
    request = Request(cast("Any", None), 10**18, 1, "t", b'"t"', b'"torn"', "torn")
    placer.place(request)
    return request.line


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.proof)])
def test_a_log_is_the_list_that_it_should_be(count: int) -> None:
    """Whatever is done to it, in whatever order, a log gives back the events that were answered, and no others."""
    run_state_machine_as_test(
        LogMachine, settings=settings(max_examples=count, stateful_step_count=20, deadline=None)
    )
