"""What goes down through the file layer becomes steps: of the right file, with the right bytes, at the right place."""

# The plain forms of `os` and `open` are what is recorded here:
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH105, PTH106, PTH108, PTH123, PTH211, SIM115

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labkit.faults import file_layer
from labkit.faults.crash.observing import Observer
from labkit.faults.crash.recorder import differences
from labkit.faults.crash.spool import Spool
from labkit.faults.crash.trace import Step, Trace
from labkit.faults.crash.trace_file import HEADER, parse

Record = Callable[[Callable[[], object]], Trace]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def record(root: Path, tmp_path: Path) -> Iterator[Record]:
    """Record a function in this process; what the steps say at the end must be what is there."""
    file_layer.install()

    def recorded(work: Callable[[], object]) -> Trace:
        spool = Spool(str(tmp_path / "spool"))
        spool.line(HEADER)
        observer = Observer(str(root), spool)
        observer.look_around()
        file_layer.arm([], root, observe=observer)
        work()
        file_layer.disarm()
        with (tmp_path / "spool").open("rb") as lines:
            trace = parse(lines, "spool", whole=False)
        assert differences(trace, root) == []
        return trace

    yield recorded
    file_layer.uninstall()


def shown(trace: Trace, *wanted: str) -> list[tuple[Any, ...]]:
    """Give the steps, each as what matters of it."""
    return [_shown(step) for step in trace.steps if not wanted or step.op in wanted]


def _shown(step: Step) -> tuple[Any, ...]:
    more = {
        "write": (step.at, step.data),
        "truncate": (step.at,),
        "chmod": (step.at,),
        "link": (step.to,),
        "rename": (step.to,),
        "symlink": (step.to,),
    }
    return (step.op, step.path, *more.get(step.op, ()))


def opened(path: Path, flags: int, *writes: bytes) -> None:
    descriptor = os.open(path, flags, 0o600)
    for data in writes:
        os.write(descriptor, data)
    os.close(descriptor)


def first_name(descriptor: int, path: Path) -> None:
    """Link an open file: only with a folder's descriptor does Python ask the system to follow /proc's link."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=here, follow_symlinks=True)
    finally:
        os.close(here)


# Bytes


def test_a_buffered_write_is_a_step_when_the_buffer_goes_down(record, root):
    """`write` alone reaches no disk: the step comes at `flush` and at `close`, with all that was in the buffer."""

    def work():
        with open(root / "a", "w", encoding="utf-8") as file:
            file.write("one ")
            file.write("two ")
            os.mkdir(root / "mark")
            file.flush()
            file.write("字")

    assert shown(record(work)) == [
        ("create", "a"),
        ("mkdir", "mark"),
        ("write", "a", 0, b"one two "),
        ("write", "a", 8, "字".encode()),
    ]


def test_an_append_goes_to_the_end_wherever_the_descriptor_stood(record, root):
    """With O_APPEND the offset is where the bytes really went, for `write` and, on Linux, for `pwrite` too."""
    (root / "a").write_bytes(b"12345")

    def work():
        descriptor = os.open(root / "a", os.O_RDWR | os.O_APPEND)
        os.lseek(descriptor, 2, os.SEEK_SET)
        os.write(descriptor, b"6")
        os.pwrite(descriptor, b"7", 0)
        os.close(descriptor)

    assert shown(record(work)) == [("write", "a", 5, b"6"), ("write", "a", 6, b"7")]


def test_every_way_to_write_is_followed(record, root):
    """At an offset, from several buffers, by a second descriptor that shares the position."""

    def work():
        descriptor = os.open(root / "a", os.O_RDWR | os.O_CREAT)
        os.pwrite(descriptor, b"abc", 10)
        os.writev(descriptor, [b"1", bytearray(b"23"), memoryview(b"4")])
        os.pwritev(descriptor, [b"x", b"y"], 2)
        second = os.dup(descriptor)
        os.write(second, b"5")
        os.write(descriptor, b"")
        os.lseek(descriptor, 1, os.SEEK_SET)
        os.write(second, b"!")
        os.close(descriptor)
        os.close(second)

    assert shown(record(work), "write") == [
        ("write", "a", 10, b"abc"),
        ("write", "a", 0, b"1234"),
        ("write", "a", 2, b"xy"),
        ("write", "a", 4, b"5"),
        ("write", "a", 1, b"!"),
    ]


def test_bytes_that_the_kernel_copies_are_a_write(record, root, tmp_path):
    """`shutil.copyfile` uses sendfile; `copy_file_range` does the same between two places."""
    (tmp_path / "source").write_bytes(b"0123456789")

    def work():
        shutil.copyfile(tmp_path / "source", root / "a")
        with open(root / "a", "rb") as source, open(root / "b", "wb") as target:
            os.copy_file_range(source.fileno(), target.fileno(), count=4, offset_src=2)
            os.copy_file_range(source.fileno(), target.fileno(), 3, offset_dst=8)

    assert shown(record(work), "write") == [
        ("write", "a", 0, b"0123456789"),
        ("write", "b", 0, b"2345"),
        ("write", "b", 8, b"012"),
    ]


def test_every_way_to_change_the_size_is_a_truncate(record, root):
    """By path, by descriptor, by opening anew, by allocating; a size that stays is no step."""
    (root / "a").write_bytes(b"0123456789")

    def work():
        os.truncate(root / "a", 8)
        descriptor = os.open(root / "a", os.O_RDWR)
        os.ftruncate(descriptor, 6)
        os.ftruncate(descriptor, 6)
        os.truncate(descriptor, 7)
        os.posix_fallocate(descriptor, 2, 9)
        os.posix_fallocate(descriptor, 0, 3)
        os.close(descriptor)
        opened(root / "a", os.O_WRONLY | os.O_TRUNC)
        opened(root / "a", os.O_WRONLY | os.O_TRUNC)

    assert shown(record(work)) == [("truncate", "a", size) for size in (8, 6, 7, 11, 0)]


def test_what_fails_is_no_step(record, root):
    """A file that is not there, a folder that is, a descriptor that is closed: nothing changed, nothing is recorded."""
    (root / "a").mkdir()

    def work():
        for fails in (
            lambda: os.unlink(root / "none"),
            lambda: os.mkdir(root / "a"),
            lambda: os.rmdir(root / "none"),
            lambda: os.rename(root / "none", root / "b"),
            lambda: os.open(root / "none", os.O_WRONLY),
            lambda: os.write(999, b"x"),
            lambda: os.fsync(999),
            lambda: os.truncate(root / "none", 3),
            lambda: os.link(root / "none", root / "b"),
        ):
            with pytest.raises(OSError):
                fails()
        with pytest.raises(TypeError):
            os.open(root / "a")

    assert record(work).steps == ()


# Which file


def test_a_descriptor_stays_with_its_file_when_the_name_moves(record, root):
    """Renamed, replaced, unlinked: what is written afterwards goes to the same file, and the step says to which."""
    (root / "old").write_bytes(b"")

    def work():
        replaced, new = os.open(root / "old", os.O_WRONLY), os.open(root / "new", os.O_WRONLY | os.O_CREAT)
        os.replace(root / "new", root / "old")
        os.write(new, b"to the new one")
        os.write(replaced, b"to nobody")
        os.unlink(root / "old")
        os.write(new, b"!")
        os.close(new)
        os.close(replaced)

    trace = record(work)
    made, old = trace.steps[0].node, trace.start[0].node
    assert [(step.op, step.node) for step in trace.steps[1:]] == [
        ("rename", made),
        ("write", made),
        ("write", old),
        ("unlink", made),
        ("write", made),
    ]
    assert trace.steps[2].path == "old"


def test_a_new_file_gets_a_new_number_though_the_inode_is_used_again(record, root):
    """Systems give the inode of a removed file to the next one at once; the trace keeps them apart."""

    def work():
        for _ in range(3):
            opened(root / "a", os.O_WRONLY | os.O_CREAT, b"x")
            os.unlink(root / "a")

    assert len({step.node for step in record(work).steps if step.op == "create"}) == 3


def test_two_names_of_one_file_are_one_file(record, root):
    """What is written by either name has one number; to rename one to the other does nothing."""

    def work():
        opened(root / "a", os.O_WRONLY | os.O_CREAT, b"1")
        os.link(root / "a", root / "b")
        opened(root / "b", os.O_WRONLY | os.O_APPEND, b"2")
        os.rename(root / "a", root / "b")
        os.unlink(root / "b")
        opened(root / "a", os.O_WRONLY | os.O_APPEND, b"3")

    trace = record(work)
    assert shown(trace) == [
        ("create", "a"),
        ("write", "a", 0, b"1"),
        ("link", "a", "b"),
        ("write", "b", 1, b"2"),
        ("unlink", "b"),
        ("write", "a", 2, b"3"),
    ]
    assert len({step.node for step in trace.steps}) == 1


def test_a_link_that_was_there_before_leads_to_one_number(record, root):
    """Hard links from before the recording have one number too, and a file from before can be written to."""
    (root / "a").write_bytes(b"1")
    (root / "b").hardlink_to(root / "a")

    trace = record(lambda: opened(root / "b", os.O_WRONLY | os.O_APPEND, b"2"))
    assert len({start.node for start in trace.start}) == 1
    assert [(step.node, step.at, step.data) for step in trace.steps] == [(trace.start[0].node, 1, b"2")]


def test_a_file_that_was_open_before_is_followed(record, root):
    """The code may have opened its log long before the recording begins."""
    descriptor = os.open(root / "a", os.O_WRONLY | os.O_CREAT)

    trace = record(lambda: os.write(descriptor, b"late"))
    os.close(descriptor)
    assert shown(trace) == [("write", "a", 0, b"late")]


def test_what_goes_through_a_symbolic_link_reaches_its_target(record, root):
    """A file behind a link, a folder behind a link, and a file that a dangling link makes."""
    (root / "real").mkdir()

    def work():
        os.symlink("real", root / "folder")
        os.symlink("real/made", root / "dangling")
        opened(root / "folder" / "a", os.O_WRONLY | os.O_CREAT, b"1")
        opened(root / "dangling", os.O_WRONLY | os.O_CREAT, b"2")
        os.unlink(root / "dangling")

    assert shown(record(work)) == [
        ("symlink", "folder", "real"),
        ("symlink", "dangling", "real/made"),
        ("create", "real/a"),
        ("write", "real/a", 0, b"1"),
        ("create", "real/made"),
        ("write", "real/made", 0, b"2"),
        ("unlink", "dangling"),
    ]


def test_a_folder_takes_the_names_in_it_along(record, root):
    """After a folder was renamed, the steps name its files by where they are now."""

    def work():
        os.makedirs(root / "a" / "b")
        file = os.open(root / "a" / "b" / "c", os.O_WRONLY | os.O_CREAT)
        os.rename(root / "a", root / "z")
        os.write(file, b"1")
        os.close(file)
        os.rename(root / "z" / "b" / "c", root / "c")

    assert shown(record(work))[2:] == [
        ("create", "a/b/c"),
        ("rename", "a", "z"),
        ("write", "z/b/c", 0, b"1"),
        ("rename", "z/b/c", "c"),
    ]


def test_names_relative_to_folders_are_understood(record, root, monkeypatch):
    """To the working folder, to an open folder, also to one that has been renamed since."""
    monkeypatch.chdir(root)

    def work():
        os.mkdir("a")
        folder = os.open("a", os.O_RDONLY)
        os.rename("a", "b")
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        os.mkdir("d", dir_fd=folder)
        os.rename("f", "g", src_dir_fd=folder, dst_dir_fd=folder)
        os.close(folder)
        shutil.rmtree("b")

    steps = shown(record(work))
    assert steps[:5] == [
        ("mkdir", "a"),
        ("rename", "a", "b"),
        ("create", "b/f"),
        ("mkdir", "b/d"),
        ("rename", "b/f", "b/g"),
    ]
    assert sorted(steps[5:7]) == [("rmdir", "b/d"), ("unlink", "b/g")]
    assert steps[7:] == [("rmdir", "b")]


def test_a_file_without_a_name_appears_whole_when_it_is_linked(record, root):
    """O_TMPFILE: made without a name, written, synced, and only then given its first name, at once."""

    def work():
        file = os.open(root, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(file, b"whole")
        os.fsync(file)
        first_name(file, root / "a")
        os.close(file)

    assert shown(record(work)) == [
        ("create", ""),
        ("write", "", 0, b"whole"),
        ("sync", ""),
        ("link", "", "a"),
    ]


def test_names_of_any_bytes_are_kept(record, root):
    """A path may be given in bytes, and need be no UTF-8: the trace holds it, and leads to the same folder."""

    def work():
        os.mkdir(os.fsencode(root) + b"/\xff")
        os.close(os.open(os.fsencode(root) + b"/\xff/\xfe \n", os.O_WRONLY | os.O_CREAT))

    assert shown(record(work)) == [("mkdir", "\udcff"), ("create", "\udcff/\udcfe \n")]


# Syncs and modes


def test_syncs_of_files_and_folders_are_steps(record, root):
    """By descriptor, by file object, of the data only, of a folder, of the root; and by a flag after each write."""

    def work():
        os.mkdir(root / "d")
        with open(root / "d" / "a", "wb", buffering=0) as file:
            os.fsync(file.fileno())
            os.fsync(file)
            os.fdatasync(file.fileno())
        for folder in (root / "d", root):
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        opened(root / "d" / "a", os.O_WRONLY | os.O_DSYNC, b"1")

    assert shown(record(work), "sync", "write") == [
        *[("sync", "d/a")] * 3,
        ("sync", "d"),
        ("sync", "."),
        ("write", "d/a", 0, b"1"),
        ("sync", "d/a"),
    ]


def test_modes_are_recorded_as_they_came_out(record, root):
    """After the umask, of files and folders; a mode that is the same as before is no step."""
    before = os.umask(0o027)

    def work():
        os.close(os.open(root / "a", os.O_WRONLY | os.O_CREAT, 0o666))
        os.mkdir(root / "d", 0o777)
        os.chmod(root / "a", 0o640)
        os.chmod(root / "a", 0o600)
        file = os.open(root / "a", os.O_RDONLY)
        os.fchmod(file, 0o400)
        os.close(file)

    try:
        trace = record(work)
    finally:
        os.umask(before)
    assert [step.mode for step in trace.steps[:2]] == [0o640, 0o750]
    assert shown(trace)[2:] == [("chmod", "a", 0o600), ("chmod", "a", 0o400)]


# Over the border, and what no trace holds


def test_what_comes_from_elsewhere_or_leaves_is_told(record, root, tmp_path):
    """Moved in, moved over something, moved out, linked in: the names are followed, and it is said that something was outside."""
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "in it").write_bytes(b"2")
    (tmp_path / "three").write_bytes(b"3")

    def work():
        opened(root / "a", os.O_WRONLY | os.O_CREAT, b"0")
        os.replace(tmp_path / "one", root / "a")
        os.rename(tmp_path / "two", root / "two")
        os.link(tmp_path / "three", root / "b")
        os.rename(root / "two", tmp_path / "out")

    trace = record(work)
    assert {unseen.what for unseen in trace.unseen} == {"outside"}
    assert shown(trace)[2:] == [
        ("unlink", "a"),
        ("create", "a"),
        ("write", "a", 0, b"1"),
        ("mkdir", "two"),
        ("create", "two/in it"),
        ("write", "two/in it", 0, b"2"),
        ("create", "b"),
        ("write", "b", 0, b"3"),
        ("unlink", "two/in it"),
        ("rmdir", "two"),
    ]


def test_a_file_outside_is_told_and_devices_are_not(record, tmp_path):
    """What is opened to write elsewhere is named; /dev/null, /proc and what is only read keep no state."""
    (tmp_path / "read").write_bytes(b"")

    def work():
        opened(tmp_path / "elsewhere", os.O_WRONLY | os.O_CREAT)
        opened(Path("/dev/null"), os.O_WRONLY, b"x")
        opened(Path("/proc/self/comm"), os.O_WRONLY, b"pytest")
        opened(tmp_path / "read", os.O_RDONLY)
        os.mkdir(tmp_path / "folder")

    outside = {Path(unseen.where).name for unseen in record(work).unseen}
    assert outside == {"elsewhere", "folder"}


def test_pipes_are_no_files(record, root):
    """What is written to a pipe or a socket reaches no disk; one with a name is told, as no crash state holds it."""
    os.mkfifo(root / "fifo")
    read, write = os.pipe()

    spool = Spool(str(root.parent / "other"))
    Observer(str(root), spool).look_around()
    assert b'{"unseen":"c-writer","where":"fifo"}' in (root.parent / "other").read_bytes()
    os.unlink(root / "fifo")
    assert record(lambda: os.write(write, b"x")).steps == ()
    os.close(read)
    os.close(write)


def test_a_pipe_that_comes_and_goes_is_told_and_no_step(record, root):
    """Nothing can be said of it in a step, and the code under test does not notice."""

    def work():
        os.mkfifo(root / "fifo")
        os.rename(root / "fifo", root / "other")
        os.unlink(root / "other")

    trace = record(work)
    assert trace.steps == ()
    assert {(unseen.what, unseen.where) for unseen in trace.unseen} == {
        ("c-writer", "fifo"),
        ("c-writer", "other"),
    }


# The libraries that stores are made of


def test_what_pythons_own_libraries_write_is_seen(record, root):
    """pathlib, json, gzip, tempfile, shutil: all of them end in the operations that are followed."""

    def work():
        (root / "a").write_text("字", "utf-8")
        with open(root / "j", "w", encoding="utf-8") as file:
            json.dump({"n": [1, 2]}, file)
        with gzip.open(root / "z.gz", "wt", encoding="utf-8") as packed:
            packed.write("packed")
        with tempfile.NamedTemporaryFile("w", dir=root, delete=False, encoding="utf-8") as file:
            file.write("whole")
        os.replace(file.name, root / "a")
        shutil.copytree(root, root / "copy", ignore=shutil.ignore_patterns("copy"))
        shutil.move(root / "copy", root / "moved")

    assert record(work).unseen == ()


# Whatever is done


def random_work(root: Path, draw: random.Random, operations: int) -> None:
    """Do things in no sensible order: names, links, folders and open files, as they come."""
    names = [*"abc", "d/a", "d/b", "e/d", "e"]
    files: list[int] = []
    fresh = itertools.count()

    def one() -> None:
        name, other = root / draw.choice(names), root / draw.choice(names)
        file = draw.choice(files) if files else None
        data = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 9)))
        flags = draw.choice([0, os.O_APPEND, os.O_TRUNC, os.O_EXCL, os.O_APPEND | os.O_TRUNC])
        doings: list[Callable[[], object]] = [
            lambda: files.append(os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o600)),
            lambda: files.append(os.open(root, os.O_RDWR | os.O_TMPFILE, 0o600)),
            lambda: files and os.close(files.pop(draw.randrange(len(files)))),
            lambda: os.rename(name, other),
            lambda: os.link(name, other),
            lambda: os.symlink(draw.choice(names), name),
            lambda: os.unlink(name),
            lambda: os.mkdir(name),
            lambda: os.rmdir(name),
            lambda: os.truncate(name, draw.randrange(20)),
            lambda: os.chmod(name, 0o600 + draw.randrange(2) * 0o40),
            lambda: open(name, draw.choice(["ab", "r+b", "wb", "xb"])).write(data),
            lambda: shutil.copyfile(name, other),
        ]
        if file is not None:
            doings += [
                lambda: os.write(file, data),
                lambda: os.pwrite(file, data, draw.randrange(12)),
                lambda: os.writev(file, [data, data]),
                lambda: os.ftruncate(file, draw.randrange(20)),
                lambda: os.lseek(file, draw.randrange(12), os.SEEK_SET),
                lambda: os.fsync(file),
                lambda: first_name(file, root / f"t{next(fresh)}"),
            ]
        try:
            draw.choice(doings)()
        except OSError:
            return

    for _ in range(operations):
        one()
    for file in files:
        os.close(file)


@pytest.mark.parametrize("seed", range(20))
def test_the_steps_of_whatever_is_done_lead_to_what_is_there(record, root, seed):
    """Random operations on few names, so that they meet: the steps, replayed, give the folder that is there."""
    trace = record(lambda: random_work(root, random.Random(seed), 150))

    assert len(trace.steps) > 20
    assert trace.unseen == ()


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_the_steps_of_very_much_lead_to_what_is_there(record, root, seed):
    """The same with many more draws."""
    assert record(lambda: random_work(root, random.Random(seed), 600)).unseen == ()
