"""The state spine as view models: whatever stands on disk is said, and nothing raises."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labkit import views, words
from labkit.views import spine

PHASES = ("claiming", "claimed", "agent_running", "agent_finished", "finished")
STATE = {
    "task_id": "issue-002",
    "status": "active",
    "phase": "claimed",
    "round": 1,
    "updated_at": "2026-11-30T13:51:25.889Z",
}


@pytest.fixture(autouse=True)
def _english():
    words.use("en")


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab with one claimed task and one that is done; only what a view reads."""
    put(tmp_path / "tasks/processing/issue-002.json", {"id": "issue-002"})
    put(tmp_path / "tasks/done/issue-001.json", {"id": "issue-001"})
    put(tmp_path / ".loop/claims/issue-002.json", {"task_id": "issue-002"})
    put(tmp_path / ".loop/tasks/issue-002/facts.json", {"task_id": "issue-002"})
    put(tmp_path / ".loop/tasks/issue-002/state.json", STATE)
    put_events(tmp_path, "claim_started", "claim_completed")
    return tmp_path


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def put_events(lab: Path, *types: str) -> Path:
    path = lab / ".loop/tasks/issue-002/events.jsonl"
    lines = [
        {"sequence": number, "type": type_, "at": f"2026-11-30T13:51:25.{number:03d}Z"}
        for number, type_ in enumerate(types, start=1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def look(lab: Path) -> views.SpineView:
    return views.SpineReader(lab).look()


def task(lab: Path) -> views.TaskView:
    found = look(lab).task
    assert found is not None
    return found


# --- One task ---


def test_the_task_at_hand_is_the_one_in_processing(lab: Path) -> None:
    """Queue, state, records and events of the task that was begun; the others can be turned to."""
    view = look(lab)

    assert view.names == ("issue-001", "issue-002")
    assert view.task is not None
    assert (view.task.task_id, view.task.places) == ("issue-002", ("processing",))
    assert (view.task.state.status, view.task.state.phase, view.task.state.lit) == (
        "active",
        "claimed",
        "claimed",
    )
    assert [row.type for row in view.task.events.rows] == ["claim_started", "claim_completed"]
    assert dict(view.task.records) == {
        **dict.fromkeys(("claim", "facts", "state", "events"), "there"),
        **dict.fromkeys(("attempt", "result"), "absent"),
    }


def test_another_task_can_be_chosen(lab: Path) -> None:
    """A chosen task stays chosen; one that has vanished gives way to the one at hand."""
    reader = views.SpineReader(lab)

    chosen, vanished = reader.look("issue-001").task, reader.look("no-such").task
    assert chosen is not None
    assert vanished is not None
    assert (chosen.task_id, chosen.places, chosen.state.lit) == ("issue-001", ("done",), "")
    assert vanished.task_id == "issue-002"


def test_after_the_round_the_youngest_state_is_at_hand(lab: Path) -> None:
    """With nothing in processing, the task that was last written about is shown, not the first by name."""
    put(
        lab / ".loop/tasks/a-first/state.json",
        STATE | {"task_id": "a-first", "status": "completed", "phase": "finished"},
    )
    os.utime(lab / ".loop/tasks/a-first/state.json", (1, 1))
    (lab / "tasks/processing/issue-002.json").rename(lab / "tasks/done/issue-002.json")

    assert task(lab).task_id == "issue-002"


def test_a_task_twice_is_seen_in_both_queues(lab: Path) -> None:
    """A copy left in the inbox shows: the queues are listed, not assumed."""
    put(lab / "tasks/inbox/issue-002.json", {"id": "issue-002"})

    assert task(lab).places == ("inbox", "processing")


def test_many_tasks_are_counted(lab: Path) -> None:
    """The task at hand is always named; how many more there are is said."""
    for number in range(20):
        put(lab / f"tasks/inbox/t-{number:02d}.json", {})

    view = look(lab)
    assert "issue-002" in view.names
    assert (len(view.names), view.more) == (6, 16)


def test_no_lab_and_an_empty_lab(tmp_path: Path) -> None:
    """Nothing there is two different things, and both are said."""
    assert views.spine_sentence(look(tmp_path / "none")) == "There is no lab yet."
    assert views.spine_sentence(look(tmp_path)) == "There is no task, neither in a queue nor in .loop."


def test_no_state_is_told_from_no_records(lab: Path) -> None:
    """Without a state but with a claim, nobody says that the task was never claimed."""
    (lab / ".loop/tasks/issue-002/state.json").unlink()
    assert views.spine_sentence(look(lab)) == "issue-002: there is no state.json."

    for path in (lab / ".loop").rglob("*.json*"):
        path.unlink()
    assert "nobody has claimed it" in views.spine_sentence(look(lab))


# --- Damage ---

DAMAGE = {
    "empty": (b"", "an empty file"),
    "nul": (b"\0" * 40, "40 NUL bytes among 40 bytes"),
    "half": (json.dumps(STATE).encode()[:50], "half a JSON file: it breaks off after 50 bytes"),
    "not-utf8": (b'{"phase": "\xff"}', "not UTF-8 from byte 11 on"),
    "garbage": (b"{\n]", "no JSON: line 2 cannot be read"),
    "list": (b"[1]", "JSON, but no object"),
    "deep": (b"[" * 100_000, "cannot be read"),
    "phase": (json.dumps(STATE | {"phase": "flying"}).encode(), "says phase 'flying'"),
    "phase-number": (json.dumps(STATE | {"phase": 7}).encode(), "says phase 7"),
    "status": (json.dumps(STATE | {"status": None}).encode(), "says status None"),
    "mismatch": (json.dumps(STATE | {"phase": "finished"}).encode(), "active does not go with finished"),
    "huge": (b" " * 300_000, "300,000 bytes, too large"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_state_is_said_to_be_what_it_is(lab: Path, kind: str) -> None:
    """Empty, half, NUL, huge, contradictory: the sentence names it, and the record counts as damaged."""
    raw, said = DAMAGE[kind]
    (lab / ".loop/tasks/issue-002/state.json").write_bytes(raw)

    found = task(lab)
    assert said in found.state.problem
    assert said in views.phase_picture(found.state).sentence
    assert views.phase_picture(found.state).mark == "bad"


def test_what_is_no_file_is_not_opened(lab: Path) -> None:
    """A link, a folder, a pipe in the place of the state: said, never followed, never waited for."""
    path = lab / ".loop/tasks/issue-002/state.json"
    makers = (lambda: path.symlink_to(lab / "loop"), path.mkdir, lambda: os.mkfifo(path))
    path.unlink()
    for make in makers:
        make()
        assert "no regular file" in task(lab).state.problem
        assert task(lab).records["state"] == "damaged"
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_what_the_system_refuses_to_read_is_said_in_its_words(tmp_path: Path) -> None:
    """The system's own reason is passed on; the name counts as there."""
    record = views.read_record(tmp_path / ("x" * 300), 10)

    assert (record.there, record.problem) == (True, "cannot be read: File name too long")


def test_a_folder_in_the_place_of_a_queue_or_file_breaks_nothing(lab: Path) -> None:
    """A file where a folder belongs is an empty queue."""
    (lab / "tasks/inbox").write_text("not a folder")
    (lab / ".loop/results").write_text("not a folder")

    assert task(lab).task_id == "issue-002"


# --- The phase picture ---


@pytest.mark.parametrize("phase", PHASES)
def test_one_phase_is_lit(phase: str) -> None:
    """The current phase is now, those before it past, those behind it ahead; the bracket over it is lit, too."""
    status = "completed" if phase == "finished" else "active"

    picture = views.phase_picture(views.state_view(STATE | {"phase": phase, "status": status}))
    at = PHASES.index(phase)
    assert [one.place for one in picture.phases] == ["past"] * at + ["now"] + ["ahead"] * (4 - at)
    assert [zone.lit for zone in picture.zones].count(True) == 1
    assert f"{status} / {phase}" in picture.sentence


@pytest.mark.parametrize("status", ["completed", "rejected", "closed"])
def test_how_it_finished_is_said(status: str) -> None:
    """Finished alone is no news: the box carries the status, the sentence what it means."""
    picture = views.phase_picture(views.state_view(STATE | {"phase": "finished", "status": status}))

    assert picture.phases[-1].label == status
    assert words.t(f"phase-means.{status}") in picture.sentence


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_every_phase_and_event_has_its_words(language: str) -> None:
    """No phase, status, event or problem is without a text in either language."""
    words.use(language)
    for phase in PHASES:
        assert views.phase_picture(views.state_view(STATE | {"phase": phase})).sentence
    types = ("claim_started", "claim_completed", "controlled_interruption", "resumed", "agent_started")
    types += ("agent_finished", "evidence_recorded", "decided", "closed")
    assert all(views.event_says(views.EventRow(1, type_, "", None, "")) for type_ in types)
    assert views.event_says(views.EventRow(1, "made-up", "", None, "")) == ""


def test_a_state_is_taken_from_a_mapping_a_file_or_a_lab(lab: Path) -> None:
    """The notebook has one of the three at hand; all say the same."""
    path = lab / ".loop/tasks/issue-002/state.json"

    assert views.state_view(STATE) == views.state_view(path) == views.state_view(str(lab))
    assert views.state_view(lab / "nowhere.json") == views.StateView()


# --- The log ---


def test_events_tell_time_gap_and_what_else_they_hold() -> None:
    """Time of day as written, seconds since the one before, and the fields beyond the fixed three."""
    raw = (
        b'{"sequence":1,"type":"claim_started","at":"2026-11-30T13:51:25.881Z","round":1}\n'
        b'{"sequence":2,"type":"claim_completed","at":"2026-11-30T13:51:27.131Z"}\n'
    )

    first, second = views.events_view(raw).rows
    assert (first.time, first.gap_seconds, first.details) == ("13:51:25.881", None, "round 1")
    assert second.gap_seconds == pytest.approx(1.25)


def test_a_torn_tail_is_no_fault_and_a_missing_newline_no_loss() -> None:
    """What an interrupted append leaves is counted in bytes; a whole record that lacks its newline counts."""
    one = b'{"sequence":1,"type":"a","at":"x"}'

    torn = views.events_view(one + b'\n{"seq')
    assert (torn.count, torn.torn, torn.problem) == (1, 5, "")
    assert [line.text for line in views.event_notes(torn)] == ["5 bytes of a record that was cut short"]
    assert views.events_view(one).count == 1


@pytest.mark.parametrize(
    "bad", [b"", b"not-json", b"[]", b'{"sequence":9,"type":"a"}', b'{"sequence":2}', b"\0\0"]
)
def test_reading_a_log_stops_at_the_first_line_that_is_no_event(bad: bytes) -> None:
    """The events before it stand, its number is said, nothing behind it is shown."""
    raw = b'{"sequence":1,"type":"a","at":"x"}\n' + bad + b'\n{"sequence":3,"type":"c","at":"x"}\n'

    view = views.events_view(raw)
    assert (view.count, view.problem) == (1, "line 2 is no event; nothing after it is read")


def test_odd_values_in_an_event_are_shown_as_they_stand() -> None:
    """A time that is none, a very long value: shown in short, no gap made up."""
    event = {"sequence": 1, "type": "a", "at": 5, "text": "x" * 500}

    [row] = views.events_view(json.dumps(event).encode() + b"\n").rows
    assert (row.time, row.gap_seconds) == ("5", None)
    assert len(row.details) < 100


def test_a_long_log_shows_its_end(lab: Path) -> None:
    """Only the last events are shown, and how many came before is known."""
    put_events(lab, *["resumed"] * 200)

    events = task(lab).events
    assert (events.count, len(events.rows), events.rows[-1].sequence) == (200, 60, 200)


def test_a_huge_log_is_not_read(lab: Path) -> None:
    """A log beyond a megabyte is named by its size."""
    (lab / ".loop/tasks/issue-002/events.jsonl").write_bytes(b" " * (spine.EVENTS_BYTES + 1))

    assert "too large" in task(lab).events.problem
    assert task(lab).records["events"] == "damaged"


# --- Commands, operations, refusals ---


def end(**fields: Any) -> Any:
    blank = {"exit_code": 0, "decision": None, "reason": None, "cause": None, "message": ""}
    return SimpleNamespace(**blank | fields)


def test_a_card_says_exit_code_and_answer() -> None:
    """A decision in its words; an object that is none as it stands; nothing printed as just that."""
    blocked = views.command_card(
        end(exit_code=3, decision="blocked", reason="r", cause="c", message="m"), None, {}
    )
    assert (blocked.who, blocked.headline, blocked.details) == ("exit code 3", "blocked / r / c", ("m",))
    assert views.command_card(end(), None, {"kept": {"lab": "x.aside"}}).headline == "kept: x.aside"
    killed = views.command_card(end(exit_code=None), 9, {})
    assert (killed.who, killed.headline, killed.mark) == ("signal 9", "no JSON was printed", "bad")


def operations(*states: int, many: int) -> list[dict[str, Any]]:
    plain = {"op": "fsync", "path": ".loop", "to": None}
    state = {
        "op": "replace",
        "path": ".loop/.state.json.0123456789abcdef.tmp",
        "to": ".loop/tasks/x/state.json",
    }
    return [state if number in states else plain for number in range(1, many + 1)]


def test_a_round_is_divided_by_the_phase_on_disk() -> None:
    """Each state that is replaced begins a new stretch; a resumed round begins at claimed."""
    assert views.operation_zones(operations(3, 5, 7, 9, 11, many=12)) == [
        ("·", 3), ("claiming", 2), ("claimed", 2), ("agent_running", 2), ("agent_finished", 2), ("finished", 1),
    ]  # fmt: skip
    assert views.operation_zones(operations(2, 4, 6, many=6)) == [
        ("claimed", 2), ("agent_running", 2), ("agent_finished", 2),
    ]  # fmt: skip
    assert views.operation_zones(operations(many=4)) == []


def test_an_operation_is_said_without_the_random_part_of_its_name() -> None:
    """The same operation reads the same in every run."""
    assert views.operation_lines(operations(1, many=1)) == [
        "1 of 1: replace .loop/.state.json.….tmp → .loop/tasks/x/state.json"
    ]


def test_where_a_crash_came_is_said() -> None:
    """Before an operation, halfway through it, or never."""
    struck = {"op": "write", "path": "a", "to": None, "did": "none,kill"}

    assert views.crash_sentence(5, struck) == "The process died before operation 5: write a."
    assert "in the middle of operation 5" in views.crash_sentence(5, struck | {"did": "half,kill"})
    assert "never came to operation 5" in views.crash_sentence(5, None)


def test_refusals_name_the_change_and_the_cause() -> None:
    """A known change reads as its button does; an unknown one stands for itself; a cause that is missing is said."""
    answers = {
        "delete-claim": end(exit_code=3, decision="blocked", reason="unsafe_resume", cause="claim_missing")
    }

    first, second = views.refusal_rows({**answers, "my own": end(decision="completed", reason="verified")})
    assert (first.what, first.exit, first.decision, first.cause) == (
        "delete the claim", "3", "blocked / unsafe_resume", "claim_missing",
    )  # fmt: skip
    assert (second.what, second.cause, second.mark) == ("my own", "none", "good")


# --- The crash matrix ---


def strike(number: int, decision: str, *words_: str, **fields: Any) -> Any:
    answer = dict(zip(("decision", "reason", "cause"), (decision, *words_), strict=False))
    blank = {"phase": None, "starts": 0, "once": True, "whole": True, "answer": answer}
    return SimpleNamespace(point=SimpleNamespace(number=number, op="write", path="a"), **blank | fields)


def test_the_matrix_lays_verdicts_out_by_operation() -> None:
    """Operations in their order, verdicts as they first come, neighbours as one stretch, and the phases above."""
    strikes = [
        strike(3, "completed", "verified", phase="claimed"),
        strike(1, "completed", "verified"),
        strike(2, "blocked", "claim_exists", "facts"),
        strike(4, "idle", "inbox_empty", phase="finished"),
    ]

    matrix = views.crash_matrix(strikes)
    assert matrix.numbers == (1, 2, 3, 4)
    assert [(row.label, row.kind, row.times, row.operations) for row in matrix.rows] == [
        ("completed / verified", "goes-on", 2, "1, 3"),
        ("blocked / claim_exists / facts", "stops", 1, "2"),
        ("idle / inbox_empty", "nothing-left", 1, "4"),
    ]
    assert [(run.start, run.end, run.verdict) for run in matrix.phases] == [
        (0, 2, "–"), (2, 3, "claimed"), (3, 4, "finished"),
    ]  # fmt: skip
    assert matrix.told[1] == "operation 2 (write a): blocked / claim_exists / facts"


def test_a_broken_invariant_is_shown_where_it_broke() -> None:
    """Held is said only of what held every time."""
    strikes = [strike(1, "idle"), strike(2, "idle", starts=2), strike(3, "idle", once=False, starts=2)]

    once, whole, at_most_once = views.crash_matrix(strikes).invariants
    assert (once.broken, whole.broken, at_most_once.broken) == ((2,), (), (1, 2))
    assert (whole.verdict, at_most_once.verdict) == ("held every time", "broken 2 times")


def test_an_empty_matrix_is_empty() -> None:
    """No strikes, no rows, and nothing to break."""
    matrix = views.crash_matrix([])

    assert (matrix.numbers, matrix.rows) == ((), ())
