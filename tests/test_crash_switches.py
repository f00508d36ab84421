"""A trace without one of its store's protections: what goes, what stays, and which promise that costs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from labkit.faults.crash.states import MODELS, states
from labkit.faults.crash.switches import Switches, apply
from labkit.faults.crash.trace import Entry, Start, Step, Trace, Unseen
from tests.crash_traces import Tracing, of_all_there, traces

OLD = Start("state.json", 1, Entry("file", b"old", 0o644))


def saved(*, first: bool = False, node: int = 2, tracing: Tracing | None = None) -> Tracing:
    """A careful save: temporary file, sync, rename, sync of the folder, done."""
    save = tracing or Tracing(*(() if first else (OLD,)))
    save("create", node, path="tmp", mode=0o640)("write", node, path="tmp", data=b"ne")
    save("write", node, path="tmp", at=2, data=b"w")("sync", node, path="tmp")
    return save("rename", node, path="tmp", to="state.json")("sync", 0, path=".")("acknowledge", value=node)


def ops(trace: Trace) -> list[str]:
    return [f"{step.op} {step.path}".strip() for step in trace.steps]


def test_with_all_protections_on_nothing_changes():
    """The default leaves a trace as it is."""
    assert apply(saved().trace, Switches()) == saved().trace


def test_without_fsync_no_file_is_synced():
    """Only the folder's sync is left, and the steps are numbered anew."""
    without = apply(saved().trace, Switches(fsync=False))

    assert [step.path for step in without.steps if step.op == "sync"] == ["."]
    assert [step.number for step in without.steps] == list(range(1, 7))


def test_without_folder_sync_no_folder_is_synced():
    """Whether the folder is the root, was there before, or is new."""
    save = Tracing(Start("d", 1, Entry("folder")), Start("f", 2, Entry("file")))("mkdir", 3, path="e")
    for node, path in ((0, "."), (1, "d"), (2, "f"), (3, "e")):
        save("sync", node, path=path)

    assert ops(apply(save.trace, Switches(folder_sync=False))) == ["mkdir e", "sync f"]


def test_without_atomic_replace_the_target_is_written_in_place():
    """Truncate and write of the file that is there, by its own number, with all bytes, synced as before."""
    assert apply(saved().trace, Switches(atomic_replace=False)).steps == (
        Step(1, "truncate", 1, "state.json", at=0),
        Step(2, "write", 1, "state.json", data=b"new"),
        Step(3, "sync", 1, "state.json"),
        Step(4, "sync", 0, "."),
        Step(5, "acknowledge", value=2),
    )


def test_without_atomic_replace_a_first_save_makes_the_file():
    """Where nothing had the name, the file is created under it, with the temporary one's mode."""
    assert apply(saved(first=True).trace, Switches(atomic_replace=False)).steps[:3] == (
        Step(1, "create", 2, "state.json", mode=0o640),
        Step(2, "write", 2, "state.json", data=b"new"),
        Step(3, "sync", 2, "state.json"),
    )


def test_without_atomic_replace_all_saves_go_to_one_file():
    """The second and third save write the file that the first one made."""
    thrice = saved(node=4, tracing=saved(node=3, tracing=saved(first=True)))
    without = apply(thrice.trace, Switches(atomic_replace=False))

    assert [step.node for step in without.steps if step.op in ("create", "truncate", "write")] == [2] * 6
    assert of_all_there(without) == of_all_there(thrice.trace)


def test_without_atomic_replace_later_writes_follow():
    """A descriptor that stays open writes to the file that has its bytes."""
    late = saved()("write", 2, path="state.json", at=3, data=b"er")("sync", 2, path="state.json")
    without = apply(late.trace, Switches(atomic_replace=False))

    assert [step.node for step in without.steps[-2:]] == [1, 1]
    assert of_all_there(without)["state.json"] == Entry("file", b"newer", 0o644)


def test_an_unsynced_temporary_file_is_not_synced_in_place_either():
    """A sync before the last write promised nothing of it."""
    save = Tracing(OLD)("create", 2, path="tmp")("sync", 2, path="tmp")("write", 2, path="tmp", data=b"new")
    save("rename", 2, path="tmp", to="state.json")

    assert ops(apply(save.trace, Switches(atomic_replace=False))) == [
        "truncate state.json",
        "write state.json",
    ]


def test_an_empty_file_that_replaces_another_truncates_it():
    """There is nothing to write, and no write of nothing."""
    save = Tracing(OLD)("create", 2, path="tmp")("rename", 2, path="tmp", to="state.json")

    assert ops(apply(save.trace, Switches(atomic_replace=False))) == ["truncate state.json"]


@pytest.mark.parametrize(
    "kept",
    [
        Tracing(OLD)("rename", 1, path="state.json", to="old.json"),
        Tracing()("create", 1, path="log")("write", 1, path="log", data=b"1")("acknowledge", value=1)(
            "rename", 1, path="log", to="log.1"
        ),
        Tracing(OLD)("create", 2, path="a")("link", 2, path="a", to="b")(
            "rename", 2, path="a", to="state.json"
        ),
        Tracing(OLD)("create", 2, path="a")("rename", 2, path="a", to="b")("acknowledge", value=1)(
            "rename", 2, path="b", to="state.json"
        ),
        Tracing()("mkdir", 1, path="tmp")("rename", 1, path="tmp", to="d"),
        Tracing()("symlink", 1, path="l", to="x")("create", 2, path="tmp")("rename", 2, path="tmp", to="l"),
    ],
    ids=["old-file", "rotation", "second-name", "moved-on", "folder", "over-a-link"],
)
def test_what_is_no_temporary_file_is_renamed_as_before(kept: Tracing):
    """A rotation, a move or a replaced link is no save: the last rename stays."""
    assert apply(kept.trace, Switches(atomic_replace=False)).steps[-1].op == "rename"


def test_what_was_not_seen_stays_unseen():
    """No switch makes an all-clear of a recording with holes."""
    doubtful = Trace((), saved(first=True).trace.steps, (Unseen("mmap", "f"),))

    assert apply(doubtful, Switches(fsync=False, atomic_replace=False)).unseen == doubtful.unseen


@pytest.mark.parametrize(
    ("off", "torn_in"),
    [
        (Switches(), set()),
        (Switches(fsync=False), {"ordered", "weak"}),
        (Switches(folder_sync=False), set()),
        (Switches(atomic_replace=False), {"kill", "ordered", "weak"}),
    ],
    ids=["all-on", "fsync", "folder-sync", "atomic-replace"],
)
def test_each_protection_keeps_the_state_whole_somewhere(off: Switches, torn_in: set[str]):
    """Without fsync a power cut tears the state file, without atomic replace even a kill does."""
    trace = apply(saved().trace, off)
    whole = (b"old", b"new")

    assert torn_in == {
        model
        for model in MODELS
        if any(s.tree["state.json"].content not in whole for s in states(trace, model))
    }


def test_the_folder_sync_keeps_what_was_acknowledged():
    """Without it, a save that was answered can be gone; with it, never."""
    for off, lost_in in ((Switches(), set()), (Switches(folder_sync=False), {"ordered", "weak"})):
        trace = apply(saved().trace, off)
        assert lost_in == {
            model
            for model in MODELS
            if any(s.acknowledged and s.tree["state.json"].content != b"new" for s in states(trace, model))
        }


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.proof)])
def test_switches_change_what_is_promised_and_not_what_is_done(count: int):
    """Where everything arrives, the files are the same: names, bytes, acknowledgements (old modes stay in place)."""

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(traces(14), st.builds(Switches, st.booleans(), st.booleans(), st.booleans()))
    def check(trace: Trace, switches: Switches):
        assume(not any(step.op == "link" for step in trace.steps))  # in place, both names would change
        without = apply(trace, switches)
        contents, contents_before = (
            {path: entry.content for path, entry in of_all_there(each).items()} for each in (without, trace)
        )

        assert contents == contents_before
        assert without.acknowledged == trace.acknowledged
        assert [step.number for step in without.steps] == list(range(1, len(without.steps) + 1))

    check()
