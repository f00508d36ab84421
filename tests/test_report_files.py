"""The report files of a class: what each holds for a small class, and that nothing a student chose acts in any of them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import unicodedata
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from grader.report.class_report import FOLDERS, report_files, write_reports
from grader.report.command import report
from grader.report.files import write_outcomes
from grader.report.grades_csv import BOM, columns, grades_csv
from grader.report.names import MAX_BYTES, file_names
from grader.report.page import report_html
from grader.report.student_text import cell, legible, markdown
from grader.suites import LESSONS, load_suite
from tests.report_class import HOSTILE, make_class, make_row, never_graded, small_class

GOLDEN = Path(__file__).parent / "golden" / "report"


def made(language: str = "en") -> dict[str, str]:
    """Give the small class's files, but for the page: that one is looked at in a browser."""
    files = dict(report_files(small_class(), [], language))
    return {name: text for name, text in files.items() if name != "report.html"}


@pytest.fixture(scope="module")
def hostile() -> tuple[list[dict], dict[str, str]]:
    """A class with hostile names, and its files."""
    rows, calibration = make_class(len(HOSTILE) + 2)
    return rows, dict(report_files(rows, calibration, "zh"))


@pytest.mark.parametrize("name", sorted(made()))
def test_a_report_is_what_its_golden_says(name):
    """Byte by byte; to write the goldens anew: python -m tests.test_report_files."""
    assert made()[name] == (GOLDEN / name).read_bytes().decode("utf-8")


def test_no_golden_is_left_over():
    """Each golden file is one that is made."""
    found = {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*") if path.is_file()}
    assert found == made().keys()


# --- Names ---


def test_every_submission_has_files_of_its_own(hostile):
    """No two names meet, on a system that ignores case and accents either, whatever the class is called."""
    rows, files = hostile
    names = [name.split("/")[1] for name in files if name.startswith("feedback/")]
    folded = {unicodedata.normalize("NFKC", name.casefold()) for name in names}
    assert len(folded) == len(names) == len(rows)


def test_file_names_are_safe_on_every_system(hostile):
    """No separator, control, reserved name, leading dot or trailing dot; short enough."""
    for path in hostile[1]:
        name = path.rpartition("/")[2]
        assert len(name.encode()) <= MAX_BYTES + len("submission--12345678.json")
        assert not re.search(r'[\\/:*?"<>|\x00-\x1f\x7f]', name)
        assert not re.match(r"(?i)(\.|con|prn|aux|nul|com\d|lpt\d)(\.|$)", name)


@pytest.mark.parametrize(
    ("submissions", "names"),
    [
        (["Li Wei", "张三"], ["Li Wei", "张三"]),
        (["Anna", "anna"], ["Anna-62552f39", "anna-8c2076a3"]),
        (["CON", "nul.txt"], ["submission-CON-76379871", "submission-nul.txt-e7121855"]),
        (["twice", "twice"], ["twice-d1038851", "twice-d1038851-2"]),
    ],
)
def test_a_fit_name_stays_and_others_carry_a_hash(submissions, names):
    """A name is changed only where it has to be, and then in a way that does not depend on the others' order."""
    assert file_names([{"submission": name} for name in submissions]) == names
    turned = file_names([{"submission": name} for name in reversed(submissions)])
    assert sorted(turned) == sorted(names)


# --- Hostile text ---


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("\x00\x1b\x85\u2028", "\\x00\\x1b\\x85\\u2028"),
        ("\udce9\ufffe\U0001ffff", "\\udce9\\ufffe\\U0001ffff"),
        ("👩\u200d💻 é\nb", "👩\u200d💻 é\nb"),
    ],
)
def test_characters_that_act_are_shown_as_escapes(text, shown):
    """Controls, turns of direction, halves of a pair and what XML forbids; not the joiners that spelling needs."""
    assert legible(text) == shown


@pytest.mark.parametrize("text", ["=1+1", " =1", "+1", "-1", "@a", "\uff1d1", "\n=1", "\t=1"])
def test_a_spreadsheet_computes_no_name(text):
    """What looks like a formula begins with a quote, or no longer looks like one."""
    assert cell(text).lstrip()[0] in "'\\"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("# head", r"\# head"),
        ("1. one", r"1\. one"),
        ("- item", r"\- item"),
        ("a\n\n```\nb", r"a \`\`\` b"),
        ("![x](http://localhost)", r"\!\[x\](http\://localhost)"),
        ("<b> @me www.x.y", r"\<b\> \@me www\.x.y"),
    ],
)
def test_markdown_reads_no_markup(text, escaped):
    """A student's text cannot become a heading, a list, a link, HTML or a mention."""
    assert markdown(text) == escaped


def test_no_file_holds_a_character_that_acts(hostile):
    """In no form is there a control, a turn of direction or a half of a pair; every file is UTF-8."""
    for name, text in hostile[1].items():
        bare = text.removeprefix(BOM) if name == "grades.csv" else text
        bare = bare.replace("\r\n", "\n") if name == "grades.csv" else bare
        assert [letter for letter in set(bare) if legible(letter) != letter] == [], name
        text.encode("utf-8")


def test_the_page_holds_no_element_of_a_students(hostile):
    """The page has exactly the elements of a class of plain names: no name became markup, in or out of the data."""
    rows, files = hostile
    harmless = json.loads(json.dumps(rows))
    for row in harmless:
        row["submission"] = row["handed_in"] = "plain"
        row["left_out"] = [{**entry, "name": "plain"} for entry in row["left_out"]]
        row["notebooks"] = [
            {**one, "name": "plain", "errors": [{"cell": 2, "name": "E", "text": "x"}]}
            for one in row["notebooks"]
        ]
        for lesson in row["lessons"].values():
            for test in lesson["tests"]:
                if test["message"]:
                    test["message"] = {"zh": "plain", "en": "plain"}
    plain = report_html(harmless, file_names(rows), make_class(3)[1], "bubblewrap", "zh")
    elements = re.compile(r"<(/?[a-zA-Z]+)")
    assert elements.findall(files["report.html"]) == elements.findall(plain)


def test_the_data_of_the_page_reads_back(hostile):
    """What stands in the page's block of data is JSON with every name in it, as it may be shown."""
    rows, files = hostile
    block = re.search(
        r'<script type="application/json" id="report">(.*?)</script>', files["report.html"], re.DOTALL
    )
    people = json.loads(block[1])["people"]
    assert [person["name"] for person in people] == [
        legible(row["submission"]).replace("\n", "\\n") for row in rows
    ]


# --- Forms ---


def test_grades_csv_has_one_row_a_submission(hostile):
    """Under the documented columns, with the byte order mark that Excel asks for."""
    rows, files = hostile
    assert files["grades.csv"].startswith(BOM)
    found = list(csv.DictReader(io.StringIO(files["grades.csv"].removeprefix(BOM))))
    assert len(found) == len(rows)
    assert all(set(line) == set(columns()) for line in found)
    assert {line["feedback"] for line in found} == {name for name in files if name.startswith("feedback/")}


def test_every_column_is_documented():
    """docs/instructor.md names each column; those of a lesson once for both."""
    page = (Path(__file__).parents[1] / "docs" / "instructor.md").read_text("utf-8")
    general = {re.sub(rf"^({'|'.join(LESSONS)})_", "N_", column) for column in columns()}
    assert [column for column in sorted(general) if f"`{column}`" not in page] == []


SUITE = {"name", "tests", "failures", "errors", "skipped", "time"}
ALLOWED = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": (SUITE, {"testcase"}),
    "testcase": ({"name", "classname"}, {"failure", "error"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
}
"""What the common schema of JUnit files allows, as far as these use it: attributes, and elements within."""


def test_junit_keeps_to_the_common_schema_and_never_skips(hostile):
    """Only known elements and attributes, counts that agree, and no miss that a build server would pass over."""
    for name, text in [*hostile[1].items(), *made().items()]:
        if not name.startswith("junit/"):
            continue
        root = ET.fromstring(text)
        for element in root.iter():
            attributes, within = ALLOWED[element.tag]
            assert set(element.attrib) <= attributes
            assert {child.tag for child in element} <= within
        for suite in [root, *root.iter("testsuite")]:
            assert int(suite.attrib["tests"]) == len(list(suite.iter("testcase")))
            assert int(suite.attrib["failures"]) == len(list(suite.iter("failure")))
            assert int(suite.attrib["errors"]) == len(list(suite.iter("error")))


def test_junit_has_a_case_for_every_test_and_names_every_miss(hostile):
    """Failed is a failure, our fault an error; a row that was never graded is one failed case."""
    rows, files = hostile
    for row, name in zip(rows, file_names(rows), strict=True):
        root = ET.fromstring(files[f"junit/{name}.xml"])
        tests = [test for lesson in row["lessons"].values() for test in lesson["tests"]]
        missed = sum(test["status"] != "pass" for test in tests)
        assert len(list(root.iter("testcase"))) == (len(tests) or 1)
        assert len([*root.iter("failure"), *root.iter("error")]) == (missed if tests else 1)


def test_gradescope_gets_the_points_and_plain_text(hostile):
    """Score and tests agree with the row, and nothing is rendered as markup."""
    rows, files = hostile
    for row, name in zip(rows, file_names(rows), strict=True):
        results = json.loads(files[f"gradescope/{name}.json"])
        assert results["score"] == sum(lesson["points"]["earned"] for lesson in row["lessons"].values())
        assert {results[key] for key in results if key.endswith("_format")} == {"text"}
        assert {test["status"] for test in results["tests"]} <= {"passed", "failed"}


def test_a_score_that_the_grader_spoiled_is_not_shown_to_the_student():
    """A row of grader-error is hidden, and says that no marks are lost."""
    results = json.loads(made()["gradescope/not our day.json"])
    assert results["visibility"] == "hidden"
    assert "no marks are lost" in results["output"]


def test_feedback_tells_the_next_step_first_and_in_both_languages():
    """Right below the heading of a lesson stands where to begin; the language asked for comes first."""
    row = make_row("one", 0.8, Random(1))
    text = dict(report_files([row], [], "en"))["feedback/one.md"]
    english, chinese = text.split("\n---\n")
    assert re.search(r"## Lesson 22\n\n\*\*Start with 22-", english)
    assert re.search(r"## 第 22 课\n\n\*\*先看这一项：22-", chinese)
    assert row["lessons"]["22"]["seed"] not in text


def test_every_check_that_was_missed_is_in_the_feedback():
    """A student reads of each of them by its id."""
    row = make_row("none", 0.0, Random(1))
    text = dict(report_files([row], [], "zh"))["feedback/none.md"]
    ids = [check.id for lesson in LESSONS for check in load_suite(lesson).checks]
    assert [check_id for check_id in ids if check_id not in text] == []


def test_who_was_never_graded_is_told_why_and_no_more():
    """Nobody reads a list of tests that they could not have passed."""
    row = make_row("late", 0.0, Random(1), problem={"zh": "没有提交", "en": "nothing was handed in"})
    text = dict(report_files([row], [], "en"))["feedback/late.md"]
    assert text.startswith("# Feedback for late\n\nnothing was handed in\n")
    assert "22-01" not in text


def test_a_class_of_one_lesson_and_an_empty_class_have_reports():
    """Nothing needs two lessons, or anyone."""
    row = make_row("one", 1.0, Random(1))
    del row["lessons"]["04"]
    assert dict(report_files([row], [], "en"))
    assert grades_csv([], []).count("\r\n") == 1
    assert dict(report_files([], [], "en"))["report.html"]


# --- Command ---


def test_reports_are_written_anew_from_the_outcomes(tmp_path):
    """`statelab report` gives what `grade` gave, in the language that is asked for, beside the outcomes."""
    file = tmp_path / "outcomes.json"
    with file.open("w") as outcomes:
        write_outcomes(outcomes, [make_row("solution", 1.0, Random(1))], small_class())
    ended = CliRunner().invoke(report, [str(file), "--lang", "en"])

    assert (ended.exit_code, ended.stdout.strip()) == (0, str(tmp_path / "report.html"))
    for name, text in made().items():
        assert (tmp_path / name).read_bytes().decode() == text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "does not hold outcomes of schema 1"),
        ('{"schema": 2}', "does not hold outcomes of schema 1"),
        ('{"schema": 1, "calibration": [], "submissions": [{}]}', "submissions: not rows"),
    ],
)
def test_what_holds_no_outcomes_is_told_and_nothing_is_written(tmp_path, content, said):
    """Wrong use ends with 2 and one line, without a traceback."""
    file = tmp_path / "outcomes.json"
    if content is not None:
        file.write_text(content)
    ended = CliRunner().invoke(report, [str(file), "--out", str(tmp_path / "out")])

    assert ended.exit_code == 2
    assert said in " ".join(ended.stderr.split())
    assert not (tmp_path / "out").exists()


# --- Placing ---


def test_reports_of_an_earlier_run_go_and_other_files_stay(tmp_path):
    """Nobody who left the class stays behind in a folder, and nothing of the instructor's is lost."""
    rows, calibration = make_class(len(HOSTILE) + 4)
    write_reports(tmp_path, rows, calibration, language="en")
    (tmp_path / "feedback" / "mine.txt").write_text("note")
    (tmp_path / "outcomes.json").write_text("{}")
    assert write_reports(tmp_path, rows[:2], calibration, language="en") == tmp_path / "report.html"

    names = file_names(rows[:2])
    assert {path.name for path in (tmp_path / "feedback").iterdir()} == {
        *(f"{name}.md" for name in names),
        "mine.txt",
        ".made.json",
    }
    assert {path.name for path in tmp_path.iterdir()} == {
        *FOLDERS,
        "report.html",
        "grades.csv",
        ".made.json",
        "outcomes.json",
    }
    assert (tmp_path / "feedback" / "mine.txt").read_text() == "note"


def test_a_report_edited_by_hand_is_kept_beside_the_new_one(tmp_path):
    """A comment written into a student's feedback, or a mark into grades.csv, survives the next run."""
    row = make_row("one", 0.9, Random(1))
    for _ in range(2):
        write_reports(tmp_path, [row], [], language="en")
    (tmp_path / "feedback" / "one.md").write_text("by hand")
    (tmp_path / "grades.csv").write_text("by hand")
    write_reports(tmp_path, [row], [], language="en")

    assert (tmp_path / "feedback" / "kept-1-one.md").read_text() == "by hand"
    assert (tmp_path / "kept-1-grades.csv").read_text() == "by hand"
    assert (tmp_path / "feedback" / "one.md").read_text().startswith("# Feedback")


def test_nothing_changes_when_not_all_can_be_written(tmp_path, monkeypatch):
    """A disk that fills up leaves the earlier reports, whole, and nothing beside them."""
    row = make_row("one", 0.9, Random(1))
    write_reports(tmp_path, [row], [], language="en")
    before = contents(tmp_path)
    write, calls = Path.write_bytes, []

    def full(path, raw):
        calls.append(path)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        return write(path, raw)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_reports(tmp_path, [row, never_graded("x")], [], language="en")

    assert contents(tmp_path) == before


@pytest.mark.parametrize("nth", range(1, 14))
def test_nothing_changes_when_a_folder_cannot_be_replaced(tmp_path, monkeypatch, nth):
    """Whichever renaming fails, all that went before is undone; after the last there is none to fail."""
    row = make_row("one", 0.9, Random(1))
    write_reports(tmp_path, [row], [], language="en")
    before, rename, calls = contents(tmp_path), Path.rename, []

    def refused(path, target):
        calls.append(path)
        if len(calls) == nth:
            raise OSError(1, "Operation not permitted")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refused)
    if nth <= 12:  # three folders, two reports, one list: each moves out, and its successor in
        with pytest.raises(OSError, match="not permitted"):
            write_reports(tmp_path, [], [], language="en")
        assert contents(tmp_path) == before
    else:
        write_reports(tmp_path, [], [], language="en")
        assert len(calls) == 12


def test_what_a_killed_run_had_set_aside_is_not_lost(tmp_path):
    """Killed between two renamings, the next run puts the instructor's files back and clears away the rest."""
    row = make_row("one", 0.9, Random(1))
    write_reports(tmp_path, [row], [], language="en")
    (tmp_path / "feedback" / "mine.txt").write_text("note")
    aside = tmp_path / ".reports-killed" / "old"
    aside.mkdir(parents=True)
    (tmp_path / "feedback").rename(aside / "feedback")
    write_reports(tmp_path, [row], [], language="en")

    assert (tmp_path / "feedback" / "mine.txt").read_text() == "note"
    assert not list(tmp_path.glob(".reports-*"))
    assert not list(tmp_path.glob("feedback/kept-*"))


def contents(folder: Path) -> dict[str, bytes]:
    """Give every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def write_goldens() -> None:
    """Write the goldens anew."""
    for name, text in made().items():
        path = GOLDEN / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        print(path.name)


if __name__ == "__main__":
    sys.exit(write_goldens())
