"""What if the store did not sync, or did not replace its file in one step: a trace rewritten as such a store's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from labkit.faults.crash.disk import ROOT, Draft, Layout
from labkit.faults.crash.trace import CONTENT, Entry, Step, Trace


@dataclass(frozen=True, slots=True)
class Switches:
    """Which of its three protections a store keeps."""

    fsync: bool = True
    folder_sync: bool = True
    atomic_replace: bool = True


def apply(trace: Trace, switches: Switches) -> Trace:
    """Return the trace of the same work without the protections that are off; its steps are numbered anew.

    Without `fsync` no file is synced, without `folder_sync` no folder. Without `atomic_replace` a temporary file that is
    renamed to its final name is never made: its bytes go to the final name in place, by truncate and write (or
    create and write, where nothing had that name), and are synced there if it was. A temporary file is one that was created
    in the trace, has had no other name, and on which no acknowledgement rests before it is renamed.
    """
    steps: Iterable[Step] = trace.steps
    if not switches.atomic_replace:
        steps = _in_place(trace)
    folders = {ROOT, *(item.node for item in trace.start if item.entry.kind == "folder")}
    folders |= {step.node for step in trace.steps if step.op == "mkdir"}
    kept = (
        step
        for step in steps
        if step.op != "sync" or (switches.folder_sync if step.node in folders else switches.fsync)
    )
    numbered = tuple(replace(step, number=number) for number, step in enumerate(kept, start=1))
    return Trace(trace.start, numbered, trace.unseen)


@dataclass(frozen=True, slots=True)
class _Temporary:
    """A file made under another name, as it was when it was renamed."""

    node: int
    entry: Entry
    synced: bool


def _in_place(trace: Trace) -> Iterator[Step]:
    layout = Layout(trace)
    temporaries = dict(_temporaries(layout))
    renamed_at = {temporary.node: number for number, temporary in temporaries.items()}
    written_to: dict[int, int] = {}  # a temporary's later steps go to the file that has its bytes
    for step in layout.steps:
        if step.number in temporaries:
            temporary = temporaries[step.number]
            old = layout.replaced.get(step.number)
            target = temporary.node if old is None else written_to.get(old, old)
            written_to[temporary.node] = target
            yield from _written_out(step, temporary, target, new=old is None)
        elif step.number > renamed_at.get(step.node, 0):
            yield replace(step, node=written_to.get(step.node, step.node))


def _written_out(rename: Step, temporary: _Temporary, target: int, *, new: bool) -> Iterator[Step]:
    step = replace(rename, node=target, path=rename.to, to="")
    if new:
        yield replace(step, op="create", mode=temporary.entry.mode)
    else:
        yield replace(step, op="truncate", at=0)
    if temporary.entry.content:
        yield replace(step, op="write", at=0, data=temporary.entry.content)
    if temporary.synced:
        yield replace(step, op="sync")


def _temporaries(layout: Layout) -> Iterator[tuple[int, _Temporary]]:
    """Yield the temporary files by the number of the step that renames them."""
    young: dict[int, tuple[str, bool]] = {}  # created since the last acknowledgement: name and whether synced
    files = Draft(layout.start)
    for step in layout.steps:
        if step.op == "acknowledge":
            young.clear()
        elif step.op == "create":
            young[step.node] = (step.path, False)
        elif step.op in ("link", "rename"):
            moved = layout.moved.get(step.number, -1)
            path, synced = young.pop(moved, ("", False))
            if step.op == "rename" and path == step.path and _may_be_written(layout, step):
                yield step.number, _Temporary(moved, files.entry(moved), synced)
        elif step.op in CONTENT:
            files.do(step, ())
            if step.node in young:
                young[step.node] = (young[step.node][0], False)
        elif step.op == "sync" and step.node in young:
            young[step.node] = (young[step.node][0], True)


def _may_be_written(layout: Layout, rename: Step) -> bool:
    old = layout.replaced.get(rename.number)
    return old is None or layout.start.nodes[old].entry.kind == "file"
