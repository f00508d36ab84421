"""What an instructor hands out: everything that a student needs, and no answer anywhere in it."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from labkit import cli, generate, words, workspace
from labkit.bundle import command, stand_in
from labkit.bundle.contents import FRAME, contents, stand_in_text
from labkit.bundle.leaks import SHOWN, answers, leaks
from labkit.experiments import left_out
from labkit.views import CheckView
from labkit.widgets.check import Check
from solution.lesson_22.event_line import decode_line
from solution.lesson_22.session_store import CorruptLogError, LogScan, scan

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"
ANSWER = "event = SessionEvent(self._next_sequence, waiting.type, waiting.data)"
ZOO = sorted((ROOT / "assets" / "corruption-zoo").glob("*.jsonl"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The zip that the command writes."""
    out = tmp_path_factory.mktemp("out") / "new" / "state-lab.zip"
    done = CliRunner().invoke(cli.main, ["bundle", str(out), "--lang", "en"])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def handed_out(made, tmp_path_factory):
    """The kit as a student unpacks it, in a folder with a space and Chinese characters in its name."""
    place = tmp_path_factory.mktemp("学生 home")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(place)
    return place / "state-lab"


@pytest.fixture
def in_kit(handed_out, tmp_path):
    """Run Python in the student's kit, with a state folder of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(handed_out),
        "LAB_STATE": str(tmp_path / "state"),
        "LAB_LANG": "en",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("LAB_TARGET", None)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=handed_out,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def statelab(in_kit, *words):
    return in_kit("-c", "from labkit.cli import main; main()", *words)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def solution_regions():
    """Every region of an answer, by its place, as its stripped lines; read here without the code under test."""
    found = {}
    for path in sorted((ROOT / "solution").glob("lesson_*/**/*.py")):
        place = ""
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            if line.strip().startswith(BEGIN):
                place = f"{path.relative_to(ROOT).as_posix()}:{number}"
                found[place] = []
            elif line.strip() == END:
                place = ""
            elif place:
                found[place].append(line.strip())
    return found


# --- No answer anywhere ---


def test_every_region_has_lines_that_would_give_it_away():
    """The search knows at least one line of every region; a region that it could not see would pass unseen."""
    known = answers(ROOT)
    unseen = [place for place, lines in solution_regions().items() if not known.keys() & set(lines)]

    assert len(known) > 100
    assert unseen == []


def test_no_line_of_an_answer_is_in_any_file(made):
    """No file of the zip holds a line that stands in a solution region and nowhere in what the lessons show."""
    told = answers(ROOT)

    assert list(leaks(members(made), told)) == []
    text = "\n".join(raw.decode("utf-8", "replace") for raw in members(made).values())
    assert [line for line in told if line in text] == []


def test_no_passage_is_left_even_of_everyday_lines(made):
    """No three lines of an answer follow each other in any file, but for what the lessons show anyway."""
    shown = "\n".join(
        path.read_text("utf-8") for folder in (*SHOWN, "starter") for path in (ROOT / folder).rglob("*.py")
    )
    passages = {
        "\n".join(three)
        for lines in solution_regions().values()
        for three in zip(lines, lines[1:], lines[2:], strict=False)
    }
    passages = {text for text in passages if text not in unindented(shown)}
    files = {name: unindented(raw.decode("utf-8", "replace")) for name, raw in members(made).items()}

    assert len(passages) > 100
    assert [(name, three) for name, text in files.items() for three in passages if three in text] == []


def unindented(text):
    return "\n".join(map(str.strip, text.splitlines()))


def zipped(name, text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("docs/a.md", f"so:\n        {ANSWER}\n".encode()),
        ("notebooks/en/a.ipynb", json.dumps({"cells": [{"outputs": [{"text": [f"{ANSWER}\n"]}]}]}).encode()),
        ("assets/a.zip", zipped("inner.py", ANSWER)),
        ("assets/a.zip", zipped("inner.zip", zipped("inner.py", ANSWER))),
        ("assets/a.gz", gzip.compress(ANSWER.encode())),
        ("assets/object", zlib.compress(b"blob 70\0" + ANSWER.encode())),
        ("labkit/a.pyc", b"\x00\x00"),
        ("solution/__pycache__/a.pyo", b""),
        (".git/config", b"[core]"),
    ],
)
def test_the_search_finds_what_is_planted(name, raw):
    """A line of an answer is found in text, in a notebook, in archives and packed objects; byte code and Git's files by their names."""
    assert list(leaks({name: raw}, answers(ROOT)))
    assert not list(leaks({"docs/a.md": b"nothing of the kind"}, answers(ROOT)))


def test_a_quoted_answer_is_found_too():
    """An edit of the right code, as the wrong stores are written down, gives away the line that it edits."""
    told = answers(ROOT)
    quoted = {"a.py": (ROOT / "grader/suites/mutants/homework/__init__.py").read_bytes()}

    assert list(leaks(quoted, told))


@pytest.mark.parametrize("what", [ANSWER, str(ROOT / "starter")])
def test_nothing_is_written_when_something_would_leak(what, monkeypatch, tmp_path):
    """With one line of an answer in a file, or a path of this machine, the command names the file and writes nothing."""
    monkeypatch.setattr(
        command, "contents", lambda root, known: contents(root, known) | {"docs/notes.md": what.encode()}
    )
    done = CliRunner().invoke(cli.main, ["bundle", str(tmp_path / "a.zip")])

    assert done.exit_code == 1
    assert "docs/notes.md" in done.output
    assert list(tmp_path.iterdir()) == []


# --- The zip ---


def test_the_same_kit_gives_the_same_bytes(monkeypatch, tmp_path):
    """Two runs differ in no byte, in whatever order a disk lists its folders."""
    files = contents(ROOT)
    for name, order in {"a.zip": list(files), "b.zip": list(reversed(files))}.items():
        monkeypatch.setattr(
            command, "contents", lambda *_, names=order: {name: files[name] for name in names}
        )
        done = CliRunner().invoke(cli.main, ["bundle", str(tmp_path / name)])
        assert done.exit_code == 0

    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_every_member_is_a_plain_file(made):
    """One folder of plain files with their mode, without links and without times; no path is told of where it was made."""
    with zipfile.ZipFile(made) as archive:
        infos = archive.infolist()

    assert {oct(info.external_attr >> 16) for info in infos} == {oct(stat.S_IFREG | 0o644)}
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.filename.split("/")[0] for info in infos} == {"state-lab"}
    assert not [name for name, raw in members(made).items() if str(ROOT).encode() in raw]


def test_a_file_that_is_there_stays(tmp_path):
    """Without --force a file keeps its bytes and the command exits 1; with it, a whole zip takes its place."""
    out = tmp_path / "mine.zip"
    out.write_bytes(b"mine")
    refused = CliRunner().invoke(cli.main, ["bundle", str(out), "--lang", "en"])
    kept = out.read_bytes()
    forced = CliRunner().invoke(cli.main, ["bundle", str(out), "--force", "--json"])

    assert (refused.exit_code, kept) == (1, b"mine")
    assert "--force" in refused.output
    assert forced.exit_code == 0
    assert zipfile.is_zipfile(out)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.zip"]


@pytest.mark.parametrize("place", ["file/a.zip", "."])
def test_a_place_that_cannot_be_written_is_told(place, tmp_path):
    """A folder that is a file, or a folder in place of the zip: one line that names it, exit 1, nothing left behind."""
    (tmp_path / "file").write_bytes(b"mine")
    done = CliRunner().invoke(cli.main, ["bundle", str(tmp_path / place), "--force", "--lang", "en"])

    assert done.exit_code == 1
    assert "Traceback" not in done.output
    assert str(tmp_path) in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_json_is_for_programs(tmp_path):
    """`--json` prints one object: where the zip is, how many files, and what is not committed."""
    told = CliRunner().invoke(cli.main, ["bundle", str(tmp_path / "a.zip"), "--json"])
    answer = json.loads(told.stdout)

    assert answer["size"] == (tmp_path / "a.zip").stat().st_size
    assert answer.keys() == {"schema", "path", "kit", "size", "files", "uncommitted"}


def test_what_is_not_committed_is_mentioned(repository):
    """A change that Git does not have yet is listed; an unchanged file, and what stays out anyway, are not."""
    (repository / "labkit/b.py").write_text("2")
    (repository / "notebooks/en/instructor.ipynb").write_text("2")

    assert command.uncommitted(repository) == ["labkit/b.py"]


def test_a_private_file_stays_private(repository):
    """In a work tree only what Git knows is handed out; where there is none, nobody can tell."""
    (repository / "grader").mkdir()
    (repository / "grader/grades-2026.csv").write_text("mine")
    known = command.known_to_git(repository)
    shutil.rmtree(repository / ".git")

    assert known == {"labkit/a.py", "labkit/b.py", "notebooks/en/instructor.ipynb"}
    assert command.known_to_git(repository) is None
    assert "grader/pool.py" not in contents(ROOT, {"grader/cli.py"})
    assert "grader/pool.py" in contents(ROOT, None)


def test_a_git_that_fails_is_told(repository):
    """When Git cannot say what belongs to the kit, nothing is handed out."""
    (repository / ".git/HEAD").write_text("no such thing")

    with pytest.raises(command.Refused, match="git ls-files"):
        command.known_to_git(repository)


@pytest.fixture
def repository(tmp_path):
    """A committed work tree with three files of a kit."""
    for name in ("labkit/a.py", "labkit/b.py", "notebooks/en/instructor.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    me = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for line in (["init", "-q"], ["add", "-A"], [*me, "commit", "-qm", "a"]):
        subprocess.run(["git", *line], cwd=tmp_path, check=True)
    return tmp_path


# --- The kit that a student unpacks ---


def test_the_starter_is_the_kits_own(handed_out):
    """`starter/` is what the solution gives, byte for byte, whatever lies in the instructor's own."""
    for tree in generate.TREES[:2]:
        made = generate.generated(ROOT, tree)
        assert {name: (handed_out / tree.target / name).read_bytes() for name in made} == made


def test_every_import_of_lesson_code_finds_its_names(handed_out):
    """A stand-in keeps every name and signature of the reference, and parses."""
    for path in sorted((ROOT / "solution").glob("lesson_*/**/*.py")):
        name = path.relative_to(ROOT)
        given, kept = (ast.parse((root / name).read_text("utf-8")) for root in (ROOT, handed_out))
        named = [
            [
                node.name
                for node in ast.walk(tree)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            ]
            for tree in (given, kept)
        ]
        gone = set(named[0]) - set(named[1])
        assert set(named[1]) <= set(named[0])
        assert all(
            any(
                line.startswith((f"def {one}(", f"class {one}"))
                for lines in solution_regions().values()
                for line in lines
            )
            for one in gone
        )


def test_no_region_of_a_source_without_markers():
    """A file without regions is handed out as it is."""
    source = (ROOT / "solution/lesson_22/todo.py").read_text("utf-8")

    assert stand_in_text(source, "todo.py") == source


def test_links_lead_somewhere(handed_out):
    """Every relative link of the pages, docs and notebooks names a file of the bundle."""
    broken = []
    for page in [
        *handed_out.glob("*.md"),
        *handed_out.glob("solution/*.md"),
        *handed_out.glob("notebooks/*/*.ipynb"),
    ]:
        text = page.read_text("utf-8")
        broken += [
            (page.relative_to(handed_out).as_posix(), link)
            for link in re.findall(r"\]\(([^)#\s]+)", text)
            if not link.startswith(("http", "mailto")) and not (page.parent / link).exists()
        ]

    assert broken == []


def test_the_agents_rules_say_the_same_in_both_languages(handed_out):
    """AGENTS.md is the learner's own: as many rules in Chinese as in English, about the same commands."""
    chinese, english = (handed_out / "AGENTS.md").read_text("utf-8").split("\n## Your part")
    numbered = [re.findall(r"^(\d)\. \*\*", half, re.MULTILINE) for half in (chinese, english)]

    assert numbered[0] == numbered[1] == [str(number) for number in range(1, 8)]
    for word in (
        "starter/",
        "solution/lesson_22",
        "grading.toml",
        "statelab verify",
        ".loop/",
        "make reset",
        "statelab submit",
    ):
        assert word in chinese
        assert word in english
    assert (handed_out / "AGENTS.md").read_bytes() == (ROOT / FRAME / "AGENTS.md").read_bytes()


def test_a_students_own_commands_work(in_kit):
    """What is generated is not stale, lesson 22 can be begun anew, and the doors that need answers say so in one line."""
    fresh = in_kit("-m", "labkit.generate", "--check")
    reset = statelab(in_kit, "workspace", "reset", "--lesson", "22", "--json")
    again = in_kit("-m", "labkit.generate", "--check")
    told = statelab(in_kit, "--help").stdout
    refused = [statelab(in_kit, door) for door in ("grade", "gate", "bundle", "report")]

    assert (fresh.returncode, fresh.stdout, again.returncode) == (0, "", 0)
    assert reset.returncode == 0, reset.stderr
    assert "verify" in told
    assert "bundle" not in told
    assert {done.returncode for done in refused} == {1}
    assert all("instructor's bundle" in done.stderr and "Traceback" not in done.stderr for done in refused)


def test_verify_fails_the_starter_and_passes_the_answers(handed_out, in_kit, tmp_path):
    """In the bundle the starter is told not implemented, required test by required test; the pasted answers pass all."""
    untouched = json.loads(statelab(in_kit, "verify", "--lesson", "22", "--json").stdout)["lessons"]["22"]
    shutil.copytree(handed_out / "starter", tmp_path / "work")
    shutil.copytree(ROOT / "solution" / "lesson_22", tmp_path / "work" / "lesson_22", dirs_exist_ok=True)
    pasted = json.loads(
        statelab(in_kit, "verify", "--lesson", "22", "--target", str(tmp_path / "work"), "--json").stdout
    )["lessons"]["22"]

    assert [test["reason"] for test in untouched["tests"] if test["required"]] == ["not-implemented"] * 5
    assert pasted["required"] == {"passed": 5, "total": 5}
    assert pasted["extended"]["passed"] == pasted["extended"]["total"]


# --- Notebooks without the reference ---


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_logs_are_read_as_the_reference_reads_them(path):
    """The stand-in says of every log in the zoo what `scan` says: events, offset, torn tail, or the bad line."""
    assert judged(path.read_bytes(), with_stand_in) == judged(path.read_bytes(), scan)


@pytest.mark.proof
@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_logs_cut_anywhere_are_read_as_the_reference_reads_them(path):
    """The same for each of them cut at every byte."""
    raw = path.read_bytes()
    for size in range(min(len(raw), 600) + 1):
        assert judged(raw[:size], with_stand_in) == judged(raw[:size], scan), size


def with_stand_in(raw, path):
    return stand_in.judge(raw, path, decode_line, LogScan, CorruptLogError)


def judged(raw, read):
    try:
        return read(raw, Path("a.jsonl"))
    except CorruptLogError as error:
        return error.line


CELLS = """\
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cells = [
    "from labkit.experiments import lesson_22 as lab; from labkit.widgets import predict, torn_write; guess = predict('c22-12')",
    "seen = await lab.one_disk_error()\\n\\nassert seen['PoisonedStore'].answers[0] == 'OSError(ENOSPC)'\\n"
    "assert seen['kit'].answers == [1]\\nguess.compare('old-error')\\nseen",
    "both = await lab.both_directions()\\n\\nfailed = both['starter'].failed\\nassert failed == 5\\nguess.compare(5)\\nboth",
    "verdicts = await lab.cut_at_every_byte()\\nassert set(verdicts['kit']) == {'whole', 'torn'}\\nverdicts",
]
for cell in cells:
    done = shell.run_cell(cell)
    assert done.success, cell
    html = getattr(type(done.result), "_repr_html_", repr)
    print("CELL", html(done.result) if done.result is not None else "")
wrong = shell.run_cell("assert seen['PoisonedStore'].answers == []")
print("WRONG", wrong.success)
"""


def test_a_cell_says_what_it_cannot_show_and_runs_on(in_kit):
    """Without the reference a cell runs to its end and says what is missing; a wrong assert about another store still fails."""
    done = in_kit("-c", CELLS)

    assert done.returncode == 0, done.stderr
    _, setup, poisoned, both, cut = done.stdout.split("CELL")
    assert all(text in poisoned for text in ("no answers in it", "PoisonedStore", "Not written yet"))
    assert "no answers in it" in both
    assert "'kit': ['whole', 'torn'" in cut
    assert "WRONG False" in cut
    assert "no answers" not in setup


@pytest.mark.parametrize(
    "use",
    [
        lambda it: it["kit"],
        lambda it: it.answers,
        lambda it: it == 1,
        lambda it: (it, 2) == (1, 2),
        bool,
        list,
        lambda it: {it},
        len,
        lambda it: 1 in it,
        lambda it: it < 1,
        lambda it: it(),
    ],
)
def test_what_is_missing_equals_nothing(use):
    """What only the reference could have answered passes no assert: every use of it says that it is missing."""
    with pytest.raises(left_out.ReferenceMissingError):
        use(left_out.MISSING)


@pytest.mark.proof
@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("notebook", ["00-start-here", "22-task-state", "22-homework", "04-state-spine"])
def test_notebooks_run_on_the_starter(notebook, language, in_kit):
    """No cell of a handed-out notebook fails on the untouched starter."""
    done = in_kit(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-current-env"),
        *("--nbval-cell-timeout", "120", f"notebooks/{language}/{notebook}.ipynb"),
    )

    assert done.returncode == 0, done.stdout[-4000:]


def test_check_says_that_there_is_nothing_to_compare_with(monkeypatch):
    """In a kit without the reference, all tests passed end in a sentence, not in a comparison with empty bodies."""
    monkeypatch.setattr(workspace, "reference_left_out", lambda: True)
    passed = CheckView(ok=True, untouched=False, groups=())
    with words.speaking("en"):
        closing = Check("22", "solution")._closing(passed)

    assert closing["diff"] == ""
    assert "once it is published" in closing["note"]
