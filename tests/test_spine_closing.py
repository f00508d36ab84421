"""A person's way out (P16): close a task whatever became of it, and hand a corrected one in under a new id."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.spine_lab import TASK, Lab, environment

pytest_plugins = ["tests.spine_fixtures"]


def is_closed(lab: Lab, text: str = "not wanted any more") -> None:
    """Event, result, state and queue all say so."""
    assert lab.events()[-1] | {"at": ""} == {
        "sequence": len(lab.events()), "type": "closed", "at": "", "text": text,
    }  # fmt: skip
    result = lab.record("result")
    assert (result["decision"], result["reason"], result["text"]) == ("closed", "closed_by_person", text)
    assert (lab.record("state")["status"], lab.record("state")["phase"]) == ("closed", "finished")
    assert lab.places() == ["closed"]
    assert lab.run().said == ("idle", "inbox_empty", None)


def test_a_rejected_task_waits_for_a_person_and_then_makes_room(lab):
    """Blocked until it is closed; its old result stays inside the new one; a new id comes in."""
    lab.edit("loop.contract.json", verification=[{"name": "no", "argv": ["false"], "min_tests": 0}])
    lab.commit()
    rejected = lab.run().answer
    assert lab.run().said == ("blocked", "needs_person", "rejected")

    closed = lab.close()

    assert (closed.code, closed.said) == (0, ("closed", "closed_by_person", None))
    is_closed(lab)
    assert lab.record("result")["before"] == rejected
    lab.put_task("issue-003")
    lab.git("checkout", "-q", "--", "src")
    assert lab.run().answer["task_id"] == "issue-003"


def test_a_corrected_task_is_accepted_under_a_new_id(claimed):
    """Carried back and edited it is refused; closed, and handed in anew under another id, it is done."""
    claimed.move("processing", "inbox")
    claimed.edit(f"tasks/inbox/{TASK}.json", title="corrected")
    assert claimed.run().said[1] == "claim_exists"

    assert claimed.close(text="corrected as issue-003").code == 0

    is_closed(claimed, "corrected as issue-003")
    claimed.put_task("issue-003", title="corrected")
    assert claimed.run().said == ("completed", "verified", None)


@pytest.mark.parametrize("phase", ["claiming", "claimed", "agent_running", "agent_finished"])
def test_every_phase_can_be_closed(claimed, phase):
    """Wherever a round stopped."""
    claimed.edit(claimed.path("state"), phase=phase)

    assert claimed.close().code == 0
    is_closed(claimed)
    assert claimed.record("result")["before"] is None


@pytest.mark.parametrize("kind", ["claim", "facts", "state", "events", "result"])
@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_missing_or_damaged_record_does_not_shut_the_way_out(claimed, kind, how):
    """What is damaged is kept beside it under another name."""
    path = claimed.path(kind)
    path.unlink(missing_ok=True)
    if how == "damaged":
        path.write_bytes(b"\0" * 20 + b"\n")

    assert claimed.close().code == 0
    is_closed(claimed)
    kept = path.with_name(f"{path.name}.damaged")
    assert kept.exists() == (how == "damaged" and kind not in ("claim", "facts"))


def test_a_second_damaged_record_overwrites_no_first(claimed):
    """The names that are taken are passed over."""
    state = claimed.path("state")
    state.with_name("state.json.damaged").write_text("first", "utf-8")
    state.write_text("second", "utf-8")

    assert claimed.close().code == 0
    assert state.with_name("state.json.damaged").read_text("utf-8") == "first"
    assert state.with_name("state.json.damaged-2").read_text("utf-8") == "second"


def test_a_task_without_any_record_can_be_closed_from_processing(lab):
    """Moved there by hand, or its `.loop` is gone."""
    lab.move("inbox", "processing")
    assert lab.run().said == ("blocked", "unsafe_resume", "claim_missing")

    assert lab.close().code == 0
    is_closed(lab)


def test_a_task_whose_file_is_gone_can_be_closed(claimed):
    """The records are closed; there is nothing to move."""
    (claimed.root / f"tasks/processing/{TASK}.json").unlink()
    assert claimed.run().said[1:] == ("finish_incomplete", "task_missing")

    assert claimed.close().code == 0
    assert claimed.run().said == ("idle", "inbox_empty", None)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([TASK], "arguments"),
        (["--reason", "x"], "arguments"),
        ([TASK, "--reason", " "], "arguments"),
        ([TASK, "--reason", "x", "--what"], "arguments"),
        ([TASK, "--reason", "x" * 2_001], "arguments"),
        (["../x", "--reason", "x"], "bad_id"),
        ([f"{TASK}\n", "--reason", "x"], "bad_id"),
        (["x" * 81, "--reason", "x"], "bad_id"),
        (["issue-999", "--reason", "x"], "unknown_task"),
        ([TASK, "--reason", "x"], "unknown_task"),
    ],
)
def test_wrong_usage_is_refused(lab, arguments, cause):
    """Also for a task that was never taken: it is edited, not closed."""
    before = lab.snapshot()
    ran = lab.tool("close_task.py", *arguments)

    assert (ran.code, ran.said) == (2, ("refused", "bad_usage", cause))
    assert lab.snapshot() == before


def test_what_is_at_rest_stays_as_it_is(lab):
    """A completed task, and one that is closed already."""
    lab.run()
    assert lab.close().said == ("refused", "bad_usage", "already_completed")
    lab.commit()
    lab.put_task("issue-003")
    lab.run("--simulate-interruption-after-claim")
    lab.close("issue-003")
    before = lab.snapshot()

    assert lab.close("issue-003").said == ("refused", "bad_usage", "already_closed")
    assert lab.snapshot() == before


def test_closing_waits_for_nobody(lab):
    """While a runner works, closing is refused like a second runner."""
    import fcntl  # noqa: PLC0415 - where there are such locks

    (lab.root / ".loop").mkdir()
    with (lab.root / ".loop/runner.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = lab.close()

    assert (ran.code, ran.said) == (3, ("blocked", "runner_active", "lock_held"))


def test_a_reason_typed_in_another_encoding_is_kept(claimed):
    """Bytes that are no UTF-8 are written as what they were."""
    subprocess.run(
        [sys.executable, b"tools/close_task.py", TASK.encode(), b"--reason", b"caf\xe9"],
        cwd=claimed.root, env=environment(), capture_output=True, check=True,
    )  # fmt: skip

    assert claimed.record("result")["text"] == "caf\\udce9"


def test_a_stale_claim_is_released_only_on_command(claimed):
    """Row 111: its owner is long dead; the claim stays, and is named, until a person closes it."""
    claimed.edit(claimed.path("claim"), runner_pid=999_999, claimed_at="2001-01-01T00:00:00.000Z")
    claimed.edit(claimed.path("state"), phase="agent_running")
    assert claimed.run().said == ("blocked", "unsafe_resume", "phase_agent_running")
    assert claimed.path("claim").exists()

    claimed.close()
    assert claimed.types()[-1] == "closed"


def test_the_tools_answer_in_any_locale(claimed):
    """Row 31: a terminal without UTF-8 still gets UTF-8 JSON, and the same text."""
    done = subprocess.run(
        [sys.executable, "tools/close_task.py", TASK, "--reason", "plain"],
        cwd=claimed.root, env=environment() | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True, check=True,
    )  # fmt: skip

    assert json.loads(done.stdout.decode("utf-8"))["decision"] == "closed"
    assert claimed.run(env={"LC_ALL": "C", "PYTHONUTF8": "0"}).said[0] == "idle"


def test_an_id_in_another_spelling_is_refused_and_nothing_is_written(claimed):
    """Ids that differ in case are one id; records under the second spelling would contradict the first."""
    before = claimed.snapshot()

    assert claimed.close(TASK.upper()).said == ("refused", "bad_usage", "unknown_task")

    assert claimed.snapshot() == before
