"""What is taken from a submission, and what is left out and listed (G3)."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.intake import (
    KIT_FILES,
    MANIFEST,
    MAX_FILE_BYTES,
    content_hash,
    is_submission,
    open_submission,
    reason,
    take,
)
from grader.intake.choice import MAX_LISTED
from grader.intake.kit_files import MAX_NOTEBOOK_BYTES, MAX_NOTEBOOKS
from grader.intake.manifest import Manifest
from grader.intake.reasons import LEFT_OUT
from tests.piped import KIT

RIGHT = KIT / "assets/sample-class/right"

NEEDED = ("__init__.py", "session_store.py")


def hand_in(folder, names=NEEDED, text="x = 1\n"):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("place", ["lesson_22", "starter/lesson_22", "unpacked by me/lesson_22", "."])
def test_the_lesson_is_found_where_people_put_it(tmp_path, place):
    """At the root, below starter/, one folder down, or the lesson folder itself."""
    hand_in(tmp_path / "s" / place)
    taken = take(tmp_path / "s", "22")
    assert sorted(taken.files) == sorted(NEEDED)
    assert taken.problem is None


@pytest.mark.parametrize(
    "stray",
    [
        "conftest.py",
        "sitecustomize.py",
        "lesson_22/json.py",
        "lesson_22/test_mine.py",
        "x.pth",
        "lesson_22/sub/a.py",
    ],
)
def test_only_named_files_are_taken(tmp_path, stray):
    """Tests, plugins and shadows of the standard library stay outside, and are listed."""
    hand_in(tmp_path / "lesson_22")
    (tmp_path / stray).parent.mkdir(exist_ok=True)
    (tmp_path / stray).write_text("x = 1\n")
    taken = take(tmp_path, "22")
    assert sorted(taken.files) == sorted(NEEDED)
    assert [entry.name for entry in taken.left_out] == [stray]


def test_caches_repositories_and_the_other_lesson_are_not_listed(tmp_path):
    """What belongs to the tools or to another lesson is nobody's stray file."""
    hand_in(tmp_path / "lesson_22")
    hand_in(tmp_path / "lesson_22" / "__pycache__")
    hand_in(tmp_path / ".git")
    hand_in(tmp_path / "lesson_04")
    assert take(tmp_path, "22").left_out == ()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), "odd"),
        (os.mkfifo, "odd"),
        (lambda path: path.write_bytes(b"#" * (MAX_FILE_BYTES + 1)), "large"),
    ],
)
def test_a_named_file_that_is_none_is_missing(tmp_path, make, why):
    """A link, a pipe or a file without measure under a needed name is left out, so the file is missing."""
    hand_in(tmp_path / "lesson_22", ("__init__.py",))
    make(tmp_path / "lesson_22" / "session_store.py")
    taken = take(tmp_path, "22")
    assert [(entry.name, entry.why) for entry in taken.left_out] == [("lesson_22/session_store.py", why)]
    assert "lesson_22/session_store.py" in taken.problem.en


def test_a_linked_folder_does_not_stand_before_a_real_one(tmp_path):
    """The hand-in is where its files are."""
    hand_in(tmp_path / "elsewhere")
    hand_in(tmp_path / "s" / "starter" / "lesson_22")
    (tmp_path / "s" / "lesson_22").symlink_to(tmp_path / "elsewhere")
    assert sorted(take(tmp_path / "s", "22").files) == sorted(NEEDED)


def test_a_linked_folder_is_not_entered(tmp_path):
    """A lesson folder that is a link to somewhere else is not a hand-in."""
    hand_in(tmp_path / "elsewhere")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "lesson_22").symlink_to(tmp_path / "elsewhere")
    taken = take(tmp_path / "s", "22")
    assert taken.files == {}
    assert taken.problem


@pytest.mark.parametrize("name", ["空 的", "🧪", "a" * 200, "name\nwith newline"])
def test_any_folder_name_will_do(tmp_path, name):
    """Names in any script, with spaces, emoji or control characters, are names."""
    hand_in(tmp_path / name / "lesson_22")
    assert take(tmp_path / name, "22").problem is None


def test_an_empty_folder_lacks_every_needed_file(tmp_path):
    """The problem names what is not there, in both languages."""
    problem = take(tmp_path, "22").problem
    assert all(f"lesson_22/{name}" in problem.en and f"lesson_22/{name}" in problem.zh for name in NEEDED)


def test_a_stub_of_an_archive_has_its_reason(tmp_path):
    """An archive that hardly began is not silently an empty hand-in."""
    (tmp_path / "a.zip").write_bytes(b"PK")
    assert "only part of it arrived" in take(tmp_path / "a.zip", "22").problem.en


def test_what_is_not_there_has_its_reason(tmp_path):
    """A submission that vanished or cannot be listed is a problem of that submission."""
    assert "cannot be read" in take(tmp_path / "gone", "22").problem.en


def test_files_are_laid_down_as_one_package(tmp_path):
    """Bytes go into the box unchanged, readable by the child."""
    hand_in(tmp_path / "s" / "lesson_22", text="# 中文\n")
    (tmp_path / "code").mkdir()
    take(tmp_path / "s", "22").lay_down(tmp_path / "code")
    laid = tmp_path / "code" / "lesson_22" / "session_store.py"
    assert laid.read_bytes() == "# 中文\n".encode()
    assert laid.stat().st_mode & 0o777 == 0o644


def reasons(found):
    return {entry.name: entry.why for entry in found.left_out}


def test_a_submission_is_one_plain_value(tmp_path):
    """Both lessons, as bytes; it can be sent to another machine, and its hash is of what was taken."""
    shutil.copytree(RIGHT, tmp_path / "ana")
    found = open_submission(tmp_path / "ana")
    handin = found.handin("22")

    assert pickle.loads(pickle.dumps(found)) == found
    assert pickle.loads(pickle.dumps(handin)) == handin == take(RIGHT, "22")
    assert (found.form, found.handed_in, found.student, found.problem) == ("folder", "ana", "ana", None)
    assert found.content == open_submission(RIGHT).content != ""


def test_the_content_hash_is_what_the_manual_says():
    """SHA-256 over JSON of path -> SHA-256, sorted, without spaces."""
    assert content_hash({"b/é": b"x", "a": b"x"}) == content_hash({"a": b"x", "b/é": b"x"})
    assert content_hash({"a": b"x"}) == "d2003d2b857162c71952524f2f576e992f7766278d3fabcf9d65a8efe8d4ad40"


def test_another_byte_is_another_content(tmp_path):
    """And a file that is not taken is none."""
    hand_in(tmp_path / "a" / "lesson_22")
    hand_in(tmp_path / "b" / "lesson_22", text="x = 2\n")
    hand_in(tmp_path / "c" / "lesson_22", (*NEEDED, "notes.txt"))
    a, b, c = (open_submission(tmp_path / name).content for name in "abc")

    assert a == c != b


@pytest.mark.parametrize("make", [lambda path: path.symlink_to(RIGHT), os.mkfifo])
def test_a_link_or_pipe_is_no_submission(tmp_path, make):
    """It has a row, and is neither followed nor waited for."""
    make(tmp_path / "ana")

    assert "link, pipe or device" in open_submission(tmp_path / "ana").problem.en
    assert is_submission(tmp_path / "ana")
    assert not any(is_submission(tmp_path / name) for name in (".DS_Store", ".git", "__MACOSX", "Thumbs.db"))


def test_a_submission_that_vanished_has_its_row(tmp_path):
    """Between the listing and the opening."""
    found = open_submission(tmp_path / "gone")

    assert "cannot be read" in found.problem.en
    assert found.handin("22").problem == found.problem
    assert (found.content, found.student) == ("", "gone")


@contextmanager
def as_ordinary_user():
    """Root may read everything; as root, act for a moment as nobody."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_what_may_not_be_read_has_its_reason():
    """A file, a folder below, the submission as a whole, an archive."""
    open_submission(RIGHT)  # loads what the kit itself reads
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        hand_in(root / "s" / "lesson_22").joinpath("todo.py").touch(0)
        (root / "s" / "closed").mkdir(0)
        (root / "outer").mkdir(0)
        (root / "a.zip").touch(0)
        with as_ordinary_user():
            inner, outer, archive = (open_submission(root / name) for name in ("s", "outer", "a.zip"))

    assert reasons(inner).keys() == {"closed", "lesson_22/todo.py"}
    assert all(why == "unreadable (Permission denied)" for why in reasons(inner).values())
    assert "cannot be read (Permission denied)" in outer.problem.en
    assert "cannot be read (Permission denied)" in archive.problem.en


@pytest.mark.parametrize(
    "name",
    [
        "n" * 254 + "m",
        "空 的",
        "🧪 👩‍🔬",
        "n" * 255,
        "名" * 85,
        "a\nb",
        "\x1b[31mred",
        "-rf",
        "%s{0}",
        "<script>",
        "Rene\u0301",
        "ﷺ",
        os.fsdecode(b"\xff\xfe"),
    ],
)
def test_any_name_has_its_row_in_utf8(tmp_path, name):
    """Names in any script, as long as a file system allows, and bytes that are no text."""
    hand_in(tmp_path / name / "lesson_22")
    found = open_submission(tmp_path / name)

    assert found.handin("22").problem is None
    assert found.handed_in.encode()
    assert found.student == found.handed_in
    assert name in (found.handed_in, os.fsdecode(b"\xff\xfe"))


def test_a_file_of_any_name_is_listed_in_utf8(tmp_path):
    """A stray file's name is shown whole if it can be, else escaped, and never longer than a line or two."""
    hand_in(tmp_path / "lesson_22")
    for name in (os.fsdecode(b"\xff.py"), "x" * 255, "空.py"):
        (tmp_path / name).write_text("")
    listed = reasons(open_submission(tmp_path))

    assert json.dumps(listed, ensure_ascii=False).encode()
    assert {"\\udcff.py", "空.py"} < listed.keys()
    assert max(map(len, listed)) == 200


def test_a_wrongly_nested_hand_in_is_told_where_it_lies(tmp_path):
    """Too far down is not searched through, but the row says where it was seen."""
    hand_in(tmp_path / "s" / "a" / "b" / "lesson_22")
    problem = open_submission(tmp_path / "s").handin("22").problem

    assert "there is one at a/b/lesson_22/session_store.py" in problem.en
    assert "有一个在 a/b/lesson_22/session_store.py" in problem.zh


def test_beside_a_starter_the_kits_solution_is_not_taken(tmp_path):
    """Who hands in the whole kit without the lesson's folder has not handed in the solution."""
    for folder in ("starter/lesson_22", "solution/lesson_22", "solution/lesson_04/issue_garden"):
        hand_in(tmp_path / "s" / folder, text=f"# {folder}\n")
    shutil.copytree(RIGHT / "lesson_04", tmp_path / "s" / "solution" / "lesson_04", dirs_exist_ok=True)
    found = open_submission(tmp_path / "s")

    assert found.handin("22").files["session_store.py"] == b"# starter/lesson_22\n"
    assert found.handin("04").files == {}


def test_a_tree_without_end_is_looked_at_from_the_top(tmp_path, monkeypatch):
    """Ten thousand stray files do not hide the hand-in, and the row says that not all were looked at."""
    monkeypatch.setattr("grader.intake.folders.MAX_ENTRIES", 200)
    hand_in(tmp_path / "lesson_22")
    (tmp_path / "zz").mkdir()
    for number in range(300):
        (tmp_path / "zz" / f"{number}.txt").touch()
    found = open_submission(tmp_path)

    assert found.handin("22").problem is None
    assert len(found.left_out) <= 2 * (MAX_LISTED + 1)
    assert {"too-many", "more"} < {entry.why for entry in found.left_out}


def test_a_bottomless_tree_ends(tmp_path):
    """A thousand folders in each other, more than a recursion would bear."""
    hand_in(tmp_path / "s" / "lesson_22")
    here = tmp_path / "s"
    descriptor = os.open(here, os.O_RDONLY)
    for _ in range(1050):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    found = open_submission(here)
    subprocess.run(["rm", "-rf", here / "d"], check=True)  # shutil would recurse

    assert found.handin("22").problem is None
    assert set(reasons(found).values()) == {"deep"}


def test_binary_content_is_taken_as_it_is(tmp_path):
    """What is no Python is the child's to say: intake takes bytes."""
    hand_in(tmp_path / "lesson_22")
    (tmp_path / "lesson_22/session_store.py").write_bytes(bytes(range(256)))

    assert open_submission(tmp_path).handin("22").files["session_store.py"] == bytes(range(256))


def test_notebooks_are_taken_for_the_asking(tmp_path):
    """Wherever they lie, a few of them, of reasonable size; checkpoints are the tool's own."""
    hand_in(tmp_path / "lesson_22")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / "nb").mkdir()
    (tmp_path / ".ipynb_checkpoints/a-checkpoint.ipynb").write_text("{}")
    (tmp_path / "nb/a.ipynb").write_text("{}")
    (tmp_path / "nb/big.ipynb").write_bytes(b" " * (MAX_NOTEBOOK_BYTES + 1))
    (tmp_path / "nb/link.ipynb").symlink_to("a.ipynb")
    found = open_submission(tmp_path)

    assert found.notebooks == {"nb/a.ipynb": b"{}"}
    assert reasons(found) == {"nb/big.ipynb": "large", "nb/link.ipynb": "odd"}


def test_only_a_few_notebooks_are_taken(tmp_path):
    """The rest is listed."""
    hand_in(tmp_path / "lesson_22")
    for number in range(MAX_NOTEBOOKS + 3):
        (tmp_path / f"{number:02}.ipynb").write_text("{}")
    found = open_submission(tmp_path)

    assert len(found.notebooks) == MAX_NOTEBOOKS
    assert list(reasons(found).values()) == ["too-many"] * 3


GOOD = {
    "schema": 1,
    "student": "s1",
    "kit": "0.1.0",
    "content": "0" * 64,
    "made_at": "2026-01-01T00:00:00+00:00",
}


@pytest.mark.parametrize("place", ["", "starter/", "mine/"])
def test_the_manifest_says_whose_it_is(tmp_path, place):
    """Beside the lessons; files that were changed since are told, and cost nothing."""
    hand_in(tmp_path / "s" / place / "lesson_22")
    (tmp_path / "s" / place / MANIFEST).write_text(json.dumps(GOOD))
    found = open_submission(tmp_path / "s")

    assert (found.student, found.left_out) == ("s1", ())
    assert found.manifest == Manifest("s1", "0.1.0", "0" * 64, GOOD["made_at"])
    assert "changed after they were packed" in found.notes[0].en


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 60_000,
        b" " * 70_000,
        *(
            json.dumps(GOOD | change).encode()
            for change in [
                {"schema": 2},
                {"student": ""},
                {"student": "a\nb"},
                {"student": 7},
                {"student": "x" * 101},
                {"student": " s1"},
                {"content": "no"},
                {"made_at": "yesterday"},
                {"made_at": "2026-01-01T00:00:00"},
                {"kit": None},
            ]
        ),
    ],
)
def test_a_manifest_that_is_none_is_not_used(tmp_path, raw):
    """The folder's name decides whose it is, and the note says why."""
    hand_in(tmp_path / "ana" / "lesson_22")
    (tmp_path / "ana" / MANIFEST).write_bytes(raw)
    found = open_submission(tmp_path / "ana")

    assert (found.student, found.manifest) == ("ana", None)
    assert "manifest was not used" in found.notes[0].en
    assert found.handin("22").problem is None


def test_every_reason_is_told_in_both_languages():
    """What the system itself said is kept behind it; an unknown word does not break a report."""
    for why in LEFT_OUT:
        assert reason(why) == LEFT_OUT[why]
    assert reason("unreadable (Input/output error)").en == "cannot be read (Input/output error)"
    assert reason("nonsense").en == "cannot be read"


def test_what_belongs_to_no_lesson_is_listed_once(tmp_path):
    """A stray file of both lessons' lists is one stray file of the submission."""
    shutil.copytree(RIGHT, tmp_path / "s")
    (tmp_path / "s" / "conftest.py").write_text("")

    assert [entry.name for entry in open_submission(tmp_path / "s").left_out] == ["conftest.py"]
    assert all(
        [entry.name for entry in take(tmp_path / "s", lesson).left_out] == ["conftest.py"]
        for lesson in KIT_FILES
    )
