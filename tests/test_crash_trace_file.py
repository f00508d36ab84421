"""A trace as a file: nothing is lost on the way, and whatever is no trace is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.faults.crash.trace import Entry, Start, Step, Trace, Unseen
from labkit.faults.crash.trace_file import FORMAT, TraceFileError, digest, load, parse, save

TRACE = Trace(
    start=(
        Start("a folder", 1, Entry("folder", mode=0o750)),
        Start("a folder/old", 2, Entry("file", b"\x00\xff not UTF-8", 0o644)),
        Start("链接", 3, Entry("link", b"../elsewhere", 0o777)),
        Start("odd \udcff name", 4, Entry("file")),
    ),
    steps=(
        Step(1, "create", node=5, path="new", mode=0o640),
        Step(2, "write", node=5, path="new", at=7, data='{"字": 1}\n'.encode(), thread=2),
        Step(3, "write", node=5, path="new", at=2**27, data=b"\xfe"),
        Step(4, "truncate", node=5, path="new", at=3),
        Step(5, "rename", node=5, path="new", to="a folder/old"),
        Step(6, "symlink", node=6, path="out", to="/anywhere/../else", mode=0o777),
        Step(7, "sync", node=0, path="."),
        Step(8, "acknowledge", value={"n": [1, 2.5, None, True, "\ud800"]}),
        Step(9, "acknowledge"),
    ),
    unseen=(Unseen("mmap", "table"), Unseen("threads")),
)


def lines_of(trace: Trace, folder: Path) -> list[bytes]:
    save(trace, folder / "trace.jsonl")
    return (folder / "trace.jsonl").read_bytes().splitlines(keepends=True)


def test_a_trace_comes_back_as_it_was(tmp_path):
    """Bytes of every kind, odd names, any JSON value: what was saved is what is loaded."""
    save(TRACE, tmp_path / "trace.jsonl")

    assert load(tmp_path / "trace.jsonl") == TRACE


def test_a_trace_is_for_its_owner_only_and_replaces_the_old_one_whole(tmp_path):
    """The file holds what the code wrote: mode 0600, and no temporary file stays behind."""
    (tmp_path / "trace.jsonl").write_bytes(b"an older one")
    save(TRACE, tmp_path / "trace.jsonl")

    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]
    assert (tmp_path / "trace.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    """What cannot be written, a number that is none in JSON, costs nothing that was there."""
    save(TRACE, tmp_path / "trace.jsonl")
    with pytest.raises(ValueError):
        save(Trace((), (Step(1, "acknowledge", value=float("nan")),)), tmp_path / "trace.jsonl")

    assert load(tmp_path / "trace.jsonl") == TRACE
    assert len(list(tmp_path.iterdir())) == 1


def test_equal_traces_have_one_digest_and_others_another(tmp_path):
    """A trace is named by what is in it."""
    save(TRACE, tmp_path / "trace.jsonl")

    assert digest(load(tmp_path / "trace.jsonl")) == digest(TRACE)
    assert digest(Trace(TRACE.start, TRACE.steps[:-1], TRACE.unseen)) != digest(TRACE)


def test_text_can_be_read_in_the_file(tmp_path):
    """A person sees what was written, in whatever language; only other bytes are coded."""
    raw = b"".join(lines_of(TRACE, tmp_path)).decode()

    assert r'"text":"{\"字\": 1}\n"' in raw
    assert '"base64":"/g=="' in raw


def test_a_file_cut_anywhere_is_refused_and_says_what_to_do(tmp_path):
    """Half a trace would hide steps: it is never loaded, wherever it was cut."""
    save(TRACE, tmp_path / "trace.jsonl")
    whole = (tmp_path / "trace.jsonl").read_bytes()
    for cut in range(len(whole) - 1):  # without its last line end it is whole all the same
        with pytest.raises(TraceFileError, match=r"cut.*; .*statelab crash record"):
            parse(whole[:cut].splitlines(keepends=True), "cut", whole=True)


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_what_the_recorder_left_is_read_up_to_a_torn_line(tmp_path, cut):
    """Code that was killed leaves a trace without an end, perhaps in the middle of a line."""
    lines = lines_of(TRACE, tmp_path)
    left = [*lines[:7], lines[7][:cut]]

    assert parse(left, "spool", whole=False) == Trace(TRACE.start, TRACE.steps[:2])


DAMAGED = {
    "another kind of file": (0, b'{"name": "package"}\n', "not a trace"),
    "a list": (0, b"[]\n", "not a line of a trace"),
    "a number in the header that is none": (0, b'{"crash_trace": true}\n', "not a trace"),
    "a later format": (
        0,
        b'{"crash_trace": 2}\n',
        "has format 2, and this kit reads 1; use the kit that made it",
    ),
    "no JSON": (3, b"what?\n", "not JSON"),
    "no UTF-8": (3, b'{"start": "\xff"}\n', "not JSON"),
    "too deep": (3, b"[" * 100_000 + b"\n", "not JSON"),
    "an unknown kind of entry": (
        1,
        b'{"start": "x", "node": 1, "kind": "pipe", "mode": 1}\n',
        "no file, folder or",
    ),
    "an entry without a number": (1, b'{"start": "x", "kind": "file", "mode": 1}\n', '"node" is no number'),
    "an entry outside": (1, b'{"start": "../x", "node": 1, "kind": "file", "mode": 1}\n', "outside the root"),
    "an unknown operation": (5, b'{"step": 1, "op": "format"}\n', "unknown kind"),
    "an operation that is no text": (5, b'{"step": 1, "op": []}\n', "unknown kind"),
    "an unknown field": (5, b'{"step": 1, "op": "sync", "node": 0, "more": null}\n', 'wrong field, "more"'),
    "a truth for a number": (5, b'{"step": 1, "op": "sync", "node": true}\n', 'wrong field, "node"'),
    "a step without a file": (5, b'{"step": 1, "op": "sync"}\n', "a number that cannot be"),
    "a step before the file's begin": (5, b'{"step": 1, "op": "write", "node": 1, "at": -1}\n', "cannot be"),
    "a hole of a terabyte": (
        5,
        b'{"step": 1, "op": "truncate", "node": 1, "at": 1099511627776}\n',
        "more than 256 MiB",
    ),
    "a step outside": (
        5,
        b'{"step": 1, "op": "unlink", "node": 1, "path": "/etc/passwd"}\n',
        "outside the root",
    ),
    "a way out": (
        5,
        b'{"step": 1, "op": "link", "node": 1, "path": "a", "to": "b/../../c"}\n',
        "outside the root",
    ),
    "bytes that are none": (
        5,
        b'{"step": 1, "op": "write", "node": 1, "base64": "?"}\n',
        "bytes that cannot",
    ),
    "text that is none": (5, b'{"step": 1, "op": "write", "node": 1, "text": 5}\n', "bytes that cannot"),
    "a step twice": (6, b'{"step": 1, "op": "sync", "node": 0}\n', "step 2 is due here"),
    "a start among the steps": (7, b'{"start": "x", "node": 1, "kind": "file", "mode": 1}\n', "not a line"),
    "an unseen without a place": (14, b'{"unseen": "mmap"}\n', "not a line"),
    "an unseen that is no text": (14, b'{"unseen": 5, "where": ""}\n', '"unseen" is no text'),
    "an end that counts others": (16, b'{"end": 8}\n', "has 9 steps, and its end counts others"),
}


@pytest.mark.parametrize("fault", DAMAGED)
def test_a_damaged_or_foreign_file_is_refused_with_its_line(tmp_path, fault):
    """One line that is wrong is named, with what is wrong and what to do; nothing of its content is shown."""
    at, line, complaint = DAMAGED[fault]
    lines = lines_of(TRACE, tmp_path)
    lines[at] = line
    (tmp_path / "bad").write_bytes(b"".join(lines))

    with pytest.raises(TraceFileError) as caught:
        load(tmp_path / "bad")
    assert str(caught.value).startswith(f"{tmp_path}/bad:{at + 1}: ")
    assert complaint in str(caught.value)
    assert "; " in str(caught.value)


def test_nothing_may_follow_the_end(tmp_path):
    """Two traces in one file are none."""
    (tmp_path / "two").write_bytes(b"".join(2 * lines_of(TRACE, tmp_path)))

    with pytest.raises(TraceFileError, match="goes on after its end"):
        load(tmp_path / "two")


def test_the_format_page_names_the_format_that_is_written(tmp_path):
    """docs/formats-crash.md says which number stands in the first line."""
    page = (Path(__file__).parents[1] / "docs" / "formats-crash.md").read_text("utf-8")

    assert json.loads(lines_of(TRACE, tmp_path)[0]) == {"crash_trace": FORMAT}
    assert f'`{{"crash_trace": {FORMAT}}}`' in page
