"""The class list: who should have handed in, and whose each submission is.

A roster is a CSV with the columns `id`, `name` and, if wanted, `submission` (学号, 姓名, 提交 are understood too). Read as
Excel writes it; a row that cannot be used is told with its line, and the others count. `seat` gives one seat to each
submission, and one to each student who handed in nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from grader.intake.handin import Opened, name_without_ending
from grader.intake.manifest import student_id
from grader.intake.names import folded
from grader.suites.check import Text

MAX_ROSTER_BYTES = 4 * 1024 * 1024
_COLUMNS = {
    "id": ("id", "student", "student id", "student_id", "学号", "学生编号"),
    "name": ("name", "full name", "student name", "姓名", "名字"),
    "submission": ("submission", "file", "提交", "文件"),
}
_SCIENTIFIC = re.compile(r"\d+(?:[.,]\d+)?E[+-]?\d+", re.IGNORECASE)
_FORMULA = re.compile(r'="(.*)"')
_WORDS = re.compile(r"[\W_]+")
MAX_WORDS = 24  # of a file's name, when a student's is looked for in it


class RosterError(Exception):
    """A roster that cannot be used at all: where, what, and what to do next."""


class Student(NamedTuple):
    """One row of the roster. `submission` is the file or folder that the instructor says is theirs, or "". `line` is 1-based."""

    id: str
    name: str
    submission: str
    line: int


class BadRow(NamedTuple):
    """A row that is not used: its line in the file (1-based), and why."""

    line: int
    why: Text


@dataclass(frozen=True, slots=True)
class Roster:
    """A class list as read."""

    students: tuple[Student, ...]
    bad_rows: tuple[BadRow, ...] = ()


class Claim(NamedTuple):
    """What is known of a submission before it is graded: enough to say whose it is, without its bytes."""

    handed_in: str
    student: str
    by_manifest: bool
    content: str
    problem: Text | None


@dataclass(frozen=True, slots=True)
class Seat:
    """One row of the class: a submission, or a student without one.

    handed_in   name of the file or folder, "" when nothing was handed in
    student     the student's id, "" when it is not known
    name        the student's name by the roster, "" without one
    problem     why there is nothing to grade: not handed in, handed in twice, or not readable
    note        what an instructor should look at, though the submission is graded
    """

    handed_in: str
    student: str
    name: str = ""
    problem: Text | None = None
    note: Text | None = None


def claim_of(opened: Opened) -> Claim:
    """Keep of an opened submission what seating needs."""
    by_manifest = opened.manifest is not None
    return Claim(opened.handed_in, opened.student, by_manifest, opened.content, opened.problem)


def load_roster(path: Path) -> Roster:
    """Read a roster. Raises: RosterError when the file or its header cannot be used."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_ROSTER_BYTES + 1)
    except OSError as error:
        raise RosterError(
            f"{path}: cannot be read ({error.strerror}); name a CSV file that is there"
        ) from None
    if len(raw) > MAX_ROSTER_BYTES:
        raise RosterError(f"{path}: larger than {MAX_ROSTER_BYTES} bytes; is this the roster?")
    rows = _rows(_text(path, raw))
    line, header = next(rows, (1, []))
    places = _places(header)
    if "id" not in places:
        raise RosterError(f"{path}:{line}: no column 'id'; begin with a line like: id,name,submission")
    return _students(rows, places)


def _text(path: Path, raw: bytes) -> str:
    """Decode what Excel saves: UTF-8 with or without a mark, UTF-16 with one, or the code page of Chinese Windows."""
    marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ("utf-16",) if marked else ("utf-8-sig", "gb18030"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise RosterError(f"{path}: is not text; save the sheet as 'CSV UTF-8'")


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Give (first line, cells) of each row that is not blank; no cells for a row that is no CSV."""
    first, header, body = 0, text.partition("\n")[0], text
    delimiter = _delimiter(header)
    if header.lower().startswith("sep="):  # Excel's own way to name the delimiter
        first, delimiter, body = 1, header.strip()[4:5] or ",", text.partition("\n")[2]
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter)
    while True:
        line = first + reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield line, []
            continue
        if any(cell.strip() for cell in cells):
            yield line, [_cell(cell) for cell in cells]


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _cell(text: str) -> str:
    """Give a cell without what Excel puts around it: `="007"` keeps a number's zeros."""
    kept = text.strip().removeprefix("\ufeff").strip()
    formula = _FORMULA.fullmatch(kept)
    return formula[1].strip() if formula else kept


def _places(header: Sequence[str]) -> dict[str, int]:
    """Give each known column's place in a row, from 0."""
    found: dict[str, int] = {}
    for place, title in enumerate(header):
        for column, titles in _COLUMNS.items():
            if folded(title) in titles:
                found.setdefault(column, place)
    return found


def _students(rows: Iterable[tuple[int, list[str]]], places: Mapping[str, int]) -> Roster:
    students: dict[str, Student] = {}
    bad: list[BadRow] = []
    for line, cells in rows:
        values = {column: cells[place] if place < len(cells) else "" for column, place in places.items()}
        student = Student(
            student_id(values["id"]), values.get("name", ""), values.get("submission", ""), line
        )
        before = students.get(folded(student.id))
        why = _why_bad(cells, values["id"], student, before)
        if why:
            bad.append(BadRow(line, why))
        else:
            students[folded(student.id)] = student
    return Roster(tuple(students.values()), tuple(bad))


def _why_bad(cells: Sequence[str], written: str, student: Student, before: Student | None) -> Text | None:
    if not cells or any("\n" in cell for cell in cells):  # an open quote swallows the rows behind it
        return Text("引号没有配对，后面的行可能没有读到", "a quote is not closed; rows behind it may be lost")
    if not student.id:
        return Text("没有可用的学号", "no id that can be used")
    if _SCIENTIFIC.fullmatch(written):
        return Text(
            f"学号 {written} 被表格软件改写成了科学计数法；请把这一列设成文本",
            f"the id {written} was rewritten by a spreadsheet; format the column as text",
        )
    if before:
        return Text(f"学号和第 {before.line} 行重复", f"the same id as in line {before.line}")
    return None


def seat(claims: Sequence[Claim], roster: Roster | None = None) -> list[Seat]:
    """Give each submission its seat, in their order, then one to each student of the roster who has none.

    Whose it is: what the roster says, else the manifest's id, else the name. Two submissions of one student are not
    graded unless they hold the same: nobody but the instructor can say which counts.
    """
    book = None if roster is None else _Book(roster)
    found = [book.owner(claim) if book else _by_own_word(claim) for claim in claims]
    by_student: dict[str, list[int]] = defaultdict(list)
    for number, owner in enumerate(found):
        if owner.key and not claims[number].problem:
            by_student[owner.key].append(number)
    seats = []
    for number, (claim, owner) in enumerate(zip(claims, found, strict=True)):
        rivals = [claims[other] for other in by_student.get(owner.key, []) if other != number]
        earlier = [claims[other] for other in by_student.get(owner.key, []) if other < number]
        problem = claim.problem or _twice(claim, owner, rivals, earlier)
        seats.append(Seat(claim.handed_in, owner.student, owner.name, problem, owner.note))
    present = {owner.key for owner in found}
    absent = [student for student in roster.students if folded(student.id) not in present] if roster else []
    return seats + [Seat("", student.id, student.name, NOT_HANDED_IN) for student in absent]


NOT_HANDED_IN = Text("没有提交", "nothing was handed in")


class _Owner(NamedTuple):
    """Whose a submission is: a key by which two of one student are recognised, "" when it is nobody's."""

    key: str
    student: str
    name: str = ""
    note: Text | None = None
    is_named: bool = False
    """The roster itself names this submission."""


def _by_own_word(claim: Claim) -> _Owner:
    """Without a roster, ids are one whatever their case; names of files are not, since they may be two people's."""
    return _Owner(folded(claim.student) if claim.by_manifest else claim.student, claim.student)


class _Book:
    """The roster, ready to be asked whose a submission is."""

    def __init__(self, roster: Roster) -> None:
        self._students = roster.students
        self._by_id = {folded(student.id): student for student in roster.students}
        self._written = [(student, _ways_to_write(student)) for student in roster.students]

    def owner(self, claim: Claim) -> _Owner:
        """Say whose a submission is: by the roster's own word, the manifest's id, or the name."""
        stem = name_without_ending(claim.handed_in)
        named = [student for student in self._students if student.submission in (claim.handed_in, stem)]
        by_id = [self._by_id[folded(claim.student)]] if folded(claim.student) in self._by_id else []
        by_name = self._written_in(stem)
        chosen = named or by_id or by_name
        if len(chosen) != 1:
            return _Owner("", "", note=_unknown(claim, chosen))
        student = chosen[0]
        note = None if named else _mismatch(claim, student, by_name)
        return _Owner(folded(student.id), student.id, student.name, note, bool(named))

    def _written_in(self, stem: str) -> list[Student]:
        """Give those whose id or name stands in a file's name, as learning platforms name what they export."""
        words = _words(stem)
        runs = {words[start:end] for start in range(len(words)) for end in range(start + 1, len(words) + 1)}
        return [student for student, ways in self._written if not ways.isdisjoint(runs)]


def _ways_to_write(student: Student) -> set[tuple[str, ...]]:
    name = _words(student.name)
    ways = {_words(student.id), name, name[::-1], ("".join(name),), ("".join(name[::-1]),)}
    return ways - {(), ("",)}


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _WORDS.split(folded(text)) if word)[:MAX_WORDS]


def _mismatch(claim: Claim, student: Student, by_name: Sequence[Student]) -> Text | None:
    """Say when a manifest and the name of its file speak of different students."""
    others = [other.id for other in by_name if other.id != student.id]
    if claim.by_manifest and others and student not in by_name:
        return Text(
            f"清单写的是 {student.id}，文件名却像是 {', '.join(others)} 的",
            f"the manifest says {student.id}, and the file is named like that of {', '.join(others)}",
        )
    if claim.by_manifest and folded(claim.student) != folded(student.id):
        return Text(
            f"清单写的 {claim.student} 不在名单里，按文件名算作 {student.id}",
            f"the manifest says {claim.student}, who is not in the roster; by its name it is {student.id}'s",
        )
    return None


def _unknown(claim: Claim, chosen: Sequence[Student]) -> Text:
    if chosen:
        ids = ", ".join(student.id for student in chosen)
        return Text(f"名单里不止一人对得上：{ids}", f"more than one student of the roster fits: {ids}")
    return Text(
        f"名单里没有 {claim.student}；在名单的 submission 一栏写上文件名可以指定",
        f"{claim.student} is not in the roster; its column 'submission' can name this file",
    )


def _twice(claim: Claim, owner: _Owner, rivals: Sequence[Claim], earlier: Sequence[Claim]) -> Text | None:
    """Say why one of several submissions of a student is not graded; None for the one that is."""
    if not rivals or owner.is_named:
        return None
    same = {rival.content for rival in rivals} == {claim.content}
    if same and not earlier:
        return None
    listed = ", ".join(rival.handed_in for rival in rivals)
    if same:
        return Text(f"和 {listed} 内容相同，只评一份", f"the same content as {listed}; graded once")
    return Text(
        f"同一名学生交了不止一份（另有 {listed}）；留下一份，或在名单的 submission 一栏指定",
        f"one student handed in more than once (also {listed}); keep one, or name it in the roster's column 'submission'",
    )
