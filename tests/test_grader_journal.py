"""The class record: what it keeps through any end, whom it lets in, and how it says that it cannot be used."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from grader.journal import ClassRecord, Grading, Key, RecordError, record_folder

SUITE = "5" * 64
OUTCOME = {"verdict": "ok", "tests": [{"id": "22-01", "status": "pass"}], "points": {"earned": 1.5}}


def key(content: str, suite: str = SUITE) -> Key:
    return Key("22", content, suite)


def recorded(folder, *contents):
    """Record one grading of each content; give the record's file."""
    with ClassRecord(folder) as record:
        for content in contents:
            record.graded(key(content), Grading.of(OUTCOME, 0.5))
        return record.path


def found(folder, suites=(SUITE,)):
    with ClassRecord(folder) as record:
        return record.gradings(suites)


def test_a_grading_comes_back_as_it_was(tmp_path):
    """Key, outcome and time are what was recorded, in another process's eyes too."""
    recorded(tmp_path / "class", "a", "b")
    gradings = found(tmp_path / "class")
    assert list(gradings) == [key("a"), key("b")]
    assert gradings[key("a")].outcome == OUTCOME
    assert (gradings[key("a")].verdict, gradings[key("a")].seconds) == ("ok", 0.5)


def test_nothing_recorded_is_nothing_found(tmp_path):
    """A class that was never graded has an empty record."""
    assert found(tmp_path / "class") == {}


def test_a_grading_by_other_checks_is_not_taken(tmp_path):
    """Other checks, settings or isolation have another hash, and their outcomes do not count here."""
    recorded(tmp_path / "class", "a")
    assert found(tmp_path / "class", ["6" * 64]) == {}


def test_the_later_of_two_gradings_counts(tmp_path):
    """A run that grades anew adds to the record; nothing of the earlier run is lost from the file."""
    path = recorded(tmp_path / "class", "a")
    with ClassRecord(tmp_path / "class") as record:
        record.graded(key("a"), Grading.of(OUTCOME | {"verdict": "fail"}, 1.0))
    assert found(tmp_path / "class")[key("a")].verdict == "fail"
    assert path.read_bytes().count(b'"graded"') == 2


def test_a_fault_of_the_grader_is_no_grading(tmp_path):
    """It is noted, and a run that resumes grades once more."""
    with ClassRecord(tmp_path / "class") as record:
        record.note("grading-failed", **key("a")._asdict(), fault="disk full")
        assert record.gradings([SUITE]) == {}


def test_a_record_cut_at_any_byte_keeps_every_whole_grading(tmp_path):
    """Whatever moment a grader was killed at, the next one finds what was complete and goes on behind it."""
    whole = recorded(tmp_path / "class", "a", "b").read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole)):
        folder = tmp_path / "cut"
        folder.mkdir(exist_ok=True)
        (folder / "record.jsonl").write_bytes(whole[:size])
        # A record whose newline alone is missing is whole.
        kept = (size >= first - 1) + (size >= len(whole) - 1)
        assert len(found(folder)) == kept, size
    recorded(folder, "c")
    assert list(found(folder)) == [key("a"), key("b"), key("c")]


@pytest.mark.parametrize(
    "line",
    [
        b'{"sequence":2,"type":"graded","data":',
        b'{"sequence":7,"type":"graded","data":{}}',
        b'{"sequence":2,"type":"graded","data":{}}',
        b'{"sequence":2,"type":"graded","data":7}',
        b'{"sequence":2,"type":"graded","data":{"lesson":"22","content":"a","suite":"s","seconds":1,"outcome":[]}}',
        b'{"sequence":2,"type":"graded","data":{"lesson":"22","content":1,"suite":"s","seconds":1,"outcome":{}}}',
        b"\xff",
    ],
)
def test_a_damaged_record_is_told_with_its_line_and_nothing_is_graded(tmp_path, line):
    """A line that no crash leaves behind: place, reason and next step, and the file stays as it is."""
    path = recorded(tmp_path / "class", "a")
    damaged = path.read_bytes() + line + b"\n" + b'{"sequence":3,"type":"run-ended","data":{}}\n'
    path.write_bytes(damaged)
    with pytest.raises(RecordError, match=r"line 2: .* move .*class away") as told:
        found(tmp_path / "class")
    assert str(path) in str(told.value)
    assert path.read_bytes() == damaged


def test_nothing_is_written_behind_damage(tmp_path):
    """A run that does not resume reads the record all the same, and stops there."""
    path = recorded(tmp_path / "class", "a")
    path.write_bytes(b"{}\n" + path.read_bytes())
    before = path.read_bytes()
    with ClassRecord(tmp_path / "class") as record, pytest.raises(RecordError, match="line 1"):
        record.note("run-began")
    assert path.read_bytes() == before


def test_two_graders_do_not_write_one_record(tmp_path):
    """The second is told to wait, also in another process; when the first has ended, the next one may."""
    another = (
        "import sys; from pathlib import Path; from grader.journal import ClassRecord, RecordError\n"
        "try:\n    ClassRecord(Path(sys.argv[1])).__enter__()\nexcept RecordError as error:\n    print(error)"
    )
    command = [sys.executable, "-c", another, str(tmp_path / "class")]
    with ClassRecord(tmp_path / "class"):
        with pytest.raises(RecordError, match="another grader is at work"):
            ClassRecord(tmp_path / "class").__enter__()
        refused = subprocess.run(command, capture_output=True, text=True, check=True)
    allowed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "another grader is at work" in refused.stdout
    assert allowed.stdout == ""


def test_a_full_disk_is_told_and_costs_nothing_recorded(tmp_path):
    """The grading that did not fit is not recorded; those before it are, and the record can be written again."""
    path = recorded(tmp_path / "class", "a")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ClassRecord(tmp_path / "class") as record:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, hard))
        try:
            with pytest.raises(RecordError, match="go on with --resume"):
                record.graded(key("b"), Grading.of(OUTCOME, 0.5))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        record.graded(key("c"), Grading.of(OUTCOME, 0.5))
    assert list(found(tmp_path / "class")) == [key("a"), key("c")]


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    """The place is named, and what to do about it."""
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="make it writable"):
        ClassRecord(tmp_path / "file" / "class").__enter__()


def test_a_record_is_its_owners_alone(tmp_path):
    """Outcomes are grades: nobody else reads them, whatever the umask."""
    path = recorded(tmp_path / "records" / "class", "a")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_each_class_has_a_record_of_its_own(tmp_path, monkeypatch):
    """Two folders of one name do not share a record, any name will do, and none lies in the class's folder."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    places = [
        tmp_path / "a" / "班级 2026",
        tmp_path / "b" / "班级 2026",
        tmp_path / ("x" * 200),
        tmp_path / "..",
    ]
    folders = [record_folder(place) for place in places]
    assert len(set(folders)) == len(places)
    assert {folder.parent for folder in folders} == {tmp_path / "state" / "class-records"}
    assert all(len(folder.name) < 60 and folder.name.isascii() for folder in folders)


def test_packing_is_small_and_exact():
    """A class is held in memory packed: the JSON comes back equal, and the same sentences cost little."""
    outcome = OUTCOME | {
        "tests": [{"id": f"22-{number}", "title": "中文 title " * 20} for number in range(50)]
    }
    packed = Grading.of(outcome, 0.0)
    assert packed.outcome == outcome
    assert len(packed.packed) * 10 < len(json.dumps(outcome))
