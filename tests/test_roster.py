"""The class list: read as spreadsheets write it, and matched with what was handed in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.roster import Claim, RosterError, load_roster, seat
from grader.suites.check import Text

BROKEN = Text("坏", "broken")


def roster(folder, text, encoding="utf-8"):
    path = folder / "roster.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return load_roster(path)


def claim(handed_in, student="", content="c", problem=None):
    """Give a submission: with a manifest when a student is named."""
    return Claim(handed_in, student or handed_in.removesuffix(".zip"), bool(student), content, problem)


def students(read):
    return [(student.id, student.name, student.submission) for student in read.students]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("id,name\ns1,张三\ns2,Ana\n", "utf-8"),
        ("id,name\ns1,张三\ns2,Ana\n", "utf-8-sig"),
        ("id\tname\r\ns1\t张三\r\ns2\tAna\r\n", "utf-16"),
        ("学号,姓名\r\ns1,张三\r\ns2,Ana", "gb18030"),
        ("id;name\ns1;张三\ns2;Ana\n", "utf-8"),
        ("sep=;\nid;name\ns1;张三\ns2;Ana\n", "utf-8"),
        ("Name , ID \n张三,s1\nAna,s2\n", "utf-8"),
        ('\n"id","name"\n"s1","张三"\n\n,,\n="s2", Ana ,surplus\n', "utf-8"),
    ],
)
def test_a_roster_is_read_as_spreadsheets_write_it(tmp_path, text, encoding):
    """Marks, encodings, delimiters, line ends, order of columns, quoted formulas and blank rows of Excel."""
    read = roster(tmp_path, text, encoding)

    assert students(read) == [("s1", "张三", ""), ("s2", "Ana", "")]
    assert read.bad_rows == ()


def test_a_bad_row_is_told_with_its_line_and_the_others_count(tmp_path):
    """No id, an id written twice, an id that a spreadsheet rewrote, an id with control characters."""
    read = roster(tmp_path, "sep=,\nid,name\ns1,A\n,B\nS1,C\n2.02601E+09,D\ns\x1b5,E\ns6,F\n")

    assert [student.id for student in read.students] == ["s1", "s6"]
    assert [student.line for student in read.students] == [3, 8]
    assert [row.line for row in read.bad_rows] == [4, 5, 6, 7]
    assert "line 3" in read.bad_rows[1].why.en
    assert "spreadsheet" in read.bad_rows[2].why.en


@pytest.mark.parametrize("size", [3, 20_000])
def test_an_open_quote_does_not_make_students_vanish_unheard(tmp_path, size):
    """The rows that it swallows are gone, but the roster says so."""
    rows = "".join(f"t{number},x\n" for number in range(size))
    read = roster(tmp_path, 'id,name\ns1,A\ns2,"B\n' + rows)

    assert students(read)[0] == ("s1", "A", "")
    assert read.bad_rows[0].line == 3
    assert "quote" in read.bad_rows[0].why.en


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "no column 'id'"),
        (b"number,name\n1,A\n", "no column 'id'"),
        (b"PK\x03\x04" + bytes(40), "not text"),
        (b"\xff\xfe\x00\xd8", "not text"),
        (b"id\n" + b"x" * (4 * 1024 * 1024), "larger than"),
    ],
)
def test_what_is_no_roster_is_refused(tmp_path, raw, told):
    """An empty file, other columns, a workbook, broken text, something huge: where, what, and what to do next."""
    with pytest.raises(RosterError, match=told) as refused:
        roster(tmp_path, raw)

    assert str(tmp_path / "roster.csv") in str(refused.value)
    assert ";" in str(refused.value)


def test_a_roster_that_is_not_there_is_refused(tmp_path):
    """A folder and a missing file have their reason."""
    for path in (tmp_path, tmp_path / "gone.csv"):
        with pytest.raises(RosterError, match="cannot be read"):
            load_roster(path)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_roster_or_refused(tmp_path_factory, raw):
    """Whatever the file holds, it is read or refused in words."""
    path = tmp_path_factory.getbasetemp() / "any.csv"
    for start in (b"", b"id,name\n"):
        path.write_bytes(start + raw)
        try:
            load_roster(path)
        except RosterError:
            continue


def test_who_handed_in_nothing_gets_a_seat(tmp_path):
    """The absent follow those who handed in, in the roster's order, with their reason."""
    seats = seat([claim("s2.zip")], roster(tmp_path, "id,name\ns1,A\ns2,B\ns3,C\n"))

    assert [(each.handed_in, each.student, each.name) for each in seats] == [
        ("s2.zip", "s2", "B"),
        ("", "s1", "A"),
        ("", "s3", "C"),
    ]
    assert [each.problem and each.problem.en for each in seats] == [None, *["nothing was handed in"] * 2]


@pytest.mark.parametrize(
    "handed_in",
    [
        claim("anything.zip", "S-007"),
        claim("s-007.zip"),
        claim("S_007"),
        claim("Wong Alice.tar.gz"),
        claim("wong_alice_31415_92653_lab.zip"),
        claim("wongalice_31415_92653_lab.zip"),
        claim("Alice Wong_12345_assignsubmission_file"),
        claim("alice's work"),
    ],
)
def test_a_submission_is_matched_by_id_or_name(tmp_path, handed_in):
    """The manifest's id, the id or name in the file's name, and the shapes that learning platforms export."""
    read = roster(tmp_path, "id,name,submission\ns-007,Alice Wong,alice's work\ns-008,Wang Alice,\n9,张三,\n")

    assert seat([handed_in], read)[0].student == "s-007"


def test_a_chinese_name_is_found_in_a_file_name(tmp_path):
    """Scripts without spaces between words are matched between the platform's own marks."""
    assert seat([claim("张三_12345_作业.zip")], roster(tmp_path, "id,name\n9,张三\n"))[0].student == "9"


def test_an_unknown_submission_is_flagged_and_graded(tmp_path):
    """It has a seat, no student, and a note that says how to name it."""
    (found, absent) = seat([claim("stranger", "s9")], roster(tmp_path, "id,name\ns1,A\n"))

    assert (found.student, found.problem) == ("", None)
    assert "s9 is not in the roster" in found.note.en
    assert absent.student == "s1"


def test_a_name_that_fits_two_students_is_nobodys(tmp_path):
    """Nothing is guessed: the note names both."""
    found = seat([claim("Li Na_1_2")], roster(tmp_path, "id,name\ns1,Li Na\ns2,Na Li\n"))[0]

    assert found.student == ""
    assert "s1, s2" in found.note.en


def test_a_manifest_that_contradicts_its_file_name_is_flagged(tmp_path):
    """The platform named the file after one student, the file names another."""
    read = roster(tmp_path, "id,name\ns1,Ana Lima\ns2,Bo Dahl\n")
    stolen, mistyped = seat([claim("bo_dahl_12_34.zip", "s1"), claim("bo_dahl_12_35.zip", "s3")], read)

    assert (stolen.student, mistyped.student) == ("s1", "s2")
    assert "named like that of s2" in stolen.note.en
    assert "s3, who is not in the roster" in mistyped.note.en


def test_two_submissions_of_one_student_are_not_graded():
    """Nobody but the instructor can say which counts, so each names the other; a third is not touched."""
    seats = seat([claim("a.zip", "s1", "x"), claim("b.zip", "S1", "y"), claim("c.zip", "s2", "x")])

    assert "also b.zip" in seats[0].problem.en
    assert "also a.zip" in seats[1].problem.en
    assert seats[2].problem is None


def test_the_same_handed_in_twice_is_graded_once():
    """A folder beside the archive that it was unpacked from is no second opinion."""
    seats = seat([claim("ana", content="x"), claim("ana.zip", content="x")])

    assert [each.problem and each.problem.en for each in seats] == [
        None,
        "the same content as ana; graded once",
    ]


def test_what_cannot_be_read_does_not_stand_in_the_way():
    """A half-uploaded archive has its own reason, and the other submission of this student counts."""
    seats = seat([claim("ana.zip", problem=BROKEN), claim("ana")])

    assert [each.problem for each in seats] == [BROKEN, None]


def test_the_roster_says_which_of_two_counts(tmp_path):
    """What the instructor wrote into the column `submission` is graded, the other names it."""
    read = roster(tmp_path, "id,name,submission\ns1,Ana,ana-2.zip\n")
    seats = seat([claim("ana-1.zip", "s1", "x"), claim("ana-2.zip", "s1", "y")], read)

    assert "also ana-2.zip" in seats[0].problem.en
    assert seats[1].problem is None


def test_the_rosters_word_stands_above_the_manifests(tmp_path):
    """A file that the instructor gave to one student is hers, whatever is written inside it."""
    read = roster(tmp_path, "id,name,submission\ns1,Ana,found.zip\ns2,Bo,\n")
    found = seat([claim("found.zip", "s2")], read)[0]

    assert (found.student, found.note) == ("s1", None)


@pytest.mark.parametrize(
    ("one", "other"),
    [("anna", "Anna"), ("Ren\u00e9", "Rene\u0301"), ("x" * 300, "x" * 299 + "X"), ("🧪", "🧪 ")],
)
def test_names_that_are_nearly_the_same_are_two_submissions(one, other):
    """Without a manifest or a roster, a difference in case or Unicode form may be two people."""
    assert [each.problem for each in seat([claim(one), claim(other)])] == [None, None]
