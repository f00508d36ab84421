"""Crash states: held to a slow reading of the definitions, and the classic ways to lose data among them."""

from __future__ import annotations

import hashlib
import inspect
import tracemalloc
from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from labkit.faults.crash.bounded import RECENT, bounded
from labkit.faults.crash.disk import Layout
from labkit.faults.crash.models import allowed, rules
from labkit.faults.crash.plans import every
from labkit.faults.crash.states import MODELS, build, possible, shrink, states
from labkit.faults.crash.trace import Choice, CrashState, Entry, Start, Trace
from tests.crash_traces import (
    Tracing,
    every_choice,
    every_state,
    frozen,
    is_counted,
    may_be,
    plain_tree,
    traces,
)

EVERYTHING = 10**9
NEW_STATE = b'{"round": 2}\n'
OLD_STATE = Start("state.json", 1, Entry("file", b'{"round": 1}\n'))


def counts(examples: int, proof: int) -> pytest.MarkDecorator:
    """So many drawn traces in `make test`, and so many in `make proof`."""
    return pytest.mark.parametrize("count", [examples, pytest.param(proof, marks=pytest.mark.proof)])


def of_drawn_traces(count: int, most: int) -> Callable[[Callable[..., None]], None]:
    """Check at once what is decorated, on traces of at most so many steps, with draws of its own if it takes any."""

    def run(check: Callable[..., None]) -> None:
        drawn = [traces(most), st.randoms(use_true_random=False)][: len(inspect.signature(check).parameters)]
        settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))(
            given(*drawn)(check)
        )()

    return run


def trees(trace: Trace, model: str) -> list[dict[str, bytes]]:
    """The files of every state, by path."""
    return [
        {path: entry.content for path, entry in state.tree.items() if entry.kind == "file"}
        for state in states(trace, model, limit=EVERYTHING)
    ]


def models_with(trace: Trace, bad: Callable[[CrashState], bool]) -> set[str]:
    """The models that leave a state which is bad."""
    return {model for model in MODELS if any(map(bad, states(trace, model, limit=EVERYTHING)))}


# --- The fast reading and the slow one ---


@counts(60, 1000)
def test_all_states_are_listed_and_counted(count: int):
    """The combinations, their number and the states are those of the definitions, no more, no fewer, none twice."""

    @of_drawn_traces(count, most=6)
    def check(trace):
        for model in MODELS:
            full = every_state(trace, model)
            counted = {plan for plan in full if is_counted(trace, *plan)}
            plans = list(every(rules(Layout(trace), model)))
            wanted = {
                (acknowledged_at(trace, after), frozen(plain_tree(trace, after, choices)))
                for after, choices in full
            }
            listed = [
                (state.acknowledged, frozen(state.tree)) for state in states(trace, model, limit=EVERYTHING)
            ]

            assert set(plans) == counted
            assert len(plans) == possible(trace, model) == len(counted)
            assert set(listed) == wanted
            assert len(listed) == len(wanted)


@counts(40, 800)
def test_a_model_says_of_any_choices_whether_it_allows_them(count: int):
    """`allowed` judges any set of choices as the definitions do, also those that no listing makes."""

    @of_drawn_traces(count, most=5)
    def check(trace, random):
        after = random.randint(0, len(trace.steps))
        for choices in every_choice(trace, after):
            for model in MODELS:
                assert allowed(rules(Layout(trace), model), after, choices) == may_be(
                    trace, model, after, choices
                )


@pytest.mark.parametrize(
    ("model", "after", "choices"),
    [
        ("kill", 3, (Choice(2, 1),)),  # only the write under way is cut
        ("kill", 2, (Choice(2, 1, filled=True),)),
        ("ordered", 3, (Choice(2),)),  # the later bytes would have come first
        ("ordered", 3, (Choice(2), Choice(3, 1))),
        ("ordered", 3, (Choice(2, 1), Choice(3, 0, filled=True))),
        ("ordered", 4, (Choice(3),)),  # a sync of the file came between
        ("weak", 4, (Choice(2),)),
        ("weak", 2, (Choice(3),)),  # not yet made
        ("weak", 4, (Choice(4),)),  # a sync is not lost
        ("weak", 2, (Choice(2, 3),)),  # that is all of it
        ("weak", 1, (Choice(1, 1),)),  # a name has no bytes
    ],
)
def test_what_a_model_rules_out(model: str, after: int, choices: tuple[Choice, ...]):
    """Each bound of a model, by a state that lies just beyond it."""
    log = Tracing()("create", 1, path="log")("write", 1, path="log", data=b"one")
    log("write", 1, path="log", at=3, data=b"two")("sync", 1, path="log")

    assert not allowed(rules(Layout(log.trace), model), after, choices)


@counts(60, 1000)
def test_a_stored_state_is_built_again(count: int):
    """Crash point and choices make the same state again, whatever was built before it."""

    @of_drawn_traces(count, most=7)
    def check(trace, random):
        for model in MODELS:
            found = list(islice(states(trace, model, seed=random.randint(1, 9), limit=40), 40))

            assert [build(trace, state.after, state.choices) for state in found] == found
            assert all(state.tree == plain_tree(trace, state.after, state.choices) for state in found)


@counts(60, 1000)
def test_the_models_nest(count: int):
    """Every combination of kill is one of ordered, and every one of ordered is one of weak."""

    @of_drawn_traces(count, most=6)
    def check(trace):
        kill, ordered, weak = (set(every(rules(Layout(trace), model))) for model in MODELS)

        assert kill <= ordered <= weak


@counts(60, 1000)
def test_what_was_synced_is_never_missing(count: int):
    """With a sync of everything after each step, no model has anything but the beginnings of the trace."""

    @of_drawn_traces(count, most=12)
    def check(trace):
        tracing = Tracing(*trace.start)
        folders = {0} | {item.node for item in trace.start if item.entry.kind == "folder"}
        files = {item.node for item in trace.start if item.entry.kind == "file"}
        for step in trace.steps:
            tracing(
                step.op, step.node, path=step.path, to=step.to, at=step.at, data=step.data, value=step.value
            )
            folders |= {step.node} if step.op == "mkdir" else set()
            files |= {step.node} if step.op == "create" else set()
            for node in sorted(folders | files):
                tracing("sync", node, path="?")
        whole = {frozen(build(tracing.trace, after, ()).tree) for after in range(len(tracing.steps) + 1)}

        for model in ("ordered", "weak"):
            assert {
                frozen(state.tree)
                for state in states(tracing.trace, model, limit=EVERYTHING)
                if not state.choices
            } <= whole
            assert all(
                choice.step == state.after
                for state in states(tracing.trace, model)
                for choice in state.choices
            )


@counts(60, 1000)
def test_a_part_is_a_part(count: int):
    """A bounded listing has only states of the full one, none twice, no more than asked, and counts honestly."""

    @of_drawn_traces(count, most=12)
    def check(trace, random):
        for model in MODELS:
            assume(possible(trace, model) < 20_000)
            full = {
                (state.acknowledged, frozen(state.tree)) for state in states(trace, model, limit=EVERYTHING)
            }
            part = states(trace, model, seed=random.randint(1, 9), limit=random.randint(1, 30))
            listed = list(part)
            found = [(state.acknowledged, frozen(state.tree)) for state in listed]

            assert {(state.after, state.choices) for state in listed} <= set(
                every(rules(Layout(trace), model))
            )
            assert set(found) <= full
            assert len(found) == len(set(found)) == part.distinct
            assert part.distinct <= part.tried <= part.possible


@counts(40, 1000)
def test_a_shrunk_state_is_minimal(count: int):
    """No choice can be left out, no earlier crash works, and the model still allows it."""

    @of_drawn_traces(count, most=8)
    def check(trace, random):
        salt = random.randbytes(2)

        def breaks(state: CrashState) -> bool:
            said = repr((sorted(state.tree.items()), state.acknowledged)).encode()
            return hashlib.blake2b(salt + said).digest()[0] < 60

        for model in MODELS:
            broken = [state for state in states(trace, model, limit=200) if breaks(state)]
            for state in broken[-2:]:
                small = shrink(trace, model, state, breaks)
                fewer = [
                    (small.after, tuple(choice for choice in small.choices if choice != left_out))
                    for left_out in small.choices
                ]
                earlier = [
                    (after, tuple(choice for choice in small.choices if choice.step <= after))
                    for after in range(small.after)
                ]

                assert breaks(small)
                assert allowed(rules(Layout(trace), model), small.after, small.choices)
                assert len(small.choices) <= len(state.choices)
                assert not any(
                    allowed(rules(Layout(trace), model), *plan) and breaks(build(trace, *plan))
                    for plan in fewer + earlier
                )


def acknowledged_at(trace: Trace, after: int) -> tuple[object, ...]:
    return tuple(step.value for step in trace.steps[:after] if step.op == "acknowledge")


# --- The classic kinds ---


def replaced(*, fsync: bool) -> Trace:
    """A state file written under another name, synced or not, and renamed."""
    save = Tracing(OLD_STATE)("create", 2, path="tmp")("write", 2, path="tmp", data=NEW_STATE)
    if fsync:
        save("sync", 2, path="tmp")
    return save("rename", 2, path="tmp", to="state.json")("sync", 0, path=".")("acknowledge", value=2).trace


def test_a_rename_before_its_data_leaves_an_empty_state_file():
    """State file of zero length: without a sync of the file, wherever names do not wait for bytes; never after a kill."""

    def empty(state: CrashState) -> bool:
        return state.tree["state.json"].content == b""

    assert models_with(replaced(fsync=False), empty) == {"ordered", "weak"}
    assert models_with(replaced(fsync=True), empty) == set()


def test_a_replaced_file_is_old_or_new_and_new_once_acknowledged():
    """A synced temporary file and a rename: whole at every crash; the folder's sync makes the new one last."""
    for model in MODELS:
        for state in states(replaced(fsync=True), model):
            content = state.tree["state.json"].content

            assert content in (OLD_STATE.entry.content, NEW_STATE)
            assert content == NEW_STATE or not state.acknowledged


def test_without_a_folder_sync_the_old_content_comes_back():
    """A lost rename leaves both names as they were: the old file, and the temporary one with its synced bytes."""
    save = Tracing(OLD_STATE)("create", 2, path="tmp")("write", 2, path="tmp", data=NEW_STATE)
    save("sync", 2, path="tmp")("rename", 2, path="tmp", to="state.json")("acknowledge", value=2)

    old_again = {"state.json": OLD_STATE.entry.content, "tmp": NEW_STATE}
    after = [state for state in states(save.trace, "weak") if state.acknowledged]
    assert old_again in [{path: entry.content for path, entry in state.tree.items()} for state in after]
    assert models_with(
        save.trace, lambda s: bool(s.acknowledged) and s.tree["state.json"] == OLD_STATE.entry
    ) == {
        "ordered",
        "weak",
    }


def test_an_append_before_its_folder_entry_is_lost_with_the_file():
    """A new file, synced, whose folder was not: its bytes are safe and it has no name. A journal brings the name along."""
    log = Tracing()("create", 1, path="log")("write", 1, path="log", data=b"one\n")("sync", 1, path="log")
    log("acknowledge", value=1)

    def gone(state: CrashState) -> bool:
        return bool(state.acknowledged) and "log" not in state.tree

    assert models_with(log.trace, gone) == {"weak"}
    assert (
        models_with(
            log("sync", 0, path=".")("acknowledge", value=2).trace,
            lambda s: len(s.acknowledged) == 2 and gone(s),
        )
        == set()
    )


def test_an_unsynced_append_can_leave_a_tail_of_zeros():
    """The length arrived and the block did not: only where nothing is promised."""
    log = Tracing(Start("log", 1, Entry("file", b"one\n")))("write", 1, path="log", at=4, data=b"two\n")

    assert models_with(log.trace, lambda s: s.tree["log"].content == b"one\n\0\0\0\0") == {"weak"}
    assert models_with(log.trace, lambda s: s.tree["log"].content == b"one\ntw\0\0") == {"weak"}


def test_an_append_can_be_torn_anywhere_in_every_model():
    """What a fused record begins with: a tail cut at each byte, to which the next append would be glued."""
    log = Tracing(Start("log", 1, Entry("file", b"one\n")))("write", 1, path="log", at=4, data=b"two\n")

    for model in MODELS:
        lengths = {len(state.tree["log"].content) for state in states(log.trace, model)}
        assert lengths == {4, 5, 6, 7, 8}


def test_two_files_can_be_out_of_step():
    """Of two files written one after the other, a power cut can keep the second alone; a kill cannot."""
    both = Tracing(Start("a", 1, Entry("file")), Start("b", 2, Entry("file")))
    both("write", 1, path="a", data=b"A")("write", 2, path="b", data=b"B")

    assert models_with(both.trace, lambda s: (s.tree["a"].content, s.tree["b"].content) == (b"", b"B")) == {
        "ordered",
        "weak",
    }


def test_a_lost_truncate_lets_old_bytes_stand_behind_new_ones():
    """Truncate and write in place: the write arrived, the truncate did not."""
    save = Tracing(Start("state", 1, Entry("file", b"a long old one")))
    save("truncate", 1, path="state")("write", 1, path="state", data=b"new")

    assert models_with(save.trace, lambda s: s.tree["state"].content == b"newong old one") == {"weak"}
    assert models_with(save.trace, lambda s: s.tree["state"].content == b"") == set(MODELS)


def test_a_truncate_that_grows_a_file_adds_zeros():
    """Beyond the old end are zeros; lost, it leaves the file as long as it was."""
    grown = Tracing(Start("f", 1, Entry("file", b"old")))("truncate", 1, path="f", at=5)

    assert trees(grown.trace, "weak") == [{"f": b"old"}, {"f": b"old\0\0"}]


def test_a_later_append_can_arrive_without_the_one_before():
    """Where the lost bytes belong is a hole of zeros, and the file goes on behind it."""
    log = Tracing(Start("log", 1, Entry("file")))("write", 1, path="log", data=b"one\n")
    log("write", 1, path="log", at=4, data=b"two\n")

    assert models_with(log.trace, lambda s: s.tree["log"].content == b"\0\0\0\0two\n") == {"weak"}


# --- Names ---


def names(trace: Trace, model: str) -> list[list[str]]:
    return sorted({tuple(sorted(state.tree)) for state in states(trace, model, limit=EVERYTHING)})


def test_a_name_is_lost_with_all_that_follows_from_it():
    """Create a, rename a to b: neither, a, or b. Never both, and not b without the file."""
    moved = Tracing()("create", 1, path="a")("write", 1, path="a", data=b"x")(
        "rename", 1, path="a", to="b"
    ).trace

    assert names(moved, "weak") == [(), ("a",), ("b",)]


def test_a_lost_rotation_never_costs_the_old_file():
    """Rename log to log.1, create log: the new log has the name only if the old one has its own."""
    rotation = Tracing(Start("log", 1, Entry("file", b"old")))("rename", 1, path="log", to="log.1")(
        "create", 2, path="log"
    )

    assert trees(rotation.trace, "weak") == [
        {"log": b"old"},
        {"log.1": b"old"},
        {"log": b"", "log.1": b"old"},
    ]


def test_a_folder_without_a_name_hides_what_is_in_it():
    """A new folder whose parent was not synced: its synced file is nowhere, and nothing fails."""
    deep = Tracing()("mkdir", 1, path="d")("create", 2, path="d/f")("write", 2, path="d/f", data=b"x")
    deep("sync", 2, path="d/f")("sync", 1, path="d")("acknowledge", value=1)

    last = [state.tree for state in states(deep.trace, "weak") if state.acknowledged]
    assert last == [{"d": Entry("folder"), "d/f": Entry("file", b"x")}, {}]


def test_a_moved_folder_takes_its_files_along():
    """What is written below the new name is below the old one when the move is lost."""
    moved = Tracing(Start("d", 1, Entry("folder")))("rename", 1, path="d", to="e")("create", 2, path="e/f")

    assert names(moved.trace, "weak") == [("d",), ("d", "d/f"), ("e",), ("e", "e/f")]


def test_a_write_reaches_its_file_though_the_name_moved_or_went():
    """A descriptor stays with its file: after a rename under the new name, after an unlink nowhere."""
    moved = Tracing(OLD_STATE, Start("log", 2, Entry("file")))("rename", 2, path="log", to="log.1")
    moved("write", 2, path="log", data=b"late")("unlink", 2, path="log.1")(
        "write", 2, path="log.1", at=4, data=b"later"
    )

    assert build(moved.trace, 2, ()).tree["log.1"].content == b"late"
    assert build(moved.trace, 2, (Choice(1),)).tree["log"].content == b"late"
    assert list(build(moved.trace, 4, ()).tree) == ["state.json"]
    assert build(moved.trace, 4, (Choice(3),)).tree["log.1"].content == b"latelater"


def test_both_names_of_a_file_show_the_same_bytes():
    """A hard link is a second name: bytes and mode are the file's, a lost link takes nothing else away."""
    linked = Tracing(Start("a", 1, Entry("file")))("link", 1, path="a", to="b")
    linked("write", 1, path="b", data=b"x")("chmod", 1, path="b", at=0o400)

    assert build(linked.trace, 3, ()).tree == dict.fromkeys("ab", Entry("file", b"x", 0o400))
    assert build(linked.trace, 3, (Choice(1), Choice(3))).tree == {"a": Entry("file", b"x")}


def test_a_rename_between_two_names_of_one_file_changes_nothing():
    """POSIX: both names stay."""
    same = Tracing(Start("a", 1, Entry("file")), Start("b", 1, Entry("file")))("rename", 1, path="a", to="b")

    assert list(build(same.trace, 1, ()).tree) == ["a", "b"]


def test_a_file_made_without_a_name_is_found_once_it_has_one():
    """What O_TMPFILE makes is nowhere; a link gives it its first name, with the bytes that arrived."""
    nameless = Tracing()("create", 1, path="")("write", 1, path="", data=b"x")("sync", 1, path="")
    nameless("link", 1, path="", to="f")

    assert [state.tree for state in states(nameless.trace, "weak")] == [{}, {"f": Entry("file", b"x")}]


def test_the_first_of_two_folders_synced_brings_a_rename_between_them():
    """Both names of a rename change together, so that either folder's sync promises both."""
    for synced in (1, 2):
        moved = Tracing(
            Start("d", 1, Entry("folder")), Start("e", 2, Entry("folder")), Start("d/f", 3, Entry("file"))
        )
        moved("rename", 3, path="d/f", to="e/f")("sync", synced, path="?")("acknowledge", value=1)

        last = [sorted(state.tree) for state in states(moved.trace, "weak") if state.acknowledged]
        assert last == [["d", "e", "e/f"]]


def test_a_folders_sync_brings_its_mode_and_not_its_name():
    """Mode and entries are the folder's own; its name is its parent's."""
    made = Tracing()("mkdir", 1, path="d", mode=0o700)("chmod", 1, path="d", at=0o500)("sync", 1, path="d")
    made("acknowledge", value=1)

    last = [state.tree for state in states(made.trace, "weak") if state.acknowledged]
    assert last == [{"d": Entry("folder", mode=0o500)}, {}]


def test_a_lost_chmod_leaves_the_mode_that_was():
    """A mode waits for a sync of its file."""
    secret = Tracing(Start("key", 1, Entry("file", b"k", 0o644)))("chmod", 1, path="key", at=0o600)(
        "acknowledge", value=1
    )

    modes = {state.tree["key"].mode for state in states(secret.trace, "weak") if state.acknowledged}
    assert modes == {0o600, 0o644}


def test_a_symbolic_link_is_there_whole_or_not():
    """Where it points comes with its name."""
    linked = Tracing()("symlink", 1, path="latest", to="log.1")

    assert [state.tree for state in states(linked.trace, "weak")] == [{}, {"latest": Entry("link", b"log.1")}]


def test_choices_of_no_model_still_give_a_tree():
    """Made up by hand, they can put two folders into each other: each is shown once, and the walk ends."""
    loop = Tracing(Start("a", 1, Entry("folder")), Start("b", 2, Entry("folder")))
    for path, to in (("a", "b/a"), ("b/a", "c"), ("b", "c/b"), ("c/b", "b"), ("c", "b/c")):
        loop("rename", 2 if path[-1] == "b" else 1, path=path, to=to)

    assert list(build(loop.trace, 5, (Choice(1), Choice(4))).tree) == ["a", "a/b"]


# --- Order, counting, bounds ---


def appends(count: int, *, fsync: bool, size: int = 120) -> Trace:
    """A log of so many records, each acknowledged, synced or not."""
    log = Tracing()("create", 1, path="log")("sync", 0, path=".")
    for number in range(count):
        log("write", 1, path="log", at=number * size, data=b"r" * (size - 1) + b"\n")
        if fsync:
            log("sync", 1, path="log")
        log("acknowledge", value=number)
    return log.trace


def test_the_simplest_states_come_first():
    """States with nothing missing, then those with one free choice, and so on."""
    for model in MODELS:
        lost = [len(state.choices) for state in states(appends(2, fsync=False, size=3), model)]
        assert lost[0] == 0
        assert lost == sorted(lost) or model == "ordered"  # where a lost write takes the later ones with it


def test_what_is_acknowledged_counts_at_the_crash_point():
    """The same tree before and after an acknowledgement is two states."""
    found = [
        (len(state.acknowledged), state.after) for state in states(appends(1, fsync=True, size=2), "kill")
    ]

    assert found == [(0, 0), (0, 1), (0, 3), (1, 5), (0, 3)]


def test_a_listing_says_how_far_it_has_come():
    """Tried and distinct rise with the states, and a full listing ends with tried equal to possible."""
    found = states(appends(2, fsync=False, size=4), "weak")
    assert (found.tried, found.distinct, found.complete) == (0, 0, True)
    next(found)
    assert (found.tried, found.distinct) == (1, 1)
    rest = sum(1 for _ in found)

    assert found.distinct == rest + 1
    assert found.tried == found.possible == possible(appends(2, fsync=False, size=4), "weak")


def test_the_same_seed_gives_the_same_states_and_another_seed_others():
    """A bounded listing is drawn by its seed; a full one does not depend on it."""
    unsynced = appends(10, fsync=False)

    def listed(trace: Trace, seed: int) -> list[CrashState]:
        return list(states(trace, "weak", seed=seed, limit=400))

    assert listed(unsynced, 1) == listed(unsynced, 1) != listed(unsynced, 2)
    assert list(states(appends(1, fsync=True), "weak", seed=1)) == list(
        states(appends(1, fsync=True), "weak", seed=2)
    )


@pytest.mark.parametrize("limit", [1, 7, 100, 400])
def test_a_limit_is_kept_and_reached(limit: int):
    """No more distinct states than asked for, and as many where there are enough."""
    for model in MODELS:
        found = states(appends(10, fsync=False), model, limit=limit)
        assert sum(1 for _ in found) == limit
        assert not found.complete


def test_a_part_tries_the_ends_and_what_is_near_them():
    """All there at each point, nothing unsynced there, one lost, one arrived: before anything is drawn."""
    unsynced = appends(5, fsync=False)
    writes = [step.number for step in unsynced.steps if step.op == "write"]
    last = len(unsynced.steps)
    points = 1 + len([step for step in unsynced.steps if step.op != "sync"])
    plans = bounded(rules(Layout(unsynced), "weak"), 4000, 1)
    whole, nothing = list(islice(plans, points)), list(islice(plans, points - 1))
    near = set(islice(plans, 2 * 4000 // 4))

    assert (last, ()) in whole
    assert (last, tuple(map(Choice, writes))) in nothing
    assert (last, (Choice(writes[-1], 0, filled=True),)) in near
    for write in writes:
        assert (last, (Choice(write),)) in near
        assert (last, tuple(Choice(other) for other in writes if other != write)) in near


def test_what_arrives_alone_brings_what_it_stands_for():
    """Near "nothing arrived" is the rename with the create before it, and none of the other names."""
    names = Tracing()
    for node, path in enumerate("acde", 1):
        names("create", node, path=path)
    names("rename", 1, path="a", to="b")("acknowledge", value=1)

    plans = list(islice(bounded(rules(Layout(names.trace), "weak"), 1000, 1), 40))
    assert (6, (Choice(2), Choice(3), Choice(4))) in plans


def test_of_a_long_time_without_a_sync_only_the_end_varies():
    """A system writes back by itself: more than 256 steps before the crash, everything arrived."""
    unsynced = appends(300, fsync=False, size=2)

    for after, choices in islice(bounded(rules(Layout(unsynced), "weak"), 400, 1), 600):
        assert all(choice.step > after - 2 * RECENT - 2 for choice in choices)


def test_a_part_knows_what_a_promise_takes_along():
    """A promised rename stands for the create before it, in a folder that was never synced."""
    moved = Tracing(Start("d", 1, Entry("folder")), Start("e", 2, Entry("folder")))
    moved("create", 3, path="d/a")("rename", 3, path="d/a", to="e/b")("sync", 2, path="e")(
        "acknowledge", value=1
    )
    of_steps = rules(Layout(moved.trace), "weak")

    assert set(islice(bounded(of_steps, 40, 1), 200)) == set(every(of_steps))


LONG, SIZE = 5_000, 20


@pytest.mark.parametrize(
    ("model", "at_write_and_word"),
    [
        ("kill", lambda n: (SIZE, 1)),
        ("ordered", lambda n: (SIZE, 1 + SIZE * (n + 1))),
        ("weak", lambda n: ((2 * SIZE + 1) ** n * 2 * SIZE, (2 * SIZE + 1) ** (n + 1))),
    ],
)
def test_a_long_trace_is_counted_exactly(model: str, at_write_and_word: Callable[[int], tuple[int, int]]):
    """Ten thousand steps without a sync: the number has eight thousand digits, and every one is right."""
    unsynced = appends(LONG, fsync=False, size=SIZE)

    assert possible(unsynced, model) == 2 + sum(sum(at_write_and_word(n)) for n in range(LONG))


def test_names_that_share_an_entry_are_counted_exactly():
    """Two hundred saves by rename and no sync: after each kept rename, each later create is there or not."""
    saves = Tracing()
    for number in range(1, 201):
        saves("create", number, path=f"tmp{number}")("rename", number, path=f"tmp{number}", to="state")

    assert possible(saves.trace, "weak") == 2**201 - 1
    assert possible(saves.trace, "ordered") == possible(saves.trace, "kill") == 401


def test_a_long_trace_is_listed_in_flat_memory():
    """Of ten thousand steps without a sync, states come one by one, and nothing but their digests is kept."""
    unsynced = appends(LONG, fsync=False, size=SIZE)
    tracemalloc.start()
    found = states(unsynced, "weak", limit=10)
    for _ in islice(found, 5):
        pass
    _, soon = tracemalloc.get_traced_memory()
    assert sum(1 for _ in found) == 5
    _, late = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert late < soon + 2**20


# --- Bad input ---


def test_an_unknown_model_is_refused_by_name():
    """The message says which models there are."""
    with pytest.raises(ValueError, match='crash model "strict": not known; use kill, ordered, weak'):
        states(appends(1, fsync=True), "strict")


@pytest.mark.parametrize(
    ("after", "choices", "says"),
    [
        (99, (), "no crash point 99"),
        (-1, (), "no crash point -1"),
        (3, (Choice(4),), "step 4 is not before the crash point 3"),
        (3, (Choice(3, 500),), "step 3 has 120 bytes, not 500"),
        (3, (Choice(3, -1),), "step 3 has 120 bytes, not -1"),
        (3, (Choice(3, 1), Choice(3, 2)), "step 3 is chosen twice"),
    ],
)
def test_choices_that_the_trace_does_not_have_are_refused(after: int, choices: tuple[Choice, ...], says: str):
    """A stored state that belongs to another trace is an error, not another state."""
    with pytest.raises(ValueError, match=says):
        build(appends(1, fsync=True), after, choices)


def test_steps_that_do_not_fit_together_are_refused():
    """A path or a number that is not there names its step."""
    with pytest.raises(ValueError, match=r'trace, step 1 \(unlink\): there is no "gone"'):
        possible(Tracing()("unlink", 1, path="gone").trace, "weak")
    with pytest.raises(ValueError, match=r'trace, step 1 \(create\): there is no folder for "d/f"'):
        possible(Tracing()("create", 1, path="d/f").trace, "weak")
    with pytest.raises(ValueError, match=r"trace, step 1 \(write\): nothing has the number 7"):
        possible(Tracing()("write", 7, path="f", data=b"x").trace, "weak")


def test_a_limit_below_one_is_refused():
    """Zero states prove nothing."""
    with pytest.raises(ValueError, match="limit 0"):
        states(appends(1, fsync=True), "weak", limit=0)


def test_only_a_state_that_breaks_is_shrunk():
    """What breaks nothing, and what the model cannot leave, is refused."""
    log = appends(2, fsync=False, size=4)
    whole = build(log, len(log.steps), ())

    with pytest.raises(ValueError, match="breaks nothing"):
        shrink(log, "weak", whole, lambda _: False)
    with pytest.raises(ValueError, match="kill cannot leave this state"):
        shrink(log, "kill", build(log, len(log.steps), (Choice(3),)), lambda _: True)


def test_shrinking_finds_the_one_lost_step_that_matters():
    """From many choices late in a long run to the first acknowledged record, lost by itself."""
    log = appends(6, fsync=False)
    last = len(log.steps)
    many = build(log, last, tuple(Choice(step.number) for step in log.steps if step.op == "write"))

    def loses(state: CrashState) -> bool:
        kept = state.tree["log"].content.count(b"r\n") if "log" in state.tree else 0
        return kept < len(state.acknowledged)

    small = shrink(log, "weak", many, loses)
    assert (small.after, small.choices) == (4, (Choice(3),))


def test_shrinking_stays_within_the_model():
    """A smaller case that only a weaker model leaves is no smaller case."""
    log = Tracing(Start("log", 1, Entry("file")))("write", 1, path="log", data=b"one")
    log("write", 1, path="log", at=3, data=b"two")("acknowledge", value=2)
    both = build(log.trace, 3, (Choice(1), Choice(2)))

    def first_is_gone(state: CrashState) -> bool:
        return bool(state.acknowledged) and not state.tree["log"].content.startswith(b"one")

    assert shrink(log.trace, "ordered", both, first_is_gone).choices == (Choice(1), Choice(2))
    assert shrink(log.trace, "weak", both, first_is_gone).choices == (Choice(1),)


def test_shrinking_leaves_out_what_does_not_matter_and_asks_once():
    """Of three lost writes, two together break the promise; no tree is judged a second time."""
    files = Tracing(*(Start(name, node, Entry("file")) for node, name in enumerate("abc", 1)))
    for node, name in enumerate("abc", 1):
        files("write", node, path=name, data=b"x")
    files("acknowledge", value=1)
    judged = []

    def two_are_gone(state: CrashState) -> bool:
        judged.append((state.acknowledged, frozen(state.tree)))
        return bool(state.acknowledged) and not state.tree["a"].content and not state.tree["c"].content

    small = shrink(files.trace, "weak", build(files.trace, 4, tuple(map(Choice, (1, 2, 3)))), two_are_gone)
    assert small.choices == (Choice(1), Choice(3))
    assert len(judged) == len(set(judged))
