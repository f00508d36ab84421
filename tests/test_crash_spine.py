"""The crash lab's state spine: its stand-ins answer as the real tools do, and no crash state breaks what it promises."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from labkit.faults.crash.disk import Layout
from labkit.faults.crash.explorer import Exploration, code_of, explore, record
from labkit.faults.crash.models import allowed, rules
from labkit.faults.crash.promises import Facts, broken
from labkit.faults.crash.recovery import NotWrittenError, Recoveries
from labkit.faults.crash.scenarios import spine
from labkit.faults.crash.states import build
from labkit.faults.crash.switches import Switches, apply
from labkit.faults.crash.trace import Choice
from tests import spine_code  # noqa: F401 - makes issue_garden importable
from tests.spine_lab import environment

# isort: split
from issue_garden.contract import load_contract
from issue_garden.git_view import GitLook, Measure, look, measure
from issue_garden.task import load_task
from issue_garden.verification import run_command

SOURCE = "src/search.mjs"
ACCEPTED = spine.tools().accepted
AS_IT_WAS = spine.tools().commit[SOURCE]


def interrupted(lab: Path) -> None:
    """Claim the task, and stop there."""
    with spine.tools().border():
        spine.run_round(lab, [].append, interrupt=True)


Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "nothing": lambda lab: None,
    "a task moved": lambda lab: (lab / f"tasks/inbox/{spine.TASK}.json").rename(lab / "tasks/done/x.json"),
    "the agent's work": lambda lab: (lab / SOURCE).write_bytes(ACCEPTED),
    "half a source": lambda lab: (lab / SOURCE).write_bytes(ACCEPTED[:300]),
    "an empty source": lambda lab: (lab / SOURCE).write_bytes(b""),
    "no source": lambda lab: (lab / SOURCE).unlink(),
    "a word behind it": lambda lab: (lab / SOURCE).write_bytes(AS_IT_WAS + b"// looked at it\n"),
    "a new file": lambda lab: (lab / "src/new.mjs").write_bytes(b"export {};\n"),
    "a runner's memory": interrupted,
}


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    """The scenario's lab with a real repository."""
    spine.prepare(tmp_path)
    (tmp_path / ".git" / "config").unlink()
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    for command in (["init", "-q", "--template="], ["add", "-A"], [*names, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=tmp_path, env=environment() | settings, check=True)
    return tmp_path


def seen(lab: Path) -> tuple[GitLook, Measure]:
    """What Git says, less what no two repositories share."""
    now = look(lab)
    size = measure(lab, now.head)
    body = b"\n".join(
        line for line in size.diff.split(b"\n") if not line.startswith((b"index", b"@@", b"deleted"))
    )
    return replace(now, head=""), Measure(size.lines, body.replace(b"/dev/null", b"b/" + SOURCE.encode()))


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_the_stand_in_for_git_says_what_git_says(garden: Path, change: Change) -> None:
    """Every difference, what is ignored, counted lines and the diff itself."""
    change(garden)
    really = seen(garden)

    with spine.tools().border():
        assert seen(garden) == really


@pytest.mark.parametrize("source", [AS_IT_WAS, ACCEPTED, ACCEPTED[:300], AS_IT_WAS + b"// looked at it\n"])
def test_the_stand_in_for_node_judges_as_node_does(
    garden: Path, source: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code, number of tests and verdict of the lesson's own acceptance test."""
    monkeypatch.setenv("PATH", environment()["PATH"])
    (garden / SOURCE).write_bytes(source)
    contract, task = load_contract(garden), load_task(garden, "inbox", f"{spine.TASK}.json")

    def judged() -> tuple[int, bool]:
        result = run_command(garden, contract.verification[0], contract, task)
        return result.exit_code, result.passed

    really = judged()
    with spine.tools().border():
        assert judged() == really == (0 if source == ACCEPTED else 1, source == ACCEPTED)


def test_what_nothing_stands_in_for_is_loud(tmp_path: Path) -> None:
    """A command that the runner did not use when the stand-ins were written is an error, never an empty answer."""
    with spine.tools().border(), pytest.raises(LookupError, match="push"):
        subprocess.run(["git", "push"], cwd=tmp_path, check=False)


# --- What the explorer finds ---

ALL = 1_000_000
STORES = ("spine", "spine-resumed", "spine-closed")
LAST_SYNC = 50
"""A round has fewer syncs than this."""


@pytest.fixture(autouse=True)
def _own_counterexamples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))


def keeps_all(store: str | Path, model: str, limit: int | None, events: int = 1) -> Exploration:
    """Explore; fail with what broke, and unless the recorder saw everything."""
    found = explore(store, model, limit=limit, events=events)
    assert [(one.broken, one.state.after, one.state.choices) for one in found.broken] == []
    assert found.verdict == "kept"
    return found


@pytest.mark.parametrize("model", ["kill", "ordered", "weak"])
def test_no_crash_state_of_a_round_breaks_a_promise(model: str) -> None:
    """The first 60 states, simplest first; the proof tries thousands."""
    assert keeps_all("spine", model, 60).explored >= 50


@pytest.mark.parametrize("store", STORES[1:])
def test_no_crash_state_of_a_resumed_or_closed_round_breaks_a_promise(store: str) -> None:
    """Interrupted and gone on with; rejected and closed by a person."""
    assert keeps_all(store, "weak", 60).explored >= 50


@pytest.mark.proof
@pytest.mark.parametrize("store", STORES)
def test_every_killed_round_keeps_every_promise(store: str) -> None:
    """Cut at every byte of every write."""
    found = keeps_all(store, "kill", ALL)
    assert found.complete
    assert found.explored > 4_000


@pytest.mark.proof
@pytest.mark.parametrize("model", ["ordered", "weak", "fail"])
@pytest.mark.parametrize("store", STORES)
def test_thousands_of_crash_states_keep_every_promise(store: str, model: str) -> None:
    """As many as an exploration tries where nobody asks for fewer; of failed operations, all."""
    found = keeps_all(store, model, None)
    assert found.complete or found.explored == 5_000


def test_the_agents_own_work_is_nobodys_promise() -> None:
    """The runner syncs its records and not the source: a power cut may empty that, and the attempt still tells the change."""
    _, code = code_of("spine")
    trace = record(code, 1)
    lost = next(step.number for step in trace.steps if step.op == "write" and step.path == SOURCE)

    state = build(trace, len(trace.steps), [Choice(lost)])

    assert allowed(rules(Layout(trace), "weak"), state.after, state.choices)
    assert state.tree[SOURCE].content == b""
    assert state.acknowledged[-1] == {"decision": "completed", "task": spine.TASK}
    attempt = json.loads(state.tree[f".loop/tasks/{spine.TASK}/attempts/round-001.json"].content)
    assert "p{P}" in attempt["evidence"]["diff"]


# --- The learner's own ---


def test_a_spine_that_is_not_written_is_told_before_anything_is_explored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the untouched starter the missing step is named."""
    monkeypatch.setenv("LAB_TARGET", str(spine.ASSETS / "sample-class" / "untouched-starter"))

    with pytest.raises(NotWrittenError, match="not implemented yet: 实现"):
        explore("spine-starter", "kill", limit=1)


def test_a_learners_spine_is_explored_as_the_solutions_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that LAB_TARGET names is what runs."""
    monkeypatch.setenv("LAB_TARGET", "solution")

    assert keeps_all("spine-starter", "weak", 20).explored == 20


# --- Killed, run again, and then the power goes ---

TWICE = Path(spine.__file__).with_name("spine_twice.py")
FIRST_EVENT = 11
"""Which sync of a round is that of the first line in its log."""


@pytest.mark.parametrize("number", [1, FIRST_EVENT], ids=["a folder's name", "a line of the log"])
def test_what_a_killed_run_left_unsynced_is_not_built_on(number: int) -> None:
    """Killed just before the sync; the next run does a whole round on top of it, or a person closes the task."""
    assert keeps_all(TWICE, "weak", 60, events=number).explored >= 50


@pytest.mark.proof
@pytest.mark.parametrize("number", range(1, LAST_SYNC))
def test_a_round_killed_before_any_sync_is_not_built_on(number: int) -> None:
    """The same for every sync of a round."""
    keeps_all(TWICE, "weak", 200, events=number)


# --- The runner with a mistake ---

STORE, ROUND, TASKS = "state_store.py", "stateful_round.py", "task.py"


@dataclass(frozen=True)
class Slip:
    """The runner with a mistake in one file: texts that are replaced, and which promise a crash then breaks, under a model."""

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    model: str
    breaks: str
    scenario: str | Path = "spine"
    events: int = 1


SLIPS = (
    Slip("no-sync-of-a-file", STORE, ((
        "            write_all(descriptor, content)\n            os.fsync(descriptor)\n",
        "            write_all(descriptor, content)\n",
    ),), "ordered", "state-whole"),
    Slip("no-sync-of-its-folder", STORE, ((
        "    sync_folder(path.parent)\n    # END SOLUTION\n\n\ndef publish_json",
        "    # END SOLUTION\n\n\ndef publish_json",
    ),), "weak", "acknowledged-survive"),
    Slip("written-in-place", STORE, ((
        "    temporary = _write_temporary(path, value)\n    try:\n        replace_file(temporary, path)\n",
        "    temporary = path\n    try:\n        path.write_text(json.dumps(value))\n",
    ),), "kill", "state-whole"),
    Slip("published-in-place", STORE, ((
        "    temporary = _write_temporary(path, value)\n    try:\n        os.link(temporary, path)\n    finally:\n        _forget(temporary)\n",
        "    path.write_text(json.dumps(value))\n",
    ),), "kill", "state-whole"),
    Slip("moved-before-recorded", ROUND, (
        ("    folder.prepare(task.id)\n    digests", '    folder.prepare(task.id)\n    move_task(desk.lab, file_name, "inbox", "processing")\n    digests'),
        ('    move_task(desk.lab, file_name, "inbox", "processing")\n    # The event', "    # The event"),
    ), "kill", "explained"),
    Slip("started-before-recorded", ROUND, (
        ('    state = _advance(desk.folder, checkpoint.state, phase="agent_running")\n', ""),
        ("(desk.lock,))\n    _note", '(desk.lock,))\n    state = _advance(desk.folder, checkpoint.state, phase="agent_running")\n    _note'),
    ), "kill", "acknowledged-survive"),
    Slip("copied-instead-of-moved", TASKS, ((
        '    os.rename(lab / "tasks" / source / file_name, new)\n',
        '    new.write_bytes((lab / "tasks" / source / file_name).read_bytes())\n    (lab / "tasks" / source / file_name).unlink()\n',
    ),), "kill", "task-once"),
    Slip("found-folder-not-synced", STORE, (
        ("        folder.mkdir(mode=0o700)\n", "        folder.mkdir(mode=0o700)\n        sync_folder(folder.parent)\n"),
        ("and we build on it.\n    sync_folder(folder.parent)\n", "and we build on it.\n"),
    ), "weak", "explained", TWICE),
    Slip("found-log-not-synced", STORE, ((
        "        if log.events or log.torn:\n            os.fsync(descriptor)\n", "",
    ),), "weak", "state-whole", TWICE, FIRST_EVENT),
)  # fmt: skip


def with_slip(slip: Slip, folder: Path) -> Path:
    """Lay down a copy of the one file with the slip in it; returns what to import it from."""
    source = next(path for root in spine.CODE if (path := root / "issue_garden" / slip.file).exists())
    text = source.read_text("utf-8")
    for old, new in slip.edits:
        assert text.count(old) == 1, f"{slip.name}: stands in {slip.file} {text.count(old)} times: {old!r}"
        text = text.replace(old, new)
    (folder / "issue_garden").mkdir()
    (folder / "issue_garden" / slip.file).write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_each_slip_has_a_crash_that_breaks_its_promise(slip: Slip, tmp_path: Path) -> None:
    """One step left out, or two in the other order: the explorer finds a state, and names what it breaks."""
    kinds: list[int] = [0]

    found = explore(
        slip.scenario, slip.model, events=slip.events, limit=400, imports=(with_slip(slip, tmp_path),),
        on_progress=lambda progress: kinds.append(progress.broken), stop=lambda: kinds[-1] > 0,
    )  # fmt: skip

    assert slip.breaks in {name for one in found.broken for name in one.broken}


def test_without_the_syncs_of_folders_the_agent_runs_twice() -> None:
    """The agent has just begun; the names of `.loop` and of the task's move were not synced: nothing tells of that start."""
    _, code = code_of("spine")
    trace = apply(record(code, 1), Switches(folder_sync=False))
    begun = next(step.number for step in trace.steps if step.op == "acknowledge")
    lost = [
        step.number
        for step in trace.steps[:begun]
        if step.path in (".loop", f"tasks/inbox/{spine.TASK}.json")
    ]

    state = build(trace, begun, [Choice(number) for number in lost])
    with Recoveries(code, children=1) as recoveries:
        report = recoveries.report(state.tree)

    assert len(lost) == 2
    assert "agent-at-most-once" in broken(
        spine.PROMISES, Facts(trace.acknowledged, state.acknowledged), report
    )


# --- The promises, on reports made by hand ---

SEEN: dict[str, Any] = {
    "places": ["processing"], "records": ["claim", "facts", "state"], "damaged": [], "status": "active", "phase": "claimed",
    "decision": None, "events": ["claim_started", "claim_completed"],
}  # fmt: skip
SOUND: dict[str, Any] = {
    "before": SEEN, "after": SEEN, "answer": {"decision": "completed", "reason": "verified", "cause": None}, "error": None,
    "started": 1, "closed": None, "read": [],
}  # fmt: skip
WRONG: dict[str, dict[str, Any]] = {
    "state-whole": {"after": SEEN | {"damaged": [".loop/claims/issue-002.json"]}},
    "task-once": {"before": SEEN | {"places": ["inbox", "processing"]}},
    "agent-at-most-once": {"started": 2},
    "explained": {"before": SEEN | {"records": ["claim", "state"]}},
    "way-out": {"closed": {"decisions": ["closed", "blocked"], "places": ["closed"]}},
}


@pytest.mark.parametrize("name", WRONG)
def test_each_promise_is_broken_by_its_own_defect(name: str) -> None:
    """One thing wrong in a sound report breaks one promise."""
    known = Facts((), ())

    assert broken(spine.PROMISES, known, SOUND) == ()
    assert broken(spine.PROMISES, known, SOUND | WRONG[name]) == (name,)


def test_a_start_before_the_crash_counts() -> None:
    """The start that was acknowledged, and the one of the next run."""
    known = Facts(({"agent": spine.TASK},), ({"agent": spine.TASK},))

    assert broken(("agent-at-most-once",), known, SOUND) == ("agent-at-most-once",)


def test_a_recovery_that_never_looked_explains_nothing() -> None:
    """A report of a mistake alone is judged, too."""
    report = {"read": None, "error": "KeyError", "after": None}

    assert broken(spine.PROMISES, Facts((), ()), report) == ("explained",)


def test_a_refusal_without_a_cause_explains_nothing() -> None:
    """Nor does a run that dies of its own mistake."""
    silent = SOUND | {"answer": {"decision": "blocked", "reason": "unsafe_resume", "cause": None}}
    dead = SOUND | {"answer": None, "error": "KeyError"}

    assert [broken(("explained",), Facts((), ()), report) for report in (silent, dead)] == [
        ("explained",)
    ] * 2
