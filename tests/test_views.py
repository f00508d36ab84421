"""Views: what the bytes on disk are turned into, before anything draws them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from labkit import actions, views, words
from labkit.naive import NewlineStore, SkippingStore
from labkit.views import read_report
from labkit.views.byte_view import WINDOW_BYTES
from labkit.workspace import kit_root
from solution.lesson_22 import SessionEvent
from solution.lesson_22.session_store import scan

ZOO = kit_root() / "assets" / "corruption-zoo"


@pytest.fixture(autouse=True)
def _english():
    words.use("en")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The sample task's log."""
    path = tmp_path / "events.jsonl"
    asyncio.run(actions.make_sample_log(path))
    return path


def shown_bytes(view: views.ByteView) -> bytes:
    return bytes.fromhex("".join(cell.hex for row in view.rows for cell in row.cells))


def marks(view: views.ByteView) -> list[str]:
    """One mark a byte."""
    return [cell.mark for row in view.rows for cell in row.cells for _ in bytes.fromhex(cell.hex)]


# --- the read report ---


def test_report_with_a_warm_reader_is_that_of_a_whole_scan(log: Path) -> None:
    """A reader that has judged the whole file gives, at every cut, exactly what scanning the cut file gives."""
    raw = log.read_bytes()
    reader = views.LogReader(log)
    reader.read()

    for size in range(len(raw), -1, -1):
        log.write_bytes(raw[:size])
        report, whole = reader.read()[1], scan(raw[:size], log)
        assert (report.events, report.good_bytes, report.torn_bytes, report.missing_newline) == (
            whole.events,
            whole.good_bytes,
            len(whole.torn),
            whole.missing_newline,
        )


def test_a_flip_in_lines_already_judged_is_seen(log: Path) -> None:
    """What a reader remembers never hides a change in front of it."""
    reader = views.LogReader(log)
    reader.read()

    actions.flip_bit(log, 12)
    report = reader.read()[1]
    assert (report.outcome, report.line, report.events) == (views.Outcome.CORRUPT, 1, ())


@pytest.mark.parametrize(
    ("tail", "verdict"),
    [
        (b'{"sequence":9,"type":"t","data":1}', ("whole", 9, None)),
        (b'{"sequence":7,"type":"t","data":1}', ("corrupt", 8, 9)),
        (b"null", ("corrupt", 8, 9)),
        (b"nul", ("torn", 8, None)),
        (b"nul\n", ("corrupt", 8, 9)),
    ],
)
def test_a_new_tail_is_judged_behind_lines_already_judged(log: Path, tail: bytes, verdict: tuple) -> None:
    """A record that is due, a wrong number, what is no record, what does not parse: each as in a fresh reading."""
    reader = views.LogReader(log)
    reader.read()
    with log.open("ab") as file:
        file.write(tail)

    report = reader.read()[1]
    assert (report.outcome, len(report.events), report.line) == verdict


@pytest.mark.parametrize("exhibit", views.zoo(ZOO), ids=lambda exhibit: exhibit.path.name)
def test_report_on_every_log_of_the_zoo(exhibit: views.Exhibit) -> None:
    """Kind, events, line and offsets are those of the verdict beside the log."""
    verdict = json.loads((ZOO / "verdicts.json").read_bytes())[exhibit.path.name]
    report = views.LogReader(exhibit.path).read()[1]

    kind = {views.Outcome.WHOLE: "sound"}.get(report.outcome, report.outcome)
    assert (kind, len(report.events), report.line) == (verdict["kind"], verdict["events"], verdict["line"])
    assert (report.good_bytes, report.missing_newline) == (verdict["good_bytes"], verdict["missing_newline"])
    assert report.torn_bytes == verdict["torn_bytes"]


def test_missing_file_and_folder_are_told_apart(tmp_path: Path) -> None:
    """No file is no history; a folder in its place cannot be read, and the system's reason is kept."""
    absent = views.LogReader(tmp_path / "none.jsonl").read()[1]
    folder = views.LogReader(tmp_path).read()[1]

    assert absent.outcome is views.Outcome.ABSENT
    assert (folder.outcome, folder.reason) == (views.Outcome.UNREADABLE, "Is a directory")


def test_a_pipe_and_a_huge_log_are_not_opened(tmp_path: Path) -> None:
    """A pipe would hold the kernel for ever, a log of 5 GB all its memory: both say what they are."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(5 << 30)

    pipe, huge = (views.LogReader(tmp_path / name).read()[1] for name in ("pipe", "huge"))
    assert (pipe.outcome, huge.outcome) == (views.Outcome.UNREADABLE, views.Outcome.UNREADABLE)
    assert pipe.reason.startswith("not a regular file")
    assert huge.reason.startswith("5,368,709,120 bytes")


# --- a learner's answer ---


class Store:
    """A learner's store whose read does whatever the test wants."""

    def __init__(self, read: Any) -> None:
        self.read = read


def answer(read: Any) -> views.Answer:
    return asyncio.run(views.ask(lambda _path: Store(read), Path("log")))


async def unfinished() -> None:
    raise NotImplementedError("实现 (implement)")


async def broken() -> None:
    raise KeyError("sequence")


async def leave() -> None:
    raise SystemExit(3)


async def silent() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("read", "how"),
    [
        (unfinished, views.Answered.UNFINISHED),
        (broken, views.Answered.FAILED),
        (leave, views.Answered.FAILED),
        (lambda: [1], views.Answered.EVENTS),
        (lambda: 7, views.Answered.FAILED),
        (silent, views.Answered.SILENT),
    ],
)
def test_whatever_a_learners_read_does_is_an_answer(monkeypatch, read: Any, how: views.Answered) -> None:
    """Not implemented, an exception, a plain list, nonsense, silence: each has its own word, none escapes."""
    monkeypatch.setattr(read_report, "PATIENCE_SECONDS", 0.01)

    assert answer(read).how is how


def test_a_store_that_cannot_be_opened_is_an_answer() -> None:
    """A syntax error in the learner's file is shown with its kind, as one message."""

    def open_store(_path: Path) -> Any:
        raise SyntaxError("invalid syntax (session_store.py, line 7)")

    found = asyncio.run(views.ask(open_store, Path("log")))
    assert (found.how, found.message) == (
        views.Answered.FAILED,
        "SyntaxError: invalid syntax (session_store.py, line 7)",
    )


def test_agreement_needs_the_same_events_and_the_same_line(log: Path) -> None:
    """A reader that skips a bad line, or drops a whole record, disagrees; the solution agrees on both files."""
    unended = log.with_name("unended.jsonl")
    unended.write_bytes(log.read_bytes()[:-1])
    actions.damage_line(log, 2)

    def agrees(store: Any, path: Path) -> bool | None:
        return views.agree(views.LogReader(path).read()[1], asyncio.run(views.ask(store, path)))

    assert agrees(actions.solution_store, log)
    assert agrees(actions.solution_store, unended)
    assert agrees(SkippingStore, log) is False
    assert agrees(NewlineStore, unended) is False


@pytest.mark.parametrize("theirs", [True, 1.0, "1", [1]])
def test_values_that_are_only_equal_in_python_disagree(theirs: object) -> None:
    """1, 1.0 and True are equal in Python and differ on disk."""
    report = views.ReadReport(views.Outcome.WHOLE, events=(SessionEvent(1, "t", 1),))

    assert views.agree(report, views.Answer(views.Answered.EVENTS, (SessionEvent(1, "t", theirs),))) is False
    assert views.agree(report, views.Answer(views.Answered.EVENTS, (SessionEvent(1, "t", 1),)))


# --- the byte view ---


def view_of(raw: bytes, path: Path, **more: Any) -> views.ByteView:
    path.write_bytes(raw)
    return views.byte_view(*views.LogReader(path).read(), **more)


def test_the_rows_hold_every_byte_once_and_begin_with_the_lines(log: Path) -> None:
    """Hex pairs in order give the file back; a row has 16 bytes at most, and every line starts one."""
    raw = log.read_bytes()
    view = view_of(raw, log)

    assert shown_bytes(view) == raw
    assert max(sum(len(bytes.fromhex(cell.hex)) for cell in row.cells) for row in view.rows) <= 16
    starts = [0, *(at + 1 for at, byte in enumerate(raw[:-1]) if byte == 0x0A)]
    assert [row.offset for row in view.rows if row.line] == starts
    assert [row.line for row in view.rows if row.line] == list(range(1, 9))


def test_a_character_stays_whole_until_the_cut_goes_through_it(tmp_path: Path) -> None:
    """Three bytes are one cell; cut, the two that are left stand alone."""
    whole = view_of('{"水'.encode(), tmp_path / "a")
    cut = view_of('{"水'.encode()[:-1], tmp_path / "b")

    assert [(cell.hex, cell.glyph) for cell in whole.rows[0].cells][2:] == [("E6 B0 B4", "水")]
    assert [cell.hex for cell in cut.rows[0].cells][2:] == ["E6", "B0"]
    assert whole.rows[0].cells[2].name == "U+6C34 CJK UNIFIED IDEOGRAPH-6C34"


def test_every_byte_string_is_shown(tmp_path: Path) -> None:
    """All 256 bytes, invalid UTF-8, NUL and invisible characters: each byte stands there, nothing raises."""
    raw = bytes(range(256)) + "\u2028\u0301\ud7ff".encode() + b"\xf4\x90\x80\x80\xed\xa0\x80\xc0\xaf"

    assert shown_bytes(view_of(raw, tmp_path / "log")) == raw


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        (b'{"sequence":1,"type":"t","data":1}\n{"se', {"good": 35, "torn": 4}),
        (b'{"sequence":1,"type":"t","data":1}\nx\nyy\n', {"good": 35, "damaged": 2, "unread": 3}),
        (b'{"sequence":1,"type":"t","data":1}', {"good": 34}),
        (b"null", {"damaged": 4}),
    ],
)
def test_marks_follow_the_read_report(tmp_path: Path, raw: bytes, kinds: dict[str, int]) -> None:
    """Good, torn, damaged and unread bytes are marked one by one and counted for the whole file."""
    view = view_of(raw, tmp_path / "log")

    assert {mark: count for mark, count in view.counts.items() if count} == kinds
    assert {mark: marks(view).count(mark) for mark in kinds} == kinds


def test_what_differs_from_before_is_marked_changed(tmp_path: Path) -> None:
    """Bytes that differ and bytes that are new count as changed; the others do not."""
    view = view_of(b"abXdef", tmp_path / "log", before=b"abcd")

    assert view.changed_bytes == 3
    assert [cell.changed for cell in view.rows[0].cells] == [False, False, True, False, True, True]


def test_an_append_leaves_standing_what_it_did_not_cut() -> None:
    """A file that only grew stands whole; one that was cut stands up to the last line in front of the cut."""
    assert views.standing(b"a\nbc", b"a\nbcd\n") == b"a\nbc"
    assert views.standing(b"a\nbc", b"a\nbd\n") == b"a\n"
    assert views.standing(b"a\nbc", b"") == b""


@pytest.mark.parametrize("focus", [0, 17, 500_000, 1_000_000, None])
def test_of_a_large_file_only_a_window_is_drawn(tmp_path: Path, focus: int | None) -> None:
    """The window holds the byte of interest, keeps characters whole, and the counts are those of the whole file."""
    raw = b"".join(
        b'{"sequence":%d,"type":"t","data":"%s"}\n' % (at, "水".encode() * 20) for at in range(1, 11000)
    )
    view = view_of(raw, tmp_path / "log", focus=focus)

    assert view.end - view.start <= WINDOW_BYTES + 64
    assert view.start <= (len(raw) if focus is None else focus) <= view.end
    assert shown_bytes(view) == raw[view.start : view.end]
    assert view.counts["good"] == view.size == len(raw)
    first = view.rows[0]
    assert len(bytes.fromhex(first.cells[0].hex)) in (1, 3)
    numbered = next(row for row in view.rows if row.line)
    assert numbered.line == raw.count(b"\n", 0, numbered.offset) + 1


def test_bytes_that_form_no_character_do_not_widen_the_window(tmp_path: Path) -> None:
    """A megabyte of continuation bytes is no character: the window stays a window."""
    view = view_of(b"\x80" * (1 << 20), tmp_path / "log", focus=500_000)

    assert view.end - view.start == WINDOW_BYTES


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    """Zero bytes give zero rows and zero counts."""
    view = view_of(b"", tmp_path / "log")

    assert (view.rows, view.size, sum(view.counts.values())) == ((), 0, 0)


# --- the task state ---


def test_a_cut_completion_asks_to_be_resumed(log: Path) -> None:
    """Whole, the first task is completed; without its last event it is in progress and needs to be resumed."""
    whole = views.task_state(views.LogReader(log).read()[1].events)
    actions.cut(log, log, log.stat().st_size - 2)
    cut = views.task_state(views.LogReader(log).read()[1].events)

    assert (whole.tasks[0].status, whole.tasks[0].needs_resume) == ("completed", False)
    assert (cut.tasks[0].status, cut.tasks[0].needs_resume) == ("in_progress", True)
    assert whole.tasks[1].unknown_calls == ("call-2",)


def test_an_illegal_event_leaves_no_task() -> None:
    """Replay stops at the event that cannot be; what came before is not shown as if it were the state."""
    created = SessionEvent(1, "todo_created", {"todo_id": "a", "title": "t"})
    state = views.task_state([created, SessionEvent(2, "todo_teleported", {"todo_id": "a"})])

    assert (state.tasks, state.illegal_sequence) == ((), 2)


# --- sentences ---


def test_a_torn_tail_is_told_with_its_counts(log: Path) -> None:
    """The card names events, offset and torn bytes; in Chinese the same."""
    report = views.ReadReport(views.Outcome.TORN, 30, (SessionEvent(1, "t", 1),), 29, 1)
    english = views.report_card(report)
    words.use("zh")

    assert english.headline == "Torn tail: 1 event kept"
    assert english.details == ("Good up to offset 29", "The 1 byte after it are no record and are ignored")
    assert views.report_card(report).headline == "尾部撕裂：保留 1 个事件"


def test_a_flip_that_goes_unseen_is_said_to_be_unseen() -> None:
    """Changed bytes and a whole report: that is what only a checksum would notice. A refusal is no such case."""
    whole, corrupt = views.ReadReport(views.Outcome.WHOLE), views.ReadReport(views.Outcome.CORRUPT, line=2)

    assert "Unseen: 1 byte has changed" in str(views.unseen(whole, 1))
    assert views.unseen(whole, 0) is None
    assert views.unseen(corrupt, 1) is None


def test_a_corrupt_log_gives_no_tasks() -> None:
    """However many events stand before the bad line: no state is better than a wrong one."""
    created = SessionEvent(1, "todo_created", {"todo_id": "a", "title": "t"})
    report = views.ReadReport(views.Outcome.CORRUPT, events=(created,), line=2)

    table = views.task_table(report, views.task_state(report.events))
    assert table.rows == ()
    assert "nothing is replayed" in table.sentence


def test_a_disagreement_names_both_verdicts() -> None:
    """The kit stopped, the learner returned events: both headlines stand in one sentence."""
    report = views.ReadReport(views.Outcome.CORRUPT, line=2, reason="not valid JSON")
    line = views.agreement(report, views.Answer(views.Answered.EVENTS, (SessionEvent(1, "t", 1),)))

    assert line.mark == "bad"
    assert "stopped at line 2" in line.text
    assert "Returned 1 event" in line.text


# --- folders ---


def entries(folder: Path, since: views.Moment) -> dict[str, tuple[str, str]]:
    return {one.path: (one.kind, one.change) for one in views.tree(folder, since).entries}


def test_a_tree_says_what_is_new_changed_and_gone(tmp_path: Path) -> None:
    """Each name stands with what happened since the remembered moment; folders come before what they hold."""
    for name in ("same", "old", "doomed"):
        (tmp_path / name).write_text(name)
    since = views.remember(tmp_path)
    (tmp_path / "old").write_text("new content")
    (tmp_path / "doomed").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "fresh").write_text("")

    assert entries(tmp_path, since) == {
        "doomed": ("file", "gone"),
        "old": ("file", "changed"),
        "same": ("file", "same"),
        "sub": ("folder", "new"),
        "sub/fresh": ("file", "new"),
    }
    assert (
        views.changes_sentence(views.tree(tmp_path, since)) == "New: sub/fresh. Changed: old. Gone: doomed."
    )


def test_many_changes_are_counted_not_listed(tmp_path: Path) -> None:
    """Three names, then how many more: a status line stays a line."""
    for at in range(7):
        (tmp_path / f"{at}.json").touch()

    assert views.changes_sentence(views.tree(tmp_path, views.Moment())) == (
        "New: 0.json, 1.json, 2.json, 4 other files."
    )


def test_a_rewritten_file_of_the_same_size_is_changed(tmp_path: Path) -> None:
    """Same name, same size, other bytes: the time tells."""
    (tmp_path / "state").write_text("aaaa")
    since = views.remember(tmp_path)
    os.utime(tmp_path / "state", ns=(1, 1))

    assert entries(tmp_path, since)["state"] == ("file", "changed")


def test_a_missing_folder_is_no_tree(tmp_path: Path) -> None:
    """No folder and an empty folder are told apart."""
    gone = views.tree(tmp_path / "none", views.Moment())
    empty = views.tree(tmp_path, views.Moment())

    assert (gone.exists, empty.exists) == (False, True)
    assert views.tree_sentence(gone) != views.tree_sentence(empty)


def test_a_huge_tree_is_cut_and_says_so(tmp_path: Path, monkeypatch) -> None:
    """No more than the limit is listed, and the view knows that more is there."""
    monkeypatch.setattr("labkit.views.folder.MOST_ENTRIES", 3)
    for at in range(5):
        (tmp_path / str(at)).touch()

    tree = views.tree(tmp_path, views.Moment())
    assert (len(tree.entries), tree.cut) == (3, True)


def test_changed_lines_stand_beside_those_that_are_gone(tmp_path: Path) -> None:
    """Lines are compared with the remembered content; numbers are those of the file as it is now."""
    (tmp_path / "log").write_text("one\ntwo\nthree\n")
    since = views.remember(tmp_path)
    (tmp_path / "log").write_text("one\nTWO\nthree\nfour\n")

    lines = [(line.number, line.text, line.change) for line in views.file_view(tmp_path, "log", since).lines]
    assert lines == [
        (1, "one", "same"),
        (0, "two", "gone"),
        (2, "TWO", "new"),
        (3, "three", "same"),
        (4, "four", "new"),
    ]


def test_very_many_changed_lines_are_not_compared_one_by_one(tmp_path: Path, monkeypatch) -> None:
    """Past the limit what lies between the equal beginning and end counts as replaced; nothing is lost."""
    monkeypatch.setattr("labkit.views.folder.MOST_COMPARISONS", 3)
    (tmp_path / "log").write_text("a\nb\nc\nz\n")
    since = views.remember(tmp_path)
    (tmp_path / "log").write_text("a\nc\nd\ne\nz\n")

    lines = [(line.number, line.text, line.change) for line in views.file_view(tmp_path, "log", since).lines]
    assert lines == [
        (1, "a", "same"),
        (0, "b", "gone"),
        (0, "c", "gone"),
        (2, "c", "new"),
        (3, "d", "new"),
        (4, "e", "new"),
        (5, "z", "same"),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("text", "text"),
        ("empty", "empty"),
        ("binary", "binary"),
        ("nuls", "binary"),
        ("link", "link"),
        ("loop", "link"),
        ("pipe", "special"),
        ("folder", "folder"),
        ("none", "absent"),
        ("text/below", "absent"),
    ],
)
def test_a_file_says_what_it_is(tmp_path: Path, name: str, kind: str) -> None:
    """Text, nothing, bytes, links that lead nowhere or in circles, a pipe, a folder, a file that went: none breaks."""
    (tmp_path / "text").write_text("水\n")
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(128, 256)) * 4)
    (tmp_path / "nuls").write_bytes(bytes(100))
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    view = views.file_view(tmp_path, name, views.Moment())

    assert view.kind == kind
    assert kind == "text" or views.file_sentence(view)


def test_a_little_invalid_utf8_is_shown_and_counted(tmp_path: Path) -> None:
    """Text with a torn character stays text; the place is shown as a replacement character and counted."""
    (tmp_path / "log").write_bytes(b"first line\nsecond " + "水".encode()[:2])
    view = views.file_view(tmp_path, "log", views.Moment())

    assert (view.kind, view.bad_bytes) == (views.FileKind.TEXT, 1)
    assert view.lines[1].text == "second \N{REPLACEMENT CHARACTER}"


def test_of_a_huge_file_the_end_is_shown(tmp_path: Path) -> None:
    """A log grows at its end: that is what is shown, and how much is not."""
    with (tmp_path / "log").open("wb") as file:
        file.truncate(5 << 30)
        file.seek(0, 2)
        file.write(b"\n".join([b"the end"] * 20_000))
    view = views.file_view(tmp_path, "log", views.remember(tmp_path))

    assert view.lines[-1].text == "the end"
    assert view.skipped > 5 << 30


# --- pictures ---


def test_lanes_lay_steps_out_without_gaps() -> None:
    """One lane a caller in order of the calls; ticks are squeezed; the same story is told in words."""
    steps = [
        actions.Step("a", "call", 0, 40, 1),
        actions.Step("b", "call", 2, 30, 1),
        actions.Step("a", "read", 5, 9, 0),
    ]
    lanes = views.lanes(steps)

    assert lanes.names == ("a", "b")
    assert [(bar.lane, bar.began, bar.ended) for bar in lanes.bars] == [(0, 0, 5), (1, 1, 4), (0, 2, 3)]
    assert lanes.told == (
        "a reads: the last number is 0",
        "append of b resolves with number 1",
        "append of a resolves with number 1",
    )


def test_a_heat_map_groups_equal_neighbours() -> None:
    """Runs cover every position once; counts are by verdict; rows of unlike length are refused."""
    heat = views.heat_map({"kit": ["torn", "torn", "whole"]})

    assert [(run.start, run.end, run.verdict) for run in heat.rows[0].runs] == [
        (0, 2, "torn"),
        (2, 3, "whole"),
    ]
    assert heat.rows[0].counts == {"torn": 2, "whole": 1}
    with pytest.raises(ValueError, match="every cut"):
        views.heat_map({"a": ["torn"], "b": []})


# --- the check ---


def outcome(**test: Any) -> dict[str, Any]:
    """What `statelab verify --json` gives, with one test."""
    base = {
        "id": "22-order",
        "title": {"en": "Order", "zh": "顺序"},
        "rules": ["S1", "S6"],
        "required": True,
        "status": "fail",
        "reason": "fail",
        "message": {"en": "expected a, found b", "zh": "应为 a"},
        "hint": {"en": "Think of the call.", "zh": "想想调用。"},
        "place": "session_store.py:12",
    }
    return {"lessons": {"22": {"tests": [{**base, **test}]}}}


def test_a_failed_test_has_three_hints_in_order() -> None:
    """First the rule, then how to think, then where to write; a passed test has none."""
    row = views.check_view(outcome(), "22").groups[0].rows[0]
    passed = (
        views.check_view(outcome(status="pass", reason="", hint=None, message=None), "22").groups[0].rows[0]
    )

    assert [title for title, _ in row.hints] == [words.t(f"check.hint-{level}") for level in (1, 2, 3)]
    assert row.hints[0][1].startswith("S1: Order is fixed when append is called")
    assert row.hints[1][1] == "Think of the call."
    assert "session_store.py:12" in row.hints[2][1]
    assert "append() in session_store.py" in row.hints[2][1]
    assert passed.hints == ()


def test_one_part_of_the_homework_shows_its_own_tests() -> None:
    """Each exercise has a button of its own: what belongs to the others is neither shown nor counted."""
    tests = [
        {**outcome(dimension=part)["lessons"]["22"]["tests"][0], "id": part}
        for part in ("durability", "integrity")
    ]
    tests[1] |= {"status": "pass", "reason": "", "message": None, "hint": None}
    view = views.check_view({"lessons": {"22-homework": {"tests": tests}}}, "22-homework", "integrity")

    assert view.ok
    assert [len(group.rows) for group in view.groups] == [1]


def test_an_untouched_starter_is_known_as_such() -> None:
    """Not implemented everywhere is how everybody begins: no failure is counted against it."""
    untouched = outcome(reason="not-implemented")
    view = views.check_view(untouched, "22")

    assert (view.ok, view.untouched, view.groups[0].rows[0].mark) == (False, True, "quiet")


def test_a_guard_that_passes_does_not_make_a_starter_touched() -> None:
    """Lesson 04's starter passes its guards: only the other required tests tell whether work has begun."""
    untouched = outcome(reason="not-implemented")
    tests = untouched["lessons"]["22"]["tests"]
    tests.append({**tests[0], "id": "22-guard", "guard": True, "status": "pass", "reason": ""})

    assert views.check_view(untouched, "22").untouched


def test_every_rule_of_the_lesson_has_a_sentence_and_a_place() -> None:
    """S1 to S18, and H1 to H10 of the homework, each stand in the catalogue and belong to a step of the code."""
    rules = [*(f"S{number}" for number in range(1, 19)), *(f"H{number}" for number in range(1, 11))]
    placed = [rule for kept in views.check.STEPS.values() for rule in kept]

    assert sorted(placed) == sorted(rules)
    assert all(words.t(f"rule.{rule}") for rule in rules)


def test_the_diff_is_empty_only_when_nothing_differs(tmp_path: Path) -> None:
    """A changed line and a missing file both show; equal folders show nothing."""
    mine, theirs = tmp_path / "mine" / "lesson", tmp_path / "theirs" / "lesson"
    for folder in (mine, theirs):
        folder.mkdir(parents=True)
        (folder / "store.py").write_text("x = 1\n")
    assert views.solution_diff(mine, theirs, "22") == ""
    (theirs / "store.py").write_text("x = 2\n")
    (theirs / "more.py").write_text("y = 1\n")
    (theirs / "inner").mkdir()
    (theirs / "inner" / "deep.py").write_text("z = 1\n")

    diff = views.solution_diff(mine, theirs, "22")
    assert "-x = 1\n+x = 2\n" in diff
    assert "+y = 1\n" in diff
    assert "theirs/inner/deep.py" in diff
    assert "+z = 1\n" in diff


@pytest.mark.parametrize(("lesson", "shown"), [("22", "store.py"), ("22-homework", "homework.py")])
def test_lesson_and_homework_do_not_show_each_others_answers(tmp_path: Path, lesson: str, shown: str) -> None:
    """They lie in one folder, and whoever is done with one of them may still be writing the other."""
    mine, theirs = tmp_path / "mine" / "lesson", tmp_path / "theirs" / "lesson"
    for folder, text in ((mine, "x = 1\n"), (theirs, "x = 2\n")):
        folder.mkdir(parents=True)
        for name in ("store.py", "homework.py"):
            (folder / name).write_text(text)

    diff = views.solution_diff(mine, theirs, lesson)

    assert [line for line in diff.splitlines() if line.startswith("+++")] == [f"+++ theirs/{shown}"]
