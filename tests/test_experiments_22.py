"""The experiments of lesson 22: what a learner sees beside the reference, whatever the learner has written so far."""

from __future__ import annotations

import asyncio
import html
import inspect
import shutil
import sys
from pathlib import Path

import pytest

from labkit import actions, words, workspace
from labkit.experiments import bench, cards
from labkit.experiments import lesson_22 as lab
from labkit.experiments.bench import Seen

SCRIPTED = {
    lab.append_after_tear: (),
    lab.awaited_backwards: (),
    lab.changed_while_queued: (),
    lab.edited_outside: (),
    lab.hundred_at_once: (),
    lab.impossible_event: ("todo_teleported", {"todo_id": "todo-1"}),
    lab.lost_completion: (),
    lab.newline_missing: (),
    lab.no_history: (),
    lab.not_json: (),
    lab.not_json_line: (2,),
    lab.number_before_write: (),
    lab.one_disk_error: (),
    lab.one_line_more: (),
    lab.race_for_a_number: (),
    lab.reader_changes_its_copy: (),
    lab.restart_and_cut: (),
    lab.secret_in_a_bad_line: (),
    lab.wrong_numbers: (),
    lab.wrong_shapes: (),
}
"""Every experiment that runs one script on several stores, with its arguments."""


@pytest.fixture(autouse=True)
def playground(tmp_path, monkeypatch) -> Path:
    """The experiments' files go to a folder of this test."""
    monkeypatch.setattr(workspace, "scratch", lambda name: tmp_path / "workspace" / name)
    return tmp_path


@pytest.fixture
def learner(playground, monkeypatch):
    """Write the learner's session_store.py, and make that the code that is being worked on."""

    def write(text: str) -> None:
        folder = playground / "learner"
        shutil.copytree(workspace.kit_root() / "solution/lesson_22", folder / "lesson_22", dirs_exist_ok=True)
        (folder / "lesson_22/session_store.py").write_text(text, "utf-8")
        monkeypatch.setenv("LAB_TARGET", str(folder))

    return write


def run(experiment, arguments=()) -> Seen:
    seen = asyncio.run(experiment(*arguments))
    return seen.seen if isinstance(seen, lab.Race) else seen


def test_every_scripted_experiment_is_tried_here():
    """An experiment that compares stores cannot be added without being run below."""
    comparing = {
        thing
        for name in lab.__all__
        if inspect.iscoroutinefunction(thing := getattr(lab, name))
        and inspect.get_annotations(thing).get("return") in ("Seen", "Race")
    }

    assert comparing - {lab.crash_around_effect} == set(SCRIPTED)


@pytest.mark.parametrize("experiment", SCRIPTED, ids=lambda one: one.__name__)
def test_solution_says_what_the_reference_says(experiment, monkeypatch):
    """The learner's column agrees with the reference's once it holds the solution; it differs from every wrong one."""
    monkeypatch.setenv("LAB_TARGET", "solution")
    seen = run(experiment, SCRIPTED[experiment])

    assert seen["yours"].calls == seen["kit"].calls
    assert seen["yours"].log == seen["kit"].log
    wrong = [side for side in seen.sides if side.name.endswith("Store") and side.name != "LuckyStore"]
    assert all((side.calls, side.log) != (seen["kit"].calls, seen["kit"].log) for side in wrong)


@pytest.mark.parametrize("experiment", SCRIPTED, ids=lambda one: one.__name__)
def test_untouched_starter_says_not_written_yet(experiment, learner):
    """The learner's column says which step is missing, in words and not as an error; the others stand as ever."""
    learner((workspace.kit_root() / "starter/lesson_22/session_store.py").read_text("utf-8"))
    seen = run(experiment, SCRIPTED[experiment])

    assert "实现 JSONL 撕裂恢复" in seen["yours"].unfinished
    assert not seen["kit"].unfinished
    assert "实现 JSONL 撕裂恢复" in seen._repr_html_()


STORE = """
class CorruptLogError(Exception): pass
class JsonlSessionStore:
    def __init__(self, path): self.path = path
    def append(self, type, data): {append}
    async def read(self): {read}
"""


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        (STORE.format(append="raise KeyError('x')", read="return []"), ["KeyError", "KeyError", []]),
        (STORE.format(append="return 7", read="return 'nothing'"), [7, 7, "nothing"]),
        (
            STORE.format(append="return object()", read="return [object()]"),
            ["<object>", "<object>", ["<object>"]],
        ),
        (
            STORE.format(append="raise SystemError", read="raise OSError"),
            ["SystemError", "SystemError", "OSError(None)"],
        ),
        ("def broken(:\n", ["SyntaxError"] * 3),
        ("import no_such_module\n", ["ModuleNotFoundError"] * 3),
        ("raise SystemExit(3)\n", ["RuntimeError"] * 3),
        ("nothing = 1\n", ["ImportError"] * 3),
    ],
)
def test_whatever_the_learner_raises_is_shown(learner, text, answers):
    """Any error of the learner's code becomes an answer in its column; the notebook goes on."""
    learner(text)
    seen = run(lab.one_disk_error)

    assert seen["yours"].answers == answers
    assert cards.cards(seen)


SILENT = "import asyncio; return asyncio.get_running_loop().create_future()"


@pytest.mark.parametrize("limit", ["PATIENCE_SECONDS", "SCRIPT_SECONDS"])
def test_store_that_never_answers_is_left_alone(learner, monkeypatch, limit):
    """A learner's store that never answers is given up after a while, and that is shown."""
    monkeypatch.setattr(bench, limit, 0.5)
    learner(STORE.format(append=SILENT, read="return []"))

    assert run(lab.one_line_more)["yours"].answers[0] == "TimeoutError"


def test_cancelled_answer_is_shown(learner):
    """A store that cancels what it promised does not end the cell."""
    cancelled = SILENT.replace("return", "one =") + "; one.cancel(); return one"
    learner(STORE.format(append=cancelled, read="return []"))

    assert run(lab.one_disk_error)["yours"].answers == ["CancelledError", "CancelledError", []]


def test_difference_is_named_by_its_call(learner):
    """Beside a wrong answer stands the first call at which it parted from the reference."""
    source = (workspace.kit_root() / "solution/lesson_22/session_store.py").read_text("utf-8")
    learner(
        source.replace(
            "return list(scan(raw, self.path).events)", "return list(scan(raw, self.path).events)[:1]"
        )
    )
    html = cards.cards(run(lab.restart_and_cut))

    assert "≠" in html
    assert "= " not in html.split("≠")[1]


def test_content_of_files_is_escaped(learner):
    """What lies on disk is shown as text: it can neither become markup nor hide."""
    side = bench.Side("kit", (), {"task.jsonl": b"<script>\x00\xff\xe2\x80\xae\n"})

    html = cards.cards(Seen((side,)))
    assert "<script>" not in html
    assert "\\x00" in html
    assert "\\xff" in html
    assert "\\u202e" in html


def test_long_lists_are_shown_by_their_ends(monkeypatch):
    """A hundred lines are shown as the first few, how many were left out, and the last."""
    monkeypatch.setenv("LAB_TARGET", "solution")
    html = cards.cards(run(lab.hundred_at_once))

    assert "[1, 2, 3, … 100]" in html
    assert "step_100" in html
    assert "step_50" not in html


def test_killed_agent_leaves_its_log_and_nothing_else():
    """SIGKILL takes what was in memory and leaves every line that was handed to the operating system."""
    seen = lab.kill_two_agents(steps=4)

    assert seen["memory"].files == {}
    assert seen["log"].numbers == [1, 2, 3, 4]


def test_effect_is_invisible_in_the_log():
    """Killed before the effect or after it, the log is the same to the byte."""
    seen = run(lab.crash_around_effect)

    assert seen["before"].log == seen["after"].log
    assert (
        "outside/mails-sent.txt" in seen["before"].files,
        "outside/mails-sent.txt" in seen["after"].files,
    ) == (False, True)


def test_grader_that_gives_nothing_is_one_clear_line(monkeypatch):
    """A command that dies without an answer is told by its last words and what to run next."""
    dying = [sys.executable, "-c", "import sys; sys.exit('no room on the disk')", "gate"]
    monkeypatch.setattr(actions, "gate_command", lambda _lesson: dying)

    with pytest.raises(
        RuntimeError, match=r"statelab: no result \(no room on the disk\); run statelab gate in a terminal"
    ):
        asyncio.run(lab.mutants())


@pytest.fixture(scope="module")
def example():
    """What became of the worked example of a learner's own test."""
    return run(lab.try_example_tests)


def test_gate_for_own_tests_shows_which_stops_which(example):
    """The worked example passes on right stores, stops those that lose the order of the calls, and lets the rest through."""
    assert example.verdict == "survivors"
    assert example.killed == ["no-queue", "number-outside", "async-append"]
    shown = example._repr_html_()
    assert shown.count("<tr>") == 12
    assert "test_calls_made_at_once_keep_their_order" in shown
    assert example.found["message"][words.language()] in shown


def test_first_store_that_got_through_is_explained(example):
    """After a try, the first wrong store that no test stopped is told with its mistake, its rules, and what the kit asks."""
    survivor = next(mutant for mutant in example.found["mutants"] if not mutant["killed"])
    shown = html.unescape(example._repr_html_()).partition("</table>")[2]

    assert shown.count(words.t("mine.explained", idea="…", title="…").partition("…")[0]) == 1
    assert survivor["idea"][words.language()] in shown
    assert all(f"{rule}: {words.t(f'rule.{rule}')}" in shown for rule in survivor["rules"])


@pytest.fixture
def mine(playground) -> Path:
    """Where the learner's file of tests goes."""
    folder = playground / "workspace/my_tests"
    folder.mkdir(parents=True)
    return folder / "test_my_store.py"


def test_learners_tests_are_laid_down_once_and_stay_theirs(mine):
    """The first time there is the example; what the learner makes of it is what is run, and is never written over."""
    assert actions.my_tests() == mine
    assert mine.read_bytes() == actions.example_tests().read_bytes()
    mine.write_text("def test_<b>(:\n")
    seen = run(lab.try_my_tests)

    assert mine.read_text() == "def test_<b>(:\n"
    assert (seen.file, seen.verdict, seen.killed) == (mine, "not-loaded", [])
    assert "test_my_store.py:1: SyntaxError" in seen._repr_html_()


def test_own_test_that_a_right_store_fails_is_named(mine):
    """The card names the test, the store and the reason, as text."""
    mine.write_text("def test_wrong():\n    assert '<b>' == 1\n")

    html = run(lab.try_my_tests)._repr_html_()

    assert (
        "<code>test_wrong</code> (solution) test_my_store.py:2: AssertionError: assert &#x27;&lt;b&gt;&#x27; == 1"
        in html
    )
    assert "<table" not in html


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_rule_that_the_suite_names_is_in_the_list(language: str, monkeypatch: pytest.MonkeyPatch):
    """A learner who meets S1 to S18 in a failed check finds each in the notebook's list, in both languages."""
    monkeypatch.setenv("LAB_LANG", language)
    listed = lab.rules()

    assert list(listed.sentences) == [f"S{number}" for number in range(1, 19)]
    assert list(lab.rules("H").sentences) == [f"H{number}" for number in range(1, 11)]
    shown = html.unescape(listed._repr_html_())
    assert all(sentence in shown for sentence in listed.sentences.values())
