"""What earns nothing: an answer without the work, records without the work, work that cheats, code that attacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.grade import grade_handin
from grader.intake import take
from grader.settings import load_settings
from grader.suites import load_suite
from grader.suites.mutants import edited
from grader.suites.mutants.lesson_04 import ROUND, STORE
from labkit.workspace import kit_root

SUITE = load_suite("04")
STARTER = kit_root() / "assets/sample-class/untouched-starter/lesson_04/issue_garden"
SOLUTION = kit_root() / "solution/lesson_04/issue_garden"
ABOUT_ROUNDS = {"04-live", "04-p01"}

SAYS_THE_RIGHT_THING = '''

def run_round(lab, agent, *, interrupt_after_claim=False):
    """Print what a right runner would print."""
    name = (list_queue(lab, "processing") + list_queue(lab, "inbox") or ["x.json"])[0]
    task_id = name.removesuffix(".json")
    state = f".loop/tasks/{task_id}/state.json"
    if interrupt_after_claim:
        return Answer("interrupted", "controlled_after_claim", details={"task_id": task_id, "checkpoint": state})
    details = {
        "task_id": task_id, "round": 1, "resumed": True, "agent": {"status": "changed", "summary": "done"},
        "changes": {"files": ["src/search.mjs"], "lines": 2}, "boundary_errors": [],
        "commands": [{"name": word, "exit_code": 0, "passed": True} for word in ("acceptance", "tests", "check")],
        "attempt": f".loop/tasks/{task_id}/attempts/round-001.json", "decided_at": now_utc(),
    }
    return Answer("completed", "verified", None, "done", details)
'''

WRITES_THE_RIGHT_RECORDS = '''

def run_round(lab, agent, *, interrupt_after_claim=False):
    """Leave every record that a right runner would leave, and do none of the work."""
    import hashlib, json, subprocess

    name = (list_queue(lab, "processing") + list_queue(lab, "inbox"))[0]
    task_id = name.removesuffix(".json")
    queue = "processing" if name in list_queue(lab, "processing") else "inbox"
    task = json.loads((lab / "tasks" / queue / name).read_bytes())

    def digest(value):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def put(path, value):
        path = lab / ".loop" / path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        path.write_text(json.dumps(value))

    ground = {
        "task_digest": digest(task), "contract_digest": digest(json.loads((lab / "loop.contract.json").read_bytes())),
        "head": subprocess.run(["git", "rev-parse", "HEAD"], cwd=lab, capture_output=True, text=True).stdout.strip(),
    }
    put(f"claims/{name}", {"task_id": task_id, "file_name": name, **ground, "claimed_at": now_utc(), "runner_pid": 7})
    put(f"tasks/{task_id}/facts.json", {"task_id": task_id, "task": task, **ground, "recorded_at": now_utc()})
    kinds = ["claim_started", "claim_completed", "agent_started", "agent_finished", "evidence_recorded", "decided"]
    log = [{"sequence": n, "type": kind, "at": now_utc()} for n, kind in enumerate(kinds, start=1)]
    path = lab / f".loop/tasks/{task_id}/events.jsonl"
    path.touch(mode=0o600)
    path.write_text("".join(json.dumps(line) + "\\n" for line in log))
    state = {"task_id": task_id, "status": "completed", "phase": "finished", "round": 1, "updated_at": now_utc()}
    put(f"tasks/{task_id}/state.json", state)
    changes = {"files": ["src/search.mjs"], "lines": 2}
    agent = {"kind": "simulated", "status": "changed", "summary": "done", "cause": None}
    evidence = {"changes": changes, "commands": []}
    put(f"tasks/{task_id}/attempts/round-001.json", {
        "task_id": task_id, "round": 1, "resumed": False, "started_at": now_utc(), "finished_at": now_utc(),
        "agent": agent, "evidence": evidence,
    })
    details = {"task_id": task_id, "round": 1, "resumed": False, "agent": {"status": "changed", "summary": "done"},
               "changes": changes, "boundary_errors": []}
    answer = Answer("completed", "verified", None, "done", details)
    put(f"results/{name}", answer.as_object())
    source = lab / "src" / "search.mjs"
    source.write_bytes(source.read_bytes().replace(rb".replace(/\\s+/gu", rb".replace(/[\\s\\p{P}]+/gu"))
    move_task(lab, name, queue, "done")
    return answer
'''

RUNS_THE_AGENT = "    report = agent.run(desk.lab, task, desk.contract, (desk.lock,))\n"
DECIDES = "    decision, reason, cause = decide(evidence)\n"
CHEATS = {
    "edits-acceptance-tests": (
        (
            RUNS_THE_AGENT,
            f'{RUNS_THE_AGENT}    (desk.lab / task.acceptance).write_text("// nothing to fail\\n")\n',
        ),
        (DECIDES, '    decision, reason, cause = "completed", "verified", None\n'),
    ),
    "moves-head": (
        (
            "    answer = _answer(folder, evidence",
            (
                '    import subprocess\n\n    subprocess.run(["git", "commit", "-qam", "done"], cwd=desk.lab)\n'
                "    answer = _answer(folder, evidence"
            ),
        ),
    ),
}

LOOKS_INTO_THE_HOST = """
import ctypes, os
kernel, host, found = ctypes.CDLL(None), os.getppid(), False
try:
    found = bool(open(f"/proc/{host}/mem", "r+b"))
except OSError:
    pass
process = kernel.syscall(434, host, 0)  # pidfd_open; below: pidfd_getfd
found = found or any(kernel.syscall(438, process, number, 0) >= 0 for number in range(3, 64))
if not found:
    raise ImportError("kept out")
"""
ATTACKS = {
    "leaves-at-import": ("import os; os._exit(0)", "import-error"),
    "exits-at-import": ("import sys; sys.exit(0)", "import-error"),
    "skips-itself": ("import unittest; raise unittest.SkipTest('not today')", "import-error"),
    "is-no-python": ("def broken(:", "syntax-error"),
    "never-imported": ("while True: pass", "timeout"),
    "kills-the-host": ("import os; os.kill(os.getppid(), 9)", "crash"),
    "looks-into-the-host": (LOOKS_INTO_THE_HOST, "import-error"),
    "takes-all-memory": ("hoard = bytearray(3 << 30)", "memory"),
    "answers-by-itself": (
        (
            "import os\n"
            'for number in range(3, 1024):\n    try:\n        os.write(number, b\'{"id":1,"ok":{"exit":0}}\\n\')\n'
            "    except OSError:\n        pass\nos._exit(0)"
        ),
        "import-error",
    ),
}


def hand_in(folder, store, source):
    place = folder / "lesson_04" / "issue_garden"
    place.mkdir(parents=True)
    (place / STORE).write_text(store, "utf-8")
    (place / ROUND).write_text(source, "utf-8")
    return take(folder, "04")


@pytest.mark.parametrize("forgery", [SAYS_THE_RIGHT_THING, WRITES_THE_RIGHT_RECORDS], ids=["says", "writes"])
def test_an_answer_without_the_work_earns_nothing(forgery, tmp_path):
    """Neither the right JSON nor the right records are evidence of a round that never was."""
    store = (STARTER / STORE).read_text("utf-8")
    handin = hand_in(tmp_path, store, (STARTER / ROUND).read_text("utf-8") + forgery)

    _, outcome = grade_handin(handin, SUITE.checks, load_settings())

    assert [test.check.id for test in outcome.tests if test.passed and not test.check.guard] == []
    assert outcome.points == 0
    assert "error" not in {test.finding.status for test in outcome.tests}


@pytest.mark.parametrize("cheat", CHEATS)
def test_work_that_cheats_is_no_round(cheat, tmp_path):
    """A runner that edits the tests, or commits, fails where whole rounds are judged, whatever it says."""
    source = edited(cheat, (SOLUTION / ROUND).read_text("utf-8"), CHEATS[cheat])
    handin = hand_in(tmp_path, (SOLUTION / STORE).read_text("utf-8"), source)
    checks = [check for check in SUITE.checks if check.id in ABOUT_ROUNDS]

    _, outcome = grade_handin(handin, checks, load_settings())

    assert {test.check.id: test.finding.reason for test in outcome.tests} == dict.fromkeys(
        ABOUT_ROUNDS, "fail"
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_fails_everything_for_its_reason(attack, tmp_path):
    """Not one check passes, guards included, and none is the grader's own error."""
    line, reason = ATTACKS[attack]
    store = (SOLUTION / STORE).read_text("utf-8").replace("import stat\n", f"import stat\n{line}\n", 1)
    settings = load_settings()
    quick = settings.by_lesson["04"] | {"start_seconds": 3 if reason == "timeout" else 30}
    settings = replace(settings, by_lesson={"04": quick})

    _, outcome = grade_handin(
        hand_in(tmp_path, store, (SOLUTION / ROUND).read_text("utf-8")), SUITE.required, settings
    )

    assert {test.finding.reason for test in outcome.tests} == {reason}
    assert outcome.points == 0
