"""DurableLog on a disk that fails: short writes, full disks, failed syncs, power cuts, forks, other writers (E1, E5).

Faults are injected underneath, by the file layer in a child process, or by the kernel itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solution.durable_log import (
    DurableLog,
    Limits,
    LockingUnsupportedError,
    LogClosedError,
    LogLockedError,
    PlaceError,
    Scan,
    active_file,
    session_folder,
)
from solution.durable_log import lock as locks
from solution.durable_log.placing import Placer
from tests.child_process import KIT, answer_of, run_child

SESSION = "build-7"
LEVELS = ["os", "fsync", "group"]
PACKAGES = [Path(path) for path in sys.path if path.endswith("site-packages")]
_BEGIN = """
import asyncio, os
from solution.durable_log import *
SESSION = "build-7"
async def outcome(call):
    try:
        return (await call).sequence
    except Exception as error:
        return type(error).__name__ + ("" if error.__cause__ is None else " from " + type(error.__cause__).__name__)
"""


def in_child(folder: Path, source: str) -> Any:
    """Run the source beside the file layer; it may open logs below `folder`, and answers."""
    return answer_of(run_child(_BEGIN + source, folder, imports=(KIT, *PACKAGES)))


def numbers(root: Path) -> list[int]:
    """Read what is there as any reader would, without repairing."""
    [path] = [path for path in (root / SESSION).glob("*.jsonl") if path.stem.isdigit()]
    return [event.sequence for event in Scan(path, session=SESSION)]


@pytest.mark.parametrize("durability", LEVELS)
@pytest.mark.parametrize("part", ["short:1", "half", "short:300"])
def test_short_writes_are_finished(tmp_path: Path, durability: str, part: str) -> None:
    """A write that takes only a part is gone on with: one caller or many, each record is whole."""
    answers = in_child(
        tmp_path,
        f"""
async def main():
    async with await DurableLog.open(SESSION, root=folder, durability={durability!r}) as log:
        await log.append("t", 0)
        layer.arm([{{"op": ["write", "writev"], "match": "*.jsonl", "do": {part!r}, "times": 4}}], folder)
        alone = await outcome(log.append("t", "x" * 400))
        return [alone, *await asyncio.gather(*(outcome(log.append("t", n)) for n in range(5)))]
answer(asyncio.run(main()))
""",
    )
    assert answers == [2, 3, 4, 5, 6, 7]
    assert numbers(tmp_path) == list(range(1, 8))


@pytest.mark.parametrize("durability", LEVELS)
@pytest.mark.parametrize("fault", ["ENOSPC", "short:1,ENOSPC", "half,EIO", "full,EIO"])
def test_a_failed_write_is_taken_back(tmp_path: Path, durability: str, fault: str) -> None:
    """Whatever part of a failed write reached the disk is cut off: its append raises, and the next has its number."""
    answers = in_child(
        tmp_path,
        f"""
async def main():
    async with await DurableLog.open(SESSION, root=folder, durability={durability!r}) as log:
        first = await outcome(log.append("t", 0))
        layer.arm([{{"op": "write", "match": "*.jsonl", "do": {fault!r}}}], folder)
        failed = await outcome(log.append("t", 1, event_id="a"))
        size = os.path.getsize(next((folder / SESSION).glob("0*.jsonl")))
        rest = [await outcome(log.append("t", n, event_id="a", expected_version=1)) for n in (2,)]
        return [first, failed, rest, await log.version(), log.metrics.write_failures]
answer(asyncio.run(main()))
""",
    )
    assert answers == [1, "OSError", [2], 2, 1]
    assert numbers(tmp_path) == [1, 2]


@pytest.mark.parametrize("durability", LEVELS)
def test_a_batch_that_does_not_fit_is_tried_one_by_one(tmp_path: Path, durability: str) -> None:
    """When writing together fails, each append gets an answer of its own: numbers stay contiguous, in call order."""
    answers = in_child(
        tmp_path,
        f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    async with await DurableLog.open(SESSION, root=folder, durability={durability!r}) as log:
        await log.append("t", 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
        calls = [log.append("t", "x" * n) for n in (10, 20, 9000, 30, 9000, 40)]
        after = log.append("t", 0, expected_version=5)
        done = [await outcome(call) for call in [*calls, after]]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return [*done, await outcome(log.append("t", "x" * 9000))]
answer(asyncio.run(main()))
""",
    )
    assert answers == [2, 3, "OSError", 4, "OSError", 5, 6, 7]
    assert numbers(tmp_path) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("durability", ["fsync", "group"])
@pytest.mark.parametrize("count", [1, 5])
def test_a_failed_sync_closes_the_log(tmp_path: Path, durability: str, count: int) -> None:
    """After one failed sync everyone who waits is told, and nothing is written until the log is opened anew (fsyncgate)."""
    answers = in_child(
        tmp_path,
        f"""
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability={durability!r})
    await log.append("t", 0)
    layer.arm([{{"op": ["fsync", "fdatasync"], "match": "*.jsonl", "do": "EIO"}}], folder)
    calls = [log.append("t", n) for n in range({count})]
    done = [await outcome(call) for call in calls]
    size = os.path.getsize(next((folder / SESSION).glob("0*.jsonl")))
    later = await outcome(log.append("t", "later"))
    same = size == os.path.getsize(next((folder / SESSION).glob("0*.jsonl")))
    await log.close()
    layer.disarm()
    async with await DurableLog.open(SESSION, root=folder) as again:
        return [done, later, same, log.metrics.sync_failures, await outcome(again.append("t", 1)) - again.metrics.appends]
answer(asyncio.run(main()))
""",
    )
    assert answers[0] == ["LogClosedError from OSError"] * count
    assert answers[1:4] == ["LogClosedError from OSError", True, 1]
    assert numbers(tmp_path) == list(range(1, answers[4] + 2))


def test_a_failed_last_sync_is_told_by_close(tmp_path: Path) -> None:
    """At level `os`, the first sync is that of closing: when it fails, close says so, and the lock is free all the same."""
    answers = in_child(
        tmp_path,
        """
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability="os")
    await log.append("t", 0)
    layer.arm([{"op": ["fsync", "fdatasync"], "match": "*.jsonl", "do": "EIO"}], folder)
    try:
        await log.close()
    except OSError as error:
        told = type(error).__name__
    layer.disarm()
    async with await DurableLog.open(SESSION, root=folder) as again:
        return [told, await again.version()]
answer(asyncio.run(main()))
""",
    )
    assert answers == ["OSError", 1]


def test_a_write_that_cannot_be_taken_back_closes_the_log(tmp_path: Path) -> None:
    """When even cutting the rest off fails, the log closes itself; opened anew, it mends the torn tail and goes on."""
    answers = in_child(
        tmp_path,
        """
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability="os")
    await log.append("t", 0)
    rules = [{"op": "write", "match": "*.jsonl", "do": "half,EIO"}, {"op": "ftruncate", "match": "*.jsonl", "do": "EIO"}]
    layer.arm(rules, folder)
    done = [await outcome(log.append("t", n)) for n in range(2)]
    await log.close()
    layer.disarm()
    async with await DurableLog.open(SESSION, root=folder) as again:
        return [*done, await outcome(again.append("t", 2)), again.metrics.torn_recoveries]
answer(asyncio.run(main()))
""",
    )
    assert answers == ["LogClosedError from OSError", "LogClosedError from OSError", 2, 1]
    assert numbers(tmp_path) == [1, 2]


@pytest.mark.parametrize("durability", LEVELS)
def test_a_new_file_is_durable_with_its_folder(tmp_path: Path, durability: str) -> None:
    """Before the first append resolves, the file's name is synced in its folder, and at the synced levels its bytes."""
    entries = in_child(
        tmp_path,
        f"""
async def main():
    layer.arm([], folder)
    async with await DurableLog.open(SESSION, root=folder, durability={durability!r}) as log:
        await log.append("t", 0)
        answer(layer.log())
asyncio.run(main())
""",
    )
    log = "00000000000000000001.jsonl"
    done = [(entry["op"], entry["path"].rpartition("/")[2]) for entry in entries]
    opened = max(at for at, one in enumerate(done) if one == ("open", log))
    assert ("fsync", SESSION) in done[opened:]
    written = max(at for at, one in enumerate(done) if one == ("write", log))
    assert ({one[0] for one in done[written:] if one[1] == log} & {"fsync", "fdatasync"} != set()) == (
        durability != "os"
    )


@pytest.mark.parametrize("durability", ["fsync", "group"])
def test_slow_syncs_run_beside_the_event_loop(tmp_path: Path, durability: str) -> None:
    """Syncs that take long leave the event loop free for others, and failures there reach those who wait."""
    answers = in_child(
        tmp_path,
        f"""
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability={durability!r})
    slow = {{"op": ["fsync", "fdatasync"], "match": "*.jsonl", "seconds": 0.03}}
    layer.arm([dict(slow, do="slow", times=20), dict(slow, nth=21, do="slow,EIO")], folder)
    for n in range(5):
        await log.append("t", n)
    turns = 0
    call = log.append("t", 5)
    while not call.done():
        turns += 1
        await asyncio.sleep(0)
    late = [log.append("t", n) for n in range(30)]
    done = [await outcome(call) for call in late]
    if not any(isinstance(one, str) for one in done):
        for n in range(60):
            done.append(await outcome(log.append("t", n)))
    good = [one for one in done if isinstance(one, int)]
    bad = set(done[len(good):])
    return [turns > 3, good == list(range(7, 7 + len(good))), sorted(bad)]
answer(asyncio.run(main()))
""",
    )
    assert answers == [True, True, ["LogClosedError from OSError"]]


def test_a_file_changed_underneath_closes_the_log(tmp_path: Path) -> None:
    """Somebody who writes, cuts or removes the file without the lock is noticed, and the log stops writing."""

    async def work(change: str) -> None:
        log = await DurableLog.open(SESSION, root=tmp_path / change, durability="os")
        await log.append("t", 0)
        [path] = (tmp_path / change / SESSION).glob("0*.jsonl")
        if change == "append":
            with path.open("ab") as file:
                file.write(b"x")
        elif change == "cut":
            os.truncate(path, 10)
        else:
            path.unlink()
        done = await asyncio.gather(*(log.append("t", n) for n in range(80)), return_exceptions=True)
        assert any(isinstance(one, Exception) for one in done)
        await log.close()

    for change in ("append", "cut", "remove"):
        asyncio.run(work(change))


@pytest.mark.parametrize("durability", ["fsync", "group"])
@pytest.mark.parametrize("change", ["append", "cut", "remove"])
def test_no_synced_append_is_answered_on_a_file_changed_underneath(
    tmp_path: Path, durability: Any, change: str
) -> None:
    """A caller alone, one append after the other, is told at the first: what it asked for would be lost."""

    async def work() -> None:
        log = await DurableLog.open(SESSION, root=tmp_path, durability=durability)
        await log.append("t", 0)
        [path] = (tmp_path / SESSION).glob("0*.jsonl")
        if change == "append":
            with path.open("ab") as file:
                file.write(b"x")
        elif change == "cut":
            os.truncate(path, 10)
        else:
            path.unlink()
        with pytest.raises(LogClosedError, match="does not hold the lock"):
            await log.append("t", 1)
        await log.close()

    asyncio.run(work())


@pytest.mark.parametrize("durability", LEVELS)
def test_what_a_killed_writer_did_not_sync_is_synced_before_it_counts(
    tmp_path: Path, durability: str
) -> None:
    """Its event is there, so a retry is answered with it: then it has to be as durable as an append."""
    killed = run_child(
        _BEGIN
        + f"""
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability={durability!r})
    layer.arm([{{"op": ["write"], "match": "0*.jsonl", "do": "full,kill"}}], folder)
    log.append("t", 1, event_id="mine")
asyncio.run(main())
""",
        tmp_path,
        imports=(KIT, *PACKAGES),
    )
    assert killed.returncode < 0
    assert numbers(tmp_path) == [1]
    synced = in_child(
        tmp_path,
        f"""
async def main():
    layer.arm([], folder)
    async with await DurableLog.open(SESSION, root=folder, durability={durability!r}) as log:
        assert (await log.append("t", 1, event_id="mine")).sequence == 1
        return [made["path"] for made in layer.log() if "sync" in made["op"]]
answer(asyncio.run(main()))
""",
    )
    assert any(path.endswith(".jsonl") for path in synced)


@pytest.mark.parametrize("durability", LEVELS)
def test_an_interrupt_between_write_and_answer_closes_the_log(
    tmp_path: Path, durability: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the record is there is not known then, and another with its number would damage the log."""

    class Interrupt(BaseException):
        """As Ctrl-C is, but for what an event loop does about that one."""

    write = active_file.ActiveFile.write

    def interrupted(self: active_file.ActiveFile, lines: bytes) -> None:
        write(self, lines)
        raise Interrupt

    async def work() -> None:
        log = await DurableLog.open(SESSION, root=tmp_path, durability=durability)
        await log.append("t", 0)
        with monkeypatch.context() as patch:
            patch.setattr(active_file.ActiveFile, "write", interrupted)
            patch.setattr(log._writer, "_on_the_spot", 1)
            with pytest.raises(Interrupt):
                await log.append("t", 1)
        with pytest.raises(LogClosedError, match="closed itself"):
            await log.append("t", 2)
        await log.close()
        async with await DurableLog.open(SESSION, root=tmp_path) as again:
            assert [event.data for event in await again.read()] == [0, 1]

    asyncio.run(work())


def test_an_interrupted_write_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when all bytes were taken and only the answer of the system call was lost."""
    file = active_file.ActiveFile(tmp_path / "log", 0)
    file.write(b"one\n")

    def interrupted(descriptor: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> int:
        write(descriptor, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.write(b"two\n")
    assert (file.size, file.path.read_bytes(), file.broken) == (4, b"one\n", False)
    file.close()


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next write of a log fail, as on a disk that is nearly full."""
    write, failures = active_file.ActiveFile.write, iter([errno.ENOSPC])

    def failing(self: active_file.ActiveFile, lines: bytes) -> None:
        if code := next(failures, 0):
            raise OSError(code, os.strerror(code))
        write(self, lines)

    monkeypatch.setattr(active_file.ActiveFile, "write", failing)


@pytest.mark.parametrize("durability", LEVELS)
def test_a_batch_that_is_tried_one_by_one_waits_for_a_rotation(
    tmp_path: Path, durability: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first that fits fills the segment: the others go to the next one, not behind the end of the closed one."""

    async def work() -> None:
        log = await DurableLog.open(
            SESSION, root=tmp_path, durability=durability, limits=Limits(segment_bytes=300)
        )
        monkeypatch.setattr(log._writer, "_on_the_spot", 0)
        fail_once(monkeypatch)
        done = await asyncio.gather(*(log.append("t", n) for n in range(6)), return_exceptions=True)
        stored = [event for event in done if not isinstance(event, BaseException)]
        await log.close()
        async with await DurableLog.open(SESSION, root=tmp_path) as again:
            assert await again.read() == stored
        assert len(stored) == (5 if durability == "fsync" else 6)

    asyncio.run(work())


def test_what_fails_while_it_is_placed_again_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for an id reads files, and that can fail too: each caller hears of it, and none waits for ever."""

    def no_descriptors(_self: Placer, _request: Any, _event_id: str) -> bool:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def work() -> None:
        async with await DurableLog.open(SESSION, root=tmp_path, durability="os") as log:
            monkeypatch.setattr(log._writer, "_on_the_spot", 0)
            fail_once(monkeypatch)
            appends = [log.append("t", n, event_id=f"id-{n}") for n in range(3)]
            with monkeypatch.context() as patch:
                patch.setattr(Placer, "_place_repeat", no_descriptors)
                log._writer._drain()
            assert all(append.done() for append in appends)
            answers = await asyncio.gather(*appends, return_exceptions=True)
            assert [getattr(answer, "errno", 0) for answer in answers] == [errno.EMFILE] * 3
            assert (await log.append("t", 1)).sequence == 1

    asyncio.run(work())


def test_an_append_that_comes_while_a_log_closes_is_stored_or_told_that_it_is_closed(
    tmp_path: Path,
) -> None:
    """It does not meet a file that is closed already, which would look like a failing disk."""

    async def work() -> None:
        log = await DurableLog.open(SESSION, root=tmp_path, durability="os")
        log._writer._on_the_spot = 0

        async def two() -> list[int]:
            await log.append("t", 0)
            return [(await log.append("t", 1)).sequence]

        told = asyncio.create_task(two())
        await asyncio.sleep(0)
        await log._writer.close()
        answer = (await asyncio.gather(told, return_exceptions=True))[0]
        assert answer == [2] or "is closed" in str(answer)
        assert log.metrics.write_failures == 0
        await log.close()

    asyncio.run(work())


def test_a_close_that_nobody_waits_for_keeps_the_lock_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appends are still being written: whoever got the lock meanwhile would write beside them."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(descriptor: int, sync: Callable[[int], None] = active_file._sync) -> None:
        begun.set()
        go_on.wait()
        sync(descriptor)

    async def work() -> None:
        log = await DurableLog.open(SESSION, root=tmp_path, durability="group")
        monkeypatch.setattr(log._writer, "_on_the_spot", 0)
        monkeypatch.setattr(log._writer, "_sync_seconds", 1.0)
        monkeypatch.setattr(active_file, "_sync", slow)
        append = log.append("t", 0)
        await asyncio.to_thread(begun.wait)
        closing = asyncio.create_task(log.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(LogLockedError):
            await DurableLog.open(SESSION, root=tmp_path)
        go_on.set()
        assert (await append).sequence == 1
        await log.close()
        async with await DurableLog.open(SESSION, root=tmp_path) as again:
            assert await again.version() == 1

    asyncio.run(work())


def test_a_folder_that_a_killed_process_made_is_synced_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may not be durable yet, and all that is appended lies below it."""
    (tmp_path / SESSION).mkdir(mode=0o700)
    synced: list[Path] = []
    monkeypatch.setattr(session_folder, "sync_folder", synced.append)
    session_folder.open_session_folder(tmp_path, SESSION)
    assert synced == [tmp_path.resolve()]


# --- Other writers ---

_WRITER = """
import asyncio, sys
sys.path[:0] = {imports!r}
from solution.durable_log import DurableLog, LogLockedError
async def main():
    try:
        log = await DurableLog.open("build-7", root={root!r}, when_locked={when!r})
    except LogLockedError as error:
        print("refused", error, flush=True)
        return
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print((await log.append("t", "child")).sequence, flush=True)
    {end}
asyncio.run(main())
"""


def writer(root: Path, when: str = "refuse", end: str = "await log.close()") -> subprocess.Popen[str]:
    imports = [str(KIT), *map(str, PACKAGES)]
    source = _WRITER.format(imports=imports, root=str(root), when=when, end=end)
    return subprocess.Popen(
        [sys.executable, "-I", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """While one process writes, another is refused with its number named; when it is gone, the other may write."""
    first = writer(tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline() == "open\n"
    second, _errors = writer(tmp_path).communicate("")
    assert second.startswith("refused")
    assert f"process {first.pid} " in second
    assert first.communicate("\n")[0] == "1\n"
    assert writer(tmp_path).communicate("\n")[0] == "open\n2\n"


def test_a_second_process_waits(tmp_path: Path) -> None:
    """Asked to wait, the second process opens the log when the first has closed it, and goes on behind it."""
    first, second = writer(tmp_path), None
    assert first.stdout is not None
    assert first.stdout.readline() == "open\n"
    second = writer(tmp_path, when="wait")
    assert first.communicate("\n")[0] == "1\n"
    assert second.communicate("\n")[0] == "open\n2\n"


def test_the_lock_dies_with_its_owner(tmp_path: Path) -> None:
    """A writer that is killed leaves no lock behind, whatever its lock file says."""
    first = writer(tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline() == "open\n"
    first.kill()
    first.communicate()
    assert writer(tmp_path).communicate("\n")[0] == "open\n1\n"


def test_a_second_log_in_one_process_is_refused(tmp_path: Path) -> None:
    """Two logs on one session never share a number: the second is refused, and the first goes on."""

    async def work() -> None:
        async with await DurableLog.open(SESSION, root=tmp_path) as log:
            with pytest.raises(LogLockedError, match="this process"):
                await DurableLog.open(SESSION, root=tmp_path)
            assert (await log.append("t", 1)).sequence == 1

    asyncio.run(work())


@pytest.mark.parametrize("content", [b"", b"abc", b"{}", b'{"pid":"x"}', b"\xff" * 900, b"[" * 5000])
def test_what_the_lock_file_says_decides_nothing(tmp_path: Path, content: bytes) -> None:
    """An empty or garbled lock file neither blocks a writer nor lets a second one in."""

    async def work() -> None:
        async with await DurableLog.open(SESSION, root=tmp_path):
            (tmp_path / SESSION / "lock").write_bytes(content)
            with pytest.raises(LogLockedError, match="another process"):
                await DurableLog.open(SESSION, root=tmp_path)
        async with await DurableLog.open(SESSION, root=tmp_path) as log:
            assert await log.version() == 0

    asyncio.run(work())


@pytest.mark.parametrize("name", ["ENOTSUP", "EBADF", "ENOLCK", "EINVAL", "ENOSYS"])
def test_a_place_that_cannot_lock_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file system cannot lock, opening is refused with a clear word, and no log is begun."""

    def cannot(_descriptor: int) -> None:
        raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

    monkeypatch.setattr(locks, "_try_lock", cannot)
    with pytest.raises(LockingUnsupportedError, match=r"cannot lock .*; use a folder on a local disk"):
        asyncio.run(DurableLog.open(SESSION, root=tmp_path))
    assert list((tmp_path / SESSION).glob("*.json*")) == []


def test_removing_the_lock_file_lets_nobody_in(tmp_path: Path) -> None:
    """The folder is locked as well, and nobody can remove it while it holds a log."""
    path = tmp_path / "lock"
    first = locks.SessionLock.take(path)
    path.unlink()
    for _ in range(2):  # also beside the file that the first try made
        with pytest.raises(LogLockedError, match="another process writes it"):
            locks.SessionLock.take(path)
    first.release()
    first.release()
    locks.SessionLock.take(path).release()
    assert path.exists()


def test_where_folders_cannot_be_locked_the_file_alone_is_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then who waited for a lock file that was removed meanwhile still takes the one that is there now."""

    def no_folders(descriptor: int, lock: Callable[[int], None] = locks._try_lock) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        lock(descriptor)

    monkeypatch.setattr(locks, "_try_lock", no_folders)
    path = tmp_path / "lock"
    first = locks.SessionLock.take(path)
    path.unlink()
    second = locks.SessionLock.take(path)
    first.release()
    with pytest.raises(LogLockedError):
        locks.SessionLock.take(path)
    second.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
def test_a_forked_child_may_not_append(tmp_path: Path) -> None:
    """A child that a fork made cannot append with the log it inherited, nor unlock it; nor does it keep the lock alive."""
    answers = in_child(
        tmp_path,
        """
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability="os")
    await log.append("t", 0)
    read, write = os.pipe()
    stay, leave = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(leave)
        try:
            log._writer.submit(None)
        except LogClosedError as error:
            os.write(write, str(error).encode())
        os.read(stay, 1)
        os._exit(0)
    told = os.read(read, 1000).decode()
    try:
        await DurableLog.open(SESSION, root=folder)
        held = False
    except LogLockedError:
        held = True
    second = await outcome(log.append("t", 1))
    await log.close()
    async with await DurableLog.open(SESSION, root=folder) as again:  # the child still lives
        third = await outcome(again.append("t", 2))
    os.close(leave)
    os.waitpid(child, 0)
    return ["belongs to the process" in told, held, second, third]
answer(asyncio.run(main()))
""",
    )
    assert answers == [True, True, 2, 3]


def test_a_cancelled_opening_gives_the_lock_back(tmp_path: Path) -> None:
    """Whoever stops waiting for an opening leaves no lock behind."""

    async def work() -> None:
        for _turn in range(5):
            opening = asyncio.create_task(DurableLog.open(SESSION, root=tmp_path, when_locked="wait"))
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        async with await DurableLog.open(SESSION, root=tmp_path, when_locked="wait") as log:
            assert (await log.append("t", 1)).sequence == 1

    asyncio.run(work())


def test_an_unsafe_session_is_refused(tmp_path: Path) -> None:
    """No name that could mean another place is opened, and nothing is made."""
    for name in ("../x", "/x", "..", "", "a:b", "con", "x.", "é", "a" * 81):
        with pytest.raises(PlaceError):
            asyncio.run(DurableLog.open(name, root=tmp_path / "root"))
    assert not (tmp_path / "root").exists()
