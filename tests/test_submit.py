"""`statelab submit`: what it packs, what it refuses, and that the grader takes back the same bytes."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import zipfile

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.intake import KIT_FILES, MANIFEST, content_hash, open_submission
from grader.intake.manifest import Manifest, student_id
from grader.submission_zip import Work, gather, pack, write_whole
from grader.submit import SAID, submit
from tests.piped import KIT

SAMPLES = KIT / "assets/sample-class"
RIGHT = SAMPLES / "right"
UNTOUCHED = SAMPLES / "untouched-starter"


def run(*words, **options):
    words = [str(word) for word in words]
    words += [] if "--lang" in words else ["--lang", "en"]
    return CliRunner().invoke(submit, words, catch_exceptions=False, **options)


def copy_of(sample, folder):
    shutil.copytree(SAMPLES / sample, folder)
    return folder


def git(folder, *words):
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def test_what_submit_makes_is_taken_back_byte_for_byte(tmp_path):
    """Both lessons, a notebook and the student's id, and nothing else."""
    notebook = tmp_path / "我的 notes.ipynb"
    notebook.write_text('{"cells": []}')
    made = tmp_path / "made.zip"
    told = run("--student", " 2026001 ", "--target", RIGHT, "--notebook", notebook, "--out", made)
    opened = open_submission(made)

    assert told.exit_code == 0, told.output
    assert {lesson: opened.handin(lesson).files for lesson in KIT_FILES} == {
        lesson: gather(RIGHT, [lesson]).handins[lesson].files for lesson in KIT_FILES
    }
    assert opened.notebooks == {"notebooks/我的 notes.ipynb": b'{"cells": []}'}
    assert (opened.student, opened.left_out, opened.notes) == ("2026001", (), ())
    assert opened.content == opened.manifest.content


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    sources=st.dictionaries(
        st.sampled_from([f"lesson_22/{name}" for name in KIT_FILES["22"].named]),
        st.binary(max_size=3000),
        min_size=1,
    ),
    student=st.text(min_size=1, max_size=100).filter(student_id),
)
def test_any_bytes_and_any_id_come_back(tmp_path_factory, sources, student):
    """Whatever the files hold, and whoever hands them in."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "lesson_22").mkdir()
    for name, raw in sources.items():
        (folder / name).write_bytes(raw)
    work = gather(folder, ["22"])
    manifest = Manifest(student_id(student), "0.1.0", content_hash(work.files), "2026-01-01T00:00:00+00:00")
    write_whole(folder / "a.zip", work, manifest, replace=False)
    opened = open_submission(folder / "a.zip")

    assert work.files == sources
    assert {f"lesson_22/{name}": raw for name, raw in opened.handin("22").files.items()} == sources
    assert opened.manifest == manifest


def test_the_same_content_is_the_same_zip():
    """No times, owners or orders of a file system: only the manifest tells two zips of the same work apart."""
    manifest = Manifest("s1", "0.1.0", "0" * 64, "2026-01-01T00:00:00+00:00")
    work = gather(RIGHT, ["22", "04"])
    other = Work(dict(reversed(work.handins.items())), {})

    assert pack(work, manifest) == pack(other, manifest)
    with zipfile.ZipFile(io.BytesIO(pack(work, manifest))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_path_and_what_is_inside_are_told(tmp_path):
    """A learner sees where the zip is, whose it is and each file's size; both languages say it."""
    english = run("--student", "s1", "--target", RIGHT, "--out", tmp_path / "en.zip").stdout
    chinese = run("--student", "s1", "--target", RIGHT, "--out", tmp_path / "zh.zip", "--lang", "zh").stdout

    assert f"Written: {tmp_path / 'en.zip'}" in english
    assert f"已打包：{tmp_path / 'zh.zip'}" in chinese
    size = (RIGHT / "lesson_22/todo.py").stat().st_size
    assert f"lesson_22/todo.py ({size} bytes)" in english


def test_json_tells_a_program_the_same(tmp_path):
    """Path, student, hash, sizes; nothing else on stdout."""
    told = json.loads(run("--student", "s1", "--target", RIGHT, "--out", tmp_path / "a.zip", "--json").stdout)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        manifest = json.loads(archive.read(MANIFEST))

    assert told["path"] == str(tmp_path / "a.zip")
    assert told["files"] == {name: size for name, size in sizes.items() if name != MANIFEST}
    assert {name: told[name] for name in manifest} == manifest
    assert told["lessons"] == ["22", "04"]


def test_without_a_name_the_zip_is_called_after_the_student(tmp_path, monkeypatch):
    """In `out/` of where the learner is, by a name that every system takes."""
    monkeypatch.chdir(tmp_path)
    run("--student", "张三/007", "--target", RIGHT)
    (made,) = tmp_path.glob("out/*")

    assert made.name.startswith("张三-007")
    assert made.suffix == ".zip"


def test_an_untouched_starter_is_refused(tmp_path):
    """Handing in what was given out is surely a mistake, unless it is meant."""
    out = tmp_path / "a.zip"
    refused = run("--student", "s1", "--target", UNTOUCHED, "--out", out)
    left = list(tmp_path.iterdir())
    forced = run("--student", "s1", "--target", UNTOUCHED, "--out", out, "--force")

    assert (refused.exit_code, left) == (1, [])
    assert "still as it was given out" in refused.output
    assert forced.exit_code == 0
    assert out.is_file()


def test_windows_line_ends_do_not_make_a_starter_touched(tmp_path):
    """Git may have rewritten them; nobody has written anything."""
    folder = copy_of("untouched-starter", tmp_path / "s")
    for path in folder.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert run("--student", "s1", "--target", folder, "--out", tmp_path / "a.zip").exit_code == 1


def test_one_untouched_lesson_is_only_mentioned(tmp_path):
    """A learner hands in lesson by lesson."""
    folder = copy_of("untouched-starter", tmp_path / "s")
    shutil.copy(RIGHT / "lesson_22/session_store.py", folder / "lesson_22")
    told = run("--student", "s1", "--target", folder, "--out", tmp_path / "a.zip")

    assert told.exit_code == 0
    assert "lesson 04: still as it was given out" in told.stderr


def test_a_missing_file_is_refused_by_its_name(tmp_path):
    """It says which, and how to hand in the other lesson alone; `--force` takes what there is."""
    folder = copy_of("right", tmp_path / "s")
    (folder / "lesson_22/session_store.py").unlink()
    words = ["--student", "s1", "--target", folder, "--out", tmp_path / "a.zip"]
    refused, alone = run(*words), run(*words, "--lesson", "04")
    forced = run(*words, "--force", "--replace")

    assert refused.exit_code == 1
    assert "lesson_22/session_store.py is not there" in refused.output
    assert (alone.exit_code, forced.exit_code) == (0, 0)
    assert "lesson_22/todo.py" in forced.stdout


def test_nothing_at_all_cannot_be_forced(tmp_path):
    """An empty zip is no hand-in."""
    (tmp_path / "s").mkdir()
    told = run("--student", "s1", "--target", tmp_path / "s", "--out", tmp_path / "a.zip", "--force")

    assert told.exit_code == 1
    assert "no file to hand in" in told.output


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    """Unless asked; and nothing else is left beside it."""
    out = tmp_path / "a.zip"
    out.write_text("mine")
    words = ["--student", "s1", "--target", RIGHT, "--out", out]
    refused = run(*words)
    kept = out.read_text()
    replaced = run(*words, "--replace")

    assert (refused.exit_code, kept) == (1, "mine")
    assert "--replace" in refused.output
    assert replaced.exit_code == 0
    assert zipfile.is_zipfile(out)
    assert list(tmp_path.iterdir()) == [out]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    """A file stands where a folder should be: one sentence, nothing written."""
    (tmp_path / "file").write_text("x")
    told = run("--student", "s1", "--target", RIGHT, "--out", tmp_path / "file" / "a.zip")

    assert told.exit_code == 1
    assert "choose another --out" in told.output


@pytest.mark.parametrize("student", ["", "   ", "a\nb", "\x1b[31m", "x" * 101, "a\u202eb"])
def test_an_id_that_is_none_is_refused(tmp_path, student):
    """Blank, control characters, letters that hide, too long."""
    told = run("--student", student, "--target", RIGHT, "--out", tmp_path / "a.zip")

    assert told.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_an_id_is_wanted_where_nobody_can_be_asked(tmp_path):
    """A program gets an error, not a prompt."""
    told = run("--target", RIGHT, "--out", tmp_path / "a.zip")

    assert told.exit_code == 2
    assert "give your student id" in told.output


def test_uncommitted_work_is_mentioned(tmp_path):
    """The zip holds what is on disk; the learner hears which files the last commit does not have so."""
    folder = copy_of("right", tmp_path / "s")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    words = ["--student", "s1", "--target", folder, "--out", tmp_path / "a.zip", "--replace"]
    clean = run(*words)
    (folder / "lesson_22/todo.py").write_text("x = 1\n")
    dirty = run(*words)

    assert clean.stderr == ""
    assert "not committed to Git; the zip holds what is on disk now: lesson_22/todo.py" in dirty.stderr


def test_what_is_left_out_is_told_in_few_words(tmp_path):
    """One line for each reason, however many files there are."""
    folder = copy_of("right", tmp_path / "s")
    for number in range(30):
        (folder / f"{number:02}.py").write_text("x")
    (folder / "lesson_22/homework.py").unlink()
    (folder / "lesson_22/homework.py").symlink_to("todo.py")
    told = run("--student", "s1", "--target", folder, "--out", tmp_path / "a.zip").stderr.splitlines()

    assert len(told) == 2
    assert "00.py, 01.py" in told[0] + told[1]
    assert "(+25)" in told[0] + told[1]
    assert "lesson_22/homework.py" in told[0] + told[1]


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.txt", b"{}"),
        ("a\\b.ipynb", b"{}"),
        ("._a.ipynb", b"{}"),
        ("a.ipynb", b" " * (4 * 1024 * 1024 + 1)),
    ],
)
def test_a_notebook_that_the_grader_would_not_take_is_refused(tmp_path, name, raw):
    """Before anything is written."""
    (tmp_path / name).write_bytes(raw)
    out = tmp_path / "out.zip"
    told = run("--student", "s1", "--target", RIGHT, "--notebook", tmp_path / name, "--out", out)

    assert told.exit_code == 2
    assert not out.exists()


@pytest.mark.parametrize(
    ("names", "told"),
    [(["1/a.ipynb", "2/a.ipynb"], "another notebook"), ([f"{n}.ipynb" for n in range(9)], "at most 8")],
)
def test_too_many_notebooks_or_two_of_one_name_are_refused(tmp_path, names, told):
    """The grader takes eight, each by its name."""
    words = ["--student", "s1", "--target", RIGHT, "--out", tmp_path / "out.zip"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
        words += ["--notebook", tmp_path / name]
    refused = run(*words)

    assert refused.exit_code == 2
    assert told in refused.output
    assert not (tmp_path / "out.zip").exists()


def test_a_zip_that_does_not_come_back_is_not_written(tmp_path, monkeypatch):
    """The kit's own fault has an exit code of its own, and leaves nothing."""
    monkeypatch.setattr("grader.submission_zip.open_submission", lambda _: open_submission(UNTOUCHED))
    told = run("--student", "s1", "--target", RIGHT, "--out", tmp_path / "a.zip")

    assert told.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_the_zip_will_do(tmp_path):
    """It is called after the student there."""
    assert run("--student", "s1", "--target", RIGHT, "--out", tmp_path).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["s1.zip"]


def test_every_sentence_is_in_both_languages():
    """The same values are named in each, and Chinese is Chinese."""
    for text in SAID.values():
        wanted = sorted(part.split("}")[0] for part in text.en.split("{")[1:])
        assert sorted(part.split("}")[0] for part in text.zh.split("{")[1:]) == wanted
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text.zh) or text.zh.strip().startswith("{")
