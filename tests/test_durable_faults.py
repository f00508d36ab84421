"""DurableLog on a disk that fails: short writes, full disks, failed syncs, power cuts, forks, other writers (E1, E5).

Faults are injected underneath, by the file layer in a child process, or by the kernel itself.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from solution.durable_log import (
    DurableLog,
    LockingUnsupportedError,
    LogLockedError,
    PlaceError,
    Scan,
)
from solution.durable_log import lock as locks
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


def test_a_removed_lock_file_is_not_trusted(tmp_path: Path) -> None:
    """Who waited for a lock file that was removed meanwhile takes the one that is there now."""
    path = tmp_path / "lock"
    first = locks.SessionLock.take(path)
    path.unlink()
    second = locks.SessionLock.take(path)
    with pytest.raises(LogLockedError):
        locks.SessionLock.take(path)
    first.release()
    with pytest.raises(LogLockedError):
        locks.SessionLock.take(path)
    second.release()
    second.release()
    assert path.exists()


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
