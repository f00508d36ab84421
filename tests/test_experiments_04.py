"""The experiments of lesson 04: what a learner sees in a lab, whatever the learner has written so far."""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit import lab_folder, workspace
from labkit.experiments import lesson_04 as lab
from labkit.experiments.lesson_04 import garden, prepared, scenes, sweeping, transcript
from labkit.experiments.lesson_04.garden import Garden, Step
from labkit.experiments.lesson_04.scenes import Scene, Scenes, Trial, Trials

COMPARED = (lab.crash_after_the_move, lab.digests, lab.interrupt, lab.kill_savers, lab.put_back, lab.resume)
"""Experiments that run the same script with the reference's spine and with the learner's."""
TRIED = (lab.changed_ground, lab.changed_task, lab.eight_refusals, lab.forced_phases, lab.missing_records)
"""Experiments that ask both runners about the same changes."""
MESSAGES = ("实现规范化摘要", "实现原子写入", "实现独占发布", "实现事件追加", "实现领取顺序", "实现恢复检查")


@pytest.fixture(scope="module")
def labs(tmp_path_factory) -> Path:
    """Where prepared labs are kept while these tests run: each is made once."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(autouse=True)
def playground(tmp_path, monkeypatch, labs) -> Path:
    """The experiments' files go to a folder of this test."""
    monkeypatch.setattr(workspace, "scratch", lambda name: tmp_path / "workspace" / name)
    monkeypatch.setattr(prepared, "folder", lambda: labs)
    return tmp_path


@pytest.fixture
def learner(playground, monkeypatch):
    """Change the learner's spine, and make that the code that is being worked on."""

    def write(**texts: str) -> None:
        folder = playground / "learner"
        source = workspace.kit_root() / "solution/lesson_04"
        shutil.copytree(source, folder / "lesson_04", dirs_exist_ok=True)
        for name, text in texts.items():
            (folder / "lesson_04/issue_garden" / f"{name}.py").write_text(text, "utf-8")
        monkeypatch.setenv("LAB_TARGET", str(folder))

    return write


@pytest.fixture
def starter(learner) -> None:
    """The learner has not written anything yet."""
    made = workspace.kit_root() / "assets/sample-class/untouched-starter/lesson_04/issue_garden"
    learner(**{name: (made / f"{name}.py").read_text("utf-8") for name in ("state_store", "stateful_round")})


def solution(name: str) -> str:
    return (workspace.kit_root() / "solution/lesson_04/issue_garden" / f"{name}.py").read_text("utf-8")


def run(experiment: Callable[[], Any]) -> Any:
    return asyncio.run(experiment())


def test_every_comparing_experiment_is_tried_here():
    """An experiment that runs the learner's code cannot be added without being run below."""
    found = {
        getattr(lab, name)
        for name in lab.__all__
        if inspect.iscoroutinefunction(getattr(lab, name))
        and any(word in inspect.getsource(getattr(lab, name)) for word in ("compare(", "trials("))
    }

    assert found - {lab.impossible_ids} == {*COMPARED, *TRIED}


@pytest.mark.parametrize("experiment", COMPARED, ids=lambda one: one.__name__)
def test_solution_answers_as_the_reference_does(experiment, monkeypatch):
    """The learner's card agrees with the reference's once it holds the solution; every naive one differs."""
    monkeypatch.setenv("LAB_TARGET", "solution")
    seen = run(experiment)

    assert "= " in transcript.scenes(Scenes((seen["kit"], seen["yours"])))
    naive = [side for side in seen.sides if side.name not in ("kit", "yours")]
    assert all(side.found != seen["kit"].found for side in naive)


@pytest.mark.parametrize("experiment", COMPARED, ids=lambda one: one.__name__)
def test_untouched_starter_says_not_written_yet(experiment, starter):
    """The learner's card says which step is missing, in words and not as an error; the others stand as ever."""
    seen = run(experiment)

    assert any(message in seen["yours"].unfinished for message in MESSAGES)
    assert not seen["kit"].unfinished
    assert seen["yours"].unfinished in seen._repr_html_()


@pytest.mark.parametrize("experiment", TRIED, ids=lambda one: one.__name__)
def test_solution_refuses_as_the_reference_does(experiment, monkeypatch):
    """Same exit code, cause, starts and disk for every change; the column says so."""
    monkeypatch.setenv("LAB_TARGET", "solution")
    seen = run(experiment)

    assert list(seen.yours.values()) == list(seen.kit.values())
    assert "≠" not in seen._repr_html_()


@pytest.mark.parametrize("experiment", TRIED, ids=lambda one: one.__name__)
def test_untouched_starter_has_no_verdict(experiment, starter):
    """On the starter each change that needs the resume check is answered by the name of the missing step."""
    seen = run(experiment)
    asked = [trial for kind, trial in seen.yours.items() if kind != "back-to-inbox"]

    assert all("实现恢复检查" in trial.unfinished for trial in asked)
    assert not any(trial.unfinished for trial in seen.kit.values())


def test_lab_of_the_learner_is_claimed_by_the_reference(starter, playground):
    """What the learner's resume check is asked about was claimed as it should be, also by a starter that cannot."""
    place = prepared.copy_of("claimed", playground / "mine", workspace.target())
    found = lab_folder.status(place)

    assert found.code == "starter"
    assert found.tasks == {"issue-002": "active/claimed"}
    assert found.changed == [" D tasks/inbox/issue-002.json", "?? tasks/processing/issue-002.json"]


# --- A learner's code may do anything ---


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ({"state_store": "def broken(:\n"}, "SyntaxError"),
        ({"state_store": "import no_such_module\n"}, "ModuleNotFoundError"),
        ({"stateful_round": "raise SystemExit(9)\n"}, None),
        ({"stateful_round": "def run_round(*a, **k): raise KeyError('x')\n"}, "KeyError"),
        ({"stateful_round": "def run_round(*a, **k): print('[1, 2]'); raise SystemExit\n"}, None),
    ],
)
def test_whatever_the_learner_does_is_shown(learner, texts, shown):
    """A learner's error ends in the learner's card, as what was printed; the notebook goes on."""
    learner(**texts)
    seen = run(lab.interrupt)

    assert "≠" in seen._repr_html_()
    assert shown is None or shown in seen["yours"].steps[0].out


def test_a_run_that_never_ends_is_given_up(learner, monkeypatch):
    """A learner's round that waits for ever is ended, and the card says so."""
    monkeypatch.setattr(garden, "PATIENCE_SECONDS", 3)
    learner(stateful_round="def run_round(*a, **k):\n    while True: pass\n")
    seen = run(lab.interrupt)

    assert seen["yours"].found == [
        "TimeoutError: python tools/run_once.py --simulate-interruption-after-claim: no answer within 3 s"
    ]


def test_a_wrong_resume_check_is_marked(learner):
    """A learner's runner that goes on from agent_running differs from the reference exactly there."""
    wrong = solution("stateful_round").replace("if not state.resumable:", "if state.phase == 'claiming':")
    learner(stateful_round=wrong.replace("    _check_log(desk.folder, state)\n", ""))
    seen = run(lab.forced_phases)

    assert seen.kit["phase-claiming"] == seen.yours["phase-claiming"]
    assert seen.yours["phase-agent_running"].starts == 1
    assert seen._repr_html_().count("≠") == 2


def test_a_saver_that_writes_in_place_is_caught(learner):
    """A learner's atomic_write_json that is not atomic leaves an empty or half file, and parts from the reference."""
    wrong = solution("state_store").replace(
        "    temporary = _write_temporary(path, value)\n    try:\n        replace_file(temporary, path)",
        "    path.write_text(json.dumps(value, indent=2))\n    return\n    try:\n        replace_file(temporary, path)",
    )
    learner(state_store=wrong)
    seen = run(lab.kill_savers)

    assert {"empty", "half"} <= set(seen["yours"].found)
    assert "≠" in seen._repr_html_()


# --- The experiments themselves ---


def test_an_experiment_can_be_run_again():
    """The second run of a cell finds a fresh lab, and the first run's files are gone."""
    first, second = run(lab.put_back), run(lab.put_back)

    assert first["kit"].exits == second["kit"].exits
    assert first["kit"].root == second["kit"].root


def test_nothing_outside_the_experiments_folder_changes(playground, monkeypatch):
    """Whatever agents and kills do, the kit's own files stay as they are."""
    monkeypatch.setenv("LAB_TARGET", "solution")
    kit = workspace.kit_root()
    before = {path: path.read_bytes() for path in (kit / "assets/issue-garden-lab").rglob("*.mjs")}
    for experiment in (lab.killed_agents, lab.two_boundaries, lab.redo):
        run(experiment)

    assert {path: path.read_bytes() for path in before} == before
    assert [path.name for path in (playground / "workspace").iterdir()] == ["04-state-spine"]


def test_sweep_of_every_operation_strikes_more_and_finds_the_same():
    """What the notebook leaves out for speed changes no verdict: every operation, the same reasons."""
    some, every = run(lab.kill_everywhere), asyncio.run(lab.kill_everywhere(every=True))

    assert len(every.strikes) > 2 * len(some.strikes)
    assert every.goes_on_from == some.goes_on_from == {None, "claimed"}
    assert every.disagreements == some.disagreements
    assert all(strike.once and strike.whole and strike.starts <= 1 for strike in every.strikes)


def test_sweep_tells_a_broken_record(tmp_path):
    """A record that is no whole JSON is seen; temporary files are not records."""
    root = tmp_path / "lab"
    (root / ".loop/claims").mkdir(parents=True)
    (root / ".loop/claims/.issue-002.json.0123456789abcdef.tmp").write_text("{")
    assert sweeping._whole(Garden(root, []))

    (root / ".loop/claims/issue-002.json").write_text('{"task_id": ')
    assert not sweeping._whole(Garden(root, []))


def test_an_agent_that_outlives_its_limit_leaves_nothing():
    """At its time limit an agent is ended together with what it started in a session of its own."""
    seen = run(lab.endless_agent)

    assert seen["agent_process"]["timed_out"] is True
    assert seen["grandchild"] is False


def test_prepared_lab_is_made_anew_when_its_sources_change(learner, labs):
    """A learner's edit gives another lab; the one for the code before it is removed."""
    learner(state_store=solution("state_store") + "\n# one\n")
    first = prepared.template("ready", workspace.target(), quick=True)
    learner(state_store=solution("state_store") + "\n# two\n")
    second = prepared.template("ready", workspace.target(), quick=True)

    assert first != second
    assert not first.exists()
    assert [path for path in labs.iterdir() if path.name.startswith(".making-")] == []


def test_half_a_prepared_lab_is_never_kept(monkeypatch, labs):
    """When making a lab fails midway, nothing remains that a later cell could take for a lab."""
    monkeypatch.setattr(prepared, "_fingerprint", lambda _code: "broken")
    monkeypatch.setattr(Garden, "commit", lambda *_: (_ for _ in ()).throw(RuntimeError("stopped midway")))

    with pytest.raises(RuntimeError):
        prepared.template("ready", "solution", quick=True)
    assert [path for path in labs.iterdir() if "broken" in path.name or "making" in path.name] == []


# --- How it looks ---


def test_what_a_program_prints_is_escaped():
    """Output and findings are text: they become no markup, and nothing in them hides."""
    steps = (
        Step("<b>typed</b>", 0, "<script>\x1b[31m\u202e\n"),
        Step("found", value={"<i>": ["<u>"], "none": None, "yes": True}),
    )
    html = transcript.scenes(Scenes((Scene("kit", steps, {"f<": b"<p>"}),)))

    assert not [
        tag for tag in ("<b>", "<script>", "<i>", "<u>", "<p>&lt;") if tag in html.replace("<p>f&lt;", "")
    ]
    assert "\\x1b" in html
    assert "\\u202e" in html


def test_kinds_of_ends_are_told_apart():
    """Done, refused, ended on purpose and killed have signs and words of their own."""
    html = transcript.scene(Scene("kit", tuple(Step("run", code) for code in (0, 3, 75, -9))))

    assert [sign for sign in ("✓", "✗", "◦", "SIGKILL") if sign not in html] == []


def test_column_of_the_learner_is_left_out_where_it_says_nothing():
    """Ids are checked by given code; their table has no column for the learner."""
    trial = Trial(2, "refused", "bad_task", "bad_id", "a sentence", unchanged=True)

    assert "seen.yours" not in transcript.trials(Trials({"path": trial}, {}))
    assert transcript.trials(Trials({"path": trial}, {})).count("<th") + 1 == transcript.trials(
        Trials({"path": trial}, {"path": trial})
    ).count("<th")


def test_environment_of_a_lab_bends_nothing(monkeypatch):
    """What makes Git, Node or npm behave otherwise does not reach the programs of a lab."""
    for name in ("GIT_DIR", "NODE_OPTIONS", "NODE_TEST_CONTEXT", "npm_config_registry", "FORCE_COLOR"):
        monkeypatch.setenv(name, "x")
    kept = garden.environment()

    assert not [
        name for name in kept if name.upper().startswith(("NODE_", "NPM_", "FORCE_")) or name == "GIT_DIR"
    ]


def test_scratch_folder_of_an_experiment_is_its_own(playground):
    """Emptying one experiment's folder leaves its neighbours alone."""
    (scenes.fresh_folder("one") / "kept").touch()
    scenes.fresh_folder("two")
    assert (playground / "workspace/04-state-spine/one/kept").exists()

    scenes.fresh_folder("one")
    assert not (playground / "workspace/04-state-spine/one/kept").exists()
