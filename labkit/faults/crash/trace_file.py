"""A trace as a file: JSON lines, one for everything that was there before, one a step (docs/formats-crash.md).

The recorder's child writes the same lines while the code runs, so that nothing recorded is lost with it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from labkit.faults.crash.trace import Entry, Kind, Op, Start, Step, Trace, Unseen

FORMAT = 1
HEADER = {"crash_trace": FORMAT}
MADE_ANEW = "record it again with 'statelab crash record'"
_PLAIN_STEP = {field.name: field.default for field in fields(Step)}
_STEP_FIELDS = _PLAIN_STEP.keys() - {"number", "op", "data"}
_KINDS, _OPS = frozenset(get_args(Kind)), frozenset(get_args(Op))

Header = dict[str, Any]
"""The first line, and the last."""


_LONGEST = 256 << 20
"""No file is longer: every state is built in memory, holes and all. The recorder gives such code up."""


class TraceFileError(Exception):
    """A file is not a trace that this kit reads; says where, what, and what to do next."""


def line_of(value: Header | Start | Step | Unseen) -> bytes:
    """Return the one line that stands for `value`: always the same bytes for the same value."""
    if isinstance(value, Start):
        entry = value.entry
        shown: dict[str, Any] = {"start": value.path, "node": value.node, "kind": entry.kind}
        shown |= {"mode": entry.mode} | _bytes_shown(entry.content)
    elif isinstance(value, Step):
        shown = {"step": value.number, "op": value.op}
        shown |= {
            name: getattr(value, name)
            for name, default in _PLAIN_STEP.items()
            if name in _STEP_FIELDS and getattr(value, name) != default
        }
        shown |= _bytes_shown(value.data)
    elif isinstance(value, Unseen):
        shown = {"unseen": value.what, "where": value.where}
    else:
        shown = value
    return _json(shown) + b"\n"


def _json(shown: dict[str, Any]) -> bytes:
    """Write compact JSON; a name that is no UTF-8 is kept in escapes, as Python hands it over."""
    try:
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(shown, separators=(",", ":"), allow_nan=False).encode()


def _bytes_shown(data: bytes) -> dict[str, str]:
    if not data:
        return {}
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def lines(trace: Trace) -> Iterator[bytes]:
    """Give the lines of a whole trace file, each with its line end."""
    yield line_of(HEADER)
    yield from map(line_of, trace.start)
    yield from map(line_of, trace.steps)
    yield from map(line_of, trace.unseen)
    yield line_of({"end": len(trace.steps)})


def digest(trace: Trace) -> str:
    """Return the SHA-256 of the trace's file, in hex: the same for the same trace, on any machine."""
    summed = hashlib.sha256()
    for line in lines(trace):
        summed.update(line)
    return summed.hexdigest()


def save(trace: Trace, path: Path) -> None:
    """Write `trace` to `path`, all or nothing, mode 0600. Raises: OSError."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(lines(trace))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: Path) -> Trace:
    """Read a trace file.

    Raises: OSError when it cannot be read; TraceFileError, with the 1-based line, when it is no trace, is cut off, was
    altered, or is of a later kit.
    """
    with path.open("rb") as file:
        return parse(file, str(path), whole=True)


def parse(raw_lines: Iterable[bytes], where: str, *, whole: bool) -> Trace:
    """Make a trace of its lines; if not `whole`, the last line may be torn, and the end may be missing.

    Raises: TraceFileError, which names `where` and the line.
    """
    reading = _Reading(whole=whole)
    for number, raw in enumerate(raw_lines, 1):
        try:
            reading.take(raw)
        except _WrongError as error:
            raise TraceFileError(f"{where}:{number}: {error}; {error.next}") from None
    if whole and not reading.ended:
        what = "cut off before its end" if reading.begun else "is empty"
        raise TraceFileError(f"{where}: {what}; {MADE_ANEW}")
    return reading.trace()


class _WrongError(Exception):
    """A line is not what is due; `next` says what to do about it."""

    def __init__(self, what: str, what_next: str = MADE_ANEW) -> None:
        super().__init__(what)
        self.next = what_next


class _Reading:
    """What the lines so far have said."""

    def __init__(self, *, whole: bool) -> None:
        self.whole, self.begun, self.ended = whole, False, False
        self._start: list[Start] = []
        self._steps: list[Step] = []
        self._unseen: list[Unseen] = []

    def trace(self) -> Trace:
        return Trace(tuple(self._start), tuple(self._steps), tuple(self._unseen))

    def take(self, raw: bytes) -> None:
        if not self.whole and not raw.endswith(b"\n"):
            return  # the code was ended in the middle of this line
        shown = _object(raw)
        if not self.begun:
            self.begun = _is_header(shown)
        elif self.ended:
            raise _WrongError("goes on after its end")
        else:
            self._take(shown)

    def _take(self, shown: dict[str, Any]) -> None:
        if "step" in shown:
            self._steps.append(_step(shown, due=len(self._steps) + 1))
        elif "start" in shown and not self._steps:
            self._start.append(_start(shown))
        elif shown.keys() == {"unseen", "where"}:
            self._unseen.append(Unseen(_text(shown, "unseen"), _text(shown, "where")))
        elif shown == {"end": len(self._steps)}:
            self.ended = True
        elif shown.keys() == {"end"}:
            raise _WrongError(f"has {len(self._steps)} steps, and its end counts others")
        else:
            raise _WrongError("not a line of a trace")


def _object(raw: bytes) -> dict[str, Any]:
    try:
        shown = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise _WrongError("not JSON, so not a trace, or a damaged one") from None
    if not isinstance(shown, dict):
        raise _WrongError("not a line of a trace")
    return shown


def _is_header(shown: dict[str, Any]) -> bool:
    number = shown.get("crash_trace")
    if type(number) is not int or number < 1:
        raise _WrongError("not a trace", "name a file that 'statelab crash record' made")
    if number > FORMAT:
        raise _WrongError(
            f"has format {number}, and this kit reads {FORMAT}", f"use the kit that made it, or {MADE_ANEW}"
        )
    return True


def _start(shown: dict[str, Any]) -> Start:
    kind = shown.pop("kind", None)
    if kind not in _KINDS:
        raise _WrongError("what was there before is no file, folder or link")
    content, path = _content(shown), _text(shown, "start")
    if not _is_below_root(path):
        raise _WrongError("a name outside the root")
    return Start(path, _number(shown, "node"), Entry(kind, content, _number(shown, "mode")))


def _step(shown: dict[str, Any], due: int) -> Step:
    number, op, data = shown.pop("step"), shown.pop("op", None), _content(shown)
    if number != due:
        raise _WrongError(f"step {due} is due here")
    if not isinstance(op, str) or op not in _OPS:
        raise _WrongError("a step of an unknown kind")
    for name, value in shown.items():
        if name not in _STEP_FIELDS or (name != "value" and type(value) is not type(_PLAIN_STEP[name])):
            raise _WrongError(f'a step with a wrong field, "{name}"')
    step = Step(due, op, data=data, **shown)  # type: ignore[arg-type]  # an Op: looked up above
    if (step.node < 0 and op != "acknowledge") or step.at < 0:
        raise _WrongError("a step with a number that cannot be")
    if step.at + len(step.data) > _LONGEST:
        raise _WrongError(f"a file of more than {_LONGEST >> 20} MiB")
    if not _is_below_root(step.path) or not (_is_below_root(step.to) or op == "symlink"):
        raise _WrongError("a step with a name outside the root")
    return step


def _is_below_root(path: str) -> bool:
    """Say whether a crash state may hold this name: a file from elsewhere shall not write where it likes."""
    return not path.startswith("/") and ".." not in path.split("/") and "\0" not in path


def _content(shown: dict[str, Any]) -> bytes:
    """Take the bytes out of a line's fields."""
    text, coded = shown.pop("text", ""), shown.pop("base64", "")
    try:
        content: bytes = base64.b64decode(coded, validate=True) if coded else text.encode()
    except (ValueError, TypeError, AttributeError):
        raise _WrongError("bytes that cannot be read") from None
    return content


def _text(shown: dict[str, Any], name: str) -> str:
    value = shown.get(name)
    if not isinstance(value, str):
        raise _WrongError(f'the field "{name}" is no text')
    return value


def _number(shown: dict[str, Any], name: str) -> int:
    value = shown.get(name)
    if type(value) is not int or value < 0:
        raise _WrongError(f'the field "{name}" is no number')
    return value
