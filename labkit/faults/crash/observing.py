"""Turns what goes down through the file layer into the steps of a trace. Standard library only; lives in the recorder's child.

A file is known by its device and inode, so a descriptor stays with its file whatever its name becomes; a file that is
made gets a new number, though the system may use an inode again. What cannot be followed is an `Unseen`.
"""

# The plain functions of `os` are what is watched here, and what must not be watched itself:
# ruff: noqa: PTH109, PTH115, PTH118

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from labkit.faults.crash.names import Key, Names
from labkit.faults.crash.spool import Spool, real
from labkit.faults.crash.trace import Entry, Op, Start

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

Succeeded = Callable[[Any], object]
_SYNCED_WRITES = getattr(os, "O_DSYNC", 0) | getattr(os, "O_SYNC", 0)
_UNNAMED = getattr(os, "O_TMPFILE", 0)


_open, _close, _read = real("open"), real("close"), real("read")
_fstat, _lstat, _scandir = real("fstat"), real("lstat"), real("scandir")
_pread = real("pread") if hasattr(os, "pread") else None


class Observer:
    """What the file layer tells, and what of it is a step.

    `expected` remembers, for each thread, which operation goes down through the layer, so that whoever watches the
    interpreter itself can tell it from one that does not.
    """

    def __init__(self, root: str, spool: Spool, said: Callable[[bytes], object] | None = None) -> None:
        """`said` is given what the code writes to its standard output by descriptor."""
        self.root, self.spool, self._said = os.path.realpath(root), spool, said
        self.expected = threading.local()
        self.turn: Callable[[], bool] = lambda: False
        """Called before a change, in its thread; says whether time has passed."""
        self._names = Names()
        self._output = _key(_fstat(1))
        self._told = {_key(_fstat(number)) for number in (0, 1, 2)}
        """Files outside of which all is said that there is to say."""

    # --- Before the recording ---

    def look_around(self) -> None:
        """Write down what is there, each with its number, as the start of the trace."""
        self._names.new(_key(_lstat(self.root)), ".", folder=True)
        for path in self._everything(self.root):
            status = _lstat(path)
            self.spool.room_for(status.st_size)
            entry, known = _entry(path, status), self._names.number(_key(status))
            if entry is None:
                self.spool.unseen("c-writer", self._name(path))
                continue
            if known is None:
                number = self._names.new(_key(status), self._name(path), folder=entry.kind == "folder")
            else:
                number = known
                self._names.named(number, self._name(path))
            self.spool.line(Start(self._name(path), number, entry))

    def _everything(self, folder: str) -> Iterator[str]:
        for entry in sorted(_scandir(folder), key=lambda entry: str(entry.name)):
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                yield from self._everything(entry.path)

    # --- While it runs ---

    def __call__(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Succeeded | None:
        """Look at what is about to be changed; return what to call once that succeeded."""
        look = getattr(self, f"_{op}", None)
        try:
            succeeded: Succeeded | None = look(*args, **kwargs) if look else None
            if look and succeeded and self.turn():
                succeeded = look(*args, **kwargs)  # another thread may have been busy in the meantime
        except (TypeError, ValueError, OSError):  # it cannot be done: the real function will say so
            succeeded = None
        self.expected.op = op
        return self._safely(op, succeeded) if succeeded else None

    def _safely(self, op: str, succeeded: Succeeded) -> Succeeded:
        def note(result: Any) -> None:
            try:
                succeeded(result)
            except OSError as error:  # never into the code under test
                self.spool.unseen("c-writer", f"{op}: {error.strerror}")

        return note

    def place(self, target: Any, dir_fd: int | None = None, *, follow: bool = False) -> str:
        """Return the path that a call means, with no link on its way, and at its end none if it is followed."""
        base = os.getcwd() if dir_fd is None else self._folder(dir_fd)
        whole = os.path.join(base, os.fsdecode(target))
        if follow:
            return os.path.realpath(whole)
        head, tail = os.path.split(whole.rstrip("/"))
        return os.path.join(os.path.realpath(head), tail)

    def below(self, place: str) -> str | None:
        """Return a path as it is called below the root, "." for the root itself; None for one that lies elsewhere."""
        if place == self.root:
            return "."
        return place[len(self.root) + 1 :] if place.startswith(self.root + "/") else None

    def name_of(self, descriptor: int) -> str:
        """Return what is known of the name of an open file."""
        number = self._names.number(_key(_fstat(descriptor)))
        return f"descriptor {descriptor}" if number is None else self._names.latest(number)

    def _folder(self, descriptor: int) -> str:
        number = self._names.number(_key(_fstat(descriptor)))
        if number is not None:
            return os.path.join(self.root, self._names.latest(number))
        return os.readlink(f"/proc/self/fd/{descriptor}")

    def _name(self, place: str) -> str:
        below = self.below(place)
        assert below is not None
        return below

    def _is_below(self, place: str) -> bool:
        return self.below(place) is not None

    def _outside(self, place: str) -> Succeeded:
        return lambda _result: self.spool.unseen("outside", place)

    def _file_of(self, descriptor: Any) -> int | None:
        """Return the number of an open file or folder; None for what no crash state holds: a pipe, a device, a socket."""
        status = _fstat(_descriptor(descriptor))
        number = self._names.number(_key(status))
        if number is None and stat.S_ISREG(status.st_mode) and _key(status) not in self._told:
            self.spool.unseen("outside", f"descriptor {_descriptor(descriptor)}, opened before")
        return number

    def _at_path(self, place: str) -> int:
        """Return the number of what has a name; what came there unseen is learnt, and said to have been unseen."""
        known = self._names.number(_key(_lstat(place)))
        if known is not None:
            return known
        self.spool.unseen("c-writer", self._name(place))
        self._folder_of(place)
        if self._names.number(_key(_lstat(place))) is None:
            self._appeared(place)
        learnt = self._names.number(_key(_lstat(place)))
        if learnt is None:
            raise ValueError(f"{place}: a pipe, a device, a socket: no step can speak of it")
        return learnt

    def _folder_of(self, place: str) -> None:
        """Learn the folder in which something stands, or is about to, if that came unseen."""
        if self._name(place) != ".":  # the root is there: to make it is refused
            self._at_path(place.rpartition("/")[0])

    def _appeared(self, place: str) -> None:
        """Write steps for something new below the root, whole as it is."""
        status = _lstat(place)
        path, entry = self._name(place), _entry(place, status)
        if entry is None:
            return self.spool.unseen("c-writer", path)
        number = self._names.new(_key(status), path, folder=entry.kind == "folder")
        if entry.kind == "link":
            to = os.fsdecode(entry.content)
            return self.spool.step("symlink", node=number, path=path, to=to, mode=entry.mode)
        self.spool.step(
            "mkdir" if entry.kind == "folder" else "create", node=number, path=path, mode=entry.mode
        )
        if entry.content:
            self.spool.step("write", node=number, path=path, data=entry.content)
        if entry.kind == "folder":
            for inside in sorted(_scandir(place), key=lambda entry: str(entry.name)):
                self._appeared(inside.path)
        return None

    def _content(self, op: Op, number: int, **fields: Any) -> None:
        self.spool.room_for(fields.get("at", 0))  # every state is built in memory, holes and all
        self.spool.step(op, node=number, path=self._names.latest(number), **fields)

    # --- What becomes of each operation: each has the parameters of its namesake in `os` ---

    def _open(
        self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> Succeeded | None:
        del mode  # as it turned out, after the umask, is what counts
        unnamed = bool(_UNNAMED) and flags & _UNNAMED == _UNNAMED
        if not unnamed and not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            return None
        follow = not flags & (getattr(os, "O_NOFOLLOW", 0) | os.O_EXCL)
        place = self.place(path, dir_fd, follow=follow)
        before = _lstat(place) if os.path.lexists(place) else None
        if not self._is_below(place):
            return lambda descriptor: self._opened_outside(place, descriptor)
        if unnamed:
            return lambda descriptor: self._made(descriptor, "")
        if before is None:
            self._folder_of(place)
        return lambda descriptor: self._opened(place, flags, before, descriptor)

    def _opened_outside(self, place: str, descriptor: int) -> None:
        status = _fstat(descriptor)
        self._told.add(_key(status))
        if stat.S_ISREG(status.st_mode) and not place.startswith("/proc/"):
            self.spool.unseen("outside", place)

    def _opened(self, place: str, flags: int, before: os.stat_result | None, descriptor: int) -> None:
        if before is None:
            self._made(descriptor, self._name(place))
        elif flags & os.O_TRUNC and stat.S_ISREG(before.st_mode) and before.st_size:
            self._content("truncate", self._at_path(place), at=0)

    def _made(self, descriptor: int, path: str) -> None:
        status = _fstat(descriptor)
        number = self._names.new(_key(status), path)
        self.spool.step("create", node=number, path=path, mode=stat.S_IMODE(status.st_mode))

    def _write(self, fd: int, data: Any) -> Succeeded | None:
        return self._written(fd, [data])

    def _writev(self, fd: int, buffers: Any) -> Succeeded | None:
        return self._written(fd, buffers)

    def _pwrite(self, fd: int, data: Any, offset: int) -> Succeeded | None:
        return self._written(fd, [data], offset)

    def _pwritev(self, fd: int, buffers: Any, offset: int, flags: int = 0) -> Succeeded | None:
        del flags
        return self._written(fd, buffers, offset)

    def _written(self, descriptor: int, buffers: Any, at: int | None = None) -> Succeeded | None:
        def data(count: int) -> bytes:
            return b"".join(memoryview(buffer).cast("B") for buffer in buffers)[:count]

        said = self._said
        if said and _key(_fstat(descriptor)) == self._output:
            return lambda count: said(data(count))
        number = self._file_of(descriptor)
        return None if number is None else lambda count: self._moved(number, descriptor, at, data(count))

    def _sendfile(self, out_fd: int, in_fd: int, offset: int | None, count: int) -> Succeeded | None:
        del count
        return self._copied(in_fd, offset, out_fd, None)

    def _copy_file_range(
        self, src: int, dst: int, count: int, offset_src: int | None = None, offset_dst: int | None = None
    ) -> Succeeded | None:
        del count
        return self._copied(src, offset_src, dst, offset_dst)

    def _copied(
        self, source: int, source_at: int | None, descriptor: int, at: int | None
    ) -> Succeeded | None:
        number = self._file_of(descriptor)
        if number is None or _pread is None:
            return None
        begin = os.lseek(source, 0, os.SEEK_CUR) if source_at is None else source_at
        return lambda count: self._moved(number, descriptor, at, _pread(source, count, begin))

    def _moved(self, number: int, descriptor: int, at: int | None, data: bytes) -> None:
        """Note the bytes that went into an open file: at `at`, else where its position shows that they went."""
        if not data:
            return
        flags = flags_of(descriptor)
        if at is None:
            at = os.lseek(descriptor, 0, os.SEEK_CUR) - len(data)
        elif flags & os.O_APPEND:  # Linux appends even what was meant for an offset
            at = _fstat(descriptor).st_size - len(data)
        self._content("write", number, at=at, data=data)
        if flags & _SYNCED_WRITES:
            self._content("sync", number)

    def _fsync(self, fd: Any) -> Succeeded | None:
        number = self._file_of(fd)
        return None if number is None else lambda _result: self._content("sync", number)

    _fdatasync = _fsync

    def _truncate(self, path: Any, length: int) -> Succeeded | None:
        if isinstance(path, int):
            return self._ftruncate(path, length)
        place = self.place(path, follow=True)
        if not self._is_below(place):
            return self._outside(place)
        return self._resized(self._at_path(place), _lstat(place).st_size, length)

    def _ftruncate(self, fd: int, length: int) -> Succeeded | None:
        return self._resized(self._file_of(fd), _fstat(fd).st_size, length)

    def _posix_fallocate(self, fd: int, offset: int, length: int, /) -> Succeeded | None:
        size = _fstat(fd).st_size
        return self._resized(self._file_of(fd), size, max(size, offset + length))

    def _resized(self, number: int | None, size: int, to: int) -> Succeeded | None:
        if number is None or size == to:
            return None
        return lambda _result: self._content("truncate", number, at=to)

    def _chmod(
        self, path: Any, mode: int, *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> Succeeded | None:
        if isinstance(path, int):
            return self._fchmod(path, mode)
        place = self.place(path, dir_fd, follow=follow_symlinks)
        if not self._is_below(place):
            return self._outside(place)
        return self._allowed(self._at_path(place), _lstat(place), mode)

    def _fchmod(self, fd: int, mode: int) -> Succeeded | None:
        return self._allowed(self._file_of(fd), _fstat(fd), mode)

    def _allowed(self, number: int | None, status: os.stat_result, mode: int) -> Succeeded | None:
        if number is None or stat.S_IMODE(status.st_mode) == mode:
            return None
        return lambda _result: self._content("chmod", number, at=mode)

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> Succeeded:
        del mode
        return self._appears(self.place(path, dir_fd))

    def _symlink(
        self,
        src: Any,
        dst: Any,
        target_is_directory: bool = False,  # noqa: FBT001, FBT002 - as its namesake
        *,
        dir_fd: int | None = None,
    ) -> Succeeded:
        del src, target_is_directory
        return self._appears(self.place(dst, dir_fd))

    def _appears(self, place: str) -> Succeeded:
        if not self._is_below(place):
            return self._outside(place)
        self._folder_of(place)
        return lambda _result: self._appeared(place)

    def _link(
        self,
        src: Any,
        dst: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> Succeeded:
        del src, src_dir_fd, follow_symlinks
        place = self.place(dst, dst_dir_fd)
        if not self._is_below(place):
            return self._outside(place)
        self._folder_of(place)
        return lambda _result: self._linked(place)

    def _linked(self, place: str) -> None:
        number, to = self._names.number(_key(_lstat(place))), self._name(place)
        if number is None:
            self.spool.unseen("outside", to)
            return self._appeared(place)
        self.spool.step("link", node=number, path=self._names.latest(number), to=to)
        return self._names.named(number, to)

    def _rename(
        self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> Succeeded:
        place, to = self.place(src, src_dir_fd), self.place(dst, dst_dir_fd)
        if not self._is_below(place) or not self._is_below(to):
            return self._moved_over_the_border(place, to)
        number = self._at_path(place)
        self._folder_of(to)
        replaced = self._at_path(to) if os.path.lexists(to) else None

        def note(_result: Any) -> None:
            if number != replaced:  # two names of one file: nothing happens
                path, new = self._name(place), self._name(to)
                self.spool.step("rename", node=number, path=path, to=new)
                self._names.moved(path, new)

        return note

    _replace = _rename

    def _moved_over_the_border(self, place: str, to: str) -> Succeeded:
        replaced = self._at_path(to) if self._is_below(to) and os.path.lexists(to) else None

        def note(_result: Any) -> None:
            if self._is_below(place):
                self.spool.unseen("outside", to)
                for name in self._names.below(self._name(place)):
                    self._gone(name)
            elif self._is_below(to):
                self.spool.unseen("outside", place)
                if replaced is not None:
                    self._gone(self._name(to))
                self._appeared(to)
            else:
                self.spool.unseen("outside", to)

        return note

    def _gone(self, path: str) -> None:
        number = self._names.gone(path)
        self.spool.step("rmdir" if self._names.is_folder(number) else "unlink", node=number, path=path)

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> Succeeded:
        return self._removed("unlink", path, dir_fd)

    _remove = _unlink

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> Succeeded:
        return self._removed("rmdir", path, dir_fd)

    def _removed(self, op: Op, path: Any, dir_fd: int | None) -> Succeeded:
        place = self.place(path, dir_fd)
        if not self._is_below(place):
            return self._outside(place)
        number, name = self._at_path(place), self._name(place)

        def note(_result: Any) -> None:
            self.spool.step(op, node=number, path=name)
            self._names.gone(name)

        return note


def _key(status: os.stat_result) -> Key:
    return status.st_dev, status.st_ino


def _descriptor(target: Any) -> int:
    return target if isinstance(target, int) else target.fileno()


def flags_of(descriptor: int) -> int:
    """Return how a descriptor was opened; 0 where the system does not tell."""
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) if fcntl else 0


def _entry(place: str, status: os.stat_result) -> Entry | None:
    """Return what stands at a path; None for what no trace holds: a pipe, a device, a socket."""
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return Entry("folder", mode=mode)
    if stat.S_ISLNK(status.st_mode):
        return Entry("link", os.fsencode(os.readlink(place)), mode)
    return Entry("file", _bytes(place), mode) if stat.S_ISREG(status.st_mode) else None


def _bytes(place: str) -> bytes:
    descriptor = _open(place, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return b"".join(iter(lambda: _read(descriptor, 1 << 20), b""))
    finally:
        _close(descriptor)
