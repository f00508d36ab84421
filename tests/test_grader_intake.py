"""What is taken from a submission, and what is left out and listed (G3)."""

from __future__ import annotations

import os

import pytest

from grader.intake import MAX_FILE_BYTES, take

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
