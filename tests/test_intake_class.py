"""A whole class of bad input: one row each, with a reason in both languages, and the others count."""

from __future__ import annotations

import os
import shutil
import subprocess
import unicodedata
import zipfile

import pytest

from grader.intake import open_submission, source
from grader.pool import find_submissions, seat_class
from grader.roster import load_roster
from tests.piped import KIT

RIGHT = KIT / "assets/sample-class/right"


def right(path):
    shutil.copytree(RIGHT, path)


def zipped(path, prefix=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(RIGHT.rglob("*.py")):
            archive.write(file, f"{prefix}{file.relative_to(RIGHT)}")


def half(path):
    zipped(path)
    path.write_bytes(path.read_bytes()[:5000])


def hole(path):
    zipped(path)
    os.truncate(path, source.MAX_ARCHIVE_BYTES + 1)


def repository_without_commit(path):
    right(path)
    subprocess.run(["git", "init", "-q", path], check=True)


BAD = {
    "empty folder": (lambda path: path.mkdir(), "is not there"),
    "empty.zip": (lambda path: path.touch(), "empty"),
    "half.zip": (half, "only part of it arrived"),
    "huge.zip": (hole, "larger than 256 MiB"),
    "binary.tar.gz": (lambda path: path.write_bytes(bytes(range(256)) * 40), "damaged"),
    "login page.zip": (lambda path: path.write_text("<!DOCTYPE html>"), "damaged"),
    "notes.docx": (lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600)), "neither a folder nor"),
    "too deep.zip": (lambda path: zipped(path, "a/b/c/"), "there is one at a/b/c/lesson_22/"),
    "twice packed.zip": (
        lambda path: zipfile.ZipFile(path, "w").writestr("lab.zip", b"PK"),
        "unpack lab.zip first",
    ),
    "a link": (lambda path: path.symlink_to(RIGHT), "link, pipe or device"),
    "a pipe": (os.mkfifo, "link, pipe or device"),
    "not committed": (repository_without_commit, "commit first"),
}
GOOD = [
    *("张三 的作业", "Ωμέγα", "עברית", "🧪👩‍🔬", " spaces  ", "%s{0}\\n", "-rf", "n" * 255),
    *("anna", "Anna", "ANNA.zip", unicodedata.normalize("NFC", "René"), unicodedata.normalize("NFD", "René")),
]


@pytest.fixture(scope="module")
def bad_class(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for name, (make, _) in BAD.items():
        made = make(folder / name)
        if hasattr(made, "close"):
            made.close()
    for name in GOOD:
        (zipped if name.endswith(".zip") else right)(folder / name)
    return folder


def test_every_bad_submission_has_one_row_and_a_reason(bad_class):
    """Empty, unreadable, huge, binary, half-uploaded, wrongly nested: said in English and in Chinese."""
    seats = {row.name: row for row in seat_class(find_submissions(bad_class), None, lambda _: None)}

    assert len(seats) == len(BAD) + len(GOOD)
    for name, (_, told) in BAD.items():
        problem = seats[name].problem or open_submission(bad_class / name).handin("22").problem
        assert told in problem.en, name
        assert any("\u4e00" <= letter <= "\u9fff" for letter in problem.zh), name


def test_the_others_are_graded(bad_class):
    """Names in any script, with spaces and emoji, 255 letters long, different in case or Unicode form only."""
    seats = {row.name: row for row in seat_class(find_submissions(bad_class), None, lambda _: None)}

    assert [name for name in GOOD if seats[name].problem] == []
    assert all(open_submission(bad_class / name).handin("22").problem is None for name in GOOD)


def test_two_of_one_student_and_nobody_have_their_rows(tmp_path):
    """With a roster: each is told of the other, who is absent has a row, and the rest is graded."""
    (tmp_path / "class").mkdir()
    right(tmp_path / "class" / "ana")
    zipped(tmp_path / "class" / "Ana.zip")
    (tmp_path / "class" / "ana" / "lesson_22" / "todo.py").write_text("x = 1\n")
    right(tmp_path / "class" / "bo")
    (tmp_path / "roster.csv").write_text("id,name\nana,Ana\nbo,Bo\ncy,Cy\n")
    rows = seat_class(
        find_submissions(tmp_path / "class"), load_roster(tmp_path / "roster.csv"), lambda _: None
    )
    told = {row.name: row.problem and row.problem.en for row in rows}

    assert told["bo"] is None
    assert "also Ana.zip" in told["ana"]
    assert "also ana" in told["Ana.zip"]
    assert told["Cy"] == "nothing was handed in"
