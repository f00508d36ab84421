"""What steps do to a disk: files and folders by number, entries of folders, and the tree that a reader finds.

Pure: a disk is a value, and a step makes a new one that shares with the old all that it did not change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from labkit.faults.crash.trace import NAMES, Choice, Entry, Kind, Start, Step, Trace

ROOT = 0
Change = tuple[int, str, int | None]
"""An entry and its new value: folder, name in it, and the file or folder it now leads to (None: nothing)."""
_MADE_BY: dict[str, Kind] = {"create": "file", "mkdir": "folder", "symlink": "link"}
_MOST_KEPT = 32


class Node:
    """One file, folder or link as it is at some moment, whether or not a name leads to it."""

    __slots__ = ("_digest", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._digest: bytes | None = None

    @property
    def digest(self) -> bytes:
        """16 bytes that stand for kind, mode and content; computed once."""
        if self._digest is None:
            head = f"{self.entry.kind} {self.entry.mode} ".encode()
            self._digest = hashlib.blake2b(head + self.entry.content, digest_size=16).digest()
        return self._digest


class Folders:
    """The entries of every folder, and the paths they make, computed once."""

    __slots__ = ("_paths", "entries")

    def __init__(self, entries: dict[int, dict[str, int]]) -> None:
        self.entries = entries
        self._paths: list[tuple[str, int]] | None = None

    @property
    def paths(self) -> list[tuple[str, int]]:
        """Every path below the root, sorted, and the number of what is there."""
        if self._paths is None:
            self._paths = sorted(self._below(ROOT, "", {ROOT}))
        return self._paths

    def _below(self, folder: int, prefix: str, met: set[int]) -> Iterator[tuple[str, int]]:
        for name, node in self.entries[folder].items():
            if node not in self.entries:
                yield prefix + name, node
            elif node not in met:  # choices that no model makes can give a folder two names, or a loop
                met.add(node)
                yield prefix + name, node
                yield from self._below(node, f"{prefix}{name}/", met)


class Disk:
    """Everything that is on a disk at one moment."""

    __slots__ = ("folders", "nodes")

    def __init__(self, nodes: dict[int, Node], folders: Folders) -> None:
        self.nodes = nodes
        self.folders = folders

    def tree(self) -> dict[str, Entry]:
        """Return what a reader finds below the root, by path."""
        nodes = self.nodes
        return {path: nodes[node].entry for path, node in self.folders.paths}

    def digest(self) -> bytes:
        """16 bytes that stand for the tree."""
        nodes = self.nodes
        whole = hashlib.blake2b(digest_size=16)
        for path, node in self.folders.paths:
            whole.update(b"%b\0%b" % (path.encode("utf-8", "surrogateescape"), nodes[node].digest))
        return whole.digest()


class Draft:
    """A disk to which several steps are done at once, so that a long file is copied once and not at each."""

    def __init__(self, disk: Disk) -> None:
        self._nodes = disk.nodes
        self._folders = disk.folders
        self._content: dict[int, bytearray] = {}
        self._modes: dict[int, int] = {}
        self._entries: dict[int, dict[str, int]] = {}

    def do(self, step: Step, changes: Sequence[Change], choice: Choice | None = None) -> None:
        """Do one step; with `choice`, as much of it as arrived. `changes` are those of a name step."""
        if step.op == "write":
            self._write(step, choice)
        elif choice is not None:
            return
        elif step.op == "truncate":
            content = self._content_of(step.node)
            del content[step.at :]
            content.extend(bytes(step.at - len(content)))
        elif step.op == "chmod":
            self._modes[step.node] = step.at
        for folder, name, node in changes:
            if folder not in self._entries:
                self._entries[folder] = dict(self._folders.entries[folder])
            if node is None:
                self._entries[folder].pop(name, None)
            else:
                self._entries[folder][name] = node

    def _write(self, step: Step, choice: Choice | None) -> None:
        content = self._content_of(step.node)
        data = step.data if choice is None else step.data[: choice.kept]
        if data:
            content.extend(bytes(max(0, step.at - len(content))))
            content[step.at : step.at + len(data)] = data
        if choice is not None and choice.filled:
            content.extend(bytes(max(0, step.at + len(step.data) - len(content))))

    def _content_of(self, node: int) -> bytearray:
        if node not in self._content:
            self._content[node] = bytearray(self._nodes[node].entry.content)
        return self._content[node]

    def entry(self, node: int) -> Entry:
        """Return one file or folder as it is now."""
        old = self._nodes[node].entry
        content = bytes(self._content[node]) if node in self._content else old.content
        return Entry(old.kind, content, self._modes.get(node, old.mode))

    def disk(self) -> Disk:
        """Return the disk as it is now; what did not change is shared with the one before."""
        nodes, folders = self._nodes, self._folders
        if self._content or self._modes:
            nodes = dict(nodes)
            for node in self._content.keys() | self._modes.keys():
                nodes[node] = Node(self.entry(node))
        if self._entries:
            folders = Folders({**folders.entries, **self._entries})
        return Disk(nodes, folders)


class Layout:
    """The disk as a trace finds it, and what each of its name steps does, by step number.

    `changes` are the entries that it changes, `moved` is what a rename or link gives a name, `replaced` is what had that
    name before. Raises ValueError where the steps do not fit together: an unknown number, a path that is not there.
    """

    def __init__(self, trace: Trace) -> None:
        self.steps = trace.steps
        self.changes: dict[int, tuple[Change, ...]] = {}
        self.moved: dict[int, int] = {}
        self.replaced: dict[int, int] = {}
        self._now: dict[int, dict[str, int]] = {ROOT: {}}
        nodes = {ROOT: Node(Entry("folder", mode=0o700))}
        for item in sorted(trace.start, key=lambda item: PurePosixPath(item.path).parts):
            self._begin_with(item, nodes)
        start = Folders({folder: dict(entries) for folder, entries in self._now.items()})
        for step in trace.steps:
            self._meet(step, nodes)
        for folder in self._now.keys() - start.entries.keys():
            start.entries[folder] = {}
        self.start = Disk(nodes, start)

    def _begin_with(self, item: Start, nodes: dict[int, Node]) -> None:
        nodes[item.node] = Node(item.entry)
        if item.entry.kind == "folder":
            self._now.setdefault(item.node, {})
        if item.path != ".":
            folder, name = self._entry(item.path, "the start")
            self._now[folder][name] = item.node

    def _meet(self, step: Step, nodes: dict[int, Node]) -> None:
        """Follow one step in full, so that later paths can be understood; a new node begins empty."""
        where = f"step {step.number} ({step.op})"
        if step.op in _MADE_BY:
            kind: Kind = _MADE_BY[step.op]
            content = step.to.encode("utf-8", "surrogateescape") if step.op == "symlink" else b""
            nodes[step.node] = Node(Entry(kind, content, step.mode))
            if step.op == "mkdir":
                self._now[step.node] = {}
        elif step.op not in NAMES and step.op != "acknowledge" and step.node not in nodes:
            raise ValueError(f"trace, {where}: nothing has the number {step.node}; record it again")
        if step.op in NAMES:
            self.changes[step.number] = changes = tuple(self._changes(step, where))
            for folder, name, node in changes:
                if node is None:
                    self._now[folder].pop(name, None)
                else:
                    self._now[folder][name] = node

    def _changes(self, step: Step, where: str) -> Iterator[Change]:
        if not step.path:  # a file without a name (O_TMPFILE): it is made, or linked to its first
            if step.op == "link":
                yield (*self._entry(step.to, where), step.node)
            return
        folder, name = self._entry(step.path, where)
        if step.op in _MADE_BY:
            yield folder, name, step.node
            return
        moved = self._now[folder].get(name)
        if moved is None:
            raise ValueError(f'trace, {where}: there is no "{step.path}"; record it again')
        if step.op in ("unlink", "rmdir"):
            yield folder, name, None
            return
        to_folder, to_name = self._entry(step.to, where)
        replaced = self._now[to_folder].get(to_name)
        if replaced == moved:
            return  # POSIX: two names of one file, renamed to each other, both stay
        self.moved[step.number] = moved
        if replaced is not None:
            self.replaced[step.number] = replaced
        if step.op == "rename":
            yield folder, name, None
        yield to_folder, to_name, moved

    def _entry(self, path: str, where: str) -> tuple[int, str]:
        *parents, name = PurePosixPath(path).parts
        folder = ROOT
        for parent in parents:
            below = self._now[folder].get(parent)
            if below is None or below not in self._now:
                raise ValueError(f'trace, {where}: there is no folder for "{path}"; record it again')
            folder = below
        return folder, name


class Builder:
    """Makes the disks of many crash states, each from what it has in common with the one before."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._kept: list[tuple[int, tuple[Choice, ...], Disk]] = [(0, (), layout.start)]

    def disk(self, after: int, choices: tuple[Choice, ...]) -> Disk:
        """Return the disk at the crash point `after`, where `choices`, sorted by step, did not arrive whole.

        Kept are the disks before each of the last state's choices, where its neighbours branch off, and its own.
        """
        while not self._fits(after, choices):
            self._kept.pop()
        done, made, disk = self._kept[-1]
        if done and len(made) == len(choices):
            self._kept.pop()  # the last state's own disk, which this one goes on from
        for index in range(len(made), min(len(choices), _MOST_KEPT)):
            before = choices[index].step - 1
            if before > done:
                disk = self._onward(disk, done, before, choices[len(made) : index])
                done, made = before, choices[:index]
                self._kept.append((done, made, disk))
        disk = self._onward(disk, done, after, choices[len(made) :])
        self._kept.append((after, choices, disk))
        return disk

    def _onward(self, disk: Disk, done: int, after: int, choices: Iterable[Choice]) -> Disk:
        draft = Draft(disk)
        by_step = {choice.step: choice for choice in choices}
        for step in self._layout.steps[done:after]:
            draft.do(step, self._layout.changes.get(step.number, ()), by_step.get(step.number))
        return draft.disk()

    def _fits(self, after: int, choices: tuple[Choice, ...]) -> bool:
        done, made, _ = self._kept[-1]
        if done > after or made != choices[: len(made)]:
            return False
        return len(made) == len(choices) or choices[len(made)].step > done
