"""The file layer: what it sees, what it disturbs, and that it leaves everything else alone."""

# The plain forms of `os` and `open` are what is tested here:
# ruff: noqa: PTH107, PTH123, PTH208

from __future__ import annotations

import asyncio
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from labkit.faults import file_layer
from tests.child_process import answer_of, run_child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))


def interpreters() -> dict[str, str]:
    """Find one interpreter for each Python of the kit: this one, those on the path, those that pyenv keeps."""
    found = {"{}.{}".format(*sys.version_info): sys.executable}
    for version in ("3.11", "3.12", "3.13"):
        kept = [str(path) for path in PYENV.glob(f"versions/{version}.*/bin/python3")]
        for candidate in [*kept, f"python{version}"]:
            if version not in found and shutil.which(candidate):
                asked = subprocess.run([candidate, "--version"], capture_output=True, check=False)
                found |= {version: candidate} if asked.returncode == 0 else {}
    return found


INTERPRETERS = interpreters()


@pytest.fixture
def layer() -> Iterator[ModuleType]:
    file_layer.install()
    yield file_layer
    file_layer.uninstall()


def write_at_once(path: Path, data: bytes) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return os.write(descriptor, data)
    finally:
        os.close(descriptor)


def operations(layer: ModuleType, *wanted: str) -> list[tuple[str, str]]:
    return [(entry["op"], entry["path"]) for entry in layer.log() if entry["op"] in wanted]


# What it disturbs


@pytest.mark.parametrize("name", ["ENOSPC", "EIO", "EACCES", "EINTR", "EROFS"])
def test_an_error_name_raises_that_error_and_nothing_is_written(layer, tmp_path, name):
    """A rule with an error's name raises that very error, and no byte reaches the file."""
    layer.arm([{"op": "write", "do": name}], root=tmp_path)

    with pytest.raises(OSError) as caught:
        write_at_once(tmp_path / "a", b"0123456789")

    assert caught.value.errno == getattr(errno, name)
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.parametrize(
    ("do", "count"), [("short", 1), ("short:4", 4), ("half", 5), ("none", 0), ("short:99", 10)]
)
def test_a_part_is_written_and_its_count_returned(layer, tmp_path, do, count):
    """A short write really writes its part, and says how long it was."""
    layer.arm([{"op": "write", "do": do}], root=tmp_path)

    assert write_at_once(tmp_path / "a", b"0123456789") == count
    assert (tmp_path / "a").read_bytes() == b"0123456789"[:count]


@pytest.mark.parametrize(
    ("do", "left"), [("raise-after", 10), ("full,EIO", 10), ("short:3,EIO", 3), ("half,EIO", 5)]
)
def test_a_write_may_fail_after_a_part_of_it(layer, tmp_path, do, left):
    """A write can fail although some or all of its bytes are on the disk."""
    layer.arm([{"op": "write", "do": do}], root=tmp_path)

    with pytest.raises(OSError, match="Input/output error"):
        write_at_once(tmp_path / "a", b"0123456789")

    assert (tmp_path / "a").read_bytes() == b"0123456789"[:left]


@pytest.mark.parametrize(
    ("op", "move"),
    [
        ("pwrite", lambda fd: os.pwrite(fd, b"0123456789", 0)),
        ("writev", lambda fd: os.writev(fd, [b"0123", b"456789"])),
        ("pwritev", lambda fd: os.pwritev(fd, [b"0123", b"456789"], 0)),
    ],
)
def test_every_kind_of_write_can_be_short(layer, tmp_path, op, move):
    """Writes at an offset and writes of several buffers are cut like a plain one."""
    descriptor = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    layer.arm([{"op": op, "do": "half"}], root=tmp_path)

    assert move(descriptor) == 5
    os.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b"01234"


@pytest.mark.parametrize(
    ("op", "move"),
    [
        ("read", lambda fd: os.read(fd, 10)),
        ("pread", lambda fd: os.pread(fd, 10, 0)),
        ("readv", lambda fd: bytes(10)[: os.readv(fd, [bytearray(4), bytearray(6)])]),
        ("preadv", lambda fd: bytes(10)[: os.preadv(fd, [bytearray(4), bytearray(6)], 0)]),
    ],
)
def test_every_kind_of_read_can_be_short(layer, tmp_path, op, move):
    """Reads are cut too: half of the bytes asked for come back."""
    (tmp_path / "a").write_bytes(b"0123456789")
    descriptor = os.open(tmp_path / "a", os.O_RDONLY)
    layer.arm([{"op": op, "do": "half"}], root=tmp_path)

    assert len(move(descriptor)) == 5
    os.close(descriptor)


def test_a_read_may_end_early(layer, tmp_path):
    """A read of which nothing comes through looks like the end of the file."""
    (tmp_path / "a").write_bytes(b"0123456789")
    layer.arm([{"op": "read", "do": "none"}], root=tmp_path)
    with open(tmp_path / "a", "rb", buffering=0) as file:
        assert [file.read(10), file.read(10)] == [b"", b"0123456789"]


def test_a_sync_may_lie(layer, tmp_path):
    """A sync that does nothing looks like one that worked."""
    layer.arm([{"op": "fsync", "do": "none"}], root=tmp_path)
    with open(tmp_path / "a", "wb") as file:
        assert os.fsync(file.fileno()) is None

    assert [entry["did"] for entry in layer.log() if entry["op"] == "fsync"] == ["none"]


def test_a_part_in_a_group_leaves_whole_what_moves_no_bytes(layer, tmp_path):
    """With a group, every write is halved, and files are opened and closed as ever."""
    layer.arm([{"op": "*", "times": None, "do": "half"}], root=tmp_path)

    assert write_at_once(tmp_path / "a", b"123456") == 3


@pytest.mark.parametrize(
    ("op", "act"),
    [
        ("open", lambda a, _: a.open()),
        ("mkdir", lambda _, b: b.mkdir()),
        ("rename", lambda a, b: a.rename(b)),
        ("replace", lambda a, b: a.replace(b)),
        ("link", lambda a, b: b.hardlink_to(a)),
        ("symlink", lambda a, b: b.symlink_to(a)),
        ("unlink", lambda a, _: a.unlink()),
        ("remove", lambda a, _: os.remove(a)),
        ("truncate", lambda a, _: os.truncate(a, 1)),
        ("chmod", lambda a, _: a.chmod(0o600)),
        ("stat", lambda a, _: a.stat()),
        ("lstat", lambda a, _: os.lstat(a)),
        ("utime", lambda a, _: os.utime(a)),
        ("listdir", lambda a, _: os.listdir(a.parent)),
        ("scandir", lambda a, _: list(os.scandir(a.parent))),
    ],
)
def test_operations_on_paths_fail_and_change_nothing(layer, tmp_path, op, act):
    """Whatever names a path can be refused: the folder is as it was, and the error names the path."""
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"old")
    layer.arm([{"op": op, "do": "EACCES"}], root=tmp_path)

    with pytest.raises(PermissionError) as caught:
        act(path, other)

    assert str(caught.value.filename).startswith(str(tmp_path))
    layer.disarm()
    assert path.read_bytes() == b"old"
    assert not os.path.lexists(other)


@pytest.mark.parametrize("op", ["fsync", "fdatasync", "ftruncate", "fchmod", "fstat", "close"])
def test_operations_on_descriptors_fail(layer, tmp_path, op):
    """Whatever takes a descriptor can fail too."""
    act = {
        "ftruncate": lambda fd: os.ftruncate(fd, 0),
        "fchmod": lambda fd: os.fchmod(fd, 0o600),
    }.get(op, getattr(os, op))
    descriptor = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    layer.arm([{"op": op, "do": "EIO"}], root=tmp_path)

    with pytest.raises(OSError, match="Input/output error"):
        act(descriptor)

    layer.disarm()
    if op == "close":  # as on Linux: it fails, and the descriptor is gone
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    else:
        os.close(descriptor)


@pytest.mark.parametrize(("do", "left"), [("kill", b"one"), ("half,kill", b"onet"), ("full,kill", b"onetwo")])
def test_a_kill_ends_the_process_at_that_operation(tmp_path, do, left):
    """The process dies by a signal at the chosen write: before it, in the middle of it, or after it."""
    source = f"""
layer.arm([{{"op": "write", "nth": 2, "do": {do!r}}}], root=folder)
with open(folder / "a", "ab", buffering=0) as file:
    for word in (b"one", b"two", b"three"):
        file.write(word)
answer("alive")
"""
    finished = run_child(source, tmp_path)

    assert finished.returncode == -signal.SIGKILL
    assert finished.stdout == ""
    assert (tmp_path / "a").read_bytes() == left


def test_every_changing_operation_can_be_the_last(tmp_path):
    """Counted once without a fault, a run can then be killed at each operation; each leaves a true prefix."""
    source = """
layer.arm({rules!r}, root=folder)
(folder / "new").write_text("new")
(folder / "new").replace(folder / "state")
(folder / "old").unlink()
answer([entry["op"] for entry in layer.log()])
"""

    def run(
        number: int, rules: list[dict[str, object]]
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "old").write_text("old")
        finished = run_child(source.format(rules=rules), folder)
        return finished, {path.name: path.read_text() for path in folder.iterdir()}

    whole, _ = run(0, [])
    changing = [op for op in answer_of(whole) if op in ("open", "write", "replace", "unlink")]
    left = [run(n, [{"op": "change", "nth": n, "do": "kill"}])[1] for n in range(1, len(changing) + 1)]

    assert changing == ["open", "write", "replace", "unlink"]
    assert left == [
        {"old": "old"},
        {"old": "old", "new": ""},
        {"old": "old", "new": "new"},
        {"old": "old", "state": "new"},
    ]


# When it acts


def test_a_rule_waits_for_its_turn_and_acts_so_many_times(layer, tmp_path):
    """`nth` is the first turn since arming, `times` how many in a row."""
    layer.arm([{"op": "write", "nth": 2, "times": 2, "do": "short"}], root=tmp_path)

    assert [write_at_once(tmp_path / "a", b"123") for _ in range(5)] == [3, 1, 1, 3, 3]


def test_times_null_lasts_until_disarmed(layer, tmp_path):
    """A rule may act for ever; after `disarm` the same operation succeeds."""
    layer.arm([{"op": "write", "nth": 3, "times": None, "do": "short"}], root=tmp_path)

    assert [write_at_once(tmp_path / "a", b"123") for _ in range(5)] == [3, 3, 1, 1, 1]
    layer.disarm()
    assert write_at_once(tmp_path / "a", b"123") == 3


def test_arming_again_counts_anew(layer, tmp_path):
    """Counts and log belong to one arming."""
    rules = [{"op": "write", "nth": 2, "do": "short"}]
    layer.arm(rules, root=tmp_path)
    write_at_once(tmp_path / "a", b"123")
    layer.arm(rules, root=tmp_path)

    assert [write_at_once(tmp_path / "a", b"123") for _ in range(2)] == [3, 1]
    assert len(operations(layer, "write")) == 2


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        ("*.jsonl", {"a.jsonl", "deep/b.jsonl"}),
        ("deep/*", {"deep/b.jsonl", "deep/c.txt"}),
        ("a.*", {"a.jsonl"}),
    ],
)
def test_only_matching_names_are_hit(layer, tmp_path, match, hit):
    """The glob is held against the name, or against the path below the root when it holds a slash."""
    (tmp_path / "deep").mkdir()
    layer.arm([{"op": "write", "match": match, "times": None, "do": "short"}], root=tmp_path)
    names = ("a.jsonl", "deep/b.jsonl", "deep/c.txt")

    assert {name for name in names if write_at_once(tmp_path / name, b"123") == 1} == hit


def test_nothing_outside_the_root_is_seen(layer, tmp_path):
    """A neighbour whose name only begins like the root is neither hit nor logged."""
    root, neighbour = tmp_path / "root", tmp_path / "root-2"
    root.mkdir()
    neighbour.mkdir()
    layer.arm([{"op": "*", "times": None, "do": "EIO"}], root=root)

    assert write_at_once(neighbour / "a", b"123") == 3
    assert layer.log() == []


def test_a_root_behind_a_symbolic_link_is_met_both_ways(layer, tmp_path):
    """The root may be named through a link: both names of a file below it are met."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    layer.arm([{"op": "write", "times": None, "do": "short"}], root=tmp_path / "link")

    assert write_at_once(tmp_path / "real" / "a", b"123") == 1
    assert write_at_once(tmp_path / "link" / "a", b"123") == 1


def test_relative_paths_and_folder_descriptors_are_resolved(layer, tmp_path, monkeypatch):
    """A name relative to the working folder, or to an open folder, is the file that it means."""
    monkeypatch.chdir(tmp_path)
    folder = os.open(tmp_path, os.O_RDONLY)
    layer.arm([], root=tmp_path)
    Path("a").touch()
    os.rename("a", "b", src_dir_fd=folder, dst_dir_fd=folder)
    os.unlink("b", dir_fd=folder)
    os.close(folder)

    assert operations(layer, "open", "rename", "unlink") == [("open", "a"), ("rename", "a"), ("unlink", "b")]


def test_every_rule_counts_and_the_first_one_acts(layer, tmp_path):
    """Two rules may meet on one operation: the first acts, the other has had its turn."""
    layer.arm(
        [{"op": "write", "do": "short"}, {"op": "write", "nth": 1, "times": 2, "do": "half"}], root=tmp_path
    )

    assert [write_at_once(tmp_path / "a", b"123456") for _ in range(3)] == [1, 3, 6]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ({"do": "EIO"}, 'field "op" is missing'),
        ({"op": "write"}, 'field "do" is missing'),
        ({"op": "wirte", "do": "EIO"}, 'unknown operation "wirte"'),
        ({"op": "write", "do": "ENOPE"}, '"ENOPE" is not known here'),
        ({"op": "write", "do": "EIO,half"}, '"half" is not known here'),
        ({"op": "write", "do": ""}, '"" is not known here'),
        ({"op": "write", "do": "short:x"}, '"short:x" is not known here'),
        ({"op": "fsync", "do": "half"}, "needs an operation that moves bytes"),
        ({"op": "write", "do": "EIO", "nth": 0}, "counted from 1"),
        ({"op": "write", "do": "EIO", "nht": 2}, 'unknown field "nht"'),
        ({"op": "write", "do": "EIO", "nth": "2"}, "wrong type"),
        ({"op": "write", "do": 5}, "wrong type"),
        ({"op": 5, "do": "EIO"}, "wrong type"),
        (5, "wrong type"),
        ({"op": "open", "do": "none"}, '"open" has to give something'),
        ({"op": "change", "do": "none"}, '"change" has to give something'),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(layer, tmp_path, rule, complaint):
    """A misspelt rule is an error that names rule and fault; the plan before it stays armed."""
    layer.arm([{"op": "write", "times": None, "do": "short"}], root=tmp_path)

    with pytest.raises(ValueError, match="rule 2: ") as caught:
        layer.arm([{"op": "read", "do": "EIO"}, rule], root=tmp_path)

    assert complaint in str(caught.value)
    assert write_at_once(tmp_path / "a", b"123") == 1


def test_arming_without_installing_is_refused(tmp_path):
    """Rules that could never act are an error, not a silent success."""
    with pytest.raises(RuntimeError, match="install"):
        file_layer.arm([], root=tmp_path)


# What it sees


def test_buffered_files_show_the_moment_when_the_buffer_goes_down(layer, tmp_path):
    """`open(...).write` is no write on the disk: the flush is."""
    layer.arm([], root=tmp_path)
    with open(tmp_path / "a", "w", encoding="utf-8") as file:
        file.write("one")
        file.write("two")
        before = operations(layer, "write")
        file.flush()

        assert before == []
        assert operations(layer, "write") == [("write", "a")]
        assert layer.log()[-1]["size"] == 6


def write_json(folder: Path) -> None:
    with (folder / "a").open("w", encoding="utf-8") as file:
        json.dump({"x": [1, 2]}, file)


def write_by_copy(folder: Path) -> None:
    shutil.copyfile(folder / "source", folder / "a")


def write_through_temporary_file(folder: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(b"x")
    Path(file.name).replace(folder / "a")


def write_by_descriptor(folder: Path) -> None:
    with os.fdopen(os.open(folder / "a", os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.write(b"x")


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: (folder / "a").write_text("x", encoding="utf-8"),
        lambda folder: (folder / "a").write_bytes(b"x"),
        lambda folder: io.FileIO(folder / "a", "w").write(b"x"),
        write_json,
        write_by_copy,
        write_through_temporary_file,
        write_by_descriptor,
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_every_ordinary_way_of_writing_is_seen(layer, tmp_path, write):
    """Files, pathlib, json, shutil and tempfile all end in an operation that a rule can refuse."""
    (tmp_path / "source").write_bytes(b"x")
    layer.arm([{"op": ["write", "sendfile"], "times": None, "do": "ENOSPC"}], root=tmp_path)

    with pytest.raises(OSError, match="No space left"):
        write(tmp_path)


def test_a_rename_moves_what_an_open_file_writes_to(layer, tmp_path):
    """After a rename, a write through the open file belongs to the new name."""
    layer.arm([], root=tmp_path)
    with open(tmp_path / "a", "wb", buffering=0) as file:
        (tmp_path / "a").replace(tmp_path / "b")
        file.write(b"x")

    assert operations(layer, "write") == [("write", "b")]
    assert [(entry["path"], entry["to"]) for entry in layer.log() if entry["op"] == "replace"] == [("a", "b")]


def test_a_descriptor_number_used_again_is_another_file(layer, tmp_path):
    """A pipe that gets the number of a file closed behind our back is not taken for that file."""
    file = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    os.closerange(file, file + 1)
    reader, writer = os.pipe()
    layer.arm([{"op": "*", "times": None, "do": "EIO"}], root=tmp_path)

    assert file in (reader, writer)
    assert (os.write(writer, b"x"), os.read(reader, 1)) == (1, b"x")
    assert layer.log() == []
    os.close(reader)
    os.close(writer)


def test_an_observer_is_told_of_every_change_that_succeeded(layer, tmp_path):
    """Before the operation with its arguments, afterwards with the result; of what fails, or only reads, no result."""
    told: list[tuple[object, ...]] = []

    def observe(op, args, kwargs):
        told.append((op, *args[1:2]))
        return lambda result: told.append((op, "gave", result))

    layer.arm([], root=tmp_path, observe=observe)
    with (tmp_path / "a").open("wb", buffering=0) as file:
        file.write(b"123")
    with pytest.raises(FileNotFoundError):
        (tmp_path / "none").unlink()
    (tmp_path / "a").stat()
    layer.disarm()
    (tmp_path / "a").unlink()

    assert [entry[0] for entry in told] == ["open", "open", "write", "write", "unlink"]
    assert told[2:4] == [("write", b"123"), ("write", "gave", 3)]


def test_an_observer_sees_what_really_went_down(layer, tmp_path):
    """Under a rule it is told of the part that was written, and of nothing where nothing was."""
    told: list[bytes] = []

    def observe(op, args, kwargs):
        return (lambda count: told.append(bytes(args[1])[:count])) if op == "write" else None

    layer.arm(
        [{"op": "write", "do": "short:2"}, {"op": "write", "nth": 2, "do": "ENOSPC"}],
        root=tmp_path,
        observe=observe,
    )
    write_at_once(tmp_path / "a", b"12345")
    with pytest.raises(OSError, match="No space left"):
        write_at_once(tmp_path / "a", b"345")
    write_at_once(tmp_path / "a", b"345")

    assert told == [b"12", b"345"]


@pytest.mark.parametrize("move", ["sendfile", "copy_file_range"])
@pytest.mark.parametrize("named", [True, False])
def test_copies_by_the_kernel_can_be_short(layer, tmp_path, move, named):
    """Also when the count is given by its name, as these functions allow."""
    (tmp_path / "a").write_bytes(b"0123456789")
    source, target = os.open(tmp_path / "a", os.O_RDONLY), os.open(tmp_path / "b", os.O_WRONLY | os.O_CREAT)
    layer.arm([{"op": move, "do": "half"}], root=tmp_path)
    count = {"count": 10} if named else {}
    if move == "sendfile":
        moved = os.sendfile(target, source, 0, *([] if named else [10]), **count)
    else:
        moved = os.copy_file_range(source, target, *([] if named else [10]), **count)
    os.close(source)
    os.close(target)

    assert (moved, (tmp_path / "b").read_bytes()) == (5, b"01234")


def test_a_sync_of_a_file_object_is_a_sync(layer, tmp_path):
    """`os.fsync` takes whatever has a descriptor, and fails for it as for a number."""
    with (tmp_path / "a").open("wb") as file:
        layer.arm([{"op": "fsync", "do": "EIO"}], root=tmp_path)
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(file)


def test_room_for_a_file_can_be_refused(layer, tmp_path):
    """Allocating is a change of the disk: a full one says so before anything is written."""
    descriptor = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
    layer.arm([{"op": "change", "do": "ENOSPC"}], root=tmp_path)
    with pytest.raises(OSError, match="No space left"):
        os.posix_fallocate(descriptor, 0, 100)
    os.close(descriptor)

    assert (tmp_path / "a").stat().st_size == 0


# Holding


class UnsafeLog:
    """The lesson's unsafe version: reads, counts, then appends, each call in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append_now(self, name: str) -> int:
        sequence = len(self.path.read_bytes().splitlines()) + 1
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"sequence": sequence, "type": name}) + "\n")
        return sequence

    async def append(self, name: str) -> int:
        return await asyncio.to_thread(self.append_now, name)


def test_a_barrier_makes_the_race_certain(layer, tmp_path):
    """Held at their first write, three appends have all read before any writes: 1, 1, 1 in every trial."""

    async def race(log: UnsafeLog) -> list[int]:
        layer.arm([{"op": "write", "match": "*.jsonl", "do": "hold", "until": 3}], root=tmp_path)
        return await asyncio.gather(*(log.append(name) for name in "abc"))

    for trial in range(50):
        path = tmp_path / f"{trial}.jsonl"
        path.touch()

        assert asyncio.run(race(UnsafeLog(path))) == [1, 1, 1]
        assert [json.loads(line)["sequence"] for line in path.read_bytes().splitlines()] == [1, 1, 1]
        held = [(entry["did"], entry["went_on"]) for entry in layer.log() if entry["op"] == "write"]
        assert held == [("hold,full", "together")] * 3


def test_a_barrier_that_cannot_fill_lets_go(layer, tmp_path):
    """A store that lets one in at a time is not held for ever, and the log says that only one had come."""
    layer.arm([{"op": "write", "do": "hold", "until": 3, "times": 1, "seconds": 0.01}], root=tmp_path)

    assert write_at_once(tmp_path / "a", b"123") == 3
    assert [(entry["arrived"], entry["went_on"]) for entry in layer.log()[-2:-1]] == [(1, "timeout")]


@pytest.mark.parametrize("let_go", ["release", "disarm"])
def test_a_held_operation_goes_on_when_it_is_let_go(layer, tmp_path, let_go):
    """Without `until` an operation stands still, with nothing written, until somebody lets it go."""
    layer.arm([{"op": "write", "do": "hold"}], root=tmp_path)
    writer = threading.Thread(target=write_at_once, args=(tmp_path / "a", b"123"))
    writer.start()
    while not any("write" in entry["op"] for entry in layer.log()):
        pass
    held = (tmp_path / "a").read_bytes()
    getattr(layer, let_go)()
    writer.join()

    assert held == b""
    assert (tmp_path / "a").read_bytes() == b"123"
    assert [entry["went_on"] for entry in layer.log() if entry["op"] == "write"] == ["released"]


def test_a_hold_may_end_in_a_fault(layer, tmp_path):
    """The words combine: two writers wait for each other, then both find the disk full."""
    layer.arm([{"op": "write", "do": "hold,ENOSPC", "until": 2}], root=tmp_path)

    async def both() -> list[BaseException | int]:
        writes = (asyncio.to_thread(write_at_once, tmp_path / name, b"123") for name in "ab")
        return await asyncio.gather(*writes, return_exceptions=True)

    assert [getattr(result, "errno", None) for result in asyncio.run(both())] == [errno.ENOSPC] * 2


def test_slow_only_takes_its_time(layer, tmp_path):
    """A slow operation does all it was asked."""
    layer.arm([{"op": "write", "do": "slow", "seconds": 0.001}], root=tmp_path)

    assert write_at_once(tmp_path / "a", b"123") == 3


# What it leaves alone


def everything_replaced() -> list[object]:
    supports = [set(support) for support in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks)]
    return [getattr(os, op) for op in file_layer.OPERATIONS] + [open, io.open, io.FileIO, *supports]


def test_uninstalling_puts_everything_back():
    """After `uninstall` the functions are the very ones from before, also after installing twice."""
    before = everything_replaced()
    file_layer.install()
    file_layer.install()
    file_layer.uninstall()

    assert everything_replaced() == before


def test_a_replaced_function_still_passes_for_the_real_one(layer):
    """It keeps its name, is no method of a class that keeps it, and is known to take folder descriptors."""

    class Keeper:
        unlink = os.unlink

    assert (os.unlink.__name__, os.write.__doc__) == ("unlink", os.write.__wrapped__.__doc__)
    with pytest.raises(FileNotFoundError):
        Keeper().unlink("/nowhere/at/all")
    assert os.unlink in os.supports_dir_fd
    assert os.listdir in os.supports_fd
    assert os.stat in os.supports_follow_symlinks


def test_a_closed_file_is_forgotten(layer, tmp_path):
    """Nothing is remembered of a descriptor that is closed."""
    write_at_once(tmp_path / "a", b"x")

    assert layer._open_files == {}


def test_wrong_arguments_get_the_real_error(layer, tmp_path):
    """What Python refuses by itself is refused in the same words."""
    layer.arm([], root=tmp_path)

    with pytest.raises(TypeError, match="path"):
        os.open(3.5, os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(-1, b"x")


CORE = """
import asyncio, os, shutil, subprocess, tempfile
log = folder / "log.jsonl"
layer.arm([{"op": "write", "match": "*.jsonl", "nth": 2, "do": "ENOSPC"}], root=folder)
results = []
for word in ("one", "two", "three"):
    try:
        with log.open("ab", buffering=0) as file:
            file.write(word.encode() + b"\\n")
        results.append("ok")
    except OSError as error:
        results.append(error.strerror)
seen = sorted({entry["op"] for entry in layer.log()})
layer.disarm()
with tempfile.TemporaryDirectory(dir=folder) as scratch:
    shutil.copyfile(log, os.path.join(scratch, "copy"))
shutil.rmtree.avoids_symlink_attacks
child = subprocess.run(["echo", "alive"], capture_output=True, text=True, check=True).stdout
answer([results, log.read_text(encoding="utf-8"), seen, os.listdir(folder), child, asyncio.run(asyncio.sleep(0, 1))])
"""


@pytest.mark.parametrize("python", INTERPRETERS.values(), ids=INTERPRETERS)
def test_it_works_alone_on_every_python_of_the_kit(tmp_path, python):
    """Loaded by path under `python -I` it disturbs one write, and the process lives on as before."""
    results, text, seen, left, child, slept = answer_of(run_child(CORE, tmp_path, python=python))

    assert results == ["ok", "No space left on device", "ok"]
    assert text == "one\nthree\n"
    assert seen == ["close", "fstat", "open", "write"]
    assert (left, child, slept) == (["log.jsonl"], "alive\n", 1)
