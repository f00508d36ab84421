"""The lesson's own commands, typed as the lesson types them, give exactly the lesson's results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spine_lab import TASK, Lab, environment

KIT = Path(__file__).resolve().parents[1]
ACCEPTANCE = "acceptance/{}.test.mjs"


def activated() -> dict[str, str]:
    """The environment after `source .venv/bin/activate`: `python` is the one that runs these tests."""
    env = environment()
    return env | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])}


class Terminal:
    """A shell in some folder, with git's identity set by hand as a learner without the kit would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def type(self, command: str, code: int = 0) -> str:
        """Run a line, expect its exit code, and return what it printed."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if "unittest" in command else "")

    def lab(self) -> Lab:
        return Lab(self.folder)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """The lab copied out of the kit, with lesson 3 done and not committed: the first line of the lesson."""
    shutil.copytree(
        KIT / "assets", tmp_path / "assets", ignore=shutil.ignore_patterns("sample-class", "__pycache__")
    )
    outside = Terminal(tmp_path)
    outside.type("cp -R assets/issue-garden-lab issue-garden-lab && git init -q issue-garden-lab")
    inside = Terminal(tmp_path / "issue-garden-lab")
    inside.type("git config user.name learner && git config user.email learner@localhost")
    inside.type("git add . && git commit -qm base")
    outside.type(
        "cp -R assets/lesson-03-result/. issue-garden-lab/ && rm issue-garden-lab/tasks/inbox/issue-001.json"
    )
    return inside


def overlaid(terminal: Terminal) -> Terminal:
    """Steps 1 and 2: save lesson 3, copy the overlay, save that."""
    terminal.type('git add src/search.mjs tasks && git commit -qm "fix: normalize search whitespace"')
    Terminal(terminal.folder.parent).type("cp -R assets/lesson-04-state/. issue-garden-lab/")
    terminal.type('git add . && git commit -qm "feat: add recoverable loop state"')
    return terminal


def test_step_1_three_commands_pass_and_a_commit_leaves_nothing(terminal: Terminal) -> None:
    """Lesson 3's result stands uncommitted, is verified, and saved."""
    status = terminal.type("git status --short")
    assert status == " M src/search.mjs\n D tasks/inbox/issue-001.json\n?? tasks/done/issue-001.json\n"
    for command in (f"node --test {ACCEPTANCE.format('fullwidth-space')}", "npm test", "npm run check"):
        terminal.type(command)
    terminal.type('git add src/search.mjs tasks && git commit -m "fix: normalize search whitespace"')

    assert terminal.type("git status --short") == ""


def test_step_2_ten_control_plane_tests_pass(terminal: Terminal) -> None:
    """Eight before the overlay; ten after it, and after every later step; a clean tree, byte code and all."""
    discover = 'python -m unittest discover -s loop_tests -p "test_*.py" -v'
    assert "Ran 8 tests" in terminal.type(discover)
    overlaid(terminal)
    output = terminal.type(discover)
    assert "Ran 10 tests" in output
    assert output.count(" ... ok") == 10
    assert terminal.type("git status --short") == ""

    terminal.type("python tools/run_once.py --simulate-interruption-after-claim", 75)
    terminal.type(discover)
    terminal.type("python tools/run_once.py")
    assert "Ran 10 tests" in terminal.type(discover)


def test_step_3_the_wanted_behaviour_is_absent(terminal: Terminal) -> None:
    """The acceptance test fails on its assertion, with the query that the lesson names."""
    overlaid(terminal)
    output = terminal.type(f"node --test --test-reporter=tap {ACCEPTANCE.format('punctuation-search')}", 1)

    assert "ERR_ASSERTION" in output
    assert "Randal，Bryant" in (terminal.folder / ACCEPTANCE.format("punctuation-search")).read_text("utf-8")


def test_step_4_a_controlled_interruption(terminal: Terminal) -> None:
    """Exit code 75 and its JSON; the task in processing; active and claimed; three events; no change of source."""
    overlaid(terminal)
    output = terminal.type("python tools/run_once.py --simulate-interruption-after-claim", 75)

    assert json.loads(output) == {
        "decision": "interrupted",
        "reason": "controlled_after_claim",
        "task_id": TASK,
        "checkpoint": f".loop/tasks/{TASK}/state.json",
    }
    assert terminal.type("ls tasks/inbox") == ""
    assert terminal.type("ls tasks/processing") == f"{TASK}.json\n"
    state = json.loads(terminal.type(f"python -m json.tool .loop/tasks/{TASK}/state.json"))
    assert (state["task_id"], state["status"], state["phase"], state["round"]) == (
        TASK,
        "active",
        "claimed",
        1,
    )
    assert state["updated_at"].endswith("Z")
    events = terminal.type(f"cat .loop/tasks/{TASK}/events.jsonl").splitlines()
    assert [json.loads(line)["type"] for line in events] == [
        "claim_started",
        "claim_completed",
        "controlled_interruption",
    ]
    assert terminal.type("git diff -- src/search.mjs") == ""


def test_steps_5_and_6_resumed_completed_and_seen_from_three_sides(terminal: Terminal) -> None:
    """The report; four commands; the queue; the durable records; and nothing committed by itself."""
    overlaid(terminal)
    terminal.type("python tools/run_once.py --simulate-interruption-after-claim", 75)
    report = json.loads(terminal.type("python tools/run_once.py"))

    assert {key: report[key] for key in ("decision", "reason", "task_id", "round", "resumed")} == {
        "decision": "completed", "reason": "verified", "task_id": TASK, "round": 1, "resumed": True,
    }  # fmt: skip
    assert report["agent"]["status"] == "changed"
    assert report["changes"] == {"files": ["src/search.mjs"], "lines": 2}
    assert report["boundary_errors"] == []
    for command in ("punctuation-search", "fullwidth-space"):
        terminal.type(f"node --test {ACCEPTANCE.format(command)}")
    terminal.type("npm test && npm run check")
    assert terminal.type("ls tasks/processing") == ""
    assert terminal.type("ls tasks/done") == f"issue-001.json\n{TASK}.json\n"
    lab = terminal.lab()
    assert (lab.record("state")["status"], lab.record("state")["phase"]) == ("completed", "finished")
    assert lab.record("result")["decision"] == "completed"
    attempt = lab.record("attempt")
    assert attempt["resumed"] is True
    assert [c["exit_code"] for c in attempt["evidence"]["commands"]] == [0, 0, 0]
    assert all(c["output"] for c in attempt["evidence"]["commands"])
    diff = terminal.type("git diff -- src/search.mjs")
    assert [line[0] for line in diff.splitlines()[4:] if line[0] in "+-"] == ["-", "+"]
    assert terminal.type("git status --short") == (
        f" M src/search.mjs\n D tasks/inbox/{TASK}.json\n?? tasks/done/{TASK}.json\n"
    )


def test_step_8_the_whole_state_is_set_aside_for_a_redo(terminal: Terminal) -> None:
    """`.loop` renamed, code and queue as before: the task is fresh again."""
    overlaid(terminal)
    terminal.type("python tools/run_once.py")
    terminal.type(f"mv .loop ../issue-garden-loop-previous && git checkout -- . && rm tasks/done/{TASK}.json")

    assert json.loads(terminal.type("python tools/run_once.py"))["resumed"] is False


def test_the_old_runner_forgets_what_it_did(terminal: Terminal) -> None:
    """Lesson 3's entry, before the overlay: a task left in processing is one listing with three possible truths."""
    terminal.type("git add . && git commit -qm lesson-3 && mv tasks/done/issue-001.json tasks/processing/")
    answer = json.loads(terminal.type("python tools/run_once.py", 3))
    assert (answer["decision"], answer["reason"]) == ("blocked", "unexplained_task")
    assert not (terminal.folder / ".loop").exists()

    assert json.loads(terminal.type("python tools/close_task.py issue-001"))["decision"] == "closed"
    assert terminal.type("ls tasks/closed") == "issue-001.json\n"


def test_the_old_runner_did_lesson_3(tmp_path: Path) -> None:
    """From the base, one round of the old entry leaves exactly lesson 3's result."""
    inside = Terminal(shutil.copytree(KIT / "assets/issue-garden-lab", tmp_path / "lab"))
    inside.type("git init -q . && git config user.name x && git config user.email x@localhost")
    inside.type("git add . && git commit -qm base")
    assert json.loads(inside.type("python tools/run_once.py"))["decision"] == "completed"

    result = KIT / "assets/lesson-03-result"
    for path in ("src/search.mjs", "tasks/done/issue-001.json"):
        assert (inside.folder / path).read_bytes() == (result / path).read_bytes()


def test_the_starters_two_new_tests_fail_and_the_eight_guards_pass(terminal: Terminal) -> None:
    """Not implemented, said in both languages, and never an import error."""
    overlaid(terminal)
    shutil.copytree(
        KIT / "starter/lesson_04/issue_garden", terminal.folder / "issue_garden", dirs_exist_ok=True
    )
    output = terminal.type('python -m unittest discover -s loop_tests -p "test_*.py" -v', 1)

    assert output.count(" ... ok") == 8
    assert output.count(" ... ERROR") == 2
    assert "NotImplementedError: 实现规范化摘要 (implement the canonical digest)" in output
    assert "NotImplementedError: 实现原子写入 (implement the atomic write)" in output
