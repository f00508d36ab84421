"""Examine any JSON lines: an agent's session file, a lesson's log. Every fault by line and offset, never its bytes.

One pass in bounded memory: a line, a record that was spread over several lines, and what is needed to know a
duplicate. docs/log-command.md says what each kind of finding means.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from .line_damage import Damage, Nesting, explain, is_record, is_utf_16
from .physical_lines import Block, Line
from .strict_json import NotStrictError, judge, judge_objects

Format = Literal["durable", "lesson", "foreign"]
Weight = Literal["corrupt", "torn", "note"]

NOTES = frozenset(
    (
        "crlf",
        "line-separator",
        "huge-integer",
        "lone-surrogate",
        "duplicate",
        "missing-newline",
        "mixed",
        "growing",
    )
)
"""What a reader should know, and what makes no record wrong."""

TORN = frozenset(("torn-tail", "nul-tail"))
"""What a crash leaves at the very end."""

ONCE = frozenset(("crlf", "line-separator", "mixed"))
"""Notes about a whole file: given where it shows first."""

MOST_FINDINGS = 1_000
_MOST_REMEMBERED = 100_000
_MOST_JOINED_LINES = 1_000
_MOST_SPLICED_LINES = 3
_MOST_SHAPES = 1_000
_MOST_JOINED_BYTES = 4 << 20
_THREE_BYTE_SEPARATOR = re.compile(b"\xe2\x80[\xa8\xa9]")
_TWO_BYTE_SEPARATOR = re.compile(b"\xc2\x85")


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found. `line` is 1-based and physical, `offset` and `length` are in bytes.

    `lines` is how many lines it covers; `other` is the offset of a second record in it, or the line of the first
    of two equal records; `due` is the number that a wrong sequence should have had,
    and `detail` what a log's own reader says about it.
    """

    kind: str
    line: int
    offset: int
    length: int = 0
    lines: int = 1
    other: int | None = None
    due: int | None = None
    detail: str = ""

    @property
    def weight(self) -> Weight:
        """Say what it does to the verdict."""
        return "note" if self.kind in NOTES else "torn" if self.kind in TORN else "corrupt"


class NotARecordError(ValueError):
    """Strict JSON, but no record of this format: no crash leaves this behind, not even at the end."""

    def __init__(self, kind: str, due: int | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.due = due


class Rules(Protocol):
    """What a line must be to count as a record of one format.

    `any_tail_is_torn` is what that format says of a file whose one line is unfinished: torn, whatever it holds.
    `any_object` says that every strict JSON object is a record.
    """

    any_tail_is_torn: bool
    any_object: bool

    def record(self, raw: bytes) -> tuple[Any, tuple[str, ...]]:
        """Give the value of a line and the kinds of notes about it.

        Raises: NotStrictError, NotARecordError.
        """
        ...


class AnyObject:
    """Foreign records: each line one JSON object. A file of NUL bytes alone has lost its history, and is no torn tail."""

    any_tail_is_torn = False
    any_object = True

    def record(self, raw: bytes) -> tuple[Any, tuple[str, ...]]:
        """Give the object that a line holds."""
        judged = judge(raw)
        if judged.value.__class__ is not dict:
            raise NotARecordError("not-an-object")
        return judged.value, judged.notes


Visit = Callable[[Line, Any], None]
"""What is called with each record that counts: its line and its value."""


class _Fragment(NamedTuple):
    """The beginning of a record whose rest may come on another line; `place` is its finding's place in the list."""

    place: int | None
    line: Line
    raw: bytes


class _Spread:
    """A record that was begun on one line and may go on over the next ones."""

    def __init__(self, place: int | None, line: Line, raw: bytes) -> None:
        self.place, self.first = place, line
        self.lines = [line]
        self.mended = [raw]
        self.size = len(raw)
        self.nesting = Nesting()
        self.nesting.feed(raw)
        self.in_text = self.nesting.in_string

    def add(self, line: Line, raw: bytes) -> None:
        """Take one more line; a newline inside a string is put as it should have been written."""
        self.mended += [b"\\n" if self.nesting.in_string else b"\n", raw]
        self.lines.append(line)
        self.size += len(raw) + 1
        self.nesting.feed(raw)

    @property
    def closed(self) -> bool:
        return self.nesting.depth <= 0 and not self.nesting.in_string

    @property
    def hopeless(self) -> bool:
        too_much = len(self.lines) > _MOST_JOINED_LINES or self.size > _MOST_JOINED_BYTES
        return too_much or self.nesting.closed_early


class Examination:
    """What is wrong in one file, while its records are handed on.

    Call `read(blocks(...))`; then there is:
    findings    in the order of their lines, at most MOST_FINDINGS; `counts` has how many of each kind there are
    records_read, events, good_bytes   records in the file; those before the first fault, and the offset behind them
    torn_bytes  bytes of the torn tail
    first_bad   the first finding that makes the file corrupt, else the one of its torn tail
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.records_read = self.events = self.good_bytes = self.torn_bytes = self.size = self.lines = 0
        self.first_fault_at: int | None = None
        self._torn_tail: Finding | None = None
        self._seen: dict[int, int] = {}
        self._seen_earlier: dict[int, int] = {}
        self._shape: Format | None = None
        self._key_sets: set[frozenset[str]] = set()
        self._stopped = False
        self._spread: _Spread | None = None
        self._fragments: list[_Fragment] = []

    @property
    def first_bad(self) -> Finding | None:
        """Give the first finding that makes the file corrupt, or of a file that is only torn, that of its tail."""
        return self._torn_tail if self.first_fault_at is None else self.findings[self.first_fault_at]

    @property
    def verdict(self) -> Literal["sound", "torn", "corrupt"]:
        """Say what the file is, once all its records were handed on."""
        if self.first_fault_at is not None:
            return "corrupt"
        return "torn" if self.torn_bytes else "sound"

    def read(
        self, pieces: Iterable[Block | Line], visit: Visit | None = None, last_visited: float = math.inf
    ) -> None:
        """Read a file to its end. What does not count becomes a finding.

        `visit` is called with each record that counts, as far as the block that holds line `last_visited`.
        """
        for piece in pieces:
            if piece.number > last_visited:
                visit = None
            if isinstance(piece, Line):
                self._one_by_one((piece,), visit)
            elif (values := self._all_ordinary(piece, raws := piece.raws())) is None:
                self._one_by_one(piece.lines(raws), visit)
            else:
                self._many(piece, raws, values, visit)
            if self._stopped:
                return
        self._give_up()

    def _all_ordinary(self, block: Block, raws: list[bytes]) -> list[dict[str, Any]] | None:
        """Give the records of a block when nothing needs to be told about any of them; None asks for a closer look."""
        if not self.rules.any_object or self._spread is not None or self._shape != "foreign":
            return None
        if b"\r" in block.data and "crlf" not in self.counts:
            return None
        if "line-separator" not in self.counts and _separator_in(block.data) >= 0:
            return None
        values = judge_objects(raws, block.data)
        if values is None or any("sequence" in value for value in values):
            return None
        return values if self._all_new(raws, block.number) else None

    def _all_new(self, raws: list[bytes], number: int) -> bool:
        """Say whether no line stood before, and if so remember them."""
        known = set(map(hash, raws))
        new = len(known) == len(raws) and all(
            seen.keys().isdisjoint(known) for seen in (self._seen, self._seen_earlier)
        )
        if new:
            self._seen.update(zip(map(hash, raws), count(number)))
            self._forget()
        return new

    def _many(
        self, block: Block, raws: list[bytes], values: list[dict[str, Any]], visit: Visit | None
    ) -> None:
        self.records_read += len(raws)
        self.lines, self.size = block.number + len(raws) - 1, block.offset + len(block.data)
        if self.first_fault_at is None:
            self.events, self.good_bytes = self.events + len(raws), self.size
        if visit is not None:
            for line, value in zip(block.lines(raws), values, strict=True):
                visit(line, value)

    def _one_by_one(self, lines: Iterable[Line], visit: Visit | None) -> None:
        for line in lines:
            self.lines, self.size = line.number, line.offset + line.size + line.ended
            if line.raw is None:
                self._too_long(line)
                continue
            try:
                value, notes = self.rules.record(line.raw)
            except (NotStrictError, NotARecordError) as fault:
                self._refused(line, line.raw, fault)
                if self._stopped:
                    return
                continue
            if self._spread is not None and self._goes_on(line, line.raw, sound=value != {}):
                continue
            self._counts(line, line.raw, value, notes)
            if visit is not None:
                visit(line, value)

    def _counts(self, line: Line, raw: bytes, value: Any, notes: tuple[str, ...]) -> None:
        self.records_read += 1
        if self.first_fault_at is None:
            self.events += 1
            self.good_bytes = line.offset + line.size + line.ended
        for kind in notes:
            self.add(Finding(kind, line.number, line.offset))
        if (first := self._seen_before(raw, line.number)) is not None:
            self.add(Finding("duplicate", line.number, line.offset, line.size, other=first))
        if not line.ended:
            self.add(Finding("missing-newline", line.number, line.offset + line.size))
        if "line-separator" not in self.counts and (at := _separator_in(raw)) >= 0:
            self.add(Finding("line-separator", line.number, line.offset + at))
        if raw.endswith(b"\r") and "crlf" not in self.counts:
            self.add(Finding("crlf", line.number, line.offset + line.size - 1))
        if (shape := shape_of(value)) != self._shape:
            self._of_another_shape(line, shape)
        if self.records_read < _MOST_SHAPES:
            self._key_sets.add(frozenset(value))

    def _seen_before(self, raw: bytes, number: int) -> int | None:
        """Give the line where the same bytes stood, as far as that is remembered: the last hundred thousand lines."""
        known = hash(raw)
        first = self._seen.setdefault(known, number)
        if first != number:
            return first
        earlier = self._seen_earlier.get(known)
        self._forget()
        return earlier

    def _forget(self) -> None:
        if len(self._seen) > _MOST_REMEMBERED:
            self._seen_earlier, self._seen = self._seen, {}

    def _of_another_shape(self, line: Line, shape: Format) -> None:
        if self._shape is None:
            self._shape = shape
        elif "mixed" not in self.counts:
            self.add(Finding("mixed", line.number, line.offset))

    # --- Lines that are no records ---

    def _refused(self, line: Line, raw: bytes, fault: NotStrictError | NotARecordError) -> None:
        """Find out what a bad line is, or that it is the rest of an earlier one."""
        if line.number == 1 and is_utf_16(raw) and (line.ended or not self.rules.any_tail_is_torn):
            self.add(Finding("utf-16", 1, 0, line.size))
            self._stopped = True  # in another encoding, the byte 0A ends no line
            return
        if self._spread is not None and self._goes_on(line, raw, sound=False):
            return
        if not line.ended and isinstance(fault, NotStrictError):
            self._torn(line, raw)
        else:
            self._bad(line, raw, fault, may_go_on=line.ended)

    def _bad(
        self, line: Line, raw: bytes, fault: NotStrictError | NotARecordError, *, may_go_on: bool
    ) -> None:
        if isinstance(fault, NotARecordError):
            self.add(Finding(fault.kind, line.number, line.offset, line.size, due=fault.due))
            return
        if self._ends_a_fragment(line, raw):
            return
        damage = explain(raw, fault, self._key_sets)
        place = self.add(_placed(damage, line))
        if damage.fragment is not None:
            start, end = damage.fragment
            self._fragments = [*self._fragments[-2:], _Fragment(place, line, raw[start:end])]
            if may_go_on and end == len(raw):
                self._spread = _Spread(place, line, raw[start:end])

    def _torn(self, line: Line, raw: bytes) -> None:
        if line.offset == 0 and not raw.strip(b"\0") and not self.rules.any_tail_is_torn:
            self.add(Finding("nul-file", line.number, 0, line.size))
            return
        self.torn_bytes = line.size
        kind = "nul-tail" if raw.endswith(b"\0") else "torn-tail"
        try:
            judge(raw)
            second = None
        except NotStrictError as fault:
            second = explain(raw, fault, self._key_sets).second
        other = None if second is None else line.offset + second
        self.add(Finding(kind, line.number, line.offset, line.size, other=other))

    def _too_long(self, line: Line) -> None:
        self._give_up()
        if line.only_nul and not line.ended and (line.offset or self.rules.any_tail_is_torn):
            self.torn_bytes = line.size
            kind = "nul-tail"
        elif line.only_nul:
            kind = "nul-run" if line.ended else "nul-file"
        else:
            kind = "too-long"
        self.add(Finding(kind, line.number, line.offset, line.size))

    # --- Records over several lines ---

    def _goes_on(self, line: Line, raw: bytes, *, sound: bool) -> bool:
        """Say whether the line belongs to the record that an earlier line began."""
        spread = self._spread
        if spread is None or sound or raw.startswith((b'{"', b"\0")):
            self._give_up()
            return False
        spread.add(line, raw)
        if spread.closed and not spread.hopeless and self._was_spread(spread):
            self._spread = None
            return True
        if spread.closed or spread.hopeless or not line.ended:
            self._give_up()
        return True

    def _was_spread(self, spread: _Spread) -> bool:
        if not is_record(b"".join(spread.mended)):
            return False
        start = spread.first.offset + spread.first.size - len(spread.mended[0])
        kind = "raw-newline" if spread.in_text else "split-record"
        self._replace(
            spread.place,
            Finding(kind, spread.first.number, start, spread.size, lines=len(spread.lines)),
        )
        self._fragments.clear()
        return True

    def _give_up(self) -> None:
        """Let each line that was held stand for itself: together they are no record."""
        spread, self._spread = self._spread, None
        if spread is None:
            return
        for line in spread.lines[1:]:
            raw = line.raw or b""
            try:
                self._counts(line, raw, *self.rules.record(raw))
            except NotARecordError as fault:
                self._bad(line, raw, fault, may_go_on=False)
            except NotStrictError as fault:
                if line.ended:
                    self._bad(line, raw, fault, may_go_on=False)
                else:
                    self._torn(line, raw)

    def _ends_a_fragment(self, line: Line, raw: bytes) -> bool:
        """Say whether the line is the rest of a record that another one was written into."""
        for fragment in self._fragments:
            near = line.number - fragment.line.number <= _MOST_SPLICED_LINES
            if near and is_record(fragment.raw + raw):
                start = fragment.line.offset
                self._replace(
                    fragment.place,
                    Finding(
                        "splice",
                        fragment.line.number,
                        start,
                        line.offset + line.size - start,
                        lines=line.number - fragment.line.number + 1,
                        other=start + len(fragment.raw) + (len(fragment.raw) == fragment.line.size),
                    ),
                )
                self._fragments.remove(fragment)
                return True
        return False

    # --- The list of findings ---

    def add(self, finding: Finding) -> int | None:
        """Put a finding on the list; return its place there, or None when the list is full."""
        self.counts[finding.kind] += 1
        fault = finding.weight == "corrupt"
        if finding.weight == "torn":
            self._torn_tail = finding  # kept beside the list, which may be full
        if len(self.findings) >= MOST_FINDINGS and not (fault and self.first_fault_at is None):
            return None
        self.findings.append(finding)
        if fault and self.first_fault_at is None:
            self.first_fault_at = len(self.findings) - 1
        return len(self.findings) - 1

    def _replace(self, place: int | None, finding: Finding) -> None:
        if place is not None:
            self.counts -= Counter((self.findings[place].kind,))
            self.counts[finding.kind] += 1
            self.findings[place] = finding


def _separator_in(raw: bytes) -> int:
    """Give the offset of a U+0085, U+2028 or U+2029; -1 for none."""
    if raw.isascii():
        return -1
    # Two patterns that begin with fixed bytes: each is found at the speed of a search for one byte.
    found = _THREE_BYTE_SEPARATOR.search(raw) or _TWO_BYTE_SEPARATOR.search(raw)
    return found.start() if found else -1


def shape_of(value: Any) -> Format:
    """Say whose record an object looks like: durable, lesson or foreign."""
    if "sequence" not in value:
        return "foreign"
    if "event_hash" in value:
        return "durable"
    return "lesson" if len(value) == 3 and value.keys() == {"sequence", "type", "data"} else "foreign"


def _placed(damage: Damage, line: Line) -> Finding:
    other = None if damage.second is None else line.offset + damage.second
    return Finding(damage.kind, line.number, line.offset + damage.at, damage.length or line.size, other=other)
