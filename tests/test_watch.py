"""The watch: every change is told, whoever made it, and nothing is told that nobody asked for."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
import watchfiles

import labkit.watch
from labkit.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


class Told:
    """What the folder looked like each time the watch told of a change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.looks: asyncio.Queue[dict[str, bytes] | None] = asyncio.Queue()

    def __call__(self) -> None:
        self.looks.put_nowait(self.look())

    def look(self) -> dict[str, bytes] | None:
        if not self.folder.is_dir():
            return None
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    async def until(self, expected: dict[str, bytes] | None) -> None:
        """Wait until a change is told at a moment when the folder is as expected."""
        while await self.looks.get() != expected:
            pass


def watched(folder: Path, test: Callable[[Told], Awaitable[None]], *, polling: bool = False) -> Watch:
    """Run a test beside a watch that is laid; a change that is never told fails it after a while."""

    async def run() -> Watch:
        told = Told(folder)
        watch = Watch(folder, told, polling=polling)
        try:
            async with asyncio.timeout(20):
                await told.until(told.look())  # laid: what is there now has been told
                await test(told)
        finally:
            watch.close()
        return watch

    return asyncio.run(run())


def elsewhere(*lines: str) -> None:
    """Run a few lines in another program."""
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


@pytest.mark.parametrize("polling", [False, True], ids=["events", "polling"])
def test_a_write_by_another_program_is_told(tmp_path: Path, polling: bool) -> None:
    """New file, longer file, same length, deleted: each change made elsewhere is told."""
    path = tmp_path / "state.json"

    async def test(told: Told) -> None:
        for lines, content in (
            (f"open({str(path)!r}, 'w').write('a')", b"a"),
            (f"open({str(path)!r}, 'a').write('b')", b"ab"),
            (f"open({str(path)!r}, 'r+').write('X')", b"Xb"),
        ):
            elsewhere(lines)
            await told.until({"state.json": content})
        elsewhere(f"import os; os.unlink({str(path)!r})")
        await told.until({})

    watched(tmp_path, test, polling=polling)


@pytest.mark.parametrize("polling", [False, True], ids=["events", "polling"])
def test_a_folder_may_come_go_and_come_back(tmp_path: Path, polling: bool) -> None:
    """A folder that is not there yet, is deleted, and is made again is followed all the way."""
    folder = tmp_path / "later"

    async def test(told: Told) -> None:
        for content in (b"first", b"second"):
            folder.mkdir()
            (folder / "log").write_bytes(content)
            await told.until({"log": content})
            shutil.rmtree(folder)
            await told.until(None)

    watched(folder, test, polling=polling)


def test_a_folder_that_is_replaced_is_followed(tmp_path: Path) -> None:
    """Another folder under the same name, put there in one step: its changes are told as well."""
    folder, other = tmp_path / "state", tmp_path / "other"
    folder.mkdir()
    other.mkdir()

    async def test(told: Told) -> None:
        folder.rename(tmp_path / "old")
        other.rename(folder)
        (folder / "log").write_bytes(b"new")
        await told.until({"log": b"new"})

    watched(folder, test)


def test_without_system_events_it_looks_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system has no more watches to give, changes are still told."""

    def refuse(*_args: object, **_options: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", refuse)

    async def test(told: Told) -> None:
        (tmp_path / "log").write_bytes(b"x")
        await told.until({"log": b"x"})

    assert watched(tmp_path, test).polling


@pytest.mark.parametrize("there", [True, False], ids=["folder", "no folder"])
def test_nothing_is_told_while_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Looking again and again at what stays the same is told once, when the watch is laid."""
    folder = tmp_path if there else tmp_path / "none"
    monkeypatch.setattr(labkit.watch, "LONGEST_SILENCE_MS", 1)
    look = labkit.watch._fingerprint

    async def run() -> int:
        told, looked, loop = Told(folder), asyncio.Queue[None](), asyncio.get_running_loop()

        def look_and_say(path: Path) -> object:
            loop.call_soon_threadsafe(looked.put_nowait, None)
            return look(path)

        monkeypatch.setattr(labkit.watch, "_fingerprint", look_and_say)
        watch = Watch(folder, told, polling=there)
        async with asyncio.timeout(20):
            for _ in range(5):
                await looked.get()
        watch.close()
        return told.looks.qsize()

    assert asyncio.run(run()) == 1


def test_after_close_nothing_is_told_and_no_thread_is_left(tmp_path: Path) -> None:
    """Closing ends the thread and drops what was on its way; closing twice is harmless."""

    async def run() -> int:
        told = Told(tmp_path)
        watch = Watch(tmp_path, told)
        await told.looks.get()
        watch._tell()  # as its thread does: on its way, and not yet arrived
        watch.close()
        watch.close()
        before = told.looks.qsize()
        await asyncio.sleep(0)  # whatever was scheduled on the loop runs now
        return told.looks.qsize() - before

    assert asyncio.run(run()) == 0
    assert [one.name for one in threading.enumerate() if one.name.startswith("watch ")] == []


def test_a_program_that_forgets_to_close_ends_at_once(tmp_path: Path) -> None:
    """An open watch keeps no interpreter alive and does not abort one."""
    lines = (
        "import asyncio, pathlib",
        "from labkit.watch import Watch",
        "async def main():",
        "    laid = asyncio.Event()",
        f"    globals()['kept'] = Watch(pathlib.Path({str(tmp_path)!r}), laid.set)",
        "    await laid.wait()",
        "asyncio.run(main())",
    )

    elsewhere(*lines)
