"""Code is recorded in a child: what it said, what it did, and, said plainly, what could not be followed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest

from labkit.faults.crash import watching
from labkit.faults.crash.recorder import RecordError, record, record_command, record_scenario
from labkit.faults.crash.trace import Trace

SCENARIOS = Path(__file__).parents[1] / "labkit" / "faults" / "crash" / "scenarios"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def program(folder: Path, source: str, name: str = "program.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(source), "utf-8")
    return path


def shown(trace: Trace) -> list[tuple[object, ...]]:
    return [(step.op, step.value if step.op == "acknowledge" else step.path) for step in trace.steps]


def refusal(work: object) -> str:
    with pytest.raises(RecordError) as caught:
        work()  # type: ignore[operator]
    told = str(caught.value)
    assert "; " in told
    assert "Traceback" not in told
    assert "\n" not in told
    return told


# What is recorded


def test_a_programs_lines_are_its_acknowledgements(tmp_path, root):
    """Each line on standard output counts once it is whole and out, among the steps where it was said."""
    source = """
        import os, sys
        print("first")
        with open("a", "w") as file:
            file.write("x")
            print("not down yet")
        print("sec", end="")
        open("b", "w").close()
        print("ond")
        sys.stdout.buffer.write("三\\n".encode())
        sys.stdout.flush()
        os.write(1, b"by descriptor\\n")
        print("no line", end="")
    """
    trace = record(program(tmp_path, source), root)

    assert shown(trace) == [
        ("acknowledge", "first"),
        ("create", "a"),
        ("acknowledge", "not down yet"),
        ("write", "a"),
        ("create", "b"),
        ("acknowledge", "second"),
        ("acknowledge", "三"),
        ("acknowledge", "by descriptor"),
    ]


def test_a_program_is_run_as_python_would_run_it(tmp_path, root):
    """Its arguments, its name, the modules beside it, the folder it works in; its own output stays its own."""
    program(tmp_path, "WORD = 'beside'", "neighbour.py")
    source = """
        import os, sys, neighbour
        print([__name__, os.path.basename(sys.argv[0]), sys.argv[1:], neighbour.WORD, os.getcwd(), sys.stdin.read()])
    """
    trace = record(program(tmp_path, source), root, arguments=["-x", "字"])

    assert trace.acknowledged == (str(["__main__", "program.py", ["-x", "字"], "beside", str(root), ""]),)
    assert list(root.iterdir()) == []
    assert not list(tmp_path.rglob("*.pyc"))


def test_what_is_written_while_the_interpreter_ends_is_recorded(tmp_path, root):
    """A thread that goes on after the last line, a function that `atexit` calls, a file that nobody closed."""
    source = """
        import atexit, threading, pathlib
        wait = threading.Event()
        threading.Thread(target=lambda: (wait.wait(), pathlib.Path("thread").touch())).start()
        atexit.register(pathlib.Path("exit").touch)
        left = open("left", "w")
        left.write("in the buffer")
        wait.set()
    """
    trace = record(program(tmp_path, source), root)

    assert {path for op, path in shown(trace) if op == "create"} == {"left", "thread", "exit"}
    assert ("write", "left") in shown(trace)
    assert [unseen for unseen in trace.unseen if unseen.what != "threads"] == []


def test_a_scenario_is_prepared_then_recorded(tmp_path, root):
    """What `prepare` leaves was there before; `work` gets folder, events and a way to say what is done."""
    source = """
        def prepare(folder):
            (folder / "old").write_text("prepared")

        def work(folder, events, acknowledge):
            for number in range(events):
                with open(folder / "old", "a") as file:
                    file.write("x")
                acknowledge({"n": number})
    """
    trace = record_scenario(program(tmp_path, source), root, events=2)

    assert [(start.path, start.entry.content) for start in trace.start] == [("old", b"prepared")]
    assert shown(trace) == [
        ("write", "old"),
        ("acknowledge", {"n": 0}),
        ("write", "old"),
        ("acknowledge", {"n": 1}),
    ]


def test_a_command_of_the_kit_is_recorded(root):
    """`statelab log repair` on a torn log: the copy is synced before anything is cut, and its name too."""
    (root / "a.jsonl").write_bytes(b'{"n":1}\n{"n":')
    trace = record_command(["log", "repair", "a.jsonl", "--yes"], root)

    assert trace.unseen == ()
    assert (root / "a.jsonl").read_bytes() == b'{"n":1}\n'
    ops = [step.op for step in trace.steps]
    assert ops.index("sync") < ops.index("truncate")
    assert trace.acknowledged


# What is not seen

NOT_SEEN = {
    "mmap": """
        import mmap
        open("a", "wb").write(b"12345678")
        with open("a", "r+b") as file, mmap.mmap(file.fileno(), 8) as mapped:
            mapped[0:1] = b"x"
    """,
    "sqlite3": """
        import sqlite3
        sqlite3.connect("a.db").execute("create table t (n)")
    """,
    "child a": """
        import subprocess
        subprocess.run(["true"])
    """,
    "child b": """
        import os
        if os.fork() == 0:
            open("by the child", "w").close()
            os._exit(0)
        os.wait()
    """,
    "child c": """
        import os
        os.system("true secret")
    """,
    "child d": """
        import multiprocessing
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=print)
            process.start()
            process.join()
    """,
    "c-writer a": """
        import _io
        with _io.open("a", "w") as file:
            file.write("past the layer")
    """,
    "c-writer b": """
        import _io, os
        with _io.open("gone", "w") as file:
            file.write("past the layer")
        os.unlink("gone")
    """,
    "c-writer c": """
        import os, posix
        file = os.open("a", os.O_WRONLY | os.O_CREAT)
        posix.write(file, b"past the layer")
    """,
    "c-writer d": """
        import posix
        posix.mkdir("a")
        posix.rmdir("a")
    """,
    "c-writer e": """
        import ctypes
        ctypes.CDLL(None).creat(b"a", 0o600)
    """,
    "c-writer g": """
        import _io, os
        open("a", "w").write("same")
        os.close(os.open("a", os.O_RDONLY))
        with _io.open("a", "r+") as file:
            file.write("not the")
            file.flush()
            file.seek(0)
            file.write("same")
            file.truncate()
    """,
    "c-writer f": """
        import os
        os.mkfifo("a")
    """,
    "outside": """
        open("../elsewhere", "w").close()
    """,
    "threads a": """
        import threading
        lock = threading.Lock()
        def write(name):
            for _ in range(20):
                with lock:
                    open("a", "a").write(name)
        both = [threading.Thread(target=write, args=(name,)) for name in "ab"]
        [thread.start() for thread in both]
        [thread.join() for thread in both]
    """,
    "threads b": """
        import threading
        end, written = threading.Event(), threading.Event()
        def flush_now_and_then():
            while not end.wait(0.01):
                open("a", "a").write("flushed")
                written.set()
        flusher = threading.Thread(target=flush_now_and_then)
        flusher.start()
        written.wait()
        open("a", "a").write("mine")
        end.set()
        flusher.join()
    """,
    "threads d": """
        import _thread, time
        ended = []
        def write():
            open("a", "a").write("by a thread that the module threading does not know")
            ended.append(True)
        _thread.start_new_thread(write, ())
        open("a", "a").write("mine")
        while not ended:
            time.sleep(0.001)
    """,
    "threads c": """
        import threading
        thread = threading.Thread(target=lambda: open("a", "a").write("1"))
        thread.start()
        open("a", "a").write("2")
        thread.join()
    """,
}


@pytest.mark.parametrize("case", NOT_SEEN)
def test_what_cannot_be_followed_is_said(tmp_path, root, case):
    """Each way round the recorder is named, and its place, never content."""
    trace = record(program(tmp_path, NOT_SEEN[case]), root)

    assert case.split()[0] in {unseen.what for unseen in trace.unseen}
    assert not any("secret" in unseen.where for unseen in trace.unseen)


ALL_SEEN = {
    "a map that is only read, and one of no file": """
        import mmap
        open("a", "wb").write(b"12345678")
        with open("a", "rb") as file:
            mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ).close()
        with open("a", "r+b") as file:
            mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_COPY).close()
        mmap.mmap(-1, 8).close()
    """,
    "a database in memory": """
        import sqlite3
        sqlite3.connect(":memory:").execute("create table t (n)")
    """,
    "libraries of C, imported and asked": """
        import ctypes, uuid, ssl, hashlib, zlib, lzma, bz2
        ctypes.CDLL(None).getpid()
        open("a", "w").write(str(uuid.uuid4()))
    """,
    "what fails, and what is only read": """
        import os, pathlib, tempfile
        pathlib.Path("none").unlink(missing_ok=True)
        pathlib.Path("d").mkdir(exist_ok=True)
        pathlib.Path("d").mkdir(exist_ok=True)
        open("/dev/null", "w").write("x")
        open(__file__).read()
        tempfile.NamedTemporaryFile(dir=".").write(b"x")
    """,
    "one thread after the other": """
        import threading
        for name in "ab":
            thread = threading.Thread(target=lambda: open("a", "a").write(name))
            thread.start()
            thread.join()
            open("a", "a").write("mine")
    """,
    "a pool that the caller waits for": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            for name in "abcd":
                pool.submit(lambda: open("a", "a").write(name)).result()
                open("a", "a").write("mine")
    """,
    "a loop that waits for its threads": """
        import asyncio
        async def write():
            for name in "abcd":
                await asyncio.to_thread(lambda: open("a", "a").write(name))
                open("a", "a").write("mine")
        asyncio.run(write())
    """,
    "a thread that writes nothing": """
        import threading
        end = threading.Event()
        thread = threading.Thread(target=lambda: [None for _ in iter(lambda: end.wait(0.001), True)])
        thread.start()
        for name in "abcd":
            open("a", "a").write(name)
        end.set()
        thread.join()
    """,
    "locks of the system, and a copy of a descriptor": """
        import fcntl, os
        file = os.open("a", os.O_RDWR | os.O_CREAT)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(fcntl.fcntl(file, fcntl.F_DUPFD, 50), b"x")
        os.write(os.dup2(file, 60), b"y")
    """,
    "an end without farewell": """
        import os
        open("a", "w").write("x")
        os._exit(0)
    """,
}


@pytest.mark.parametrize("case", ALL_SEEN)
def test_what_can_be_followed_raises_no_alarm(tmp_path, root, case):
    """Harmless things leave the all-clear to the promises."""
    trace = record(program(tmp_path, ALL_SEEN[case]), root)

    assert trace.unseen == ()


def test_who_starts_a_thread_is_not_at_rest(monkeypatch):
    """It waits until the new thread has begun, and goes on whatever that one does; who waits for an event does not."""
    name = next(name for name in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, name))
    begin, new, free = getattr(threading, name), threading.Thread(), threading.Event()

    def begin_all_but_the_new(bootstrap, *args, **options):
        return None if bootstrap.__self__ is new else begin(bootstrap, *args, **options)

    monkeypatch.setattr(threading, name, begin_all_but_the_new)
    starter = threading.Thread(target=new.start, daemon=True)
    waiter = threading.Thread(target=free.wait, daemon=True)
    starter.start()
    waiter.start()

    assert settled(waiter)
    assert not settled(starter)
    new._started.set()
    free.set()
    starter.join()
    waiter.join()


def settled(thread: threading.Thread) -> bool:
    """Look at a thread once it waits in a condition: nothing can be told of it before."""
    while (frame := sys._current_frames()[thread.ident]).f_code.co_name != "wait":
        del frame
    return watching._at_rest(frame)


def test_a_child_process_writes_no_steps(tmp_path, root):
    """A copy of the recorded process is a process that is not recorded: it does not mix its steps in."""
    trace = record(program(tmp_path, NOT_SEEN["child b"]), root)

    assert trace.steps == ()
    assert ("c-writer", "by the child") in {(unseen.what, unseen.where) for unseen in trace.unseen}


def test_what_a_child_made_is_taken_over_when_the_code_works_on_it(tmp_path, root):
    """A folder that came unseen gets its steps before what is done in it, so that the states can be computed."""
    source = """
        import os, subprocess
        subprocess.run(["mkdir", "-p", "d/e"])
        open("d/e/a", "w").write("x")
        os.mkdir("d/f")
        subprocess.run(["touch", "b"])
        os.rename("b", "d/f/c")
    """
    trace = record(program(tmp_path, source), root)

    assert shown(trace)[:4] == [("mkdir", "d"), ("mkdir", "d/e"), ("create", "d/e/a"), ("write", "d/e/a")]
    assert {unseen.what for unseen in trace.unseen} == {"child", "c-writer"}


def test_steps_that_do_not_fit_together_are_refused(tmp_path, root):
    """A child moved a folder that the steps go on to use: no state can be computed, and that is said."""
    source = """
        import os, subprocess
        os.mkdir("d")
        subprocess.run(["mv", "d", "e"])
        open("e/a", "w").write("x")
    """

    assert "not all of its changes are seen" in refusal(lambda: record(program(tmp_path, source), root))


def test_a_trace_that_grows_without_end_is_given_up(tmp_path, root):
    """Code that writes and writes fills no disk with its recording."""
    source = """
        import gc
        from labkit.faults.crash.spool import Spool
        spool = next(found for found in gc.get_objects() if isinstance(found, Spool))
        spool._left = 10_000
        with open("a", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1000))
    """

    assert "more than 256 MiB to record; " in refusal(lambda: record(program(tmp_path, source), root))


def test_code_that_had_no_time_to_begin_is_refused(tmp_path, root):
    """An empty trace would look as if nothing had been done."""
    assert "did not begin" in refusal(lambda: record(program(tmp_path, "pass"), root, seconds=0.001))


def test_the_threads_of_the_durable_log_have_one_order(tmp_path, root):
    """Its writer works in a thread of its own, its maintenance in others: all of them wait for each other."""
    source = """
        import asyncio
        from solution.durable_log import DurableLog, Limits, writer
        writer.BRIEF_SECONDS = 0.0

        def work(folder, events, acknowledge):
            async def append(log, number):
                await log.append("event", {"n": number})
                acknowledge(number)
            async def append_all():
                limits = Limits(segment_bytes=2500)
                async with await DurableLog.open("s", root=folder, durability="group", limits=limits) as log:
                    await append(log, 0)
                    await asyncio.gather(*(append(log, number) for number in range(1, events)))
            asyncio.run(append_all())
    """
    trace = record_scenario(program(tmp_path, source), root, events=20)

    assert trace.unseen == ()
    assert len(trace.acknowledged) == 20
    assert len({step.thread for step in trace.steps}) > 1


def test_code_that_never_ends_is_ended_with_all_that_it_started(tmp_path, root):
    """Killed after its time: what was recorded until then is there, and nothing of it runs on."""
    source = """
        import os, subprocess, sys, time
        open("a", "w").write("before")
        ended = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        open("pid", "w").write(str(ended.pid))
        print("started", flush=True)
        time.sleep(1000)
    """
    trace = record(program(tmp_path, source), root, seconds=3)

    assert {unseen.what for unseen in trace.unseen} == {"child", "unfinished"}
    assert trace.acknowledged == ("started",)
    assert not psutil.pid_exists(int((root / "pid").read_text()))


# What is refused


def test_what_is_not_there_is_refused_before_anything_runs(tmp_path, root):
    """A program, a scenario, a folder that are not there, or are something else."""
    good = program(tmp_path, "def work(folder, events, acknowledge): (folder / 'ran').touch()")

    assert "no such file" in refusal(lambda: record(tmp_path / "none.py", root))
    assert "no such file" in refusal(lambda: record_scenario(tmp_path, root))
    assert "not there" in refusal(lambda: record(good, tmp_path / "none"))
    assert "no folder" in refusal(lambda: record(good, good))
    (root / "something").touch()
    assert "not empty" in refusal(lambda: record_scenario(good, root))
    assert [path.name for path in root.iterdir()] == ["something"]


ENDS_BADLY = {
    "an exception": ("import os\nraise ValueError('secret')", r"program.py:2: ended with ValueError; run it"),
    "an exception in a library": (
        "import json\njson.loads('secret')",
        r"program.py:2: ended with JSONDecodeError;",
    ),
    "no Python": ("import os\nsecret =", "program.py:2: ended with SyntaxError;"),
    "an exit code": ("import sys\nsys.exit(7)", "program.py: ended with the exit code 7;"),
    "an exit with words": ("import sys\nsys.exit('secret')", "program.py: ended with the exit code 1;"),
    "a signal": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "program.py: ended by signal 9;"),
    "an end at once": ("import os\nos._exit(3)", "program.py: ended with the exit code 3"),
}


@pytest.mark.parametrize("case", ENDS_BADLY)
def test_code_that_ends_badly_is_refused_with_its_line(tmp_path, root, case):
    """How it ended and on which line, in one sentence; what it said may quote data, and is not repeated."""
    source, told = ENDS_BADLY[case]
    (tmp_path / "program.py").write_text(source, "utf-8")
    said = refusal(lambda: record(tmp_path / "program.py", root))

    assert told in said
    assert "secret" not in said


def test_code_that_is_not_written_yet_can_be_told_from_code_that_fails(root):
    """The starter's store raises NotImplementedError; whoever asked can say so in words of his own."""
    with pytest.raises(RecordError) as caught:
        record_scenario(SCENARIOS / "starter.py", root)

    assert caught.value.ended_with == "NotImplementedError"


def test_a_scenario_without_work_is_refused(tmp_path, root):
    """The sentence says which function is missing."""
    said = refusal(lambda: record_scenario(program(tmp_path, "PROMISES = ()"), root))

    assert "has no function work(folder, events, acknowledge)" in said


@pytest.mark.parametrize("code", ["0", "3", ""])
def test_a_scenario_that_exits_is_no_whole_run(tmp_path, root, code):
    """Half of the work, left with any exit code, gets no verdict of the whole."""
    source = f"import sys\ndef work(folder, events, acknowledge):\n    acknowledge(1)\n    sys.exit({code})"

    assert "program.py:4: ended by sys.exit" in refusal(
        lambda: record_scenario(program(tmp_path, source), root)
    )


def test_an_acknowledgement_that_is_no_json_is_refused(tmp_path, root):
    """A trace is JSON: what cannot be written down ends the recording, and does not pass in silence."""
    source = "def work(folder, events, acknowledge):\n    acknowledge({1, 2})"

    assert "program.py:2: ended with TypeError" in refusal(
        lambda: record_scenario(program(tmp_path, source), root)
    )


# Held against the system's own witness


def straced(scenario: Path, root: Path, events: int, folder: Path) -> list[str]:
    """Run a scenario below strace, without the file layer, and list what the system saw below the root."""
    script = f"""
        import importlib.util, pathlib, sys
        sys.dont_write_bytecode = True
        spec = importlib.util.spec_from_file_location("scenario", {str(scenario)!r})
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        folder = pathlib.Path({str(root)!r})
        getattr(module, "prepare", lambda folder: None)(folder)
        (folder.parent / "begin").touch()
        module.work(folder, {events}, lambda value: None)
    """
    log = folder / "strace.txt"
    subprocess.run(
        [
            *("strace", "-f", "-y", "-s", "0", "-o", str(log), "-e", "trace=%file,%desc"),
            *(sys.executable, str(program(folder, script, "run.py"))),
        ],
        check=True,
        env=os.environ | {"PYTHONPATH": str(SCENARIOS.parents[3])},
        cwd=root,
        timeout=120,
    )
    lines = log.read_text().split("/begin", 1)[1].splitlines()[1:]
    return [line.split(maxsplit=1)[1] for line in lines if str(root) in line and " = -1 " not in line]


STEP_OF_CALL = {
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "sendfile", "copy_file_range"), "write"),
    **dict.fromkeys(("fsync", "fdatasync"), "sync"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    **dict.fromkeys(("link", "linkat"), "link"),
    **dict.fromkeys(("symlink", "symlinkat"), "symlink"),
    **dict.fromkeys(("unlink", "unlinkat"), "unlink"),
    **dict.fromkeys(("mkdir", "mkdirat"), "mkdir"),
    "rmdir": "rmdir",
}
MAY_CHANGE_NOTHING = {
    **dict.fromkeys(("truncate", "ftruncate", "fallocate"), "truncate"),
    **dict.fromkeys(("chmod", "fchmod", "fchmodat"), "chmod"),
}


def meant(call: str) -> set[str]:
    """Give the steps that a line of strace may stand for; "" for none."""
    name = call.partition("(")[0]
    if name == "openat":
        made = {"create"} if "O_CREAT" in call else set()
        cut = {"truncate"} if "O_TRUNC" in call else set()
        return made if "O_EXCL" in call else made | cut | {""}
    if name in MAY_CHANGE_NOTHING:
        return {MAY_CHANGE_NOTHING[name], ""}
    return {STEP_OF_CALL.get(name, "")}


@pytest.mark.proof
@pytest.mark.parametrize("store", ["lesson", "durable_os", "durable_fsync", "durable_group", "spine"])
def test_strace_saw_the_same(tmp_path, root, store):
    """The system's own witness names the same operations in the same order, for every store."""
    if not shutil.which("strace"):
        pytest.fail("strace is missing; install the package strace, which `make proof` needs")
    steps = record_scenario(SCENARIOS / f"{store}.py", root, events=4).steps
    due = [step.op for step in steps if step.op != "acknowledge"]
    shutil.rmtree(root)
    root.mkdir()
    seen: list[str] = []
    for call in straced(SCENARIOS / f"{store}.py", root, 4, tmp_path):
        possible, expected = meant(call), due[len(seen)] if len(seen) < len(due) else "the end"
        if expected in possible:
            seen.append(expected)
        elif "" not in possible:
            seen.append(min(possible))

    assert seen == due
