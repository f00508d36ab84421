"""The child's life: how it loads, ends, is limited, is shut in, and what it leaves behind."""

from __future__ import annotations

import asyncio
import fcntl
import os

import pytest

from grader import rungs, sandbox
from grader.channel import ChannelMisused, ChildLost
from grader.lab import StudentError
from grader.proxy import Children
from grader.settings import Limits
from grader.work_folder import OddFileError
from tests.piped import box_of, lab_of, on_pipe

BOXED = rungs.strongest_rung().isolated
PLAIN = "class JsonlSessionStore(Plain): pass"


async def nothing(lab):
    return None


async def one_append(lab):
    return await lab.store().append("note", 1)


@pytest.mark.parametrize(
    ("source", "reason", "seen"),
    [
        ("def broken(:", "syntax-error", "__init__.py:"),
        ("import no_such_module", "import-error", "no_such_module"),
        ("raise ValueError('at import')", "import-error", "at import"),
        ("import sys; sys.exit(0)", "import-error", "SystemExit"),
        ("raise __import__('unittest').SkipTest('skip')", "import-error", "SkipTest"),
        ("", "import-error", "JsonlSessionStore"),
        (f"{PLAIN}\ndel CorruptLogError", "import-error", "CorruptLogError"),
        ("import os; os._exit(0)", "crash", "exit code 0"),
        ("import os; os.kill(os.getpid(), 11)", "crash", "signal 11"),
        ("import os; os.closerange(3, 1024)", "crash", ""),
    ],
)
def test_code_that_does_not_load_has_a_reason_of_its_own(source, reason, seen):
    """Syntax, import and an early end are told apart, with the student's own line where there is one."""
    with pytest.raises(ChildLost) as lost:
        on_pipe(source, nothing)
    assert lost.value.reason == reason
    assert seen in lost.value.seen.en


def test_an_import_that_does_not_end_is_a_timeout():
    """A loop at import meets the limit of the start."""
    with pytest.raises(ChildLost) as lost:
        on_pipe("while True: pass", nothing, limits=Limits(start_seconds=0.4))
    assert lost.value.reason == "timeout"


def test_a_run_that_is_ended_during_a_start_leaves_no_child():
    """Ctrl-C while the student's code is being imported: the child that is not yet known is gone, too."""
    started = []

    async def run(box):
        children = Children(box, "lesson_22")
        starting = asyncio.ensure_future(children.get(faults=False))
        while not started:  # noqa: ASYNC110 - the child is started in one of the next turns
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
        children.close()

    def remember(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[0]

    start = sandbox.start
    with box_of("while True: pass") as box, pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.sandbox.start", remember)
        asyncio.run(run(box))
    assert started[0].process.returncode is not None


def test_after_a_failed_start_no_other_child_is_started():
    """What does not load will not load a second time: the rest fails at once, for the same reason."""

    async def run(box):
        children = Children(box, "lesson_22")
        reasons = []
        for faults in (False, True, False):
            with pytest.raises(ChildLost) as lost:
                await children.get(faults=faults)
            reasons.append(lost.value)
        return reasons

    with box_of("def broken(:") as box:
        first, *others = asyncio.run(run(box))
    assert all(other is first for other in others)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("os._exit(0)", "crash"),
        ("os.kill(os.getpid(), 9)", "crash"),
        ("os.closerange(3, 1024)", "crash"),
        ("while True: pass", "timeout"),
        ("await asyncio.get_running_loop().create_future()", "timeout"),
    ],
)
def test_a_call_that_ends_the_child_or_never_ends(statement, reason):
    """The end of the channel is a crash, silence a timeout; neither hangs the grader."""
    source = f"""
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        {statement}
        return self.write(type, data)
"""
    with pytest.raises(ChildLost) as lost:
        on_pipe(source, one_append, limits=Limits(call_seconds=0.5))
    assert lost.value.reason == reason


def test_processor_time_is_limited():
    """A loop that the wall clock would allow ends by its processor time, as a timeout."""
    source = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        while True: pass
"""
    with pytest.raises(ChildLost) as lost:
        on_pipe(source, one_append, limits=Limits(cpu_seconds=1, call_seconds=60))
    assert lost.value.reason == "timeout"
    assert "processor" in lost.value.seen.en


def test_memory_is_limited():
    """Three gigabytes are not to be had."""
    source = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        return SessionEvent(1, type, len(bytes(3 << 30)))
"""
    with pytest.raises(StudentError, match="MemoryError"):
        on_pipe(source, one_append)


def test_a_file_has_a_largest_size():
    """A log that grows past the limit is the store's own write error."""
    source = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        with open("filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
"""
    with pytest.raises(OSError, match="File too large"):
        on_pipe(source, one_append, limits=Limits(file_mib=4))


def test_a_restart_keeps_the_disk_and_loses_the_rest():
    """After a restart a new process reads the same files; what was only in memory is gone."""
    source = """
made = []
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        made.append(os.getpid())
        return self.write(type, [len(made)])
"""

    async def body(lab):
        first = await lab.store().append("a", 1)
        await lab.restart()
        second = await lab.store().append("b", 2)
        return [first.data, second.data, [event.type for event in await lab.store().read()]]

    assert on_pipe(source, body) == [[1], [1], ["a", "b"]]


def test_a_store_from_before_the_restart_is_void():
    """A check that goes on with an old store is wrong, and it is told so as the grader's fault."""

    async def body(lab):
        old = lab.store()
        await lab.restart()
        await old.read()

    with pytest.raises(ChannelMisused):
        on_pipe(PLAIN, body)


def test_faults_are_armed_and_lifted_underneath():
    """A full disk comes from below the store, is seen in the log, and is gone after disarming."""

    async def body(lab):
        store = lab.store()
        await lab.arm([{"op": "write", "do": "ENOSPC"}])
        with pytest.raises(OSError, match="No space"):
            await store.append("a", 1)
        seen = await lab.disarm()
        await store.append("b", 2)
        return [entry["did"] for entry in seen if entry["op"] == "write"]

    did = on_pipe(PLAIN, body, faults=True)
    assert did[0] == "none,ENOSPC"


def test_a_scenario_runs_beside_the_students_code():
    """Trusted source gets the module, the folder and what it was given; plain JSON comes back."""
    source = """
async def scenario(lesson, folder, given):
    store = lesson.JsonlSessionStore(folder / "s.jsonl")
    event = await store.append("note", given["value"])
    return {"sequence": event.sequence, "exists": (folder / "s.jsonl").exists()}
"""

    async def body(lab):
        return await lab.scenario(source, {"value": 3}), lab.names()

    assert on_pipe(PLAIN, body) == ({"sequence": 1, "exists": True}, ["s.jsonl"])


SURROUNDINGS = """
async def scenario(lesson, folder, given):
    import os, sys
    return {
        "environment": sorted(os.environ), "argv": sys.argv, "path": sys.path, "modules": "site" in sys.modules,
        "cwd": os.listdir(".") , "home": os.listdir(os.environ["HOME"]), "user": os.geteuid(),
        "groups": os.getgroups(), "descriptors": len(os.listdir("/dev/fd")), "utf8": sys.flags.utf8_mode,
    }
"""


@pytest.mark.parametrize(
    "rung",
    [rungs.strongest_rung(), *(rung for rung in rungs.rungs()[1:] if rung.isolated), rungs.rungs()[-1]],
    ids=lambda rung: rung.name,
)
def test_the_child_sees_a_clean_environment(rung, monkeypatch):
    """On every rung no variable, argument or site package of the grader's user is there to be read."""
    monkeypatch.setattr("grader.rungs.strongest_rung", lambda: rung)
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")

    async def body(lab):
        return await lab.scenario(SURROUNDINGS)

    seen = on_pipe(PLAIN, body)
    assert set(seen["environment"]) <= {
        "HOME",
        "LANG",
        "LC_CTYPE",
        "MALLOC_ARENA_MAX",
        "PATH",
        "PWD",
        "TMPDIR",
    }
    assert not seen["home"]
    assert not seen["modules"]
    assert seen["utf8"] == 1
    assert not [path for path in seen["path"] if "site-packages" in path]
    assert len(seen["argv"]) == 1


@pytest.mark.skipif(not BOXED and not os.environ.get("CI"), reason="no rung here shuts a child in")
@pytest.mark.parametrize(
    "rung", [rung for rung in rungs.rungs() if rung.isolated], ids=lambda rung: rung.name
)
def test_a_boxed_child_sees_neither_kit_nor_network_nor_root(rung, monkeypatch):
    """Each isolating rung hides the suites, the solution and the home, cuts the network, and is not root."""
    assert rungs.works(rung)
    monkeypatch.setattr("grader.rungs.strongest_rung", lambda: rung)
    source = f"""
async def scenario(lesson, folder, given):
    import os, socket
    from pathlib import Path
    found = {{name: Path(name).exists() for name in {[str(rungs.KIT / "grader/suites"), str(rungs.KIT / "solution")]!r}}}
    try:
        socket.create_connection(("127.0.0.1", 9), 0.2)
        found["network"] = True
    except OSError as error:
        found["network"] = error.errno not in (13, 101, 111)
    found["interfaces"] = [name for _, name in socket.if_nameindex() if name != "lo"]
    found["root"] = os.geteuid() == 0
    found["writes"] = [name for name in ("/", "/usr", "/etc", str(folder.parent.parent / "code")) if os.access(name, os.W_OK)]
    found["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()]) > 4
    return found
"""

    async def body(lab):
        return await lab.scenario(source)

    assert not any(on_pipe(PLAIN, body).values())


@pytest.mark.skipif(not BOXED and not os.environ.get("CI"), reason="no rung here reaches detached processes")
def test_nothing_survives_the_child():
    """A process that detached itself from everything is gone with the box: the lock it held is free."""
    source = """
import fcntl, subprocess, sys
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        lock = open("lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"],
                         start_new_session=True, pass_fds=[lock.fileno()])
        return self.write(type, data)
"""

    async def run(box):
        children = Children(box, "lesson_22")
        await (await lab_of(children)).store().append("a", 1)
        lock = os.open(box.work / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        children.close()
        # The kernel takes a moment to end a namespace; a process that stays would hold the lock for a minute.
        await asyncio.wait_for(asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX), 20)

    with box_of(source) as box:
        asyncio.run(run(box))


def test_the_box_is_removed_whatever_is_in_it():
    """Folders that were closed to everyone, and files without rights, go with the box."""
    source = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        os.makedirs("a/b/c")
        open("a/b/c/file", "w").close()
        for name in ("a/b/c/file", "a/b/c", "a/b", "a"):
            os.chmod(name, 0)
        return SessionEvent(1, type, data)
"""

    async def run(box):
        children = Children(box, "lesson_22")
        await (await lab_of(children)).store().append("a", 1)
        children.close()

    with box_of(source) as box:
        asyncio.run(run(box))
        root = box.code.parent
    assert not root.exists()


@pytest.mark.parametrize(
    "deed",
    ["os.symlink('/etc/hostname', path)", "os.mkfifo(path)", "os.mkdir(path)", "os.truncate(path, 1 << 40)"],
)
def test_odd_files_are_not_followed(deed):
    """A link, pipe, folder or enormous file in the log's place is refused by the grader's own look at the disk."""
    source = f"""
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        path = str(self.path)
        if "truncate" in {deed!r}:
            open(path, "w").close()
        {deed}
        return SessionEvent(1, type, data)
"""

    async def body(lab):
        await lab.store().append("a", 1)
        return lab.disk()

    with pytest.raises((OddFileError, OSError)):
        on_pipe(source, body)


def test_stores_that_own_a_thread_do_not_pile_up():
    """What one check opened is let go before the next: a thread for each store is an honest style."""
    source = """
from concurrent.futures import ThreadPoolExecutor
class JsonlSessionStore(Plain):
    def __init__(self, path):
        super().__init__(path)
        self.thread = ThreadPoolExecutor(1)
    async def append(self, type, data):
        return await asyncio.get_running_loop().run_in_executor(self.thread, self.write, type, data)
"""

    async def run(box):
        children = Children(box, "lesson_22")
        for _ in range(4):
            lab = await lab_of(children)
            for number in range(30):
                await lab.store(f"{number}").append("a", 1)
        children.close()

    with box_of(source) as box:
        asyncio.run(run(box))


def test_a_planted_file_may_be_written_by_the_store():
    """What the grader puts into the folder belongs to the child's user."""

    async def body(lab):
        lab.plant("deep/er/events.jsonl", b'[1,"a",1]\n')
        event = await lab.store("deep/er/events.jsonl").append("b", 2)
        return event.sequence, lab.disk("deep/er/events.jsonl").count(b"\n")

    assert on_pipe(PLAIN, body) == (2, 2)


def test_a_submission_that_ran_out_of_time_too_often_is_out_of_play():
    """After so many timeouts nothing more is started: the rest of the submission fails at once."""

    async def run(box):
        children = Children(box, "lesson_22")
        for _ in range(box.limits.timeouts):
            lab = await lab_of(children)
            with pytest.raises(ChildLost) as lost:
                await lab.store().append("a", 1)
            children.take_note(lost.value)
            children.end(faults=False)
        with pytest.raises(ChildLost):
            await children.get(faults=False)
        return children._running

    never = (
        "class JsonlSessionStore(Plain):\n    async def append(self, type, data):\n        while True: pass"
    )
    with box_of(never, Limits(call_seconds=0.3)) as box:
        assert asyncio.run(run(box)) == {}
