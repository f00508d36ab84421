"""Every log of the corruption zoo gets its verdict from the solution's store, and keeps its bytes."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from solution.lesson_22 import CorruptLogError, JsonlSessionStore, SessionEvent
from solution.lesson_22.session_store import scan

ZOO = Path(__file__).resolve().parents[1] / "assets/corruption-zoo"
VERDICTS: dict[str, dict[str, Any]] = json.loads((ZOO / "verdicts.json").read_bytes())
ROWS_OF_FILES = {1, 3, 4, 5, 7, 8, 11, 12, 13, 14, 16, 17, 19, 22, 23, 24, 25, 27, 28, 29, 31, 32, 33, 39}
ROWS_OF_FILES |= {41, 42, 45, 47, 48, 49, 50, 61, 64, 65}
FORMAT_WORDS = {"sequence", "type", "data", "Infinity", "true", "null"}
"""Words that a reason may use because the format does, not because the line did."""


def of_kind(*kinds: str) -> list[str]:
    return [name for name, verdict in VERDICTS.items() if verdict["kind"] in kinds]


def read(path: Path) -> list[SessionEvent]:
    return asyncio.run(JsonlSessionStore(path).read())


async def append(path: Path) -> SessionEvent:
    return await JsonlSessionStore(path).append("todo_created", {"todo_id": "new", "title": "new"})


@pytest.fixture
def specimen(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a copy of the zoo's file that the test is parametrized with."""
    return Path(shutil.copy(ZOO / request.param, tmp_path))


@pytest.mark.parametrize("specimen", of_kind("sound", "torn"), indirect=True)
def test_what_counts_is_read_and_what_is_torn_is_measured(specimen):
    """Sound and torn logs read without an error: so many events, so many good bytes, so many torn ones."""
    verdict = VERDICTS[specimen.name]
    found = scan(specimen.read_bytes(), specimen)

    assert len(read(specimen)) == len(found.events) == verdict["events"]
    assert [event.sequence for event in found.events] == list(range(1, verdict["events"] + 1))
    assert (found.good_bytes, len(found.torn)) == (verdict["good_bytes"], verdict["torn_bytes"])
    assert found.missing_newline == verdict["missing_newline"]


@pytest.mark.parametrize("specimen", of_kind("corrupt"), indirect=True)
def test_damage_stops_the_read_at_its_line(specimen):
    """A damaged log is refused as a whole, and the error names file, line and reason."""
    with pytest.raises(CorruptLogError) as caught:
        read(specimen)

    line = VERDICTS[specimen.name]["line"]
    assert (caught.value.path, caught.value.line) == (specimen, line)
    assert caught.value.reason
    assert f"第 {line} 行" in str(caught.value)
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize("specimen", of_kind("corrupt"), indirect=True)
def test_the_error_holds_none_of_the_line(specimen):
    """No word of the damaged line stands in the error, in any form in which it may be shown."""
    with pytest.raises(CorruptLogError) as caught:
        read(specimen)

    line = specimen.read_bytes().split(b"\n")[caught.value.line - 1]
    words = (
        set(re.findall(r"[A-Za-z_]{4,}|[一-鿿]{2,}|\d{12,}", line.decode(errors="replace"))) - FORMAT_WORDS
    )
    shown = str(caught.value).replace(str(specimen), "") + repr(caught.value.reason)
    assert [word for word in words if word in shown] == []


@pytest.mark.parametrize("specimen", VERDICTS, indirect=True)
def test_reading_changes_nothing(specimen):
    """Whatever the verdict, reading leaves the file and its folder as they were."""
    before = specimen.stat()
    try:
        read(specimen)
    except CorruptLogError:
        assert VERDICTS[specimen.name]["kind"] == "corrupt"

    assert specimen.read_bytes() == (ZOO / specimen.name).read_bytes()
    assert (specimen.stat().st_mtime_ns, specimen.stat().st_mode) == (before.st_mtime_ns, before.st_mode)
    assert list(specimen.parent.iterdir()) == [specimen]


@pytest.mark.parametrize("specimen", of_kind("sound", "torn"), indirect=True)
def test_an_append_continues_behind_what_counts(specimen):
    """The next event follows the good bytes, newline completed; torn bytes are kept beside the log, all of them."""
    verdict, before = VERDICTS[specimen.name], specimen.read_bytes()
    good, torn = before[: verdict["good_bytes"]], before[verdict["good_bytes"] :]

    assert asyncio.run(append(specimen)).sequence == verdict["events"] + 1
    assert len(read(specimen)) == verdict["events"] + 1
    assert specimen.read_bytes().startswith(good + b"\n" * verdict["missing_newline"] + b'{"sequence":')
    kept = {path.name: path.read_bytes() for path in specimen.parent.iterdir() if path != specimen}
    assert kept == ({f"{specimen.name}.torn-{len(good)}": torn} if torn else {})


@pytest.mark.parametrize("specimen", of_kind("corrupt"), indirect=True)
def test_an_append_to_damaged_history_is_refused(specimen):
    """A damaged log takes no event: the append names the line, and no byte is changed."""
    with pytest.raises(CorruptLogError) as caught:
        asyncio.run(append(specimen))

    assert caught.value.line == VERDICTS[specimen.name]["line"]
    assert specimen.read_bytes() == (ZOO / specimen.name).read_bytes()
    assert list(specimen.parent.iterdir()) == [specimen]


def test_every_row_about_files_has_a_specimen():
    """Each known fault that a file can show is shown by one."""
    assert {row for verdict in VERDICTS.values() for row in verdict["known_faults"]} == ROWS_OF_FILES


def test_every_specimen_is_explained_in_both_languages():
    """Chinese and English say what happened to the file, each in its own words."""
    for name, verdict in VERDICTS.items():
        assert re.search(r"[一-鿿]", verdict["zh"]), name
        assert re.fullmatch(r"[ -~“”é–]+", verdict["en"]), name


def test_the_zoo_is_as_its_maker_makes_it():
    """The committed files are exactly what make_zoo.py writes."""
    made = subprocess.run(
        [sys.executable, ZOO / "make_zoo.py", "--check"], capture_output=True, text=True, check=False
    )

    assert (made.returncode, made.stdout) == (0, "")


@pytest.mark.parametrize("name", ["crlf.jsonl", "stranger.jsonl"])
def test_a_file_that_differs_is_stale(tmp_path, name):
    """A changed or added log is named by --check, and set right by the maker."""
    zoo = Path(shutil.copytree(ZOO, tmp_path / "zoo"))
    (zoo / name).write_bytes(b"changed")

    def make(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, zoo / "make_zoo.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    checked = make("--check")
    assert checked.returncode == 1
    assert name in checked.stdout
    assert make().returncode == make("--check").returncode == 0
