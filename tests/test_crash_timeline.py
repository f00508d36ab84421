"""One crash as a timeline: what each step was, what a sync had secured, what the crash kept, and the bytes it left."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labkit import views, words
from labkit.faults.crash.trace import Choice, CrashState, Entry, Start, Step, Trace
from labkit.views import Fate, Mark, TimelineView

ROOT = Start(".", 0, Entry("folder"))
LINES = [json.dumps({"n": n}).encode() + b"\n" for n in (1, 2, 3)]
SIZE = len(LINES[0])


def appended(*, synced: int = 0, folder: bool = True) -> Trace:
    """Record three appends to a new log, each acknowledged; the first ``synced`` of them are synced, and the folder."""
    steps: list[Step] = [Step(1, "create", 1, "log.jsonl")]

    def add(op: Any, node: int, path: str, **more: Any) -> None:
        steps.append(Step(len(steps) + 1, op, node, path, **more))

    for at, line in enumerate(LINES):
        add("write", 1, "log.jsonl", at=at * SIZE, data=line)
        if at < synced:
            add("sync", 1, "log.jsonl")
        if folder and at == 0:
            add("sync", 0, ".")
        add("acknowledge", -1, "", value=at + 1)
    return Trace((ROOT,), tuple(steps))


def replaced() -> Trace:
    """Record a state file that is replaced as a whole by a temporary one, without any sync."""
    steps = (
        Step(1, "create", 2, "state.json.tmp"),
        Step(2, "write", 2, "state.json.tmp", data=b'{"phase": 2}'),
        Step(3, "rename", 2, "state.json.tmp", to="state.json"),
        Step(4, "acknowledge", value=2),
    )
    return Trace((ROOT, Start("state.json", 1, Entry("file", b'{"phase": 1}'))), steps)


def state(trace: Trace, content: bytes | None, *choices: Choice, after: int | None = None) -> CrashState:
    """Put together a crash state of a trace with one file."""
    place = len(trace.steps) if after is None else after
    name = trace.steps[0].path.removesuffix(".tmp")
    said = tuple(one.value for one in trace.steps[:place] if one.op == "acknowledge")
    return CrashState(place, choices, {} if content is None else {name: Entry("file", content)}, said)


def column(view: TimelineView, name: str) -> list[Any]:
    return [getattr(row, name) for row in view.rows]


# --- What became of each step ---


def test_every_step_says_what_became_of_it() -> None:
    """Arrived, cut, zeros or nothing; a sync and an acknowledgement are done; what came later never happened."""
    trace = appended(synced=1)
    crashed = state(trace, LINES[0] + bytes(SIZE), Choice(6, 0, filled=True), after=8)

    view = views.timeline(trace, crashed, ())
    assert [one.op for one in trace.steps] == [
        *("create", "write", "sync", "sync", "acknowledge", "write", "acknowledge", "write", "acknowledge")
    ]
    arrived, done = Fate.ARRIVED, Fate.DONE
    assert column(view, "fate") == [
        *(arrived, arrived, done, done, done, Fate.ZERO_FILLED, done, arrived, Fate.AFTER)
    ]


@pytest.mark.parametrize(
    ("choice", "fate"), [(Choice(2, 0), Fate.MISSING), (Choice(2, 3), Fate.SHORTENED), (None, Fate.ARRIVED)]
)
def test_a_write_is_missing_shortened_or_there(choice: Choice | None, fate: Fate) -> None:
    """Zero bytes kept is a write that never came; some is one that was cut; no choice at all is a whole one."""
    trace = appended()
    view = views.timeline(trace, state(trace, b"", *filter(None, [choice])), ())

    assert view.rows[1].fate is fate
    assert view.rows[1].kept == (choice.kept if choice else None)


def test_a_sync_secures_bytes_of_its_file_and_names_of_its_folder() -> None:
    """The sync of the file speaks for the write before it; that of the folder for the name; later writes have none."""
    trace = appended(synced=1)
    secured = column(views.timeline(trace, state(trace, b"".join(LINES)), ()), "secured_by")

    assert secured == [4, 3, None, None, None, None, None, None, None]


def test_a_sync_that_had_not_come_yet_secures_nothing() -> None:
    """A crash between the write and its sync leaves the write unsecured."""
    trace = appended(synced=1)
    view = views.timeline(trace, state(trace, LINES[0], after=2), ())

    assert view.rows[1].secured_by is None


def test_where_names_are_ordered_any_sync_secures_them() -> None:
    """In the ordered model the sync of the file brings the name along; in the weak one the name waits for its folder."""
    trace = appended(synced=1, folder=False)
    crashed = state(trace, b"".join(LINES))

    assert views.timeline(trace, crashed, (), model="ordered").rows[0].secured_by == 3
    assert views.timeline(trace, crashed, (), model="weak").rows[0].secured_by is None


@pytest.mark.parametrize(
    ("broken", "read", "lost"),
    [
        (["acknowledged-survive"], [1], ["2"]),
        (["acknowledged-survive"], [], ["1", "2"]),
        (["saved-survives"], [1], ["2"]),  # a state file: the newest replaces the others
        (["goes-on"], [], []),
        (["readable"], None, []),
    ],
)
def test_an_acknowledged_value_that_is_gone_is_marked(broken: list[str], read: Any, lost: list[str]) -> None:
    """What was said before the crash and was not found; what came later was never promised."""
    trace = appended()
    view = views.timeline(trace, state(trace, LINES[0], after=6), broken, report={"read": read})

    assert [row.value for row in view.rows if row.lost] == lost


# --- Objects ---


def test_bytes_belong_to_the_file_and_names_to_the_folder() -> None:
    """A file keeps its lane when it is renamed, and shows all its names; a name is the folder's affair."""
    trace = replaced()
    view = views.timeline(trace, state(trace, b'{"phase": 2}'), ())

    assert column(view, "lane") == [0, 1, 0, -1]
    assert [lane.names for lane in view.lanes] == [(".",), ("state.json.tmp", "state.json")]
    assert [lane.folder for lane in view.lanes] == [True, False]


def test_of_a_lost_symbolic_link_its_own_name_is_shown() -> None:
    """Where it points to is another file, which lost nothing."""
    trace = Trace((ROOT,), (Step(1, "symlink", 1, "latest", to="log.jsonl"),))
    (file,) = views.timeline(trace, CrashState(1, (Choice(1),), {}, ()), ()).files

    assert (file.path, file.view) == ("latest", None)


def test_threads_are_counted() -> None:
    """One that wrote beside the first is told apart."""
    steps = (Step(1, "create", 1, "a"), Step(2, "create", 2, "b", thread=2))
    crashed = CrashState(2, (), {}, ())

    assert views.timeline(Trace((ROOT,), steps), crashed, ()).threads == 2


# --- The bytes ---


def test_zeros_in_place_of_a_write_are_marked_damaged_and_changed() -> None:
    """The record behind them cannot be told apart from them any more: their line is damaged up to its end."""
    trace = appended()
    left = LINES[0] + LINES[1][:3] + bytes(SIZE - 3) + LINES[2]
    (file,) = views.timeline(trace, state(trace, left, Choice(5, 3, filled=True)), ()).files

    assert file.view is not None
    assert (file.path, file.view.size, file.whole) == ("log.jsonl", 3 * SIZE, 3 * SIZE)
    assert file.view.counts[Mark.GOOD] == SIZE
    assert file.view.counts[Mark.DAMAGED] == 2 * SIZE
    assert file.view.changed_bytes == SIZE - 3


def test_a_write_that_was_cut_leaves_torn_bytes() -> None:
    """What arrived of it is torn, and the file says how long it would have been."""
    trace = appended()
    (file,) = views.timeline(trace, state(trace, b"".join(LINES)[:-4], Choice(7, SIZE - 4)), ()).files

    assert file.view is not None
    assert file.view.counts[Mark.TORN] == SIZE - 4
    assert file.whole == 3 * SIZE


def test_a_file_whose_name_did_not_arrive_is_said_to_have_none() -> None:
    """Its bytes may all be on the platter; nobody finds them."""
    trace = appended(synced=3, folder=False)
    (file,) = views.timeline(trace, state(trace, None, Choice(1)), ()).files

    assert file.view is None
    assert "no such name" in _english(views.file_line, file)


def test_a_rename_before_its_data_leaves_an_empty_file() -> None:
    """The write went to the temporary name, the crash shows it under the one it has now."""
    trace = replaced()
    (file,) = views.timeline(trace, state(trace, b"", Choice(2)), ()).files

    assert file.view is not None
    assert (file.path, file.view.size, file.whole) == ("state.json", 0, 12)


def test_a_lost_rename_shows_what_still_stands_there() -> None:
    """The old content, under the name that was to be replaced."""
    trace = replaced()
    (file,) = views.timeline(trace, state(trace, b'{"phase": 1}', Choice(3)), ()).files

    assert file.path == "state.json"


def test_without_a_deviation_the_file_changed_last_is_shown() -> None:
    """A process that died between two writes: everything before arrived."""
    trace = appended()
    (file,) = views.timeline(trace, state(trace, LINES[0], after=2), ()).files

    assert file.view is not None
    assert file.view.counts[Mark.GOOD] == SIZE


# --- What the recovery said ---


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({"read": [1], "error": None, "after": [1, 9]}, ["read 1 value", "one more append it read 2 values"]),
        ({"read": None, "error": "CorruptLogError", "after": None}, ["refused: CorruptLogError"]),
        (
            {"read": None, "error": "NotImplementedError", "missing": "step 2"},
            ["refused", "Not written yet: step 2"],
        ),
        ({"ended": "after 10 s"}, ["gave no answer: after 10 s"]),
        (
            {"answer": {"decision": "blocked", "reason": "claim_exists", "cause": None}, "after": {}},
            ["The next run answered: blocked / claim_exists"],
        ),
    ],
)
def test_the_report_of_a_recovery_is_said_in_sentences(report: dict[str, Any], said: list[str]) -> None:
    """What was read, what one more append made of it, what it died of, or what a runner answered."""
    with words.speaking("en"):
        lines = list(views.report_lines(report))

    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))


# --- As text ---


def _english(say: Any, *what: Any) -> str:
    with words.speaking("en"):
        return str(say(*what))


def lost_line() -> TimelineView:
    trace = appended()
    left = LINES[0] + bytes(SIZE) + LINES[2]
    report = {"read": None, "error": "CorruptLogError", "after": None}
    return views.timeline(
        trace, state(trace, left, Choice(5, filled=True)), ["readable", "house-rule"], report=report
    )


def test_text_shows_promise_recovery_steps_crash_and_bytes() -> None:
    """Everything that a person needs stands there, in the order in which it is asked for."""
    drawn = views.as_text(lost_line(), "en").splitlines()

    wanted = (
        "The crash comes after step 8 of 8; 3 acknowledged by then",
        "✗ broken promise: readable: whatever a crash leaves can be read",
        "✗ broken promise: house-rule",
        "→ Recovery refused: CorruptLogError",
        "5     write log.jsonl at offset 9   9      –           ▨ zeros after 0 bytes",
        "──── ⚡ crash ",
        "log.jsonl: 27 bytes; 27 had everything arrived",
        "!       9  00 00 00",
    )
    places = [next(at for at, line in enumerate(drawn) if line.startswith(one)) for one in wanted]
    assert places == sorted(places)


def test_text_is_aligned_in_chinese_too() -> None:
    """A Chinese character takes two columns of a terminal; the last column begins at the same place everywhere."""
    drawn = views.as_text(lost_line(), "zh").splitlines()
    table = [line for line in drawn if line[:1].isdigit()]

    begins = [next(line.index(sign) for sign in "●▨✓" if sign in line) for line in table]
    assert len(table) == 8
    assert len({_columns(line[:at]) for line, at in zip(table, begins, strict=True)}) == 1


def _columns(text: str) -> int:
    return sum(2 if ord(one) > 0x2E80 else 1 for one in text)


def test_a_long_trace_is_drawn_around_its_crash() -> None:
    """What lies far before the first deviation and far behind the crash is counted, not listed."""
    steps = [Step(1, "create", 1, "log")]
    steps += [Step(n, "write", 1, "log", at=n - 2, data=b"x") for n in range(2, 101)]
    trace = Trace((ROOT,), tuple(steps))
    drawn = views.as_text(
        views.timeline(trace, CrashState(50, (), {"log": Entry("file", b"x" * 49)}, ()), ()), "en"
    )

    assert "… 37 steps before these, all arrived" in drawn
    assert "… 38 steps more that never happened" in drawn


def test_drawing_leaves_the_language_as_it_was() -> None:
    """A text in the other language is drawn without changing what everybody else says."""
    with words.speaking("zh"):
        views.as_text(lost_line(), "en")

        assert words.language() == "zh"
