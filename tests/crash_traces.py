"""Traces written by hand and drawn by hypothesis, and a slow, plain reading of the persistence models to hold the fast one to.

Nothing here is shared with labkit.faults.crash but the types: the oracle lists every subset and asks the definitions of
docs/crash-models.md about it, one by one.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import strategies as st

from labkit.faults.crash.trace import CONTENT, NAMES, Choice, Entry, Start, Step, Trace

OLD = Entry("file", b"old")


class Tracing:
    """Writes a trace step by step; files and folders are numbered by the caller."""

    def __init__(self, *start: Start) -> None:
        self.start = start
        self.steps: list[Step] = []

    def __call__(self, op: Any, node: int = -1, **fields: Any) -> Tracing:
        self.steps.append(Step(len(self.steps) + 1, op, node, **fields))
        return self

    @property
    def trace(self) -> Trace:
        return Trace(self.start, tuple(self.steps))


# --- The oracle ---

Names = dict[tuple[int, str], int]


class Plain:
    """A file system of two dictionaries."""

    def __init__(self, trace: Trace) -> None:
        self.names: Names = {}
        self.entries: dict[int, Entry] = {0: Entry("folder", mode=0o700)}
        for item in sorted(trace.start, key=lambda item: item.path.count("/")):
            self.entries[item.node] = item.entry
            self.names[self.place(item.path)] = item.node
        for step in trace.steps:
            if step.op == "create":
                self.entries[step.node] = Entry("file", b"", step.mode)
            elif step.op == "mkdir":
                self.entries[step.node] = Entry("folder", b"", step.mode)
            elif step.op == "symlink":
                self.entries[step.node] = Entry("link", step.to.encode(), step.mode)

    def place(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return (self.names[self.place(folder)] if folder else 0), name

    def change(self, step: Step) -> dict[tuple[int, str], int | None]:
        """What a name step does to entries, seen from the names as they are now."""
        here = self.place(step.path)
        if step.op in ("create", "mkdir", "symlink"):
            return {here: step.node}
        if step.op in ("unlink", "rmdir"):
            return {here: None}
        there, moved = self.place(step.to), self.names[here]
        if self.names.get(there) == moved:
            return {}
        return {there: moved} if step.op == "link" else {here: None, there: moved}

    def put(self, change: dict[tuple[int, str], int | None]) -> None:
        for place, node in change.items():
            self.names.pop(place, None)
            if node is not None:
                self.names[place] = node

    def content(self, step: Step, choice: Choice | None) -> None:
        entry = self.entries[step.node]
        content, mode = bytearray(entry.content), entry.mode
        if step.op == "chmod" and choice is None:
            mode = step.at
        if step.op == "truncate" and choice is None:
            content = (content + bytes(max(0, step.at - len(content))))[: step.at]
        if step.op == "write":
            arrived = step.data if choice is None else step.data[: choice.kept]
            length = step.at + len(arrived) if arrived else 0
            if choice is not None and choice.filled:
                length = step.at + len(step.data)
            content += bytes(max(0, length - len(content)))
            for offset, byte in enumerate(arrived):
                content[step.at + offset] = byte
        self.entries[step.node] = Entry(entry.kind, bytes(content), mode)

    def tree(self) -> dict[str, Entry]:
        found, look = {}, [(0, "")]
        while look:
            folder, prefix = look.pop()
            for (parent, name), node in self.names.items():
                if parent == folder:
                    found[prefix + name] = self.entries[node]
                    look.append((node, f"{prefix}{name}/"))
        return found


def changes(trace: Trace) -> dict[int, dict[tuple[int, str], int | None]]:
    """What each name step does to entries, by step."""
    disk, found = Plain(trace), {}
    for step in trace.steps:
        if step.op in NAMES:
            found[step.number] = disk.change(step)
            disk.put(found[step.number])
    return found


def plain_tree(trace: Trace, after: int, choices: tuple[Choice, ...]) -> dict[str, Entry]:
    """The tree of one crash state, from its definition."""
    what, disk, chosen = changes(trace), Plain(trace), {choice.step: choice for choice in choices}
    for step in trace.steps[:after]:
        if step.op in NAMES and step.number not in chosen:
            disk.put(what[step.number])
        elif step.op in CONTENT:
            disk.content(step, chosen.get(step.number))
    return disk.tree()


def ways(trace: Trace, step: Step) -> list[Choice]:
    """Every way in which a step may not arrive whole, in the widest model."""
    if step.op == "write":
        return [
            Choice(step.number, kept, filled) for kept in range(len(step.data)) for filled in (False, True)
        ]
    if step.op in CONTENT or changes(trace).get(step.number):
        return [Choice(step.number)]
    return []


def every_choice(trace: Trace, after: int) -> list[tuple[Choice, ...]]:
    """Every subset of steps and ways, possible or not."""
    options = [[None, *ways(trace, step)] for step in trace.steps[:after]]
    return [tuple(choice for choice in row if choice) for row in product(*options)]


def may_be(trace: Trace, model: str, after: int, choices: tuple[Choice, ...]) -> bool:
    """Whether a model leaves this, asked of its definition."""
    steps, chosen = trace.steps[:after], {choice.step: choice for choice in choices}
    what = changes(trace)
    if model == "kill":
        return all(choice.step == after and not choice.filled for choice in choices)
    if model == "ordered":
        lines = [[step for step in steps if what.get(step.number)]]
        lines += [
            [s for s in steps if s.op in CONTENT and s.node == node and (s.op != "write" or s.data)]
            for node in {step.node for step in steps if step.op in CONTENT}
        ]
        if not all(_is_a_beginning(line, chosen) for line in lines):
            return False
    for choice in choices:
        step = trace.steps[choice.step - 1]
        later = steps[step.number :]
        if model == "ordered" and choice.filled:
            return False
        if any(_promises(model, sync, step, what) for sync in later if sync.op == "sync"):
            return False
        if model == "weak" and step.op in NAMES:
            after_it = [s for s in later if what.get(s.number, {}).keys() & what[step.number].keys()]
            if any(s.number not in chosen for s in after_it):
                return False
    return True


def _is_a_beginning(line: list[Step], chosen: dict[int, Choice]) -> bool:
    """Whether what arrived of these steps is a beginning of them, the last of which may be cut."""
    missing = [step for step in line if step.number in chosen]
    if line[len(line) - len(missing) :] != missing:
        return False
    return not any(chosen[step.number].kept for step in missing[1:])


def _promises(model: str, sync: Step, step: Step, what: dict[int, dict[tuple[int, str], int | None]]) -> bool:
    if step.op in CONTENT:
        return sync.node == step.node
    return model == "ordered" or any(folder == sync.node for folder, _ in what[step.number])


def every_state(trace: Trace, model: str) -> set[tuple[int, tuple[Choice, ...]]]:
    """Every crash point and its choices that a model leaves."""
    return {
        (after, choices)
        for after in range(len(trace.steps) + 1)
        for choices in every_choice(trace, after)
        if may_be(trace, model, after, choices)
    }


def is_counted(trace: Trace, after: int, choices: tuple[Choice, ...]) -> bool:
    """Whether this is the earliest crash point of its combination: its last step did something and arrived in part."""
    if after == 0:
        return True
    last = trace.steps[after - 1]
    if last.op == "acknowledge":
        return True
    return bool(ways(trace, last)) and Choice(last.number) not in choices


def of_all_there(trace: Trace) -> dict[str, Entry]:
    """The tree when every step arrived."""
    return plain_tree(trace, len(trace.steps), ())


def frozen(tree: dict[str, Entry]) -> frozenset[tuple[str, Entry]]:
    """A tree that can be a member of a set."""
    return frozenset(tree.items())


# --- Drawn traces ---

_MOVES = (
    *("create", "write", "write", "write", "truncate", "chmod", "sync", "sync folder", "acknowledge"),
    *("mkdir", "rename", "rename", "link", "unlink", "rmdir", "symlink"),
)


@st.composite
def traces(draw: st.DrawFn, most: int = 6) -> Trace:
    """Short traces that a recorder could have made: every path is there when it is used."""
    tracing = Tracing(*draw(st.sampled_from([(), (Start("a", 1, OLD),), (Start("d", 1, Entry("folder")),)])))
    ops = draw(
        st.lists(
            st.tuples(st.sampled_from(_MOVES), *[st.integers(0, 11)] * 3), min_size=most // 2, max_size=most
        )
    )
    for op, first, second, third in ops:
        _try(tracing, op, first, second, third)
    return tracing.trace


def _try(tracing: Tracing, op: str, first: int, second: int, third: int) -> None:
    """Add a step where it fits the names as they are."""
    disk = Plain(tracing.trace)
    for step in tracing.steps:
        if step.op in NAMES:
            disk.put(disk.change(step))
    paths = disk.tree()
    folders = ["", *(f"{path}/" for path, entry in paths.items() if entry.kind == "folder")]
    new = folders[second % len(folders)] + "abc"[third % 3]
    node = max(disk.entries) + 1
    some = sorted(path for path, entry in paths.items() if _suits(op, entry))
    path = some[first % len(some)] if some else None
    if op == "acknowledge":
        tracing(op, value=first)
    elif op in ("create", "mkdir", "symlink"):
        if new not in paths:
            tracing(op, node, path=new, to="target" if op == "symlink" else "", mode=0o600 + third % 2)
    elif op == "sync folder":
        folder = folders[first % len(folders)].rstrip("/")
        tracing("sync", disk.names[disk.place(folder)] if folder else 0, path=folder or ".")
    elif path is not None:
        _with_path(tracing, op, path, new, paths, disk.names[disk.place(path)], second, third)


def _suits(op: str, entry: Entry) -> bool:
    if op in ("rename", "unlink"):
        return entry.kind != "folder" or op == "rename"
    return entry.kind == ("folder" if op == "rmdir" else "file")


def _with_path(tracing, op, path, new, paths, node, second, third):
    if op == "write":
        tracing(op, node, path=path, at=second % 5, data=b"xyz"[: third % 3])
    elif op in ("truncate", "chmod"):
        tracing(op, node, path=path, at=second % 5)
    elif op in ("sync", "unlink") or (
        op == "rmdir" and not any(other.startswith(f"{path}/") for other in paths)
    ):
        tracing(op, node, path=path)
    elif op == "link" and new not in paths:
        tracing(op, node, path=path, to=new)
    elif op == "rename" and not new.startswith(f"{path}/") and new != path:
        old = paths.get(new)
        if old is None or (old.kind != "folder" and paths[path].kind != "folder"):
            tracing(op, node, path=path, to=new)
