"""The state store alone: digest, whole files, exclusive files, the log, and the lock (P1 to P5)."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.child_process import answer_of, run_child
from tests.spine_code import FOLDERS

# isort: split
from issue_garden.answers import StoppedError
from issue_garden.json_files import BadFileError, load_object, parse_object
from issue_garden.runner_lock import runner_lock
from issue_garden.state_store import (
    CorruptEventsError,
    StateFolder,
    append_event,
    atomic_write_json,
    canonical_digest,
    publish_json,
    read_events,
    scan_events,
)

SAVE = "from issue_garden.state_store import atomic_write_json, publish_json, append_event\n"


def child(source: str, folder: Path):
    """Run a piece of Python with the file layer underneath and the spine at hand."""
    return run_child(SAVE + source, folder, imports=FOLDERS)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def line(number: int, **fields: object) -> bytes:
    return json.dumps({"sequence": number, "type": "t", "at": "now", **fields}).encode()


# --- P5: one value, one digest ---


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[1,2]}', ' {\n "b" : [1, 2], "a" : 1 }'),
        ('{"a":"\\u4e66"}', '{"a":"书"}'),
        ('{"a":1.0}', '{"a":1.00}'),
    ],
)
def test_form_does_not_change_the_digest(one, other):
    """Key order, white space and the spelling of one value do not matter."""
    assert canonical_digest(json.loads(one)) == canonical_digest(json.loads(other))


def test_any_value_changes_the_digest():
    """1, 1.0, true, "1", null, a list in other order, another key: all different."""
    values = [1, 1.0, True, "1", None, [1, 2], [2, 1], {"a": 1}, {"b": 1}, {}, [], "", "é", "e\u0301"]

    assert len({canonical_digest({"v": value}) for value in values}) == len(values)


def test_the_digest_is_sha256_of_compact_sorted_utf8():
    """The bytes hashed are those that the format page states."""
    expected = hashlib.sha256('{"a":"书","b":[1,true]}'.encode()).hexdigest()

    assert canonical_digest({"b": [1, True], "a": "书"}) == f"sha256:{expected}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: "a"}, [{None: 1}], {"a"}, b"x", "\ud800"])
def test_what_is_no_json_has_no_digest(value):
    """NaN, other keys than strings, sets, bytes and lone surrogates are refused, not hashed as something else."""
    with pytest.raises((ValueError, TypeError)):
        canonical_digest(value)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":NaN}', b'{"a":Infinity}', b'{"a":1e400}', b'{"a":1,"a":2}', b'{"x":{"a":1,"a":1}}', b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}', b'{"a":"\\ud800"}', b"[]", b"1", b"null", b"", b"\0" * 50, b"{", b'{"a":1}x',
        b'{"a":' + b"[" * 101 + b"]" * 101 + b"}", b'{"a":' + b"[" * 100_000, b'{"a":' + b"9" * 5_000 + b"}",
        '{"a":1}'.encode("utf-16"),
    ],
)  # fmt: skip
def test_json_that_cannot_be_trusted_is_refused(raw):
    """NaN, duplicate keys, bad text, NUL bytes, bombs: one error with a cause, and none of the content in it."""
    with pytest.raises(BadFileError) as bad:
        parse_object(raw)

    assert bad.value.cause == "bad_json"
    assert bad.value.__cause__ is None
    assert bad.value.__suppress_context__


def test_deep_but_lawful_nesting_is_read():
    """A hundred levels are allowed, whatever the stack has left."""
    raw = b'{"a":' * 99 + b"1" + b"}" * 99

    assert parse_object(raw)["a"]


# --- P3: whole files ---


def test_a_saved_file_is_whole_private_and_alone(tmp_path):
    """New or replaced: the value, mode 0600 under any umask, one newline at the end, nothing beside it."""
    path = tmp_path / "state.json"
    old = os.umask(0)
    try:
        for value in ({"a": "书"}, {"b": 2}):
            atomic_write_json(path, value)
    finally:
        os.umask(old)

    assert path.read_text("utf-8") == '{\n  "b": 2\n}\n'
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["state.json"]


def test_a_save_syncs_the_file_before_and_the_folder_after_the_rename(tmp_path):
    """Rows 94 and 95: write, sync, rename, sync of the folder, and the mode before the name (row 105)."""
    source = """
layer.arm([], folder)
atomic_write_json(folder / "state.json", {"a": 1})
layer.disarm()
answer([[e["op"], e["path"].endswith(".tmp"), e["path"]] for e in layer.log()])
"""
    steps = [op + (" temp" if temp else "") for op, temp, path in answer_of(child(source, tmp_path))]
    changing = [step for step in steps if step.split()[0] in ("open", "fchmod", "write", "fsync", "replace")]

    assert changing == [
        "open temp",
        "fchmod temp",
        "write temp",
        "fsync temp",
        "replace temp",
        "open",
        "fsync",
    ]


@pytest.mark.parametrize("op", ["open", "fchmod", "write", "fsync", "close", "replace"])
@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EACCES"])
def test_a_save_that_fails_keeps_the_old_file_and_no_temporary_one(tmp_path, op, error):
    """Rows 98 and 103: whatever step fails, the error is the caller's and the old bytes stay."""
    atomic_write_json(tmp_path / "state.json", {"old": True})
    before = (tmp_path / "state.json").read_bytes()
    source = f"""
layer.arm([{{"op": {op!r}, "match": "*.tmp", "do": "{error}"}}], folder)
try:
    atomic_write_json(folder / "state.json", {{"new": "x" * 5000}})
except OSError as failed:
    answer(failed.errno)
"""
    assert answer_of(child(source, tmp_path)) == getattr(errno, error)
    assert (tmp_path / "state.json").read_bytes() == before
    assert names(tmp_path) == ["state.json"]


def test_a_short_write_is_continued(tmp_path):
    """`os.write` may take a part only: the rest follows, and the file is whole."""
    source = """
layer.arm([{"op": "write", "do": "short:3", "times": 4}], folder)
atomic_write_json(folder / "state.json", {"key": "value"})
"""
    assert child(source, tmp_path).returncode == 0
    assert json.loads((tmp_path / "state.json").read_bytes()) == {"key": "value"}


def test_a_value_that_is_no_json_touches_nothing(tmp_path):
    """The text is made before a file is opened."""
    for value in ({"a": {1, 2}}, {"a": float("nan")}, {"a": "\ud800"}):
        with pytest.raises((TypeError, ValueError)):
            atomic_write_json(tmp_path / "state.json", value)

    assert names(tmp_path) == []


def test_a_symbolic_link_in_its_place_is_refused(tmp_path):
    """Row 105: what the link leads to is not touched, be it there or not."""
    (tmp_path / "victim").write_text("untouched", "utf-8")
    for target in ("victim", "nowhere"):
        link = tmp_path / f"{target}.json"
        link.symlink_to(target)
        with pytest.raises(OSError, match=r"\.json") as refused:
            atomic_write_json(link, {})
        assert refused.value.errno == errno.ELOOP

    assert (tmp_path / "victim").read_text("utf-8") == "untouched"
    assert not (tmp_path / "nowhere").exists()


def test_two_processes_saving_at_once_never_swap_or_fail(tmp_path):
    """Row 99: 2 × 300 saves of one file, no error, and the last one is one whole payload."""
    source = """
import sys
for n in range(300):
    atomic_write_json(folder / "state.json", {"who": WHO, "n": n, "fill": WHO * 2000})
"""
    import_line = f"import sys\nsys.path[:0] = {[str(folder) for folder in FOLDERS]!r}\n"
    head = f"{import_line}{SAVE}from pathlib import Path\nfolder = Path({str(tmp_path)!r})\n"
    both = [
        subprocess.Popen([sys.executable, "-I", "-c", head + source.replace("WHO", repr(who))])
        for who in "ab"
    ]
    assert [process.wait() for process in both] == [0, 0]

    value = load_object(tmp_path / "state.json", 10_000)
    assert value["fill"] == value["who"] * 2000
    assert names(tmp_path) == ["state.json"]


def test_a_reader_never_sees_half_a_file(tmp_path):
    """Row 102: read in a loop during 300 saves of very different sizes."""
    path = tmp_path / "state.json"
    atomic_write_json(path, {"n": -1, "fill": ""})
    source = """
for n in range(300):
    atomic_write_json(folder / "state.json", {"n": n, "fill": "x" * (n % 7 * 3000)})
"""
    head = f"import sys\nsys.path[:0] = {[str(f) for f in FOLDERS]!r}\n{SAVE}from pathlib import Path\n"
    writer = subprocess.Popen(
        [sys.executable, "-I", "-c", f"{head}folder = Path({str(tmp_path)!r})\n{source}"]
    )
    seen = []
    while writer.poll() is None:
        seen.append(load_object(path, 100_000)["n"])

    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 1


# --- P2: published once ---


def test_a_published_file_is_never_replaced(tmp_path):
    """Row 108: the second publication fails, the first content and nothing else stays."""
    publish_json(tmp_path / "claim.json", {"owner": 1})
    with pytest.raises(FileExistsError):
        publish_json(tmp_path / "claim.json", {"owner": 2})

    assert load_object(tmp_path / "claim.json", 1000) == {"owner": 1}
    assert names(tmp_path) == ["claim.json"]


def test_two_processes_racing_for_fifty_claims_have_one_owner_each(tmp_path):
    """Row 107: each claim has one winner, and the file says who. The two meet before every claim, so each is a race."""
    source = """
peer, won = socket.socket(fileno=FD), []
for n in range(50):
    peer.sendall(b".")
    peer.recv(1)
    try:
        publish_json(folder / f"{n}.json", {"owner": WHO})
        won.append(n)
    except FileExistsError:
        pass
print(json.dumps(won))
"""
    head = f"import json, socket, sys\nsys.path[:0] = {[str(f) for f in FOLDERS]!r}\n{SAVE}from pathlib import Path\n"
    head += f"folder = Path({str(tmp_path)!r})\n"
    ends = socket.socketpair()
    runners = []
    for who, end in enumerate(ends):
        code = head + source.replace("WHO", str(who)).replace("FD", str(end.fileno()))
        argv = [sys.executable, "-I", "-c", code]
        runners.append(subprocess.Popen(argv, stdout=subprocess.PIPE, pass_fds=[end.fileno()]))
    for end in ends:
        end.close()
    won = [json.loads(runner.communicate()[0]) for runner in runners]

    assert sorted(won[0] + won[1]) == list(range(50))
    assert all(load_object(tmp_path / f"{n}.json", 100)["owner"] == who for who in (0, 1) for n in won[who])
    assert len(names(tmp_path)) == 50


def test_a_claim_killed_while_it_is_made_is_whole_or_absent(tmp_path):
    """An exclusive file created first and written then could stay empty for ever: this one cannot."""
    for nth in range(1, 9):
        folder = tmp_path / str(nth)
        folder.mkdir()
        source = f"""
layer.arm([{{"op": "change", "nth": {nth}, "do": "half,kill" if {nth} == 3 else "kill"}}], folder)
publish_json(folder / "claim.json", {{"owner": 1}})
"""
        child(source, folder)
        claim = folder / "claim.json"
        assert not claim.exists() or load_object(claim, 100) == {"owner": 1}


# --- P4: the log ---


def test_events_are_numbered_stamped_and_one_line_each(tmp_path):
    """One object and one newline a record, keys in order, UTC with Z, newlines in data escaped."""
    path = tmp_path / "events.jsonl"
    append_event(path, "one", text="a\nb\u2028书")
    append_event(path, "two")

    first, second, rest = path.read_bytes().split(b"\n")
    assert rest == b""
    assert list(json.loads(first)) == ["sequence", "type", "at", "text"]
    assert json.loads(first)["text"] == "a\nb\u2028书"
    assert json.loads(second)["sequence"] == 2
    assert json.loads(second)["at"].endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_event_is_one_write(tmp_path):
    """Row 62: record and newline are handed over together; what is there is synced before, the line after."""
    source = """
append_event(folder / "events.jsonl", "one")
layer.arm([], folder)
append_event(folder / "events.jsonl", "two")
layer.disarm()
answer([e["op"] for e in layer.log() if e["op"] in ("write", "fsync")])
"""
    assert answer_of(child(source, tmp_path)) == ["fsync", "write", "fsync"]


def test_a_tail_torn_at_any_byte_is_forgiven_and_kept_before_the_next_append(tmp_path):
    """Whatever stands of the last line: reading gives the earlier events; appending saves the rest, then goes on."""
    whole = line(1) + b"\n" + line(2, text="é") + b"\n"
    start = len(line(1)) + 1
    for cut in range(start + 1, len(whole) - 1):
        path = tmp_path / str(cut) / "events.jsonl"
        path.parent.mkdir()
        path.write_bytes(whole[:cut])

        log = read_events(path)
        assert (len(log.events), log.good_bytes, log.torn) == (1, start, whole[start:cut])
        assert path.read_bytes() == whole[:cut]
        assert append_event(path, "next")["sequence"] == 2
        assert len(read_events(path).events) == 2
        assert (path.parent / f"events.jsonl.torn-{start}").read_bytes() == whole[start:cut]


def test_a_second_torn_tail_at_one_place_overwrites_nothing(tmp_path):
    """Row 81: two repairs at one offset keep two copies."""
    path = tmp_path / "events.jsonl"
    for torn in (b'{"first', b'{"second'):
        path.write_bytes(torn)
        append_event(path, "t")

    kept = {p.name: p.read_bytes() for p in tmp_path.glob("*.torn-*")}
    assert kept == {"events.jsonl.torn-0": b'{"first', "events.jsonl.torn-0-2": b'{"second'}


def test_a_last_event_without_its_newline_counts(tmp_path):
    """Row 47: it is whole; the next append ends it first."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(1))

    assert read_events(path).missing_newline
    append_event(path, "t")
    assert [event["sequence"] for event in read_events(path).events] == [1, 2]


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"\n".join(map(line, [1, 2, 3, 2])) + b"\n", 4),
        (line(1) + b"\n" + line(3) + b"\n", 2),
        (line(1) + b"\n\n" + line(2) + b"\n", 2),
        (line(1) + b'\n{"seq\n' + line(2) + b"\n", 2),
        (line(1) + b"\n" + b"\0" * 8 + line(2) + b"\n", 2),
        (b'{"sequence":true,"type":"t","at":"x"}\n', 1),
        (b'{"sequence":1.0,"type":"t","at":"x"}\n', 1),
        (b'{"sequence":1,"sequence":1,"type":"t","at":"x"}\n', 1),
        (b'{"sequence":1,"type":" ","at":"x"}\n', 1),
        (b'{"sequence":1,"type":"t"}\n', 1),
        (b"\xef\xbb\xbf" + line(1) + b"\n", 1),
        (line(1) + b"\n" + line(3), 2),
        (line(1) + b"\n5", 2),
        (b"[]\n", 1),
    ],
)
def test_a_damaged_log_is_refused_with_its_line(raw, number, tmp_path):
    """Row 128 and its kind: wrong numbers, blanks, NUL runs, bad values; reading and appending say which line."""
    with pytest.raises(CorruptEventsError) as corrupt:
        scan_events(raw)
    assert corrupt.value.line == number
    assert f"line {number}" in str(corrupt.value)

    (tmp_path / "events.jsonl").write_bytes(raw)
    with pytest.raises(CorruptEventsError):
        append_event(tmp_path / "events.jsonl", "t")
    assert (tmp_path / "events.jsonl").read_bytes() == raw


def test_a_failed_append_is_taken_back(tmp_path):
    """A full disk in the middle of a line, or a failed sync: the bytes go, the number is used again."""
    for do, op in (("half,ENOSPC", "write"), ("EIO", "fsync")):
        folder = tmp_path / op
        folder.mkdir()
        append_event(folder / "events.jsonl", "one")
        before = (folder / "events.jsonl").read_bytes()
        source = f"""
layer.arm([{{"op": "{op}", "match": "events.jsonl", "do": "{do}"}}], folder)
try:
    append_event(folder / "events.jsonl", "two")
except OSError as failed:
    answer(failed.errno)
"""
        assert answer_of(child(source, folder)) == getattr(errno, do.split(",")[-1])
        assert (folder / "events.jsonl").read_bytes() == before
        assert append_event(folder / "events.jsonl", "two")["sequence"] == 2


def test_a_log_that_cannot_be_read_is_never_an_empty_history(tmp_path):
    """Rows 35 and 36: an I/O error passes through; a symbolic link is refused."""
    append_event(tmp_path / "events.jsonl", "one")
    source = """
from issue_garden.state_store import read_events
layer.arm([{"op": "read", "do": "EIO"}], folder)
try:
    read_events(folder / "events.jsonl")
except OSError as failed:
    answer(failed.errno)
"""
    assert answer_of(child(source, tmp_path)) == errno.EIO
    (tmp_path / "link.jsonl").symlink_to("events.jsonl")
    with pytest.raises(BadFileError):
        read_events(tmp_path / "link.jsonl")


# --- P1: the folder ---


def test_left_over_temporary_files_are_no_records_and_only_ours_are_swept(tmp_path):
    """Rows 96, 100 and 101: half-written files in any folder are ignored, then removed; foreign ones stay."""
    folder = StateFolder(tmp_path)
    folder.make_root()
    folder.prepare("issue-1")
    ours = tmp_path / ".loop/claims/.issue-1.json.0123456789abcdef.tmp"
    foreign = [
        tmp_path / ".loop/claims" / name for name in ("x.tmp", ".issue-1.json.tmp", ".DS_Store", "x.json~")
    ]
    for path in (ours, *foreign):
        path.write_text('{"half', "utf-8")

    assert folder.records() == {}
    folder.prepare("issue-1")
    assert not ours.exists()
    assert all(path.exists() for path in foreign)


def test_folders_are_private_and_a_link_among_them_is_refused(tmp_path):
    """Mode 0700 each; records never land where a link leads."""
    folder = StateFolder(tmp_path)
    folder.make_root()
    folder.prepare("a")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / ".loop").rglob("*") if path.is_dir()}
    assert modes == {0o700}

    (tmp_path / ".loop/tasks/b").symlink_to(tmp_path)
    with pytest.raises(OSError, match="b") as refused:
        folder.prepare("b")
    assert refused.value.errno == errno.ELOOP


def test_one_read_feeds_parser_and_hash(tmp_path):
    """Row 131: a file is opened once, whoever hashes it."""
    source = """
import shutil
from issue_garden.contract import load_contract
from issue_garden.task import load_task
layer.arm([], folder)
load_contract(folder)
load_task(folder, "inbox", "issue-001.json")
answer([[e["op"], e["path"]] for e in layer.log() if e["op"] == "open"])
"""
    shutil.copy(FOLDERS[1] / "loop.contract.json", tmp_path)
    shutil.copytree(FOLDERS[1] / "tasks", tmp_path / "tasks")

    opened = answer_of(child(source, tmp_path))
    assert opened == [["open", "loop.contract.json"], ["open", "tasks/inbox/issue-001.json"]]


def test_a_pipe_in_a_files_place_is_refused_not_waited_for(tmp_path):
    """A named pipe, a folder, a device: an answer at once."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name, cause in (("pipe.json", "not_a_file"), ("folder.json", "not_a_file")):
        with pytest.raises(BadFileError) as bad:
            load_object(tmp_path / name, 100)
        assert bad.value.cause == cause


# --- P2: the lock ---


def hold(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that holds the lock until its stdin ends."""
    source = f"""
import sys
sys.path[:0] = {[str(f) for f in FOLDERS]!r}
from pathlib import Path
from issue_garden.runner_lock import runner_lock
with runner_lock(Path({str(path)!r})):
    print("held", flush=True)
    sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-I", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    return holder


def release(holder: subprocess.Popen[bytes]) -> None:
    holder.stdin.close()
    holder.stdout.close()
    holder.wait()


def held(path: Path) -> bool:
    try:
        with runner_lock(path):
            return False
    except StoppedError as stopped:
        return (stopped.answer.reason, stopped.answer.cause) == ("runner_active", "lock_held")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"abc",
        b"\0" * 50,
        b'{"pid": 1, "since": "1970-01-01T00:00:00.000Z"}',
        b'{"pid": 999999, "host": "elsewhere"}',
    ],
)
def test_the_kernel_decides_whatever_the_lock_file_says(tmp_path, content):
    """Rows 113, 115, 116, 117, 123: empty, garbled, old, a live or dead or foreign owner: free is free, held is held."""
    path = tmp_path / "runner.lock"
    path.write_bytes(content)
    assert not held(path)

    holder = hold(path)
    path.write_bytes(content)
    assert held(path)
    release(holder)


def test_a_killed_holder_leaves_nothing_to_break(tmp_path):
    """The lock ends with its process, and the file may stay."""
    path = tmp_path / "runner.lock"
    holder = hold(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()

    assert not held(path)
    assert path.exists()


def test_of_eight_that_want_the_lock_one_has_it(tmp_path):
    """Row 118: there is no stale lock to break, so there are not two who break it."""
    path = tmp_path / "runner.lock"
    path.write_text('{"pid": 999999}', "utf-8")
    holder = hold(path)

    assert [held(path) for _ in range(8)] == [True] * 8
    release(holder)


def test_releasing_takes_only_ones_own_lock_away(tmp_path):
    """Row 119: the file is never deleted, so nobody's lock is deleted with it."""
    path = tmp_path / "runner.lock"
    with runner_lock(path):
        inode = path.stat().st_ino
    holder = hold(path)

    assert path.stat().st_ino == inode
    assert held(path)
    release(holder)


def test_a_forked_child_that_ends_does_not_unlock_its_parent(tmp_path):
    """Row 121: leaving the block in a forked child drops the child's copy only."""
    path = tmp_path / "runner.lock"
    source = """
import os
from issue_garden.runner_lock import runner_lock
with runner_lock(folder / "runner.lock") as lock:
    child = os.fork()
    if child == 0:
        os.close(lock)
        os._exit(0)
    os.waitpid(child, 0)
    print("held", flush=True)
    sys.stdin.read()
"""
    head = f"import sys\nsys.path[:0] = {[str(f) for f in FOLDERS]!r}\nfrom pathlib import Path\n"
    holder = subprocess.Popen(
        [sys.executable, "-I", "-c", f"{head}folder = Path({str(tmp_path)!r})\n{source}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout.readline() == b"held\n"
    assert held(path)
    release(holder)
    assert not held(path)


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL])
def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch, number):
    """Row 122: never go on unlocked."""

    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(StoppedError) as stopped, runner_lock(tmp_path / "runner.lock"):
        pass

    assert (stopped.value.answer.exit_code, stopped.value.answer.cause) == (3, "lock_unsupported")


def test_a_lock_that_is_no_plain_file_is_refused(tmp_path):
    """A link or a pipe in its place."""
    (tmp_path / "link").symlink_to("elsewhere")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="link"), runner_lock(tmp_path / "link"):
        pass
    with pytest.raises(StoppedError), runner_lock(tmp_path / "pipe"):
        pass
    assert not (tmp_path / "elsewhere").exists()
