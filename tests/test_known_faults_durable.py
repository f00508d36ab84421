"""Faults seen in the field in logs like ours, as tests of `DurableLog`: one for each kind, named by its number.

The rows of reading, tails and appends that lesson 22's store shares are here in the form in which a chained log meets
them. Elsewhere, with the part that they are about:

    62 122            test_durable_faults.py: a second process, a place that cannot lock
    72 116 118 119    test_durable_faults.py: folder syncs, lock files
    85 to 90          test_durable_session_folder.py: modes, unsafe ids
    91                test_durable_secrets.py: nested credentials
    84                test_durable_schemas.py: upcasting
    123               docs/formats-durable.md: two hosts, local disks only
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from solution.durable_log import (
    CorruptLogError,
    DurableLog,
    Event,
    IdReusedError,
    LimitError,
    QueueFullError,
    RefusedError,
    Report,
    Scan,
    UnknownVersionError,
)
from solution.durable_log.errors import DurableLogError
from solution.durable_log.record import BEGINNING, Head, hash_of
from solution.durable_log.repair import AUDIT_NAME, mend_tail
from solution.durable_log.segments import Segments
from solution.durable_log.session_folder import open_session_folder
from tests.child_process import KIT
from tests.durable_session import SESSION, record
from tests.test_durable_faults import in_child

NL = b"\n"
LOG = "00000000000000000001.jsonl"


def lines_of(*data: Any) -> list[bytes]:
    """Make the lines of a log with these data."""
    head, lines = BEGINNING, []
    for one in data:
        line, head = record(head, one)
        lines.append(line)
    return lines


def resealed(head: Head, line: bytes, old: bytes, new: bytes) -> bytes:
    """Change a line and give it the hash that its new bytes ask for: what is refused then is the form alone."""
    assert old in line
    changed = line.replace(old, new, 1)[:-1]
    return changed[:-66] + hash_of(changed).encode() + changed[-2:] + NL


E1, E2, E3 = lines_of({"n": 1}, {"n": 2}, {"n": 3})
H1 = Head(1, E1[-67:-3].decode())


def scan(raw: bytes, folder: Path) -> Report:
    """Read bytes as a log; the report."""
    path = folder / "log.jsonl"
    path.write_bytes(raw)
    reader = Scan(path, session=SESSION)
    try:
        for _block in reader.blocks():
            pass
    except CorruptLogError:
        pass
    return reader.report


def bad_line(raw: bytes, folder: Path) -> int | None:
    """Read bytes that must be refused; the line."""
    report = scan(raw, folder)
    assert report.verdict == "corrupt"
    return report.line


def session_with(root: Path, raw: bytes) -> Path:
    """Make a session whose log holds `raw`, as an earlier writer and a crash may have left it; the log's path."""
    folder = root / SESSION
    Segments.open(open_session_folder(root, SESSION))
    (folder / LOG).write_bytes(raw)
    (folder / LOG).chmod(0o600)
    return folder / LOG


def with_log(root: Path, work: Callable[[DurableLog], Awaitable[Any]], **how: Any) -> Any:
    async def whole() -> Any:
        async with await DurableLog.open(SESSION, root=root, **how) as log:
            return await work(log)

    return asyncio.run(whole())


def appended(root: Path, data: Any = None) -> int:
    return int(with_log(root, lambda log: log.append("t", data)).sequence)


# --- Reading ---


@pytest.mark.parametrize("size", [1, 8, 4096])
def test_row_1_nul_run_inside_a_log(tmp_path: Path, size: int) -> None:
    """A run of NUL bytes before the end of the last line is refused at its line, never read as a shorter log."""
    raw = E1 + E2 + E3
    for at in range(0, len(raw), 37):
        assert bad_line(raw[:at] + bytes(size) + raw[at:], tmp_path) == raw[:at].count(NL) + 1


@pytest.mark.parametrize("size", [1, 512, 70_000])
def test_row_3_nul_tail_stale_lock_and_all(tmp_path: Path, size: int) -> None:
    """A NUL tail with a lock file of a dead process: the lock is taken, the tail mended, and the next is event 2."""
    path = session_with(tmp_path, E1 + bytes(size))
    (tmp_path / SESSION / "lock").write_text('{"pid": 999999999, "host": "elsewhere"}')

    assert appended(tmp_path) == 2
    assert [event.sequence for event in Scan(path)] == [1, 2]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_rows_4_and_5_only_the_newline_byte_ends_a_line(tmp_path: Path, mark: str) -> None:
    """Characters at which text libraries cut lines go through the log unharmed."""
    data = {f"a{mark}b": [mark, f"{mark}x"]}
    assert with_log(tmp_path, lambda log: log.append("t", data)).data == data
    assert with_log(tmp_path, lambda log: log.read())[0].data == data


def test_row_7_one_event_is_one_line(tmp_path: Path) -> None:
    """A newline in data is escaped; a raw one inside a string is refused where its line begins."""
    with_log(tmp_path, lambda log: log.append("t", {"m": "a\nb\r\n"}))
    assert (tmp_path / SESSION / LOG).read_bytes().count(NL) == 1
    for at in range(10, len(E2) - 1, 11):
        assert bad_line(E1 + E2[:at] + NL + E2[at:] + E3, tmp_path) == 2


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\xff\xfe", b" ", b"\t", b"\x00"])
def test_row_8_something_before_a_record(tmp_path: Path, prefix: bytes) -> None:
    """A byte order mark, or anything else before a record, is refused at its line."""
    assert bad_line(prefix + E1 + E2, tmp_path) == 1
    assert bad_line(E1 + prefix + E2, tmp_path) == 2


def test_row_11_rewritten_line_ends(tmp_path: Path) -> None:
    """Line ends rewritten to CR LF are refused, with the reason: the hash is over the stored bytes."""
    report = scan((E1 + E2).replace(NL, b"\r\n"), tmp_path)

    assert (report.verdict, report.line) == ("corrupt", 1)
    assert "CR LF" in report.reason


@pytest.mark.parametrize("blank", [b"", b" ", b"\r", b"null", b"0", b'""', b"[]", b"{}", b"false"])
def test_rows_12_13_and_14_nothing_is_skipped(tmp_path: Path, blank: bytes) -> None:
    """A blank or empty item is refused at its physical line: it is neither skipped nor the end."""
    for at, raw in enumerate((blank + NL + E1, E1 + blank + NL + E2, E1 + E2 + blank + NL), start=1):
        assert bad_line(raw, tmp_path) == at


@pytest.mark.parametrize(
    "token", ["NaN", "Infinity", "-Infinity", "1e400", "1e-400", "-0", "01", "1.", "+1", "1E5", "2.00"]
)
def test_row_16_numbers_that_are_not_what_they_stand_for(tmp_path: Path, token: str) -> None:
    """A number that is no JSON, no finite double, or not written the one way, is refused though the hash fits."""
    assert bad_line(E1 + resealed(H1, E2, b'{"n":2}', b'{"n":%b}' % token.encode()) + E3, tmp_path) == 2


def test_row_17_a_refused_append_takes_no_number(tmp_path: Path) -> None:
    """NaN is refused before a byte is written, and the next append has the number."""

    async def work(log: DurableLog) -> int:
        with pytest.raises(RefusedError):
            await log.append("t", {"x": [float("nan")]})
        return (await log.append("t", 1)).sequence

    assert with_log(tmp_path, work) == 1


def test_rows_19_and_20_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    """A lone surrogate is written escaped, read back as it was, and printed without a crash."""
    for data in ({"m": "\udcb2"}, {"\ud83d": ["x\ude00y"]}):
        appended(tmp_path, data)
    assert b"\\udcb2" in (tmp_path / SESSION / LOG).read_bytes()
    events = with_log(tmp_path, lambda log: log.read())

    assert [event.data for event in events] == [{"m": "\udcb2"}, {"\ud83d": ["x\ude00y"]}]
    assert json.dumps([event.data for event in events])


@pytest.mark.parametrize(
    "key", [b'"v":1', b'"session":"build-7"', b'"sequence":2', b'"data":{"n":2}', b'"n":2']
)
def test_row_22_a_key_stands_twice(tmp_path: Path, key: bytes) -> None:
    """A key that stands twice, anywhere in a record, is refused though the hash fits."""
    assert bad_line(E1 + resealed(H1, E2, key, key + b"," + key), tmp_path) == 2


@pytest.mark.parametrize(
    "number", ["true", "2.0", "2e0", '"2"', "null", "[2]", "02", "3", "1", "0", "-2", "2" + "0" * 400]
)
def test_rows_23_24_25_and_65_the_number_that_is_due(tmp_path: Path, number: str) -> None:
    """Only the integer that is due counts, written plainly; a repeated or skipped one is refused at its line."""
    assert (
        bad_line(E1 + resealed(H1, E2, b'"sequence":2', b'"sequence":%b' % number.encode()) + E3, tmp_path)
        == 2
    )


@pytest.mark.parametrize(
    "number",
    [2**63, 2**64, 2**64 + 1, -(2**63) - 1, 10**300, -(10**4299)],
    ids=lambda number: f"{number.bit_length()} bits",
)
def test_row_27_integers_of_any_size(tmp_path: Path, number: int) -> None:
    """An integer past 64 bits comes back exactly, from memory and from the disk."""
    assert with_log(tmp_path, lambda log: log.append("t", {"x": number})).data == {"x": number}
    stored = with_log(tmp_path, lambda log: log.read())[0].data["x"]
    assert (type(stored), stored) == (int, number)


def test_row_28_deep_nesting(tmp_path: Path) -> None:
    """A nesting bomb is refused at its line when read, and at append, whose next call works."""
    for depth in (600, 5000, 100_000):
        bomb = resealed(H1, E2, b'{"n":2}', b"[" * depth + b"]" * depth)
        assert bad_line(E1 + bomb + E3, tmp_path) == 2
    deep: Any = []
    for _level in range(300):
        deep = [deep]

    async def work(log: DurableLog) -> int:
        with pytest.raises(LimitError):
            await log.append("t", deep)
        return (await log.append("t", 1)).sequence

    assert with_log(tmp_path, work) == 1


@pytest.mark.parametrize("item", ['"x"', "null", "[1]", "{}", '{"sequence":2,"type":"t","data":{}}', "2"])
def test_row_29_json_that_is_no_record(tmp_path: Path, item: str) -> None:
    """Valid JSON that is no record is refused, ended by a newline or not: a cut record never parses."""
    for end in (b"", NL):
        assert bad_line(E1 + item.encode() + end, tmp_path) == 2


def test_row_31_any_locale(tmp_path: Path) -> None:
    """Under a locale that is not UTF-8 the same text comes back."""
    with_log(tmp_path, lambda log: log.append("t", "”茶"))
    code = (
        f"import sys; sys.path[:0] = {[str(KIT), *sys.path]!r}\n"
        "from pathlib import Path; from solution.durable_log import Scan\n"
        f"print(ascii(next(iter(Scan(Path({str(tmp_path / SESSION / LOG)!r})))).data))"
    )
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == ascii("”茶")


def test_rows_32_and_33_a_bad_middle_and_how_much_is_good(tmp_path: Path) -> None:
    """A bad line in the middle is no torn tail; the report says how much before it is good, and nothing of the rest."""
    report = scan(E1 + b'{"seq\n' + E2, tmp_path)

    assert (report.verdict, report.line, report.offset) == ("corrupt", 2, len(E1))
    assert (report.events, report.last_sequence, report.good_bytes) == (1, 1, len(E1))
    assert report.log_hash == H1.hash


def test_rows_35_and_36_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    """A read error is raised, at opening and in the middle of a read: it is never an empty history."""
    answers = in_child(
        tmp_path,
        """
async def main():
    async with await DurableLog.open(SESSION, root=folder) as log:
        await asyncio.gather(*(log.append("t", "x" * 900) for _ in range(900)))
        done = []
        for nth in (1, 2, 3):
            layer.arm([{"op": ["read", "readv"], "match": "0*.jsonl", "nth": nth, "do": "EIO"}], folder)
            try:
                done.append(len(await log.read()))
            except OSError as error:
                done.append(error.errno)
        layer.disarm()
    layer.arm([{"op": "open", "match": "0*.jsonl", "do": "EACCES"}], folder)
    try:
        await DurableLog.open(SESSION, root=folder)
    except OSError as error:
        done.append(error.errno)
    return done
answer(asyncio.run(main()))
""",
    )
    assert answers == [5, 5, 5, 13]


# --- Tails ---


def test_rows_39_40_42_and_45_a_cut_at_any_byte_then_an_append(tmp_path: Path) -> None:
    """A record cut anywhere, inside a character too: the append behind it is whole, on its own line, with the next number."""
    [one, two] = lines_of({"m": "é"}, {"m": "茶🍵"})
    for cut in range(1, len(two), 5):
        path = session_with(tmp_path / str(cut), one + two[:cut])
        whole = cut == len(two) - 1
        assert appended(tmp_path / str(cut)) == 2 + whole
        assert path.read_bytes().startswith(one + two if whole else one)
        assert [event.sequence for event in Scan(path)] == [1, 2, 3][: 2 + whole]
        [copy] = path.parent.glob("*.torn-*")
        assert copy.read_bytes() == one + two[:cut]


def test_row_41_a_full_disk_leaves_no_fragment(tmp_path: Path) -> None:
    """An append that a real limit cuts short is rolled back, and a later one follows the last whole record."""
    answers = in_child(
        tmp_path,
        """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    async with await DurableLog.open(SESSION, root=folder, durability="os") as log:
        await log.append("t", 0)
        path = next((folder / SESSION).glob("0*.jsonl"))
        size, done = path.stat().st_size, []
        for more in (1, 10, 100, 300):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + more, resource.RLIM_INFINITY))
            done.append(await outcome(log.append("t", "x" * 100)))
            assert path.stat().st_size == size
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return [*done, await outcome(log.append("t", "x"))]
answer(asyncio.run(main()))
""",
    )
    assert answers == ["OSError"] * 4 + [2]


def test_row_47_a_missing_final_newline(tmp_path: Path) -> None:
    """A whole record without its newline is an event; the next append stands on a line of its own."""
    path = session_with(tmp_path, (E1 + E2)[:-1])

    assert appended(tmp_path) == 3
    assert path.read_bytes().startswith(E1 + E2)


def test_row_48_a_cut_record_is_no_clean_end(tmp_path: Path) -> None:
    """The report of a cut record says torn, and how many bytes; also of whole records glued on it."""
    assert (scan(b'{"seq', tmp_path).verdict, scan(b'{"seq', tmp_path).torn_bytes) == ("torn", 5)
    glued = scan(E1 + E2[:-1] + E3[:-1], tmp_path)
    assert (glued.verdict, glued.events, glued.torn_bytes) == ("torn", 1, len(E2 + E3) - 2)


def test_row_49_a_zero_byte_log(tmp_path: Path) -> None:
    """A log of no bytes is a log of no events."""
    session_with(tmp_path, b"")

    assert appended(tmp_path) == 1


def test_rows_50_and_81_repair_keeps_every_original(tmp_path: Path) -> None:
    """Repair leaves a copy and an audit record before it cuts; a second one in the same second overwrites neither."""
    path = session_with(tmp_path, b'{"seq')
    for turn, copy in enumerate((f"{LOG}.torn-0", f"{LOG}.torn-0-2"), start=1):
        path.write_bytes(b'{"seq')
        repair = mend_tail(path, scan_file(path), missing_newline=False, now=lambda: 0.0)
        audit = (path.parent / AUDIT_NAME).read_text().splitlines()

        assert (repair.copy, repair.bytes, path.read_bytes()) == (copy, 5, b"")
        assert (path.parent / copy).read_bytes() == b'{"seq'
        assert (len(audit), json.loads(audit[-1])["copy"]) == (turn, copy)


def scan_file(path: Path) -> Report:
    reader = Scan(path)
    for _block in reader.blocks():
        pass
    return reader.report


def test_rows_51_and_53_a_follower_never_splits_a_record(tmp_path: Path) -> None:
    """Read at half a line, and at half a character, then on: each event comes once, each character whole."""
    lines = lines_of({"m": "é茶🍵"}, {"m": "\u2028"})
    path = tmp_path / "log.jsonl"
    path.touch()
    follower, found = Scan(path, session=SESSION), []
    for byte in b"".join(lines):
        with path.open("ab") as file:
            file.write(bytes([byte]))
        found += [event.data for block in follower.blocks(final=False) for event in block.events]

    assert found == [{"m": "é茶🍵"}, {"m": "\u2028"}]


# --- Appending ---


def test_rows_55_56_and_57_a_failure_is_its_own(tmp_path: Path) -> None:
    """Refused, failed and good appends together: each has its own answer, and no number is lost or given twice."""
    answers = in_child(
        tmp_path,
        """
async def main():
    async with await DurableLog.open(SESSION, root=folder, durability="os") as log:
        layer.arm([{"op": "write", "match": "0*.jsonl", "do": "ENOSPC", "nth": 1}], folder)
        alone = await outcome(log.append("t", 0))
        layer.arm([{"op": "write", "match": "0*.jsonl", "do": "ENOSPC", "nth": 1}, {"op": "write", "match": "0*.jsonl", "do": "half,ENOSPC", "nth": 3}], folder)
        calls = [log.append("t", 1), log.append("t", (2,)), log.append("t", 3), log.append("t", 4)]
        await asyncio.sleep(0)
        done = [await outcome(call) for call in calls]
    async with await DurableLog.open(SESSION, root=folder) as log:
        return [alone, done, await outcome(log.append("t", 5)), await log.version()]
answer(asyncio.run(main()))
""",
    )
    alone, done, later, version = answers
    assert (alone, done[1]) == ("OSError", "RefusedError")
    stored = [one for one in done if isinstance(one, int)]
    assert stored == list(range(1, len(stored) + 1))
    assert later == version == len(stored) + 1


def test_row_61_large_records_stay_whole(tmp_path: Path) -> None:
    """Records of 700 KB appended together are two intact lines in call order."""

    async def work(log: DurableLog) -> tuple[Event, Event]:
        return await asyncio.gather(log.append("t", "a" * 700_000), log.append("t", "b" * 700_000))

    assert [event.data[0] for event in with_log(tmp_path, work)] == ["a", "b"]
    assert [event.data[0] for event in with_log(tmp_path, lambda log: log.read())] == ["a", "b"]


def test_row_67_an_event_that_is_not_understood_keeps_its_number(tmp_path: Path) -> None:
    """A record that this code cannot understand is not skipped: opening refuses rather than give its number away."""
    newer = resealed(H1, E2, b'{"v":1', b'{"v":2')
    path = session_with(tmp_path, E1 + newer)
    with pytest.raises(UnknownVersionError):
        appended(tmp_path)
    assert path.read_bytes() == E1 + newer


def test_row_68_numbers_past_any_padding(tmp_path: Path) -> None:
    """Segments are ordered by number, at the borders of digits too."""

    async def work(log: DurableLog) -> list[int]:
        for number in range(1, 1201):
            await log.append("t", None)
            if number in (1, 9, 10, 11, 99, 100, 101, 999, 1000):
                await log.rotate()
        return [event.sequence for event in await log.read()]

    assert with_log(tmp_path, work, durability="os") == list(range(1, 1201))


def test_row_69_a_bounded_queue(tmp_path: Path) -> None:
    """On a slow disk, ten thousand unawaited appends wait in the call or are refused: the queue holds its limit."""
    answers = in_child(
        tmp_path,
        """
async def main():
    done = []
    for when in ("refuse", "wait"):
        async with await DurableLog.open(f"s-{when}", root=folder, when_full=when, limits=Limits(waiting=500)) as log:
            await log.append("t", -1)
            layer.arm([{"op": ["fsync", "fdatasync"], "match": "0*.jsonl", "do": "slow", "times": None, "seconds": 0.02}], folder)
            for n in range(8):
                await log.append("t", n)
            calls = [log.append("t", n) for n in range(10_000)]
            answers = await asyncio.gather(*map(outcome, calls))
            done.append([log.metrics.most_waiting <= 500, len([one for one in answers if one == "QueueFullError"]) >= 9000])
            layer.disarm()
    return done
answer(asyncio.run(main()))
""",
    )
    assert answers == [[True, True], [True, False]]
    assert issubclass(QueueFullError, DurableLogError)


@pytest.mark.parametrize("durability", ["os", "fsync", "group"])
def test_rows_70_and_71_a_failed_sync_is_not_forgotten(tmp_path: Path, durability: str) -> None:
    """Bytes landed, the sync failed: somebody is told at every level, nothing follows, and reopening trusts the file."""
    answers = in_child(
        tmp_path,
        f"""
async def main():
    log = await DurableLog.open(SESSION, root=folder, durability={durability!r})
    await log.append("t", 0)
    layer.arm([{{"op": ["fsync", "fdatasync"], "match": "0*.jsonl", "do": "full,EIO"}}], folder)
    done = [await outcome(log.append("t", 1)), await outcome(log.append("t", 2))]
    try:
        await log.close()
        done.append("closed")
    except OSError as error:
        done.append("OSError")
    layer.disarm()
    async with await DurableLog.open(SESSION, root=folder) as again:
        return [*done, await again.version(), await outcome(again.append("t", 3))]
answer(asyncio.run(main()))
""",
    )
    failed = ["LogClosedError from OSError"] * 2 + ["closed", 2, 3]
    assert answers == ([2, 3, "OSError", 3, 4] if durability == "os" else failed)


def test_rows_74_and_75_rotation_beside_appends(tmp_path: Path) -> None:
    """Appends go on while segments are closed; a rotation that fails closes the log, and reopening has every event."""
    answers = in_child(
        tmp_path,
        """
async def main():
    async with await DurableLog.open(SESSION, root=folder, durability="os", limits=Limits(segment_bytes=3000)) as log:
        async def caller(name):
            return [(await log.append("t", name)).sequence for _turn in range(40)]
        given = sorted(sum(await asyncio.gather(*map(caller, range(5))), []))
        rotations = log.metrics.rotations
    log = await DurableLog.open(SESSION, root=folder, durability="os")
    await log.append("t", 0)
    layer.arm([{"op": ["read", "readv"], "match": "0*.jsonl", "do": "EIO", "times": None}], folder)
    try:
        await log.rotate()
    except LogClosedError as error:
        told = type(error.__cause__).__name__
    layer.disarm()
    await log.close()
    async with await DurableLog.open(SESSION, root=folder) as again:
        events = await again.read()
    return [given == list(range(1, 201)), rotations > 3, told, [event.sequence for event in events] == list(range(1, 202))]
answer(asyncio.run(main()))
""",
    )
    assert answers == [True, True, "OSError", True]


def test_rows_76_and_77_one_id_is_one_event(tmp_path: Path) -> None:
    """The same id twice is one line, now and after a restart; the same data under two ids is two; other data, an error."""

    async def work(log: DurableLog) -> list[int]:
        given = [(await log.append("t", {"x": 1}, event_id=name)).sequence for name in ("a", "a", "b")]
        with pytest.raises(IdReusedError):
            await log.append("t", {"x": 2}, event_id="a")
        return given

    assert with_log(tmp_path, work) == with_log(tmp_path, work) == [1, 1, 2]
    assert (tmp_path / SESSION / LOG).read_bytes().count(NL) == 2


# --- The chain and the manifest ---


@pytest.mark.parametrize(
    "data", [(1, 2), {1: "a"}, {"a": (1,)}, {"a": {2: 3}}, {(1, 2): 3}, [b"x"]], ids=repr
)
def test_row_79_the_hash_is_of_what_is_stored(tmp_path: Path, data: Any) -> None:
    """What would be stored as something else than it is in memory is refused, so the chain never lies."""
    with pytest.raises(RefusedError):
        with_log(tmp_path, lambda log: log.append("t", data))


def test_row_80_deleted_newest_events(tmp_path: Path) -> None:
    """The newest events deleted, which the chain alone cannot see, are missed by the manifest's head."""
    with_log(tmp_path, lambda log: asyncio.gather(*(log.append("t", number) for number in range(3))))
    path = tmp_path / SESSION / LOG
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(CorruptLogError, match="ends at event 2"):
        appended(tmp_path)


@pytest.mark.parametrize("where", ["manifest", "record"])
def test_row_83_a_newer_store_is_left_alone(tmp_path: Path, where: str) -> None:
    """A manifest or record of version 99 is refused, naming both versions, and no byte is touched."""
    with_log(tmp_path, lambda log: log.append("t", 1))
    folder = tmp_path / SESSION
    path = folder / ("manifest.json" if where == "manifest" else LOG)
    raw = path.read_bytes().replace(b'"v":1,', b'"v":99,', 1)
    if where == "record":
        raw = raw.replace(b'"data":', b'"shape":0,"data":')
    path.write_bytes(raw)
    before = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and one.name != "lock"}
    with pytest.raises(UnknownVersionError, match=r"99.*1"):
        appended(tmp_path)
    assert before == {
        one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and one.name != "lock"
    }
