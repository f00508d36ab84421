"""The crash lab's search: it finds what is broken on purpose, and nothing where the table promises."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from labkit.faults.crash import counterexample, explorer, promises
from labkit.faults.crash.explorer import Exploration, Progress, explore
from labkit.faults.crash.failing import FailedRun, faults
from labkit.faults.crash.recovery import CrashLabError, NotWrittenError
from labkit.faults.crash.switches import Switches
from labkit.faults.crash.trace import CrashState

ROOT = Path(__file__).resolve().parent.parent
CLASSICS = ROOT / "tests" / "crash_classics"
SCENARIOS = ROOT / "labkit" / "faults" / "crash" / "scenarios"


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counterexamples of the tests are kept apart."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LAB_TARGET", "starter")


def breaks(found: Exploration) -> set[str]:
    return {name for one in found.broken for name in one.broken}


# --- What must be found: the classic kinds, in small re-creations ---


def zeros(state: CrashState) -> bool:
    return any(choice.filled for choice in state.choices)


def empty(state: CrashState) -> bool:
    return state.tree["state.json"].content == b""


def no_log(state: CrashState) -> bool:
    return state.tree == {} and state.acknowledged == (1,)


def torn(state: CrashState) -> bool:
    return b"\n" not in state.tree["log.jsonl"].content


def differ(state: CrashState) -> bool:
    return state.tree["events.count"] != state.tree["state.count"]


class Classic(NamedTuple):
    name: str
    model: str
    breaks: str
    looks: object


@pytest.mark.parametrize(
    "classic",
    [
        Classic("rename_before_data", "ordered", "readable", empty),
        Classic("append_before_folder_entry", "weak", "acknowledged-survive", no_log),
        Classic("zero_filled_tail", "weak", "readable", zeros),
        Classic("fused_record", "kill", "goes-on", torn),
        Classic("zero_length_state", "kill", "readable", empty),
        Classic("out_of_step", "kill", "in-step", differ),
    ],
    ids=lambda classic: f"{classic.name}-{classic.model}",
)
def test_a_classic_kind_is_found_again(classic: Classic) -> None:
    """The counterexample breaks the promise, looks as the kind does, and fails again when it is replayed."""
    found = explore(CLASSICS / f"{classic.name}.py", classic.model, events=2)

    assert found.verdict == "broken"
    assert breaks(found) == {classic.breaks}
    assert classic.looks(found.broken[0].state)  # type: ignore[operator]
    assert explorer.replay(found.broken[0])[0] == (classic.breaks,)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("rename_before_data", "kill"),
        ("append_before_folder_entry", "ordered"),
        ("zero_filled_tail", "ordered"),
    ],
)
def test_a_kind_is_not_found_where_the_disk_keeps_more(name: str, model: str) -> None:
    """The same code under a kinder model: every state was tried, and nothing is broken."""
    found = explore(CLASSICS / f"{name}.py", model, events=2)

    assert (found.verdict, found.complete, found.tried) == ("kept", True, found.possible)


def test_the_example_of_the_page_breaks_as_it_says(tmp_path: Path) -> None:
    """The scenario in docs/crash-lab.md runs as it stands there: nothing syncs its bytes, and `ordered` finds that."""
    page = (ROOT / "docs" / "crash-lab.md").read_text("utf-8")
    scenario = tmp_path / "example.py"
    scenario.write_text(page.partition("```python\n")[2].partition("```")[0], "utf-8")

    assert explore(scenario, "kill", events=2).verdict == "kept"
    assert "readable" in breaks(explore(scenario, "ordered", events=2))


# --- What must be found: the solution with one protection removed ---


class Mutant(NamedTuple):
    """One protection taken out of the solution's source."""

    title: str
    store: str
    model: str
    path: str
    old: str
    new: str
    breaks: str


_TEMPORARY = """    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
"""
_IN_PLACE = """    temporary = path
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, 0o600)
"""
_ACTIVE, _ATOMIC = "durable_log/active_file.py", "durable_log/atomic_file.py"
MUTANTS = [
    Mutant(
        *("the lesson's tail repair", "lesson", "kill", "lesson_22/session_store.py"),
        *("        file.cut(found.good_bytes)\n", "        pass\n", "goes-on"),
    ),
    Mutant(
        *("the sync of an append", "durable-fsync", "weak", _ACTIVE),
        *("        os.fdatasync(descriptor)\n", "        pass\n", "acknowledged-survive"),
    ),
    Mutant(
        *("the sync of a group", "durable-group", "ordered", _ACTIVE),
        *("        os.fdatasync(descriptor)\n", "        pass\n", "acknowledged-survive"),
    ),
    Mutant(
        *("the folder sync of a new segment", "durable-fsync", "weak", _ACTIVE),
        *("                sync_folder(path.parent)\n", "                pass\n", "acknowledged-survive"),
    ),
    Mutant(
        *("the temporary file of the manifest", "durable-fsync", "kill", _ATOMIC),
        *(_TEMPORARY, _IN_PLACE, "readable"),
    ),
    Mutant(
        *("the sync of that temporary file", "durable-fsync", "weak", _ATOMIC),
        *("        os.fsync(descriptor)\n        os.replace", "        os.replace", "readable"),
    ),
    Mutant(
        *("durable_log's tail repair", "durable-fsync", "kill", "durable_log/repair.py"),
        *("            os.ftruncate(descriptor, report.good_bytes)\n", "            pass\n", "goes-on"),
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.title)
def test_a_protection_that_is_removed_is_missed(mutant: Mutant, tmp_path: Path) -> None:
    """One line taken out of the solution: there is a counterexample, it is promised, and it fails again."""
    code = tmp_path / "code"
    shutil.copytree(ROOT / "solution", code / "solution", ignore=shutil.ignore_patterns("__pycache__"))
    path = code / "solution" / mutant.path
    source = path.read_text("utf-8")
    assert source.count(mutant.old) == 1
    path.write_text(source.replace(mutant.old, mutant.new), "utf-8")

    found = explore(mutant.store, mutant.model, events=1, limit=150, imports=(code,))

    assert found.verdict == "broken"
    assert mutant.breaks in breaks(found)
    kept = counterexample.load(found.broken[0].id)
    assert explorer.replay(kept)[0] == kept.broken


# --- What must not be found ---


@pytest.mark.parametrize(
    ("store", "model"),
    [
        ("lesson", "kill"),
        ("durable-os", "kill"),
        ("durable-fsync", "weak"),
        pytest.param("durable-fsync", "ordered", marks=pytest.mark.proof),
        pytest.param("durable-group", "weak", marks=pytest.mark.proof),
    ],
)
def test_what_is_promised_is_kept(store: str, model: str) -> None:
    """With its protections in place, nothing that the table promises is broken, and it says how much was tried."""
    found = explore(store, model, events=1, limit=150)

    assert (found.verdict, found.broken, found.unseen) == ("kept", (), ())
    assert found.explored > 40


@pytest.mark.parametrize(
    "sync", [1, 2, *(pytest.param(number, marks=pytest.mark.proof) for number in range(3, 16))]
)
def test_nothing_rests_on_what_a_killed_process_left_unsynced(sync: int) -> None:
    """durable_log, killed before a sync and opened again, then a power cut: folders made by the first process included."""
    found = explore(SCENARIOS / "durable_twice.py", "weak", events=sync, limit=100)

    assert (found.verdict, found.broken) == ("kept", ())


@pytest.mark.parametrize(
    "model", ["kill", *(pytest.param(name, marks=pytest.mark.proof) for name in ("ordered", "weak"))]
)
def test_a_repair_may_be_interrupted_too(model: str) -> None:
    """durable_log mends a torn tail and goes on: a crash in the middle of that loses nothing, and is mended in turn."""
    found = explore(SCENARIOS / "durable_repair.py", model, limit=200)

    assert (found.verdict, found.broken) == ("kept", ())


@pytest.mark.proof
@pytest.mark.parametrize("model", promises.ALL_MODELS)
@pytest.mark.parametrize("store", [name for name in promises.PROMISED if name not in ("naive", "starter")])
def test_what_is_promised_is_kept_with_ten_events(store: str, model: str) -> None:
    """Every store and model of the table, with all states that are tried by default."""
    found = explore(store, model, events=10)

    assert found.verdict == "kept"
    assert not (found.broken and promises.promised(store, model))


def test_what_is_not_promised_is_found_all_the_same() -> None:
    """The lesson's store syncs nothing: power loss takes what was acknowledged, which is shown, and is no broken word."""
    found = explore("lesson", "weak", events=2, limit=300)

    assert {"acknowledged-survive", "readable"} <= breaks(found)
    assert not any(one.promised for one in found.broken)
    assert found.verdict == "kept"


def test_ten_events_of_the_lesson_are_explored_to_the_end() -> None:
    """Nothing is left over: every byte of every write is a place to die at."""
    found = explore("lesson", "kill", events=10)

    assert found.complete
    assert found.tried == found.possible > 450


def test_the_naive_store_breaks_its_word_and_says_where() -> None:
    """The torn tail of the very first write is enough: that is the smallest counterexample there is."""
    found = explore("naive", "kill", events=10)

    (one,) = found.broken
    assert one.broken == ("goes-on",)
    assert (one.state.after, one.state.choices[0].kept, one.state.acknowledged) == (2, 1, ())
    assert found.counts[0] > 400


def test_a_switch_takes_a_protection_away() -> None:
    """`durable-fsync` keeps its word with its syncs, and not in a recording without them."""
    whole, without = (
        explore("durable-fsync", "weak", events=1, limit=150, switches=Switches(fsync=on))
        for on in (True, False)
    )

    assert whole.broken == ()
    assert "acknowledged-survive" in breaks(without)
    assert without.broken[0].switches == Switches(fsync=False)


# --- The same again ---


def test_the_same_trace_and_seed_give_the_same_states(tmp_path: Path) -> None:
    """Two searches of one recording agree in every number and in every counterexample; another seed tries others."""
    _, code = explorer.code_of("naive")
    trace = explorer.record(code, 4)
    one, two, other = (explore("naive", "weak", trace=trace, seed=seed, limit=300) for seed in (1, 1, 2))

    assert replace(one, seconds=0) == replace(two, seconds=0)
    assert one.tried != other.tried or one.counts != other.counts


def test_a_counterexample_outlives_the_run_that_found_it() -> None:
    """It is read back as it was found: names, choices, bytes; and fails again with nothing of the run left."""
    found = explore("naive", "kill", events=2).broken[0]

    kept = counterexample.load(found.id)

    assert kept == found
    assert kept.state.tree == found.state.tree
    assert explorer.replay(kept) == (("goes-on",), found.report)


def test_a_corrected_store_does_not_fail_again(tmp_path: Path) -> None:
    """Replaying runs the code as it is now: once the mistake is gone, nothing is broken."""
    scenario = tmp_path / "fused.py"
    shutil.copy(CLASSICS / "fused_record.py", scenario)
    found = explore(scenario, "kill", events=1).broken[0]
    source = scenario.read_text("utf-8")
    mend = '    path = folder / "log.jsonl"\n    if path.exists():\n        whole = path.read_bytes().rpartition(b"\\n")\n'
    mend += '        path.write_bytes(whole[0] + whole[1])\n    with (folder / "log.jsonl").open("ab", buffering=0) as file:'
    scenario.write_text(
        source.replace('    with (folder / "log.jsonl").open("ab", buffering=0) as file:', mend), "utf-8"
    )

    assert explorer.replay(found)[0] == ()


@pytest.mark.parametrize(
    "harm", ["cut", "other-format", "no-trace", "no-json", "deep", "other-events", "other-report"]
)
def test_a_damaged_counterexample_is_refused_in_words(harm: str) -> None:
    """Its file, or its trace, is not what was written: said with the way out, and no traceback."""
    found = explore("naive", "kill", events=1).broken[0]
    path = counterexample.folder() / f"{found.id}.json"
    text = path.read_text("utf-8")
    if harm == "no-trace":
        next(counterexample.folder().glob("*.jsonl")).unlink()
    else:
        path.write_text(
            {
                "cut": text[:40],
                "other-format": text.replace('"format": 1', '"format": 9'),
                "no-json": "[]",
                "deep": "[" * 100_000,
                "other-events": text.replace('"events": 1', '"events": "x"'),
                "other-report": json.dumps(json.loads(text) | {"report": 5}),
            }[harm]
        )

    with pytest.raises(CrashLabError, match=f"{path}: .*; find it again with 'statelab crash explore'"):
        counterexample.load(found.id)


@pytest.mark.parametrize("name", ["naive-kill-00000000", "../../etc/passwd", "", "a/b"])
def test_an_unknown_counterexample_is_said_to_be_none(name: str) -> None:
    """An id is a name and never a path."""
    with pytest.raises(CrashLabError, match="no such counterexample"):
        counterexample.load(name)


# --- What was not seen, what does not end, what is not there ---


def scenario(folder: Path, work: str, recover: str = 'return {"read": [], "after": ["after-crash"]}') -> Path:
    path = folder / "own.py"
    source = f"""
import os, sqlite3, subprocess, sys, time
PROMISES = ("recovery-ends", "readable", "acknowledged-survive")
def work(folder, events, acknowledge):
    {work}
def recover(folder):
    {recover}
"""
    path.write_text(source, "utf-8")
    return path


@pytest.mark.parametrize(
    ("work", "what"),
    [
        ('open(__file__ + ".elsewhere", "w").write("x")', "outside"),
        ('sqlite3.connect(folder / "db").execute("create table t (a)")', "sqlite3"),
        ('subprocess.run([sys.executable, "-c", ""])', "child"),
        ("time.sleep(1000)", "unfinished"),
    ],
)
def test_what_was_not_seen_is_no_all_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str, what: str
) -> None:
    """Code that the recorder cannot follow gets no verdict, and the reason."""
    monkeypatch.setattr(explorer.recorder, "SECONDS", 2)

    found = explore(scenario(tmp_path, work), "kill")

    assert found.verdict == "not-seen"
    assert what in {unseen.what for unseen in found.unseen}


def test_a_loss_that_may_be_the_recorders_own_is_no_broken_promise(tmp_path: Path) -> None:
    """Bytes went past the recorder: what is missing in its states proves nothing."""
    work = 'sqlite3.connect(folder / "db").execute("create table t (a)"); acknowledge(1)'

    found = explore(scenario(tmp_path, work), "kill")

    assert breaks(found) == {"acknowledged-survive"}
    assert found.verdict == "not-seen"


@pytest.mark.parametrize("recover", ["time.sleep(1000)", "os._exit(5)"])
def test_a_recovery_without_an_answer_is_a_broken_promise(tmp_path: Path, recover: str) -> None:
    """It hangs, or dies: that is the counterexample, with its state, and the search does not wait for ever."""
    work = 'open(folder / "a", "wb").write(bytes(100)); acknowledge(1)'

    found = explore(
        scenario(tmp_path, work, f'{recover} if (folder / "a").exists() else 0; return {{"read": []}}'),
        "kill",
        seconds=1,
    )

    assert found.verdict == "broken"
    assert breaks(found) == {"recovery-ends"}
    assert found.broken[0].report["ended"]


def test_a_store_that_is_not_written_yet_is_no_broken_store() -> None:
    """The untouched starter: what to write first, in its own words."""
    with pytest.raises(NotWrittenError, match=r"not implemented yet: .*step 2: read"):
        explore("starter", "kill")


@pytest.mark.parametrize(
    ("store", "model", "said"),
    [
        ("sqlite", "kill", "sqlite: no store is called so; choose one of naive, "),
        ("naive", "strict", "strict: no model is called so; choose one of kill, ordered, weak, fail"),
        (Path("nowhere.py"), "kill", "nowhere.py: no such file"),
    ],
)
def test_what_is_not_there_is_refused(store: str | Path, model: str, said: str) -> None:
    """A name that means nothing is answered with those that do."""
    with pytest.raises(CrashLabError, match=said):
        explore(store, model)


def test_a_scenario_that_promises_the_unknown_is_refused(tmp_path: Path) -> None:
    """Before anything is tried."""
    path = scenario(tmp_path, "acknowledge(1)")
    path.write_text(path.read_text().replace('"readable"', '"durable"'))

    with pytest.raises(CrashLabError, match=r"own.py: PROMISES: no promise is called 'durable'; choose from"):
        explore(path, "kill")


@pytest.mark.parametrize(
    ("harm", "with_", "said"),
    [
        ("def work", "async def work", "work changed nothing in its folder"),
        ("acknowledge(1)", "pass", "work acknowledged nothing"),
        ('("recovery-ends", "readable", "acknowledged-survive")', "()", "PROMISES is empty"),
        ('"read": []', '"read": "all of it"', "recover: gave read as str, not as a list"),
    ],
)
def test_a_scenario_that_nothing_can_break_is_refused(
    tmp_path: Path, harm: str, with_: str, said: str
) -> None:
    """An all-clear would be one for nothing at all."""
    path = scenario(tmp_path, '(folder / "a").write_text("x"); acknowledge(1)')
    path.write_text(path.read_text().replace(harm, with_))

    with pytest.raises(CrashLabError, match=said):
        explore(path, "kill")


def test_work_that_leaves_its_writing_to_others_cannot_fail(tmp_path: Path) -> None:
    """A disk that nobody asked for anything refused nothing: that is no all-clear."""
    work = "import threading; go = threading.Event()\n    def late():\n        go.wait(); (folder / 'a').touch()\n"
    work += "    threading.Thread(target=late, daemon=True).start(); acknowledge(1)"

    with pytest.raises(CrashLabError, match=r"own.py: work changed nothing before it returned"):
        explore(scenario(tmp_path, work), "fail")


def test_a_scenario_called_as_a_store_answers_for_what_it_names(tmp_path: Path) -> None:
    """The table of who promises what speaks of the kit's own stores, and of no file of somebody's own."""
    path = scenario(tmp_path, '(folder / "a").write_text("x"); acknowledge(1)').rename(tmp_path / "lesson.py")

    found = explore(path, "weak")

    assert [one.promised for one in found.broken] == [True]
    assert found.verdict == "broken"


def test_a_value_counts_as_it_was_when_it_was_said(tmp_path: Path) -> None:
    """One dict, changed and acknowledged again, on a disk that refuses a write which the store keeps quiet about."""
    work = """state = {}
    for state["n"] in range(3):
        try: open(folder / "log", "ab", buffering=0).write(b"%d" % state["n"])
        except OSError: pass
        acknowledge(state)"""
    recover = """path = folder / "log"
    return {"read": [{"n": int(n)} for n in (path.read_text() if path.exists() else "")]}"""

    found = explore(scenario(tmp_path, work, recover), "fail")

    assert ({"n": 0}, {"n": 1}, {"n": 2}) in [one.state.acknowledged for one in found.broken]


@pytest.mark.parametrize("name", ["my store.py", "\u65e5\u5fd7.py"])
def test_whatever_a_scenario_is_called_it_replays(tmp_path: Path, name: str) -> None:
    """Its name is part of the id."""
    path = scenario(tmp_path, '(folder / "a").write_text("x"); acknowledge(1)').rename(tmp_path / name)

    found = explore(path, "kill").broken[0]

    assert counterexample.load(found.id) == found


def test_a_trace_that_was_changed_is_refused_and_found_again(tmp_path: Path) -> None:
    """What has another digest than its name is not what was written; looking once more mends it."""
    path = scenario(tmp_path, '(folder / "a").write_text("x"); acknowledge(1)')
    found = explore(path, "kill").broken[0]
    trace = next(counterexample.folder().glob("*.jsonl"))
    trace.write_text(trace.read_text().replace('"x"', '"y"'))

    with pytest.raises(CrashLabError, match="find it again"):
        counterexample.load(found.id)
    explore(path, "kill")

    assert counterexample.load(found.id) == found


def test_a_file_too_large_to_be_built_is_not_recorded(tmp_path: Path) -> None:
    """A hole of a terabyte takes no room on the disk, and all of it in every state."""
    work = 'os.truncate((folder / "a").open("xb").name, 1 << 40); acknowledge(1)'

    with pytest.raises(CrashLabError, match="more than 256 MiB to record"):
        explore(scenario(tmp_path, work), "kill")


# --- Watching and stopping ---


def test_somebody_who_watches_is_told_and_may_stop() -> None:
    """Progress comes while it runs; a stop ends it with what was found so far, and that is no all-clear."""
    told: list[Progress] = []

    found = explore(
        "naive", "weak", events=5, on_progress=told.append, stop=lambda: bool(told and told[-1].explored)
    )

    assert told[0].possible > told[0].tried >= told[0].explored > 0
    assert found.stopped == "interrupted"
    assert not found.complete
    assert found.explored < 500


def test_ctrl_c_ends_it_with_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted in the middle: children are gone, and the counterexamples that were found are kept."""

    def interrupt(progress: Progress) -> None:
        if progress.broken:
            raise KeyboardInterrupt

    found = explore("naive", "kill", events=5, on_progress=interrupt)

    assert found.stopped == "interrupted"
    assert counterexample.known() == [found.broken[0].id]


# --- When the disk says no ---


def test_every_operation_fails_in_every_way() -> None:
    """Writes fail whole, in part and after the fact, syncs too; and there is one run for each."""
    log = [
        {"op": "open", "path": "a", "size": None, "did": "slow"},
        {"op": "write", "path": "a", "size": 9, "did": "slow"},
        {"op": "close", "path": "a", "size": None, "did": "full"},
        {"op": "fsync", "path": "a", "size": None, "did": "slow"},
    ]

    ways = {(fault.nth, fault.op): [] for fault in faults(log)}
    for fault in faults(log):
        ways[fault.nth, fault.op].append(fault.do)

    anything = ["none,ENOSPC", "none,EIO", "none,EINTR"]
    assert ways == {
        (1, "open"): anything,
        (2, "write"): [*anything, "short", "half,ENOSPC", "half,EIO"],
        (3, "fsync"): [*anything, "full,EIO"],
    }


def test_the_lessons_store_keeps_its_word_on_a_failing_disk() -> None:
    """Whatever fails, what was acknowledged is read back, and the store goes on."""
    found = explore("lesson", "fail", events=3)

    assert (found.verdict, found.broken) == ("kept", ())
    assert found.tried == found.possible > 15


def test_a_failed_operation_is_kept_and_fails_again() -> None:
    """The naive store writes behind half a line: which operation failed, how, and what it left."""
    found = explore("naive", "fail", events=3)

    kept = counterexample.load(found.broken[0].id)
    assert found.verdict == "broken"
    assert isinstance(kept.state, FailedRun)
    assert kept == found.broken[0]
    assert explorer.replay(kept)[0] == kept.broken


def test_work_that_does_not_end_on_a_failing_disk_breaks_its_word(tmp_path: Path) -> None:
    """It tries again for ever: that is a counterexample too, and the next failure is tried all the same."""
    work = 'import pathlib; path = folder / "a"\n    while not path.exists():\n        try: path.write_text("x")\n'
    work += "        except OSError:\n            while True: pass\n    acknowledge(1)"

    found = explore(scenario(tmp_path, work), "fail", seconds=1)

    assert breaks(found) == {"work-ends"}
    assert found.broken[0].report["ended"] == "no answer within 1 s"
