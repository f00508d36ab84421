"""Widgets without a browser: what is clicked reaches the disk, and what is on disk reaches the traits."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from labkit import actions, naive, widgets, words, workspace
from labkit.widgets import parts, patience, tasks
from labkit.widgets.check import Check
from labkit.widgets.torn_write import TornWrite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STATIC = Path(parts.__file__).with_name("static")


@pytest.fixture(autouse=True)
def _english():
    words.use("en")


@pytest.fixture(autouse=True)
def _playground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace of this test's own."""
    monkeypatch.setattr(
        workspace, "scratch", lambda name: (tmp_path / name).mkdir(exist_ok=True) or tmp_path / name
    )


async def shown(part: parts.Part, trait: str, holds: Callable[[Any], bool]) -> None:
    """Wait until a piece of a widget shows what holds, because of something that happened elsewhere."""
    event = asyncio.Event()

    def look(_change: object = None) -> None:
        if holds(getattr(part, trait)):
            event.set()

    part.observe(look, trait)
    look()
    async with asyncio.timeout(20):
        await event.wait()
    part.unobserve(look, trait)


# --- the torn-write widget ---


def torn(tmp_path: Path, test: Callable[[TornWrite], Awaitable[None]], target: str = "solution") -> TornWrite:
    """Run a test on the widget, once its sample log is there; close it afterwards."""

    async def run() -> TornWrite:
        widget = widgets.torn_write(tmp_path / "torn", target)
        try:
            await widget.settled()
            await test(widget)
        finally:
            widget.close()
        return widget

    return asyncio.run(run())


def verdicts(widget: TornWrite) -> list[str]:
    return [card["headline"] for card in widget.view.panel.view["cards"]]


def lines(widget: TornWrite) -> str:
    return " ".join(line["text"] for line in widget.view.panel.view["lines"])


def counts(widget: TornWrite) -> dict[str, str]:
    return widget.view.bytes.view["counts"]


def test_it_begins_with_a_whole_log(tmp_path: Path) -> None:
    """The sample is on disk, both readers take it whole, the slider covers the last record."""

    async def test(widget: TornWrite) -> None:
        assert verdicts(widget) == ["Whole: 8 events", "Returned 8 events"]
        assert (widget.slider.low, widget.slider.high, widget.slider.value) == (709, 844, 844)
        assert widget.copy.read_bytes() == widget.original.read_bytes()

    torn(tmp_path, test)


def test_the_slider_cuts_the_file_and_the_view_is_the_file(tmp_path: Path) -> None:
    """Size, torn bytes and the replayed task are those of the file as it was cut."""

    async def test(widget: TornWrite) -> None:
        widget.slider.value = 825
        await widget.settled()
        assert widget.copy.stat().st_size == widget.view.bytes.view["size"] == 825
        assert counts(widget)["torn"] == "116 bytes torn"
        assert verdicts(widget) == ["Torn tail: 7 events kept", "Returned 7 events"]
        statuses = [row[1] for row in widget.view.panel.view["tasks"]["rows"]]
        assert statuses == ["in progress", "in progress"]

    torn(tmp_path, test)


def test_the_whole_file_is_within_reach(tmp_path: Path) -> None:
    """With the wide scope the slider reaches byte 0; back in the narrow one it cuts no further than the last record."""

    async def test(widget: TornWrite) -> None:
        widget.scope.value = "everything"
        widget.slider.value = 0
        assert widget.copy.read_bytes() == b""
        widget.scope.value = "last"
        assert widget.slider.value == widget.copy.stat().st_size == 709

    torn(tmp_path, test)


def test_append_after_the_tear_with_both_stores(tmp_path: Path) -> None:
    """The naive store glues, and both readers stop there; the learner's moves the torn bytes aside and goes on."""

    async def test(widget: TornWrite) -> None:
        widget.cut(800)
        widget.append_naive()
        await widget.settled()
        assert verdicts(widget) == ["Corrupt: stopped at line 8", "Stopped at line 8: corrupt"]
        assert counts(widget)["changed"] == "100 bytes changed"

        widget.cut(800)
        widget.append_yours()
        await widget.settled()
        assert verdicts(widget)[0] == "Whole: 8 events"
        assert widget.status.text == "Your store wrote event 8."
        assert "events.jsonl.torn-709 (91 bytes)" in lines(widget)
        assert "Unseen" not in lines(widget)

    torn(tmp_path, test)


def test_an_append_that_fails_says_why_and_writes_nothing(tmp_path: Path) -> None:
    """On a damaged log the learner's store refuses; the status line says so and the bytes stay."""

    async def test(widget: TornWrite) -> None:
        widget.damage(2)
        raw = widget.copy.read_bytes()
        widget.append_yours()
        await widget.settled()
        assert widget.status.text.startswith("Append with your store did not succeed:")
        assert "line 2" in widget.status.text
        assert widget.copy.read_bytes() == raw

    torn(tmp_path, test)


def test_the_untouched_starter_is_met_kindly(tmp_path: Path) -> None:
    """Not implemented is no disagreement, for read and for append, and no traceback anywhere."""

    async def test(widget: TornWrite) -> None:
        assert verdicts(widget) == ["Whole: 8 events", "Not implemented yet"]
        assert "Once read() in your starter is written" in lines(widget)
        widget.append_yours()
        await widget.settled()
        assert "implement JSONL torn-tail recovery" in widget.status.text

    folder = tmp_path / "mine" / "lesson_22"
    shutil.copytree(workspace.lesson_source("22", "solution"), folder)
    store = folder / "session_store.py"
    stub = 'raise NotImplementedError("实现 JSONL 撕裂恢复 (implement JSONL torn-tail recovery)")'
    store.write_text(
        re.sub(r"# BEGIN SOLUTION.*?# END SOLUTION", stub, store.read_text("utf-8"), flags=re.DOTALL), "utf-8"
    )
    torn(tmp_path, test, str(folder.parent))


def test_saving_the_lesson_asks_the_new_code(tmp_path: Path) -> None:
    """An edit of the learner's file is judged without a restart: first it disagrees, then it agrees."""
    folder = tmp_path / "mine" / "lesson_22"
    shutil.copytree(workspace.lesson_source("22", "solution"), folder)
    store = folder / "session_store.py"
    right = store.read_text("utf-8")
    store.write_text(right.replace("return list(scan(raw, self.path).events)", "return []"), "utf-8")

    async def test(widget: TornWrite) -> None:
        assert "They disagree" in lines(widget)
        store.write_text(right, "utf-8")
        await shown(widget.view.panel, "view", lambda _view: "Both agree" in lines(widget))

    torn(tmp_path, test, str(folder.parent))


def test_a_flip_nobody_sees_is_shown_as_unseen(tmp_path: Path) -> None:
    """A changed letter leaves a legal record, and the widget says so; a changed number is refused at its line."""

    async def test(widget: TornWrite) -> None:
        widget.flip(widget.copy.read_bytes().index(b"call-1"), 0)
        await widget.settled()
        assert "Unseen: 1 byte has changed" in lines(widget)
        widget.restore()
        widget.flip(12, 0)
        await widget.settled()
        assert verdicts(widget)[0] == "Corrupt: stopped at line 1"
        assert "Unseen" not in lines(widget)

    torn(tmp_path, test)


def test_a_change_made_elsewhere_is_followed(tmp_path: Path) -> None:
    """Bytes that another program added are shown, marked as changed, and announced."""

    async def test(widget: TornWrite) -> None:
        with widget.copy.open("ab") as file:
            file.write(b'{"seq')
        await shown(widget.status, "text", lambda text: "changed elsewhere" in text)
        await widget.settled()
        assert counts(widget)["changed"] == "5 bytes changed"
        assert verdicts(widget)[0] == "Torn tail: 8 events kept"

    torn(tmp_path, test)


def test_two_views_of_one_folder_agree(tmp_path: Path) -> None:
    """What one widget does, the other shows."""

    async def test(widget: TornWrite) -> None:
        other = widgets.torn_write(tmp_path / "torn", "solution")
        await other.settled()
        widget.cut(750)
        await shown(other.view.bytes, "view", lambda view: view["size"] == 750)
        other.close()

    torn(tmp_path, test)


def test_a_deleted_folder_breaks_nothing(tmp_path: Path) -> None:
    """Gone: the view says so, every click says what is missing, Restore makes the sample again."""

    async def test(widget: TornWrite) -> None:
        shutil.rmtree(tmp_path / "torn")
        await shown(widget.view.bytes, "view", lambda view: view["size"] == 0)
        for click in (widget.flip, widget.damage, lambda: widget.cut(720)):
            click()
            assert "did not succeed: No such file or directory" in widget.status.text
        widget.restore()
        await widget.settled()
        assert verdicts(widget)[0] == "Whole: 8 events"

    torn(tmp_path, test)


def test_closing_leaves_no_thread(tmp_path: Path) -> None:
    """A closed widget watches nothing any more."""

    async def test(widget: TornWrite) -> None:
        assert [one for one in threading.enumerate() if one.name.startswith("watch ")]

    torn(tmp_path, test)
    assert [one.name for one in threading.enumerate() if one.name.startswith("watch ")] == []


# --- state files ---


def test_state_files_follow_the_folder(tmp_path: Path) -> None:
    """The newest file is shown by itself, a pinned one stays, and marking a moment makes it the one to compare with."""
    folder = tmp_path / "state"
    folder.mkdir()

    async def run() -> None:
        widget = widgets.state_files(folder)
        (folder / "a.json").write_text('{"n": 1}\n')
        await shown(widget.files, "view", lambda view: view["shown"] == "a.json" and view["lines"])
        assert [line["change"] for line in widget.files.view["lines"]] == ["new"]
        assert widget.status.text == "New: a.json."

        widget.mark()
        assert widget.status.text == "No changes."
        widget.files.chosen = "a.json"
        (folder / "b.json").write_text("{}\n")
        await shown(widget.status, "text", lambda text: text == "New: b.json.")
        assert widget.files.view["shown"] == "a.json"

        shutil.rmtree(folder)
        await shown(widget.files, "view", lambda view: "no such folder" in view["sentence"])
        folder.mkdir()
        (folder / "c.json").write_text("{}\n")
        await shown(widget.files, "view", lambda view: "c.json" in [one["path"] for one in view["entries"]])
        widget.close()

    asyncio.run(run())


# --- check ---

OUTCOME = {
    "lessons": {
        "22": {
            "tests": [
                {
                    "id": "22-torn",
                    "title": {"en": "Torn", "zh": "撕裂"},
                    "rules": ["S14"],
                    "required": True,
                    "status": "pass",
                    "reason": "",
                    "message": None,
                    "hint": None,
                    "place": "",
                }
            ]
        }
    }
}


def checked(monkeypatch: pytest.MonkeyPatch, program: str, target: str = "solution") -> Check:
    """Press Check with another program in place of the grader."""
    monkeypatch.setattr(actions, "verify_command", lambda *_: [sys.executable, "-c", program])

    async def run() -> Check:
        widget = widgets.check("22", target)
        widget.button.click()
        assert widget.button.disabled
        await widget.settled()
        return widget

    return asyncio.run(run())


def test_check_shows_what_the_grader_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores in the status line, a row a test; with everything passed, how the code differs from the solution."""
    widget = checked(monkeypatch, f"print({json.dumps(OUTCOME)!r})")

    assert re.fullmatch(r"Checked in \d+\.\d s: required 1/1, extended –\.", widget.status.text)
    assert widget.results.view["groups"][0]["rows"][0]["title"] == "Torn"
    assert widget.results.view["note"].startswith("Your files are the reference solution")
    assert not widget.button.disabled


def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, object]) -> widgets.Gate:
    """Press the gate's button with another program in place of the grader."""
    monkeypatch.setattr(actions, "my_tests", lambda: tmp_path / "test_my_store.py")
    program = f"print({json.dumps(found)!r})"
    monkeypatch.setattr(actions, "gate_command", lambda *_: [sys.executable, "-c", program])

    async def run() -> widgets.Gate:
        widget = widgets.gate()
        widget.button.click()
        await widget.settled()
        return widget

    return asyncio.run(run())


SURVIVORS: dict[str, object] = {
    "tests": [{"name": "test_order", "kills": ["a"]}],
    "wrong": [],
    "message": {"en": "Pick one that got through.", "zh": "挑一个。"},
    "mutants": [
        {
            "id": name,
            "idea": {"en": f"Mistake {name}", "zh": name},
            "rules": ["S7"],
            "meant": {"en": f"Check of {name}", "zh": name},
            "killed": name == "a",
            "tests": {"test_order": "fail" if name == "a" else "pass"},
        }
        for name in "abc"
    ],
}


def test_gate_explains_the_first_store_that_got_through(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A row a store; below, one survivor's mistake, the kit's own question and the rule. The others stay a riddle."""
    widget = tried(tmp_path, monkeypatch, SURVIVORS)

    view = widget.results.view
    assert [row[1] for row in view["rows"]] == ["✗", "·", "·"]
    assert ("Mistake b" in view["explained"], "Mistake c" in view["explained"]) == (True, False)
    assert "Check of b" in view["explained"]
    assert view["rules"][0].startswith("S7: A failure never poisons")
    assert widget.status.text.endswith("Pick one that got through.")
    assert not widget.button.disabled


def test_gate_names_a_test_that_is_wrong_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No grid, but the test, the right store that it accuses, and why."""
    wrong = {"test": "test_order", "store": "solution", "said": {"en": "assert 1 == 2", "zh": "x"}}
    widget = tried(tmp_path, monkeypatch, {**SURVIVORS, "mutants": [], "wrong": [wrong]})

    assert widget.results.view["wrong"] == (("test_order", "(solution) assert 1 == 2"),)
    assert (widget.results.view["rows"], widget.results.view["explained"]) == ((), "")


def test_check_of_one_exercise_shows_its_tests_and_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A button below an exercise speaks of that one: the diff would show the answers to the next."""
    test = {**OUTCOME["lessons"]["22"]["tests"][0], "dimension": "durability"}
    tests = [test, {**test, "title": {"en": "Sealed", "zh": "校验"}, "dimension": "integrity"}]
    printed = json.dumps({"lessons": {"22-homework": {"tests": tests}}})
    monkeypatch.setattr(actions, "verify_command", lambda *_: [sys.executable, "-c", f"print({printed!r})"])

    async def run() -> Check:
        widget = widgets.check("22-homework", "starter", part="integrity")
        assert widget.status.text.endswith("starter/lesson_22/homework.py")
        widget.run()
        await widget.settled()
        return widget

    view = asyncio.run(run()).results.view
    assert [row["title"] for group in view["groups"] for row in group["rows"]] == ["Sealed"]
    assert view["diff"] == ""


def test_check_shows_the_diff_only_after_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Passed: the diff to the solution. Not passed: no diff."""
    folder = tmp_path / "mine" / "lesson_22"
    shutil.copytree(workspace.lesson_source("22", "solution"), folder)
    with (folder / "todo.py").open("a") as file:
        file.write("# mine\n")
    failed = json.loads(json.dumps(OUTCOME).replace('"pass"', '"fail"'))
    passed_view = checked(monkeypatch, f"print({json.dumps(OUTCOME)!r})", str(folder.parent)).results.view
    failed_view = checked(monkeypatch, f"print({json.dumps(failed)!r})", str(folder.parent)).results.view

    assert "-# mine" in passed_view["diff"]
    assert failed_view["diff"] == ""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('verify: no such folder')", "verify: no such folder"),
        ("import sys; print('oops', file=sys.stderr); sys.exit(3)", "oops"),
        ("print('no json')", "exit code 0 and no outcome"),
        ("print('[]')", "exit code 0 and no outcome"),
        ("print('{}')", "exit code 0 and no outcome"),
        ("import os; os._exit(9)", "exit code 9 and no outcome"),
    ],
)
def test_a_check_that_gives_no_result_says_so(
    monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    """A grader that fails, prints nonsense or dies is told in one line, and the button works again."""
    widget = checked(monkeypatch, program)

    assert widget.status.text == f"The check gave no result: {said}"
    assert not widget.button.disabled


# --- predictions, pictures, zoo ---


def test_a_prediction_is_remembered_and_compared() -> None:
    """The answer is there again in a new widget, and stands beside what happened."""
    question = widgets.predict("How many?", ["1", "2"])
    assert question.verdict["text"] == "Answer first, then run the next cell."
    assert "not answered" in question.compare(2).verdict["text"]

    question.answer = "1"
    again = widgets.predict("How many?", ["1", "2"])
    assert again.answer == "1"
    assert again.compare(2).verdict["mark"] == "surprise"
    assert again.compare(1).verdict["text"] == "As you predicted: 1."


def test_the_zoo_shows_every_log(tmp_path: Path) -> None:
    """Each log of the zoo can be turned to; the solution agrees on all of them, and none is changed."""
    folder = workspace.kit_root() / "assets" / "corruption-zoo"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    async def run() -> list[str]:
        zoo = widgets.zoo("solution")
        odd = []
        for name in zoo.exhibits:
            zoo.show(name)
            await zoo.settled()
            odd += [name for line in zoo.view.panel.view["lines"] if line["mark"] != "good"]
        return odd

    assert asyncio.run(run()) == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    with pytest.raises(LookupError, match=r"no log 'none\.jsonl'"):
        asyncio.run(_turn_to("none.jsonl"))


async def _turn_to(name: str) -> None:
    widgets.zoo("solution").show(name)


def test_pictures_come_with_words(tmp_path: Path) -> None:
    """The race is told in sentences beside its lanes, the heat map in numbers beside its colours."""
    steps: Any = asyncio.run(_race(tmp_path))
    lanes = widgets.lanes(steps).view
    heat = widgets.heatmap({"kit": ["torn", "whole"]}).view

    assert len(lanes["told"]) == 9
    assert heat["rows"][0]["counts"] == {"torn": 1, "whole": 1}
    assert [label for _, label in heat["verdicts"]] == ["records whole", "torn tail ignored"]


async def _race(folder: Path) -> list[actions.Step]:
    return await actions.race(naive.UnsafeStore(folder / "log.jsonl"))


# --- the pieces ---


@pytest.mark.parametrize("name", sorted(path.name for path in STATIC.glob("*.js")))
def test_a_script_reaches_the_browser_as_one_module(name: str) -> None:
    """What a script imports is written into it, and no name is declared twice: a module loads nothing from beside itself."""
    source = parts.script(name)
    declared = re.findall(r"^(?:const|let|function|class) (\w+)", source, re.MULTILINE)

    assert re.findall(r"^import ", source, re.MULTILINE) == []
    assert sorted(declared) == sorted(set(declared))
    assert source.count("export default") == (name != "dom.js")


def test_everything_a_widget_shows_is_plain_json(tmp_path: Path) -> None:
    """Traits travel as JSON: what cannot be sent would fail only in front of the learner."""

    async def test(widget: TornWrite) -> None:
        for part in (widget.view.bytes, widget.view.panel):
            json.dumps(part.view)

    torn(tmp_path, test)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for code that does not end."""
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.05)


async def endless() -> None:
    while True:
        pass


async def leaving() -> None:
    sys.exit(3)


async def failing() -> None:
    raise OSError("disk")


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    ("work", "error", "said"),
    [
        (endless, patience.GaveUpError, "did not end"),
        (leaving, patience.GaveUpError, r"exit\(3\)"),
        (failing, OSError, "disk"),
    ],
)
def test_a_learners_code_never_takes_the_kernel_with_it(work: Any, error: type[Exception], said: str) -> None:
    """A loop without end is given up and stopped, exit is told, an error arrives as itself; no thread is left."""
    with pytest.raises(error, match=said):
        asyncio.run(patience.beside(work))

    for thread in threading.enumerate():
        if thread.name == "learner's code":
            thread.join(20)
            assert not thread.is_alive()


@pytest.mark.usefixtures("_impatient")
def test_a_read_that_never_ends_leaves_the_widget_alive(tmp_path: Path) -> None:
    """The card says that no answer came, the slider still cuts, and the repaired code is asked again."""
    folder = tmp_path / "mine" / "lesson_22"
    shutil.copytree(workspace.lesson_source("22", "solution"), folder)
    store = folder / "session_store.py"
    right = store.read_text("utf-8")
    store.write_text(right.replace("raw = self.path.read_bytes()", "while True: pass"), "utf-8")

    async def test(widget: TornWrite) -> None:
        assert verdicts(widget)[1].startswith("No answer")
        widget.cut(800)
        await widget.settled()
        assert verdicts(widget)[0] == "Torn tail: 7 events kept"
        store.write_text(right, "utf-8")
        await shown(widget.view.panel, "view", lambda _view: "Both agree" in lines(widget))

    torn(tmp_path, test, str(folder.parent))


def test_failed_work_is_told_and_other_work_goes_on() -> None:
    """An exception in one piece of work reaches `failed`, once, and no other."""

    async def run() -> tuple[list[tuple[str, str]], bool]:
        told: list[tuple[str, str]] = []
        work = tasks.Tasks(lambda what, error: told.append((what, str(error))))
        went_on = asyncio.Event()

        async def fail() -> None:
            raise OSError("disk")

        async def go_on() -> None:
            went_on.set()

        work.start(fail, "append")
        work.start(go_on, "read")
        await work.settled()
        return told, went_on.is_set()

    assert asyncio.run(run()) == ([("append", "disk")], True)
