"""The one writer of a log: a bounded queue, whole batches on the disk, an answer when they are as durable as declared.

Nothing here is `async`, and that keeps it fast: an append is numbered and linked at the call, and either written there
and then, when nobody else waits and it takes a moment, or with everybody who called in the same turn of the event loop.
Long syncs and rotations run in one thread beside the loop, one at a time, and the queue grows meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from .active_file import ActiveFile
from .contract import Durability, Event
from .errors import (
    ConflictError,
    CorruptLogError,
    DurableLogError,
    IdReusedError,
    LogClosedError,
    QueueFullError,
    RefusedError,
)
from .limits import Limits
from .metrics import Metrics
from .opening import Mark, Opened
from .placing import Placer, Request
from .reading import Scan
from .record import Head, as_event
from .segments import Segments
from .strict_json import judge

BRIEF_SECONDS = 0.001
"""A sync that is expected to take less is done on the spot: a thread would cost more than it frees."""

_SPELL_SECONDS = 0.005
_MOST_ON_THE_SPOT = 31
_MARK_EVERY = 256

WhenFull = Literal["wait", "refuse"]
Result = TypeVar("Result")


class _Job:
    """Something that runs in the thread: `settle` is called on the event loop with its future when it is done."""

    def __init__(self, future: Future[Any], settle: Callable[[Future[Any]], None]) -> None:
        self.future = future
        self.settle = settle


class Writer:
    """Everything between a placed request and its answer. All methods belong to the thread of one event loop."""

    def __init__(
        self,
        opened: Opened,
        session: str,
        same: Callable[[Any, Any], bool],
        *,
        durability: Durability,
        limits: Limits,
        when_full: WhenFull,
        metrics: Metrics,
    ) -> None:
        """Continue what was opened; `same` says whether two events' data are the same."""
        self.committed = opened.head
        self.closed_because = ""
        self._cause: BaseException | None = None
        self._segments = opened.segments
        self._file = opened.file
        self._marks = opened.marks
        self._marked = opened.marks[-1].head.sequence
        self._placer = Placer(
            session,
            opened.head,
            opened.ids,
            record_bytes=limits.record_bytes,
            find_event=self.find_event,
            same=same,
        )
        self._durability = durability
        self._most_at_once = 1 if durability == "fsync" else limits.waiting
        self._most_waiting = limits.waiting
        self._segment_bytes = limits.segment_bytes
        self._limits = limits
        self._when_full = when_full
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Request] = deque()
        self._in_flight: list[Request] = []
        self._scheduled = False
        self._job: _Job | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._on_the_spot = 1
        self._sync_seconds = 0.0

    # --- From the call to the answer ---

    def submit(self, request: Request) -> None:
        """Place an append and see to its answer. Raises: what `Placer.place` raises, QueueFullError, LogClosedError."""
        queue = self._queue
        if len(queue) >= self._most_waiting:
            self._make_room()
        if self.closed_because:
            raise self._closed_error()
        try:
            self._placer.place(request)
        except (ConflictError, IdReusedError) as refusal:
            if not queue and self._job is None:
                raise
            request.refusal = (
                refusal  # it rests on appends that the disk may still refuse: then it is placed again
            )
        if self._on_the_spot and not queue and self._job is None:
            self._on_the_spot -= 1
            self._commit([request])
            return
        queue.append(request)
        if not self._scheduled:
            self._schedule()

    def require_open(self) -> None:
        """Refuse what a closed log cannot do. Raises: LogClosedError."""
        if self.closed_because:
            raise self._closed_error()

    def barrier(self) -> asyncio.Future[Event]:
        """Return what is done when every append called before has its answer; its result means nothing."""
        future: asyncio.Future[Event] = self._loop.create_future()
        waits = Request(future=future, called_at=time.time_ns())
        if self._job is None and not self._queue:
            future.set_result(None)  # type: ignore[arg-type]
        else:
            self._queue.append(waits)
            self._schedule()
        return future

    def _schedule(self) -> None:
        if not self._scheduled and self._job is None:
            self._scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        """Commit what waits: all of it, or one at a time where each has a sync of its own."""
        self._scheduled = False
        queue, metrics = self._queue, self._metrics
        if self._job is not None or not queue:
            return
        metrics.most_waiting = max(metrics.most_waiting, len(queue))
        if len(queue) <= self._most_at_once:
            batch = list(queue)
            queue.clear()
        else:
            batch = [queue.popleft() for _ in range(self._most_at_once)]
        # Alone, the next appends need not wait for a turn of the loop; in company, writing together costs less.
        self._on_the_spot = self._spell() if len(batch) == 1 and not queue else 0
        if self._durability == "os" or self._sync_seconds < BRIEF_SECONDS:
            self._commit(batch)
        else:
            self._in_flight = batch
            self._start(lambda: self._store(batch), lambda done: self._answer(batch, done.exception()))
        metrics.queue_depth = len(queue)
        if queue:
            self._schedule()

    def _spell(self) -> int:
        """Return how many appends may follow on the spot before the event loop gets a turn."""
        if self._durability == "os":
            return _MOST_ON_THE_SPOT
        if self._sync_seconds >= BRIEF_SECONDS:
            return 0
        return min(_MOST_ON_THE_SPOT, int(_SPELL_SECONDS / max(self._sync_seconds, 1e-6)))

    def _commit(self, batch: list[Request]) -> None:
        try:
            self._store(batch)
        except BaseException as error:
            self._answer(batch, error)  # whatever it was, those who wait must hear of it
            if not isinstance(error, Exception):
                raise
        else:
            self._answer(batch, None)

    def _store(self, batch: list[Request]) -> None:
        """Write a batch and sync it, if that was declared. May run in the thread. Raises: OSError."""
        if len(batch) == 1:
            lines = batch[0].line
            if not lines:
                return
        else:
            lines = b"".join([request.line for request in batch])
        # Beside a write alone, looking at the file would be dear: then the last of a spell looks.
        if len(batch) > 1 or self._durability != "os" or not self._on_the_spot:
            self._file.check()
        try:
            self._file.write(lines)
        except OSError:
            self._metrics.write_failures += 1
            raise
        if self._durability != "os":
            self._sync()

    def _sync(self) -> None:
        started = time.perf_counter()
        try:
            self._file.sync()
        except OSError:
            self._metrics.sync_failures += 1
            raise
        took = time.perf_counter() - started
        self._sync_seconds += (took - self._sync_seconds) / 8
        self._metrics.syncs += 1

    def _answer(self, batch: list[Request], error: BaseException | None) -> None:
        """Tell everybody in a batch how it went, and look after the file."""
        self._in_flight = []
        if error is not None:
            self._failed(batch, error)
            return
        size, count, last = 0, 0, None
        for request in batch:
            if request.line:
                size += len(request.line)
                count += 1
                last = request.event
            elif request.refusal is not None:
                self._refuse(request, request.refusal)
                continue
            if (
                not request.future.done()
            ):  # somebody may have stopped waiting; the event is there all the same
                request.future.set_result(request.event)  # type: ignore[arg-type]
        if last is not None:
            self.committed = Head(last.sequence, last.event_hash)
            self._metrics.stored(count, size, time.time_ns() - batch[0].called_at)
            if last.sequence - self._marked >= _MARK_EVERY:
                self._mark()
            if self._file.size >= self._segment_bytes:
                self._start_rotation()

    def _mark(self) -> None:
        self._marked = self.committed.sequence
        self._marks.append(Mark(self.committed, self._file.size))

    # --- When the disk says no ---

    def _failed(self, batch: list[Request], error: BaseException) -> None:
        """Answer a batch that is not on the disk, and place anew what counted on it."""
        waiting = [*batch, *self._queue]
        self._queue.clear()
        if self._file.broken or not isinstance(error, OSError):
            # An interrupt may come between any two steps: whether the lines are there is not known.
            self.give_up(error, waiting)
            return
        self._placer.go_back(self.committed, waiting)
        if len(batch) == 1:
            self._refuse(batch[0], error)
        else:
            for (
                request
            ) in batch:  # what does not fit in company may fit alone; each gets an answer of its own
                self._try_alone(request)
        for request in waiting[len(batch) :]:
            if self._place_again(request):
                self._queue.append(request)
        if self._queue:
            self._schedule()

    def _try_alone(self, request: Request) -> None:
        if not self._place_again(request):
            return
        if self._job is None:
            self._commit([request])
        else:  # the one before filled the segment: nothing may be written while it is closed
            self._queue.append(request)

    def _place_again(self, request: Request) -> bool:
        """Place a request whose place is gone, or tell its caller why that cannot be."""
        request.refusal = None
        try:
            self.require_open()
            if request.type:
                self._placer.place(request)
        except (ConflictError, IdReusedError) as refusal:
            request.refusal = refusal
        except (DurableLogError, OSError) as error:
            self._refuse(request, error)
            return False
        return True

    def give_up(self, error: BaseException, waiting: Iterable[Request] = ()) -> None:
        """Close for good: what is on the disk is not known any more until it is read again."""
        reason = (
            error.strerror or type(error).__name__ if isinstance(error, OSError) else type(error).__name__
        )
        self.closed_because = f"closed itself after a failed write or sync ({reason})"
        self._cause = error
        for request in waiting:
            self._refuse(request, self._closed_error())

    def _closed_error(self) -> LogClosedError:
        problem = LogClosedError(
            f"{self._file.path.parent}: {self.closed_because}; open it anew, and look which events it has"
        )
        problem.__cause__ = self._cause
        return problem

    def _refuse(self, request: Request, error: BaseException) -> None:
        if isinstance(error, ConflictError):
            self._metrics.conflicts += 1
        if not request.future.done():
            request.future.set_exception(error)

    # --- Room in the queue ---

    def _make_room(self) -> None:
        """Let the caller wait in the call itself, doing what the queue waits for, or refuse it: never grow further.

        Raises: QueueFullError.
        """
        if self._when_full == "refuse":
            raise QueueFullError(
                f"{self._file.path.parent}: {len(self._queue)} appends wait already; await some, then call again"
            )
        while len(self._queue) >= self._limits.waiting:
            self._work_on()

    def _work_on(self) -> None:
        """Do now what the event loop would do next."""
        if self._job is not None:
            wait([self._job.future])
            self._land()
        else:
            self._drain()

    # --- Work beside the event loop ---

    def _start(self, work: Callable[[], Any], settle: Callable[[Future[Any]], None]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="durable-log")
        self._job = _Job(self._thread.submit(work), settle)
        self._job.future.add_done_callback(self._wake)

    def _wake(self, _done: Future[Any]) -> None:
        with suppress(RuntimeError):  # the event loop has closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._land)

    def _land(self) -> None:
        """Settle the job that is done; unless the caller of a full queue has done so already."""
        job = self._job
        if job is not None and job.future.done():
            self._job = None
            job.settle(job.future)
            if self._queue:
                self._schedule()

    async def _idle(self) -> None:
        """Wait until nothing runs beside the event loop. What is started before the next await has the file alone."""
        while self._job is not None:
            await asyncio.wait([asyncio.wrap_future(self._job.future)])
            self._land()

    # --- Rotation, heads, the end ---

    async def rotate(self) -> Head:
        """Close the active segment behind the last committed event. Raises: LogClosedError, RefusedError."""
        await self._idle()
        self.require_open()
        head = self.committed
        if head.sequence == self._segments.before.sequence:
            raise RefusedError(f"{self._file.path}: holds no event yet; rotate after an append")
        self._start_rotation()
        await self._idle()
        self.require_open()
        return head

    def _start_rotation(self) -> None:
        self._start(lambda: self._rotate(self.committed), self._rotated)

    def _rotate(self, head: Head) -> ActiveFile:
        with self._file.path.open("rb") as lines:
            digest = hashlib.file_digest(lines, "sha256").hexdigest()
        self._segments.rotate(head, self._file.size, digest, named=bool(self._placer.ids))
        return ActiveFile(self._segments.active, 0)

    def _rotated(self, done: Future[ActiveFile]) -> None:
        if error := done.exception():
            waiting = list(self._queue)
            self._queue.clear()
            self.give_up(error, waiting)
            return
        self._file.close()
        self._file = done.result()
        self._metrics.rotations += 1
        self._marks.clear()
        self._mark()
        placed = [request.event for request in self._queue if request.line and request.event_id]
        self._placer.ids.clear()
        self._placer.ids.update({event.event_id: event.sequence for event in placed if event})

    async def alone(self, work: Callable[[Segments], Result]) -> Result:
        """Let `work` change the segments while nothing else does; appends that come meanwhile wait, and so does the loop.

        Raises: LogClosedError; what `work` raises, and after an OSError the log closes itself.
        """
        await self._idle()
        self.require_open()
        try:
            return work(self._segments)
        except OSError as error:
            waiting = list(self._queue)
            self._queue.clear()
            self.give_up(error, waiting)
            raise

    async def close(self) -> None:
        """Answer every append that was called, make the log durable, record its head. Twice is harmless.

        Raises: OSError when the last sync failed.
        """
        try:
            await self.barrier()
            await self._idle()
            while self._queue or self._job is not None:  # called while this waited
                self._work_on()
            if not self.closed_because:
                self.closed_because = "is closed"
                self._sync()
                self._segments.record_head(self.committed)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Nothing is written any more when this returns: not from the thread either, whose descriptor this closes."""
        self.closed_because = self.closed_because or "is closed"
        if self._thread is not None:
            self._thread.shutdown()
        self._file.close()

    def disown(self) -> None:
        """In a forked child: the log is the parent's, and so is its lock."""
        self.closed_because = "belongs to the process that opened it, not to its forked child"
        self._file.close()

    # --- Reading what is committed ---

    def scans(self, after: int, *, verify_chain: bool, newest: int | None) -> Iterator[Scan]:
        """Give scans of the files that hold the events behind `after`, up to the last that is committed now.

        Raises: EventsRemovedError; CorruptLogError for a closed segment that is missing; OSError.
        """
        until, mark = self._file.size, self._mark_before(after + 1)
        *closed, active = self._segments.files(after)
        if (
            active.path != self._file.path
        ):  # a rotation under way: the manifest is ahead, and nothing is in the new file
            until, mark = 0, Mark(active.before, 0)
        try:
            newest_lines = active.open()  # now: later it may have been rotated, compressed, removed
        except FileNotFoundError:
            newest_lines = io.BytesIO()
        with newest_lines:
            for file in closed:
                assert file.closed is not None
                self._segments.require(file)
                with file.open() as lines:
                    scan = self._scan(
                        lines, file.before, verify_chain=verify_chain, newest=newest, name=str(file.path)
                    )
                    yield scan
                if scan.head != Head(file.closed.last, file.closed.head):
                    raise CorruptLogError(
                        str(file.path), f"ends at event {scan.head.sequence}, not {file.closed.last}"
                    )
            scan = self._scan(
                newest_lines,
                active.before,
                verify_chain=verify_chain,
                newest=newest,
                name=str(active.path),
                until=until,
            )
            scan.skip_to(*mark)
            yield scan

    def _scan(self, source: Path | IO[bytes], before: Head, **how: Any) -> Scan:
        return Scan(source, session=self._placer.session, before=before, limits=self._limits, **how)

    # --- Finding an event by its id ---

    def find_event(self, event_id: str, sequence: int | None) -> Event | None:
        """Return the event with this id, looked for at `sequence`, then among all. Raises: CorruptLogError, OSError."""
        if sequence is not None:
            event = self._event_at(sequence)
            if event is not None and event.event_id == event_id:
                return event
        found = self._segments.find(event_id)
        return None if found is None else self._event_at(found)

    def _event_at(self, sequence: int) -> Event | None:
        if sequence > self.committed.sequence:
            waiting = [*self._in_flight, *self._queue]
            return next((one.event for one in waiting if one.event and one.event.sequence == sequence), None)
        if sequence <= self._segments.base.sequence:
            return None
        if sequence <= self._segments.before.sequence:
            return as_event(judge(self._segments.line(sequence)[:-1]).value)
        mark = self._mark_before(sequence)
        scan = self._scan(self._file.path, mark.head, verify_chain=False, newest=None, until=self._file.size)
        scan.skip_to(*mark)
        return next((event for event in scan if event.sequence == sequence), None)

    def _mark_before(self, sequence: int) -> Mark:
        """Return a place in the active file at which the event `sequence` is still to come."""
        return self._marks[
            max(0, bisect_left(self._marks, sequence, key=lambda mark: mark.head.sequence) - 1)
        ]
