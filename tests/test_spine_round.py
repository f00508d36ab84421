"""Claim, resume and refusal, by the lesson's own tool in a process of its own (P1, P2, P6 to P9, P13, P15)."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from labkit.faults.round_sweep import fresh_copy
from tests.child_process import run_child
from tests.spine_lab import TASK, Lab, agent_script, environment, template

pytest_plugins = ["tests.spine_fixtures"]

CONTRACT = "loop.contract.json"
PROCESSING = f"tasks/processing/{TASK}.json"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def refuses(lab: Lab, code: int, *said: str) -> dict[str, object]:
    """Run: exactly this answer, a sentence in both languages, and nothing moved or written."""
    before = lab.snapshot()
    ran = lab.run()

    assert (ran.code, ran.said) == (code, said)
    assert re.search(r"[\u4e00-\u9fff]", ran.answer["message"])
    assert re.search(r"\([^)]*[a-z]{3}", ran.answer["message"])
    assert "Traceback" not in ran.err
    assert lab.snapshot() == before
    return ran.answer


# --- P1: what is written ---


def test_a_claim_writes_facts_claim_state_and_two_events(claimed):
    """Every field of the format page, and no other."""
    digests = {"task_digest", "contract_digest", "head"}
    assert set(claimed.record("claim")) == {"task_id", "file_name", "claimed_at", "runner_pid", *digests}
    assert set(claimed.record("facts")) == {"task_id", "task", "recorded_at", *digests}
    assert claimed.record("facts")["task"] == json.loads((claimed.root / PROCESSING).read_bytes())
    assert claimed.record("claim")["head"] == claimed.git("rev-parse", "HEAD").strip()
    assert list(claimed.record("state")) == ["task_id", "status", "phase", "round", "updated_at"]
    assert TIME.fullmatch(claimed.record("state")["updated_at"])
    assert claimed.types() == ["claim_started", "claim_completed", "controlled_interruption"]
    assert not claimed.path("attempt").exists()
    assert not claimed.path("result").exists()


def test_a_finished_round_leaves_attempt_result_and_state(claimed):
    """The result is the answer as printed; the attempt keeps word and evidence apart; facts never change."""
    facts = claimed.path("facts").read_bytes()
    answer = claimed.run().answer

    assert claimed.record("result") == answer
    attempt = claimed.record("attempt")
    assert (attempt["resumed"], attempt["round"], attempt["agent"]["status"]) == (True, 1, "changed")
    assert set(attempt["agent"]).isdisjoint(attempt["evidence"])
    assert "+  return" in attempt["evidence"]["diff"]
    assert (claimed.record("state")["status"], claimed.record("state")["phase"]) == ("completed", "finished")
    assert claimed.path("facts").read_bytes() == facts
    assert all(TIME.fullmatch(event["at"]) for event in claimed.events())


def test_phases_follow_each_other_and_each_state_is_a_new_file(lab):
    """Claiming to finished, in order, seen underneath: a replace per phase, an event before each of them."""
    source = f"""
import runpy
layer.arm([], folder)
sys.argv = ["run_once.py"]
try:
    runpy.run_path(str(folder / "tools/run_once.py"), run_name="__main__")
except SystemExit:
    pass
layer.disarm()
names = [("event" if e["op"] == "write" else "state") for e in layer.log()
         if (e["op"], e["path"]) == ("write", ".loop/tasks/{TASK}/events.jsonl")
         or (e["op"], e["to"]) == ("replace", ".loop/tasks/{TASK}/state.json")]
print("|" + " ".join(names))
"""
    done = run_child(source, lab.root, environment=environment())

    assert done.stdout.rsplit("|", 1)[1].split() == [
        "event", "state", "event", "state", "event", "state", "event", "state", "event", "event", "state",
    ]  # fmt: skip


# --- P2: one runner, one owner ---


def test_two_runners_at_once_do_one_round(lab):
    """While the first one's agent works, the second answers `runner_active` and changes nothing."""
    gate = lab.root.parent / "gate"
    os.mkfifo(gate)
    wait = f"open({str(gate)!r}).read()\nimport pathlib\np = pathlib.Path('src/search.mjs')\n"
    edit = "p.write_bytes(p.read_bytes().replace(rb'/\\s+/', rb'/[\\s\\p{P}]+/'))\n"
    arguments = agent_script(lab, wait + edit)
    first = subprocess.Popen(
        [sys.executable, "tools/run_once.py", *arguments],
        cwd=lab.root, env=environment(), stdout=subprocess.PIPE,
    )  # fmt: skip
    with gate.open("w"):  # opens when the agent does
        second = lab.run()
        before = lab.snapshot()
        third = lab.run()
        assert lab.snapshot() == before
    answer = json.loads(first.communicate()[0])

    assert answer["decision"] == "completed"
    for ran in (second, third):
        assert (ran.code, ran.said) == (3, ("blocked", "runner_active", "lock_held"))
    assert lab.types().count("agent_started") == 1


def test_two_runners_started_together_over_many_tasks_share_them(lab):
    """Two processes run the same labs at the same time: each task has one claim, one agent, one result."""
    for copy in range(6):
        place = Lab(fresh_copy(lab.root, lab.root.parent / f"copy-{copy}"))
        both = [
            subprocess.Popen(
                [sys.executable, "tools/run_once.py"],
                cwd=place.root,
                env=environment(),
                stdout=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        answers = [json.loads(process.communicate()[0]) for process in both]

        reasons = sorted(answer["reason"] for answer in answers)
        assert reasons in (["runner_active", "verified"], ["inbox_empty", "verified"])
        assert place.types().count("claim_started") == place.types().count("agent_started") == 1


def test_an_agent_that_outlives_its_killed_runner_keeps_others_out(lab):
    """The lock ends with the last process of the round; then the phase says that the agent may have worked."""
    gate = lab.root.parent / "gate"
    os.mkfifo(gate)
    arguments = agent_script(lab, f"open({str(gate)!r}).read()\n")
    runner = subprocess.Popen(
        [sys.executable, "tools/run_once.py", *arguments], cwd=lab.root, env=environment()
    )
    with gate.open("w"):
        runner.kill()
        runner.wait()
        while_it_lives = lab.run()
    with (lab.root / ".loop/runner.lock").open() as lock:  # free when the agent has read its gate, and ended
        fcntl.flock(lock, fcntl.LOCK_EX)
    after = lab.run()

    assert while_it_lives.said == ("blocked", "runner_active", "lock_held")
    assert after.said == ("blocked", "unsafe_resume", "phase_agent_running")


def test_a_claim_in_the_way_is_never_overwritten(lab):
    """Where locks do not work, the file system still lets one claim win: the loser stops before it moves anything."""
    source = """
import runpy
sys.path.insert(0, str(folder))
from issue_garden import stateful_round
real = stateful_round.check_unknown
stateful_round.check_unknown = lambda store, task: None if not store.facts(task).exists() else real(store, task)
def prepare(store, task, real=stateful_round.StateFolder.prepare):
    real(store, task)
    store.facts(task).write_text("{}")
stateful_round.StateFolder.prepare = prepare
sys.argv = ["run_once.py"]
runpy.run_path(str(folder / "tools/run_once.py"), run_name="__main__")
"""
    done = run_child(source, lab.root, environment=environment())

    assert (done.returncode, json.loads(done.stdout)["reason"]) == (3, "claim_exists")
    assert lab.path("facts").read_text() == "{}"
    assert lab.places() == ["inbox"]


# --- P6, P7: the refusal table ---


def set_phase(phase: str) -> Callable[[Lab], None]:
    return lambda lab: lab.edit(lab.path("state"), phase=phase)


def remove(kind: str) -> Callable[[Lab], None]:
    return lambda lab: lab.path(kind).unlink()


def spoil(kind: str, content: bytes = b"\0" * 50) -> Callable[[Lab], None]:
    return lambda lab: lab.path(kind).write_bytes(content) and None


def append(kind: str, content: bytes) -> Callable[[Lab], None]:
    return lambda lab: lab.path(kind).write_bytes(lab.path(kind).read_bytes() + content) and None


def rename_task(lab: Lab) -> None:
    (lab.root / PROCESSING).rename(lab.root / "tasks/processing/issue-009.json")


def empty_commit(lab: Lab) -> None:
    lab.git("commit", "--allow-empty", "-qm", "moved")


def stray_file(lab: Lab) -> None:
    (lab.root / "src" / "stray.mjs").write_text("export {};\n", "utf-8")


def staged_edit(lab: Lab) -> None:
    (lab.root / "src" / "books.mjs").write_text("export const books = [];\n", "utf-8")
    lab.git("add", "src/books.mjs")


def reindent_contract(lab: Lab) -> None:
    value = json.loads((lab.root / CONTRACT).read_bytes())
    (lab.root / CONTRACT).write_text(json.dumps(value, indent=7), "utf-8")


def second_task(lab: Lab) -> None:
    shutil.copy(lab.root / PROCESSING, lab.root / "tasks/processing/issue-009.json")


def copy_to_done(lab: Lab) -> None:
    shutil.copy(lab.root / PROCESSING, lab.root / f"tasks/done/{TASK}.json")


def early_attempt(lab: Lab) -> None:
    lab.path("attempt").write_text("{}", "utf-8")


def event(number: int, kind: str) -> bytes:
    return json.dumps({"sequence": number, "type": kind, "at": "2026-01-01T00:00:00.000Z"}).encode() + b"\n"


REFUSALS = {
    "phase_claiming": set_phase("claiming"),
    "phase_agent_running": set_phase("agent_running"),
    "phase_agent_finished": set_phase("agent_finished"),
    "claim_missing": remove("claim"),
    "facts_missing": remove("facts"),
    "state_missing": remove("state"),
    "events_missing": remove("events"),
    "claim_invalid": spoil("claim"),
    "facts_invalid": spoil("facts", b"{}"),
    "state_invalid": spoil("state"),
    "facts_disagree": lambda lab: lab.edit(lab.path("facts"), head="0" * 40),
    "events_corrupt": append("events", event(2, "resumed")),
    "events_disagree": append("events", event(4, "agent_started")),
    "attempts_disagree": early_attempt,
    "several_processing": second_task,
    "task_duplicated": copy_to_done,
    "file_name_changed": rename_task,
    "task_changed": lambda lab: lab.edit(PROCESSING, title="another title"),
    "contract_changed": lambda lab: lab.edit(CONTRACT, max_lines=41),
    "head_moved": empty_commit,
    "dirty_tree": stray_file,
}


@pytest.mark.parametrize("cause", list(REFUSALS))
def test_a_claim_that_is_not_as_it_was_is_refused_with_its_cause(claimed, cause):
    """Each disagreement has its own name; nothing is touched, and no agent starts."""
    REFUSALS[cause](claimed)

    refuses(claimed, 3, "blocked", "unsafe_resume", cause)
    assert not claimed.path("events").exists() or claimed.types().count("agent_started") == (
        cause == "events_disagree"
    )


VARIANTS = {
    "another title": (lambda lab: lab.edit(PROCESSING, title="x"), "task_changed"),
    "an edit that is staged": (staged_edit, "dirty_tree"),
    "a reformatted contract, which is no other contract": (
        reindent_contract, "dirty_tree",
    ),
    "a path hidden from Git": (
        lambda lab: lab.git("update-index", "--assume-unchanged", CONTRACT), "dirty_tree",
    ),
    "a zero-length state": (spoil("state", b""), "state_invalid"),
    "a state with an extra field": (lambda lab: lab.edit(lab.path("state"), note="x"), "state_invalid"),
    "a round that is a bool": (lambda lab: lab.edit(lab.path("state"), round=True), "state_invalid"),
    "a phase of another status": (lambda lab: lab.edit(lab.path("state"), phase="finished"), "state_invalid"),
    "a state of another task": (lambda lab: lab.edit(lab.path("state"), task_id="issue-7"), "facts_disagree"),
    "facts with another task inside": (lambda lab: lab.edit(lab.path("facts"), task={"id": "x"}), "facts_disagree"),
    "a gap in the log": (append("events", event(7, "resumed")), "events_corrupt"),
    "a blank line in the log": (append("events", b"\n"), "events_corrupt"),
    "an unknown event": (append("events", event(4, "something")), "events_disagree"),
    "a second claim in the log": (append("events", event(4, "claim_started")), "events_disagree"),
    "a log without its end": (lambda lab: lab.path("events").write_bytes(event(1, "claim_started")), "events_disagree"),
    "a round that is ahead": (lambda lab: lab.edit(lab.path("state"), round=2), "attempts_disagree"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(VARIANTS))
def test_each_kind_of_disagreement_has_more_than_one_face(claimed, name):
    """The same causes, reached by other ways."""
    change, cause = VARIANTS[name]
    change(claimed)

    refuses(claimed, 3, "blocked", "unsafe_resume", cause)


def test_what_only_looks_different_is_resumed(claimed):
    """A reformatted task, a torn tail in the log, a new task in the inbox: it goes on."""
    value = json.loads((claimed.root / PROCESSING).read_bytes())
    text = json.dumps(dict(reversed(value.items())), indent=7, ensure_ascii=True)
    (claimed.root / PROCESSING).write_text(text, "utf-8")
    append("events", b'{"sequence":4,"ty')(claimed)
    claimed.put_task("issue-010")

    ran = claimed.run()

    assert ran.said == ("completed", "verified", None)
    assert ran.answer["resumed"] is True
    assert list(claimed.path("events").parent.glob("events.jsonl.torn-*"))


def test_a_corrupt_log_is_named_by_its_line(claimed):
    """Row 128: the answer carries the line number, and the phase stays."""
    append("events", event(2, "resumed"))(claimed)

    assert refuses(claimed, 3, "blocked", "unsafe_resume", "events_corrupt")["line"] == 4


def test_a_good_temporary_file_beside_a_damaged_state_is_not_adopted(claimed):
    """Row 96: what a killed writer left may be older or newer than anything; a person decides."""
    state = claimed.path("state")
    state.with_name(".state.json.0123456789abcdef.tmp").write_bytes(state.read_bytes())
    state.write_bytes(b"\0" * 50)

    refuses(claimed, 3, "blocked", "unsafe_resume", "state_invalid")


def test_a_log_ahead_of_the_state_advances_nothing(claimed):
    """Row 126: the log says claimed, the state claiming: refused, and the answer says what the log holds."""
    set_phase("claiming")(claimed)

    assert (
        refuses(claimed, 3, "blocked", "unsafe_resume", "phase_claiming")["last_event"]
        == "controlled_interruption"
    )


def test_a_result_beside_a_running_phase_is_not_run_again(claimed):
    """Row 124: result written, state behind."""
    set_phase("agent_running")(claimed)
    claimed.path("result").write_text('{"decision":"completed"}', "utf-8")

    refuses(claimed, 3, "blocked", "unsafe_resume", "phase_agent_running")


def test_a_resume_uses_the_old_claim(claimed):
    """One `claim_started`; `resumed` stands before `agent_started`; round 1."""
    answer = claimed.run().answer

    types = claimed.types()
    assert types.count("claim_started") == 1
    assert types.index("resumed") + 1 == types.index("agent_started")
    assert (answer["round"], answer["resumed"]) == (1, True)


def test_a_fresh_round_is_not_resumed(lab):
    """Without an interruption: no `resumed` event, and the answer says so."""
    assert lab.run().answer["resumed"] is False
    assert "resumed" not in lab.types()


def git_that(lab: Lab, nth: int, action: str) -> dict[str, str]:
    """A `git` on PATH that does something by itself just before its nth call as the runner's."""
    folder = lab.root.parent / "bin"
    folder.mkdir()
    real, count = shutil.which("git"), folder / "count"
    (folder / "git").write_text(
        f'#!/bin/sh\necho x >> {count}\nif [ $(wc -l < {count}) -eq {nth} ]; then {action}; fi\nexec {real} "$@"\n',
        "utf-8",
    )
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{environment()['PATH']}"}


def test_head_moved_while_waiting_is_caught_at_the_agents_start(lab):
    """Row 133: somebody commits between the first look and the launch: claimed, and no agent."""
    real = shutil.which("git")
    commit = f"{real} -C {lab.root} -c user.name=x -c user.email=x@y commit --allow-empty -qm between"
    ran = lab.run(env=git_that(lab, 2, commit))

    assert ran.said == ("blocked", "unsafe_resume", "head_moved")
    assert (lab.record("state")["phase"], "agent_started" in lab.types()) == ("claimed", False)


def test_a_file_changed_while_waiting_is_caught_at_the_agents_start(claimed):
    """The same on a resume: the second look is the one that counts, and no event is written."""
    before = claimed.path("events").read_bytes()
    ran = claimed.run(env=git_that(claimed, 2, f"touch {claimed.root}/src/new.mjs"))

    assert ran.said == ("blocked", "unsafe_resume", "dirty_tree")
    assert claimed.path("events").read_bytes() == before


def test_a_state_of_another_commit_does_not_count_here(lab):
    """Row 132: a checkpoint taken on one branch is not used on another, be the task the same."""
    lab.git("commit", "--allow-empty", "-qm", "the branch that the claim stands on")
    lab.interrupt()
    lab.git("checkout", "-q", "-b", "other", "HEAD~1")

    refuses(lab, 3, "blocked", "unsafe_resume", "head_moved")


def test_a_dirty_tree_is_refused_at_a_fresh_start_too(lab):
    """Row 135: the same rule on both paths; a change inside `tasks/` is the queue's own."""
    (lab.root / "tasks" / "notes.txt").write_text("mine", "utf-8")
    stray_file(lab)

    answer = refuses(lab, 3, "blocked", "unsafe_start", "dirty_tree")
    assert answer["paths"] == ["src/stray.mjs"]
    (lab.root / "src" / "stray.mjs").unlink()
    assert lab.run().code == 0


def test_a_superseded_runner_cannot_finish(lab):
    """Row 112: the state was changed while the agent worked: what this round thinks is not written over it."""
    state = lab.path("state")
    script = f"import json, pathlib\np = pathlib.Path({str(state)!r})\nv = json.loads(p.read_bytes())\n"
    script += "v['round'] = 2\np.write_text(json.dumps(v))\n"
    ran = lab.run(*agent_script(lab, script))

    assert (ran.code, ran.said) == (3, ("blocked", "state_changed", "state_replaced"))
    assert lab.record("state")["round"] == 2
    assert not lab.path("result").exists()


MEDDLING = {
    "events_replaced": f"open('.loop/tasks/{TASK}/events.jsonl', 'a').write('mine\\n')",
    "record_exists": f"open('.loop/results/{TASK}.json', 'w').write('{{\"decision\": \"completed\"}}')",
    "state_replaced": f"open('.loop/tasks/{TASK}/state.json', 'w').write('{{}}')",
}


@pytest.mark.parametrize("cause", list(MEDDLING))
def test_an_agent_that_writes_the_records_decides_nothing(lab, cause):
    """`.loop` is writable by the workspace it judges; what the agent leaves there is named, and not believed."""
    ran = lab.run(*agent_script(lab, MEDDLING[cause]))

    assert (ran.code, ran.said) == (3, ("blocked", "state_changed", cause))
    assert lab.places() == ["processing"]


def test_an_attempt_on_disk_is_never_overwritten(claimed):
    """Row 129: after attempt 2 the next is 3; a state that says otherwise is refused."""
    folder = claimed.path("attempt").parent
    for number in (1, 2):
        (folder / f"round-{number:03d}.json").write_text('{"kept": true}', "utf-8")
    refuses(claimed, 3, "blocked", "unsafe_resume", "attempts_disagree")

    claimed.edit(claimed.path("state"), round=3)
    assert claimed.run().answer["attempt"].endswith("round-003.json")
    assert json.loads((folder / "round-002.json").read_bytes()) == {"kept": True}


# --- P8: ids are never reused ---


@pytest.mark.parametrize("kind", ["claim", "facts", "state", "result"])
def test_any_record_of_an_id_blocks_a_task_of_that_id(lab, kind):
    """Each record alone is enough."""
    lab.run()
    lab.move("done", "inbox")
    for other in {"claim", "facts", "state", "result"} - {kind}:
        lab.path(other).unlink()
    lab.git("checkout", "-q", "--", "src")

    refuses(lab, 3, "blocked", "claim_exists", kind)


def test_a_task_carried_back_to_the_inbox_is_caught(claimed):
    """By hand, before or after an edit; deleting only the claim does not help."""
    claimed.move("processing", "inbox")
    refuses(claimed, 3, "blocked", "claim_exists", "claim")
    claimed.edit(f"tasks/inbox/{TASK}.json", title="corrected")
    refuses(claimed, 3, "blocked", "claim_exists", "claim")
    claimed.path("claim").unlink()
    refuses(claimed, 3, "blocked", "claim_exists", "facts")


def test_a_finished_task_restored_by_git_is_caught_until_the_state_is_set_aside(lab):
    """Git knows nothing of `.loop`; set aside as a whole, the same task is fresh again and the old records stay."""
    lab.run()
    lab.git("checkout", "-q", "--", ".")
    (lab.root / f"tasks/done/{TASK}.json").unlink()
    refuses(lab, 3, "blocked", "claim_exists", "claim")

    aside = lab.root.parent / "loop-before"
    (lab.root / ".loop").rename(aside)
    assert lab.run().said == ("completed", "verified", None)
    assert (aside / "results" / f"{TASK}.json").exists()


def test_an_id_that_stands_in_another_queue_is_not_new(lab):
    """Also without any record: a done task of the lesson before, or one that differs in case only."""
    lab.put_task("issue-001")
    assert lab.run().said == ("blocked", "claim_exists", "done")
    (lab.root / "tasks/inbox/issue-001.json").unlink()
    lab.put_task("ISSUE-001")

    refuses(lab, 3, "blocked", "claim_exists", "done")


def test_a_claim_without_state_is_listed_with_its_reason(lab):
    """Row 109: killed right after the claim; the answer names the records there are."""
    lab.interrupt()
    lab.move("processing", "inbox")
    lab.path("state").unlink()

    answer = refuses(lab, 3, "blocked", "claim_exists", "claim")
    assert answer["records"] == ["claim", "facts"]


# --- P9: names and files ---


@pytest.mark.parametrize(
    ("name", "task_id", "cause"),
    [
        ("a b.json", "a b", "bad_id"),
        ("é.json", "é", "bad_id"),
        ("x" * 81 + ".json", "x" * 81, "bad_id"),
        ("con.json", "con", "bad_id"),
        ("Lpt1.json", "Lpt1", "bad_id"),
        ("a\n.json", "a\n", "bad_id"),
        ("a.json", "a\n", "bad_id"),
        ("a.json", "../a", "bad_id"),
        ("a.json", "b", "bad_id"),
        ("a.json", 7, "bad_value"),
        ("a.json", "", "bad_value"),
    ],
)
def test_a_bad_name_is_refused_where_it_enters(lab, name, task_id, cause):
    """Letters, digits, `_` and `-`, 80 at most, no device, and the file's own name."""
    (lab.root / f"tasks/inbox/{TASK}.json").unlink()
    lab.put_task("a", id=task_id).rename(lab.root / "tasks/inbox" / name)

    refuses(lab, 2, "refused", "bad_task", cause)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"goal": None}, "missing_field"),
        ({"extra": 1}, "unknown_field"),
        ({"title": "x" * 201}, "bad_value"),
        ({"goal": " "}, "bad_value"),
        ({"acceptance": "../x.test.mjs"}, "bad_value"),
        ({"acceptance": "acceptance/a.mjs"}, "bad_value"),
        ({"acceptance": ["x"]}, "bad_value"),
    ],
)
def test_a_malformed_task_is_refused(lab, change, cause):
    """Unknown and missing fields, wrong values: exit 2, and the task stays where it is."""
    lab.edit(f"tasks/inbox/{TASK}.json", **change)

    refuses(lab, 2, "refused", "bad_task", cause)


@pytest.mark.parametrize("queue", ["inbox", "processing"])
@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"{", "bad_json"),
        (b"[]", "bad_json"),
        (b'{"id":1,"id":2}', "bad_json"),
        (b" " * 70_000, "too_large"),
        (b"", "bad_json"),
    ],
)
def test_a_task_file_that_is_no_task_is_refused(lab, queue, content, cause):
    """In the inbox and in processing alike."""
    lab.move("inbox", queue) if queue != "inbox" else None
    (lab.root / f"tasks/{queue}/{TASK}.json").write_bytes(content)

    refuses(lab, 2, "refused", "bad_task", cause)


def test_a_symbolic_link_is_refused_and_other_things_are_no_tasks(lab):
    """Folders, hidden files, back-ups and placeholders are passed over; a link named like a task is not."""
    inbox = lab.root / "tasks/inbox"
    for name in (".hidden.json", "issue-000.json~", "notes.txt"):
        (inbox / name).write_text("{", "utf-8")
    (inbox / "folder.json").mkdir()
    os.mkfifo(inbox / "a-pipe.json")
    (inbox / "a-link.json").symlink_to(f"{TASK}.json")
    refuses_code = lab.run()
    assert (refuses_code.code, refuses_code.said) == (2, ("refused", "bad_task", "symbolic_link"))

    (inbox / "a-link.json").unlink()
    assert lab.run().answer["task_id"] == TASK


# --- P13: contract, usage, order of checks ---


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"version": 2}, "bad_value"),
        ({"version": True}, "bad_value"),
        ({"max_lines": 0}, "bad_value"),
        ({"agent_seconds": 86_401}, "bad_value"),
        ({"command_seconds": 10**400}, "bad_value"),
        ({"max_lines": True}, "bad_value"),
        ({"max_lines": 1.0}, "bad_value"),
        ({"max_line": 3}, "unknown_field"),
        ({"verification": None}, "missing_field"),
        ({"verification": []}, "bad_value"),
        ({"verification": [{"name": "a", "argv": [], "min_tests": 0}]}, "bad_value"),
        ({"verification": [{"name": "a", "argv": "npm test", "min_tests": 0}]}, "bad_value"),
        ({"verification": [{"name": "a", "argv": ["x\0"], "min_tests": 0}]}, "bad_value"),
        ({"verification": [{"name": "a", "argv": ["x"], "min_tests": 0}] * 2}, "bad_value"),
        ({"verification": ["npm test"]}, "bad_value"),
        ({"allowed_paths": []}, "bad_value"),
        ({"allowed_paths": "src/"}, "bad_value"),
        ({"allowed_paths": ["../"]}, "bad_value"),
        ({"allowed_paths": ["/etc/"]}, "bad_value"),
        ({"allowed_paths": ["src\\"]}, "bad_value"),
        ({"allowed_paths": [7]}, "bad_value"),
        ({"output_bytes": 10}, "bad_value"),
    ],
)
def test_a_malformed_contract_is_refused(lab, change, cause):
    """Every field is checked before anything is begun."""
    lab.edit(CONTRACT, **change)

    refuses(lab, 2, "refused", "bad_contract", cause)


def test_a_contract_that_is_no_file_of_ours_is_refused(lab):
    """Missing, a link, a folder, too large, no JSON."""
    contract = lab.root / CONTRACT
    kept = contract.read_bytes()
    contract.unlink()
    refuses(lab, 2, "refused", "bad_contract", "not_found")
    contract.symlink_to("package.json")
    assert lab.run().said == ("refused", "bad_contract", "symbolic_link")
    contract.unlink()
    contract.mkdir()
    refuses(lab, 2, "refused", "bad_contract", "not_a_file")
    contract.rmdir()
    contract.write_bytes(kept + b" " * 70_000)
    refuses(lab, 2, "refused", "bad_contract", "too_large")
    contract.write_bytes(
        kept.replace(b'"max_files": 2', b'"max_files": NaN').replace(b'"max_files":2', b'"max_files":NaN')
    )
    refuses(lab, 2, "refused", "bad_contract", "bad_json")


@pytest.mark.parametrize(
    "arguments",
    [["--what"], ["extra"], ["--simulate"], ["--"], ["--", "no-such-program-here"], ["--", "./missing.sh"]],
)
def test_wrong_usage_is_one_json_object_and_exit_2(lab, arguments):
    """Also an agent's command that cannot be started: nothing is claimed for it."""
    before = lab.snapshot()
    ran = lab.run(*arguments)

    assert (ran.code, ran.said) == (2, ("refused", "bad_usage", "arguments"))
    assert ran.answer["message"]
    assert lab.snapshot() == before


def test_idle_only_where_memory_and_queue_agree(lab):
    """No task: exit 0, idle. A done task whose file is gone: not idle."""
    lab.run()
    assert (lab.run().code, lab.run().said) == (0, ("idle", "inbox_empty", None))
    (lab.root / f"tasks/done/{TASK}.json").unlink()

    refuses(lab, 3, "blocked", "finish_incomplete", "task_missing")


DISAGREEMENTS = {
    "still_in_processing": lambda lab: lab.move("done", "processing"),
    "task_missing": lambda lab: (lab.root / f"tasks/done/{TASK}.json").unlink(),
    "wrong_queue": lambda lab: lab.move("done", "closed"),
    "state_missing": remove("state"),
    "state_invalid": spoil("state", b"{}"),
    "bad_record_name": lambda lab: (lab.root / ".loop/claims/a b.json").write_text("{}", "utf-8"),
}


@pytest.mark.parametrize("cause", list(DISAGREEMENTS))
def test_a_finished_task_that_disagrees_with_the_queue_is_named(lab, cause):
    """P15: also when another task waits; only where all agree does the next one begin."""
    lab.run()
    lab.commit()
    DISAGREEMENTS[cause](lab)
    lab.put_task("issue-003")

    refuses(lab, 3, "blocked", "finish_incomplete", cause)


def test_a_state_that_speaks_of_another_task_is_not_believed(lab):
    """A sound state in the wrong place agrees with nothing: not idle."""
    lab.run()
    lab.edit(lab.path("state"), task_id="issue-003")

    refuses(lab, 3, "blocked", "finish_incomplete", "state_invalid")


def test_a_move_made_by_hand_ends_an_incomplete_finish(lab):
    """What the answer asks for is enough."""
    lab.run()
    lab.move("done", "processing")
    assert "tasks/done" in refuses(lab, 3, "blocked", "finish_incomplete", "still_in_processing")["message"]
    lab.move("processing", "done")

    assert lab.run().said == ("idle", "inbox_empty", None)


def test_checks_come_in_their_order(lab):
    """Contract before the task in processing, that before a disagreement, that before idle and the dirty tree."""
    lab.interrupt()
    set_phase("agent_running")(lab)
    stray_file(lab)
    (lab.root / ".loop/results/other.json").write_text("{}", "utf-8")
    lab.edit(CONTRACT, max_lines=0)
    assert lab.run().said[1:] == ("bad_contract", "bad_value")
    lab.git("checkout", "-q", "--", CONTRACT)
    assert lab.run().said[1:] == ("unsafe_resume", "phase_agent_running")
    set_phase("claimed")(lab)
    assert lab.run().said[1:] == ("unsafe_resume", "dirty_tree")
    (lab.root / "src/stray.mjs").unlink()
    assert lab.run().said[1:] == ("finish_incomplete", "state_missing")


def test_interrupting_a_claimed_task_again_records_nothing(claimed):
    """The same JSON, 75, and no new event."""
    before = claimed.snapshot()
    ran = claimed.run("--simulate-interruption-after-claim")

    assert ran.code == 75
    assert ran.answer == {
        "decision": "interrupted",
        "reason": "controlled_after_claim",
        "task_id": TASK,
        "checkpoint": f".loop/tasks/{TASK}/state.json",
    }
    assert claimed.snapshot() == before


def test_an_interruption_needs_a_task_that_may_go_on(claimed):
    """The flag is no way round the checks."""
    set_phase("agent_running")(claimed)

    assert claimed.run("--simulate-interruption-after-claim").said[1] == "unsafe_resume"


def test_tasks_are_taken_one_by_one_in_order(lab):
    """A round does one task; the next run takes the next."""
    lab.put_task("issue-010")
    lab.put_task("issue-003")
    assert lab.run().answer["task_id"] == TASK
    lab.commit()
    ran = lab.run()

    assert (ran.answer["task_id"], ran.said) == ("issue-003", ("rejected", "no_change", "empty_diff"))


def test_the_starter_says_what_is_to_be_done(tmp_path):
    """Without the learner's part the tool answers in JSON, and has moved nothing."""
    lab = Lab(fresh_copy(template(quick=True, code="starter"), tmp_path / "lab"))
    ran = lab.run()

    assert (ran.code, ran.said) == (3, ("blocked", "not_implemented", "exercise"))
    assert "implement" in ran.answer["message"]
    assert lab.places() == ["inbox"]
