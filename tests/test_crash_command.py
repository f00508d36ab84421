"""`statelab crash`: what it prints, and what its exit code says."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from click.testing import CliRunner

from labkit import cli
from labkit import words as language
from labkit.faults.crash import recovery

ROOT = Path(__file__).resolve().parent.parent
CLASSICS = ROOT / "tests" / "crash_classics"
STATELAB = Path(sys.executable).parent / "statelab"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State of its own, English, the untouched starter."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LAB_LANG", "en")
    monkeypatch.setenv("LAB_TARGET", "starter")
    monkeypatch.setattr(language, "_chosen", [])


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def crash(*words: object) -> Done:
    done = CliRunner().invoke(cli.main, ["crash", *map(str, words)], prog_name="statelab")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def as_json(done: Done) -> dict[str, Any]:
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


def test_nothing_broken_ends_with_0() -> None:
    """The lesson's store under kill: every possible crash was tried, none breaks anything."""
    done = crash("explore", "--store", "lesson", "--model", "kill", "--events", 10, "--seed", 1, "--json")

    told = as_json(done)
    assert done.returncode == 0
    assert (told["verdict"], told["broken"], told["complete"]) == ("kept", [], True)
    assert told["explored"] == told["tried"] == told["possible"] > 450
    assert told | {"store": "lesson", "model": "kill", "events": 10, "seed": 1, "schema": 1} == told


def test_a_broken_promise_ends_with_1_and_replays() -> None:
    """The naive store: an id and the promise it breaks; and the id draws the crash, which fails again."""
    done = crash("explore", "--store", "naive", "--events", 2, "--json")

    (broken,) = as_json(done)["broken"]
    assert done.returncode == 1
    assert broken["breaks"] == ["goes-on"]
    again = crash("replay", broken["id"])
    assert again.returncode == 1
    assert [line for line in again.stdout.splitlines() if line.startswith(("✗", "2 ", "────", "~"))] == [
        "✗ broken promise: goes-on: after recovery appending works, and keeps what was read",
        next(line for line in again.stdout.splitlines() if "shortened to 1 byte" in line),
        next(line for line in again.stdout.splitlines() if "⚡ crash" in line),
        next(line for line in again.stdout.splitlines() if line.startswith("~") and line.endswith("{")),
    ]
    assert "Replayed: it fails again, as it did." in again.stdout
    assert crash("replay").stdout == f"{broken['id']}\n"


def test_a_replay_is_json_too() -> None:
    """What a program needs to go on: what broke then, what breaks now, and the state."""
    crash("explore", "--store", "naive", "--events", 1, "--json")

    told = as_json(crash("replay", crash("replay").stdout.strip(), "--json"))

    assert told["broke"] == told["breaks"] == ["goes-on"]
    assert told["choices"] == [{"step": 2, "kept": 1, "filled": False}]
    assert told["report"]["error"] == "CorruptLogError"


def test_a_failed_operation_is_said_in_words() -> None:
    """`--model fail`: which operation failed and how, and what is left; no crash, and no step of a run that never was."""
    done = crash("explore", "--store", "naive", "--model", "fail", "--events", 2)

    assert done.returncode == 1
    name = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("✗"))
    told = crash("replay", name).stdout
    assert re.search(
        r"^Nothing crashes\. Operation \d+ of those .* writes one byte and says so$", told, re.MULTILINE
    )
    assert re.search(
        r"^That run acknowledged \d; one without the failure acknowledges 2$", told, re.MULTILINE
    )
    assert re.search(r"^session\.jsonl: \d+ bytes$", told, re.MULTILINE)
    assert "⚡" not in told


def test_what_was_not_promised_is_listed_and_ends_with_0() -> None:
    """Power loss takes what the lesson's store never synced: shown, and marked as not promised."""
    done = crash("explore", "--store", "lesson", "--model", "weak", "--events", 1)

    assert done.returncode == 0
    assert "○ lesson-weak-" in done.stdout
    assert "✗" not in done.stdout
    assert "What breaks was not promised (○)" in done.stdout


def test_the_switches_are_said_and_do_what_they_say() -> None:
    """Without its folder sync, durable_log loses the name of a file whose bytes are all there."""
    done = crash(
        *("explore", "--store", "durable-fsync", "--model", "weak", "--events", 1, "--limit", 300),
        *("--no-folder-sync", "--json"),
    )

    told = as_json(done)
    assert done.returncode == 1
    assert told["switches"] == {"fsync": True, "folder_sync": False, "atomic_replace": True}
    assert told["tried"] >= told["explored"] > 0


def test_what_the_recorder_cannot_see_ends_with_3(tmp_path: Path) -> None:
    """No all-clear for code that writes past the recorder, and the reason in words."""
    own = tmp_path / "own.py"
    own.write_text(
        "import sqlite3\nPROMISES = ('readable',)\n"
        "def work(folder, events, acknowledge): sqlite3.connect(folder / 'db').execute('create table t (a)')\n"
        "def recover(folder): return {'read': []}\n"
    )

    done = crash("explore", "--scenario", own)

    assert done.returncode == 3
    assert "not seen: what sqlite3 writes by itself (db)" in done.stdout
    assert "No verdict" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--store", "starter"), "not implemented yet: "),
        ((), "name one store, --store (naive, starter, lesson"),
        (("--store", "naive", "--scenario", "own.py"), "name one store"),
        (("--scenario", "nowhere.py"), "nowhere.py: no such file"),
        (("--store", "naive", "--trace", "nowhere.jsonl"), "nowhere.jsonl: No such file or directory"),
        (("--store", "sqlite"), "'sqlite' is not one of"),
        (("--store", "naive", "--events", "0"), "0 is not in the range"),
    ],
)
def test_wrong_use_ends_with_2(words: tuple[str, ...], said: str) -> None:
    """One sentence, and never a traceback."""
    done = crash("explore", *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_state_folder_that_cannot_be_made_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is tried: counterexamples would have no place."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "file" / "below"))

    done = crash("explore", "--store", "lesson")

    assert done.returncode == 2
    assert done.stderr.endswith("Not a directory; set LAB_STATE to a folder that can be written\n")


def test_an_unknown_id_ends_with_2() -> None:
    """There is no such counterexample, and how to list those there are."""
    done = crash("replay", "naive-kill-00000000")

    assert (done.returncode, done.stdout) == (2, "")
    assert "no such counterexample; 'statelab crash replay' without an id lists them" in done.stderr


def test_a_scenario_that_is_gone_can_still_be_drawn(tmp_path: Path) -> None:
    """Nothing of the run that found it is needed to look at it; to try it again, its scenario is."""
    own = tmp_path / "own.py"
    own.write_bytes((CLASSICS / "fused_record.py").read_bytes())
    crash("explore", "--scenario", own, "--events", 1)
    name = crash("replay").stdout.strip()
    own.unlink()

    gone, drawn = crash("replay", name), crash("replay", name, "--no-run")

    assert (gone.returncode, drawn.returncode) == (2, 1)
    assert "own.py: the scenario is gone; put it back, or look at what was found: --no-run" in gone.stderr
    assert "broken promise: goes-on" in drawn.stdout


def test_a_recorded_program_is_explored(tmp_path: Path) -> None:
    """`record` writes the trace of any program, each printed line an acknowledgement; `explore` takes it from there."""
    program, root, trace = tmp_path / "writer.py", tmp_path / "root", tmp_path / "writer.jsonl"
    program.write_text(
        "import os\nfile = open('log.jsonl', 'ab', buffering=0)\n"
        "for n in (1, 2):\n    file.write(b'%d\\n' % n)\n    os.fsync(file.fileno())\n    print(n, flush=True)\n"
    )
    own = tmp_path / "reader.py"
    own.write_text(
        "PROMISES = ('readable', 'acknowledged-survive')\n"
        "def work(folder, events, acknowledge): raise SystemExit('never called: the trace is there')\n"
        "def recover(folder):\n    path = folder / 'log.jsonl'\n"
        "    whole = path.read_text().rpartition('\\n')[0] if path.exists() else ''\n    return {'read': whole.split()}\n"
    )
    root.mkdir()

    recorded = crash("record", program, "--root", root, "--out", trace)
    killed, lost = (
        crash("explore", "--scenario", own, "--trace", trace, "--model", model) for model in ("kill", "weak")
    )

    assert (recorded.returncode, recorded.stdout) == (0, f"{trace}: 7 steps, 2 acknowledged\n")
    assert (killed.returncode, lost.returncode) == (0, 1)
    assert "acknowledged-survive" in lost.stdout


def test_a_trace_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The program ran; its trace has no place."""
    (tmp_path / "p.py").write_text("open('a', 'w').close()\n")
    (tmp_path / "root").mkdir()

    done = crash(
        "record", tmp_path / "p.py", "--root", tmp_path / "root", "--out", tmp_path / "no" / "t.jsonl"
    )

    assert done.returncode == 2
    assert "No such file or directory; choose a place that can be written" in done.stderr


def test_chinese_is_spoken_too() -> None:
    """The same run in the learner's language."""
    done = crash("explore", "--store", "naive", "--events", 1, "--lang", "zh")

    assert "naive · kill · 1 个事件" in done.stdout
    assert "没有守住：goes-on" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="terminals and signals: POSIX only")
def test_ctrl_c_on_a_terminal_leaves_no_child(tmp_path: Path) -> None:
    """A bar on the terminal while it runs; one Ctrl-C ends everything at once, and what was found is said."""
    controller, terminal = pty.openpty()
    words = ["explore", "--store", "naive", "--model", "weak", "--events", "40", "--limit", "1000000"]
    running = subprocess.Popen(
        [STATELAB, "crash", *words],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        encoding="utf-8",
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        start_new_session=True,
    )
    os.close(terminal)
    shown = b""
    while not re.search(rb"[1-9]\d* kinds? of break", shown):
        shown += os.read(controller, 4096)
    below = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # nobody writes to the terminal any more
        while os.read(controller, 4096):
            pass
    running.wait()
    assert running.stdout is not None

    assert running.returncode == 130
    assert "naive-weak-" in running.stdout.read()
    assert below
    assert psutil.wait_procs(below, timeout=30)[1] == []
    running.stdout.close()
    os.close(controller)


def test_a_full_memory_file_system_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for states at all: what to do, exit 2, no report made up."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setattr(recovery, "MEMORY", tmp_path / "none")
    monkeypatch.setattr(recovery.tempfile, "tempdir", None)

    with pytest.raises(recovery.CrashLabError, match="free some room, or set TMPDIR"):
        monkeypatch.setattr(recovery.tempfile, "mkdtemp", _full)
        recovery.scratch_folder()


def _full(**_: object) -> str:
    raise OSError(28, "No space left on device")
