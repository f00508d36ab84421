"""`statelab log`: verdicts and exit codes, nothing shown, nothing changed, no traceback."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solution.durable_log import CorruptLogError, DurableLog, Limits, Scan
from solution.durable_log.cli import main
from solution.durable_log.inspection import Entry, Show, inspect
from solution.durable_log.log_screen import Screen
from solution.durable_log.log_source import Source
from solution.durable_log.log_words import describe

ROOT = Path(__file__).resolve().parents[1]
ZOO = ROOT / "assets/corruption-zoo"
CANARY = "kanarienvogel"
FOREIGN_LINE = json.dumps(
    {"type": CANARY, "uuid": CANARY, CANARY: 1, "timestamp": CANARY, "message": {"content": CANARY}}
).encode()


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments], input=stdin, env={"LAB_LANG": "en"})


def session(root: Path, events: int = 4, limits: Limits = Limits()) -> Path:  # noqa: B008
    async def write() -> None:
        async with await DurableLog.open("demo", root=root, durability="os", limits=limits) as log:
            for number in range(events):
                await log.append("tool_result", {"text": CANARY, "number": number})

    root.mkdir(mode=0o700, exist_ok=True)
    asyncio.run(write())
    return root / "demo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return session(tmp_path / "root")


def segment(folder: Path) -> Path:
    return next(iter(sorted(folder.glob("0*.jsonl"))))


# --- Verdicts and exit codes ---


@pytest.mark.parametrize(
    ("name", "code"), [("sound.jsonl", 0), ("torn-record.jsonl", 0), ("gap.jsonl", 1), ("nope.jsonl", 2)]
)
@pytest.mark.parametrize("command", ["inspect", "verify", "stats"])
def test_the_exit_code_tells_sound_from_damaged_from_wrong_use(command, name, code):
    """0 for sound and torn, 1 for damage, 2 for a file that is not there."""
    assert run(command, ZOO / name).exit_code == code


def test_many_logs_are_judged_and_the_worst_decides(tmp_path):
    """Files, folders and a missing one at once: each has its line, and the exit code is the worst."""
    (tmp_path / "a.jsonl").write_bytes(FOREIGN_LINE + b"\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/b.jsonl").write_bytes(b"{\n")
    result = run("verify", tmp_path, tmp_path / "c.jsonl")

    assert result.exit_code == 2
    assert "a.jsonl: sound" in result.output
    assert "b.jsonl: corrupt" in result.output
    assert "c.jsonl: no such file" in result.output


def test_a_fault_is_printed_as_path_line_offset():
    """Without a terminal each finding is one line that an editor can jump to."""
    result = run("verify", ZOO / "bad-line-three.jsonl")

    assert f"{ZOO / 'bad-line-three.jsonl'}:3:182: corrupt: not valid JSON" in result.output.splitlines()


def test_json_is_the_read_report_with_findings():
    """One report a line: the fields of E10, the format, and every finding with its place."""
    result = run("inspect", ZOO / "torn-record.jsonl", ZOO / "gap.jsonl", "--json")
    torn, gap = (json.loads(line) for line in result.output.splitlines())

    assert (torn["verdict"], torn["events"], torn["torn_bytes"]) == ("torn", 1, 5)
    assert (torn["line"], torn["offset"], torn["reason"]) == (
        2,
        94,
        "torn tail: the last 5 bytes are an unfinished record",
    )
    assert torn["findings"][0] | {"other": 0, "due": 0} == {
        "kind": "torn-tail",
        "line": 2,
        "offset": 94,
        "length": 5,
        "lines": 1,
        "detail": "",
        "other": 0,
        "due": 0,
    }
    assert (gap["schema"], gap["verdict"], gap["line"], gap["format"]) == (1, "corrupt", 2, "lesson")
    assert gap["findings"][0]["due"] == 2


def test_the_same_words_in_chinese():
    """A learner reads the findings in Chinese, too."""
    result = run("verify", "--lang", "zh", ZOO / "nul-tail.jsonl")

    assert "尾部撕裂" in result.output
    assert "NUL" in result.output


def test_a_language_that_is_none_is_wrong_use():
    """An unknown language on the command line is refused; one of the system's falls to English."""
    assert run("verify", "--lang", "fr", ZOO / "sound.jsonl").exit_code == 2
    assert (
        CliRunner().invoke(main, ["verify", str(ZOO / "sound.jsonl")], env={"LAB_LANG": "fr_FR"}).exit_code
        == 0
    )


def test_standard_input_is_a_log():
    """`-` reads what is piped in."""
    result = run("inspect", "-", stdin=(ZOO / "sound.jsonl").read_bytes())

    assert result.exit_code == 0
    assert result.output.startswith("-: sound (lesson, 3 records")


def test_inspect_shows_a_window_of_records():
    """--from and --limit choose lines; number and type are shown, the content is counted."""
    result = run("inspect", ZOO / "sound.jsonl", "--from", 2, "--limit", 1)

    assert result.output.splitlines()[1:] == ["2\t2\ttodo_started\t-\tobject of 2, 87 B"]


# --- Our own format ---


def test_a_session_is_verified_with_all_its_segments(tmp_path):
    """A folder with a manifest is one log: every segment, chained."""
    folder = session(tmp_path / "root", 40, Limits(segment_bytes=4096, record_bytes=2048))
    result = run("verify", folder, "--json")

    assert len(list(folder.glob("0*.jsonl*"))) > 1
    assert json.loads(result.output)["events"] == 40
    assert result.exit_code == 0


def test_a_cut_end_is_seen_through_the_manifest(folder):
    """Whole records missing at the end leave a sound chain; the manifest knows how far it reached."""
    lines = segment(folder).read_bytes().splitlines(keepends=True)
    segment(folder).write_bytes(b"".join(lines[:-1]))

    assert run("verify", segment(folder)).exit_code == 0
    assert run("verify", folder).exit_code == 1


def test_a_changed_digit_breaks_the_chain(folder):
    """The line still parses; its hash does not fit any more."""
    raw = segment(folder).read_bytes().replace(b'"number":2', b'"number":7')
    segment(folder).write_bytes(raw)
    report = json.loads(run("verify", folder, "--json").output)

    assert (report["verdict"], report["line"], report["events"]) == ("corrupt", 3, 2)
    assert "hash" in report["reason"]


def test_a_bad_line_of_a_session_is_explained(folder):
    """What a crash left inside a session is told like anywhere: kind, line, offset."""
    lines = segment(folder).read_bytes().splitlines(keepends=True)
    segment(folder).write_bytes(b"".join([lines[0], lines[1][:99], *lines[2:]]))
    report = json.loads(run("verify", folder, "--json").output)

    assert [(one["kind"], one["line"]) for one in report["findings"]] == [("fragment-and-record", 2)]
    assert (report["verdict"], report["events"]) == ("corrupt", 1)


@pytest.mark.parametrize("damage", ["sound", "torn", "not-ended", "corrupt"])
def test_every_tool_gives_the_one_read_report(folder, damage):
    """Reader, session verifier, inspector and repairer agree in each of the report's fields (E10, C22-53)."""
    raw = segment(folder).read_bytes()
    changed = {
        "torn": raw + raw[:9],
        "not-ended": raw[:-1],
        "corrupt": raw.replace(b'"number":2', b'"number":7'),
    }
    segment(folder).write_bytes(changed.get(damage, raw))
    scan = Scan(segment(folder))
    with contextlib.suppress(CorruptLogError):
        list(scan)
    expected = json.loads(msgspec.json.encode(scan.report))

    told = [json.loads(run(tool, folder, "--json").output) for tool in ("inspect", "verify")]
    told.append(json.loads(run("inspect", segment(folder), "--json").output))
    repairer = json.loads(run("repair", folder, "--json").output)
    told.append(repairer.get("report", repairer))

    assert [{name: report[name] for name in expected} for report in told] == [expected] * 4
    assert (expected["line"] is None) == (damage in ("sound", "not-ended"))


@pytest.mark.parametrize("packed", [False, True])
def test_a_segment_alone_is_judged_too(folder, tmp_path, packed):
    """One file of ours, plain or compressed, is known by its records and its chain is proved."""
    lone = tmp_path / ("lone.jsonl.gz" if packed else "lone.jsonl")
    rest = b"".join(segment(folder).read_bytes().splitlines(keepends=True)[1:])
    lone.write_bytes(gzip.compress(rest) if packed else rest)
    report = json.loads(run("inspect", lone, "--json").output)

    assert (report["format"], report["verdict"], report["last_sequence"]) == ("durable", "sound", 4)


@pytest.mark.parametrize("ours", [False, True])
def test_a_compressed_file_that_breaks_off_is_damaged(tmp_path, ours):
    """Half a gzip file is no torn tail: what was closed was whole."""
    foreign = b"".join(b'{"type":"user","n":%d}\n' % number for number in range(9999))
    packed = gzip.compress(segment(session(tmp_path / "root", 99)).read_bytes() if ours else foreign)
    (tmp_path / "a.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    result = run("verify", tmp_path / "a.jsonl.gz", "--json")

    assert "gzip" in json.loads(result.output)["counts"]
    assert result.exit_code == 1


def test_a_file_that_grows_meanwhile_is_read_to_where_it_ended(tmp_path):
    """What is appended while it is read is not half read: the report says that it grew."""
    log = tmp_path / "a.jsonl"
    log.write_bytes((FOREIGN_LINE + b"\n") * 3)
    with Source.open(str(log)) as source:
        with log.open("ab") as more:
            more.write(FOREIGN_LINE[:20])
        report = inspect(source)

    assert (report.verdict, report.records, report.counts.get("growing")) == ("sound", 3, 1)


# --- Repair ---


def test_repair_says_first_what_it_would_do(tmp_path):
    """Without --yes nothing is written."""
    log = tmp_path / "a.jsonl"
    log.write_bytes(FOREIGN_LINE + b"\n" + FOREIGN_LINE[:9])
    result = run("repair", log)

    assert (result.exit_code, list(tmp_path.iterdir())) == (0, [log])
    assert f"cut 9 bytes at offset {len(FOREIGN_LINE) + 1}" in result.output


def test_repair_copies_aside_then_cuts_and_never_writes_over_a_copy(tmp_path):
    """Twice in one second: two copies of the originals, two audit records, one good line."""
    log = tmp_path / "a.jsonl"
    for torn in (b'{"ty', b"\0\0"):
        log.write_bytes(FOREIGN_LINE + b"\n" + torn)
        assert run("repair", log, "--yes").exit_code == 0
        assert log.read_bytes() == FOREIGN_LINE + b"\n"

    copies = {path.read_bytes() for path in tmp_path.glob("a.jsonl.torn-*")}
    assert copies == {FOREIGN_LINE + b"\n" + torn for torn in (b'{"ty', b"\0\0")}
    assert len((tmp_path / "repairs.jsonl").read_bytes().splitlines()) == 2


def test_an_offset_must_be_the_one_that_was_found(tmp_path):
    """--at is a promise: any other number cuts nothing."""
    log = tmp_path / "a.jsonl"
    log.write_bytes(FOREIGN_LINE + b"\n{")
    wrong, right = (
        run("repair", log, "--at", 5, "--yes"),
        run("repair", log, "--at", len(FOREIGN_LINE) + 1, "--yes"),
    )

    assert (wrong.exit_code, right.exit_code) == (2, 0)


@pytest.mark.parametrize("raw", [b"{\n" + FOREIGN_LINE + b"\n", b"\0" * 99, FOREIGN_LINE + b"\n5"])
def test_damage_that_is_no_torn_tail_is_never_cut(tmp_path, raw):
    """A bad middle, a file of NULs, a whole value at the end: refused, and not a byte changes."""
    log = tmp_path / "a.jsonl"
    log.write_bytes(raw)

    assert run("repair", log, "--yes").exit_code == 1
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [raw]


@pytest.mark.parametrize("place", ["link", "segment"])
def test_a_link_or_a_piece_of_a_session_is_not_repaired_by_itself(folder, tmp_path, place):
    """The file that a link leads to, and the session that a segment is in, have to be named."""
    with segment(folder).open("ab") as log:
        log.write(b"{")
    (tmp_path / "foreign.jsonl").write_bytes(FOREIGN_LINE + b"\n{")
    (tmp_path / "link").symlink_to(tmp_path / "foreign.jsonl")
    result = run("repair", tmp_path / "link" if place == "link" else segment(folder), "--yes")

    assert result.exit_code == 2
    assert (tmp_path / "foreign.jsonl").read_bytes().endswith(b"\n{")
    assert segment(folder).read_bytes().endswith(b"\n{")


def test_a_session_is_repaired_under_its_lock(folder):
    """A torn session is mended; while a writer has it, nobody else touches it."""
    with segment(folder).open("ab") as log:
        log.write(b'{"v":1,"session":"de')

    async def while_open() -> Result:
        async with await DurableLog.open("other", root=folder.parent, durability="os"):
            return await asyncio.to_thread(run, "repair", folder, "--yes")

    assert asyncio.run(while_open()).exit_code == 0
    assert run("verify", folder).output.startswith(f"{folder}: sound")

    async def locked() -> Result:
        async with await DurableLog.open("demo", root=folder.parent, durability="os"):
            with segment(folder).open("ab") as log:
                log.write(b"{")
            return await asyncio.to_thread(run, "repair", folder, "--yes")

    assert asyncio.run(locked()).exit_code == 2


# --- Statistics ---


def test_stats_count_types_sizes_and_time(tmp_path):
    """Counts by type, the longest line and the time covered; a type that may be somebody's text is not shown."""
    log = tmp_path / "a.jsonl"
    times = ["2026-11-30T16:00:00Z", "2026-11-30T16:00:10Z", 1796054420]
    log.write_bytes(
        b"".join(
            json.dumps({"type": type_, "uuid": str(at), "timestamp": at}).encode() + b"\n"
            for type_, at in zip(["user", "user", CANARY], times, strict=True)
        )
    )
    numbers = json.loads(run("stats", log, "--json").output)

    assert numbers["types"] == {"user": 2, "": 1}
    assert (numbers["records"], numbers["longest"]["line"]) == (3, 1)
    assert numbers["first_at"] == "2026-11-30T16:00:00Z"
    assert CANARY not in json.dumps(numbers)


# --- Nothing is shown, nothing is changed, nothing is a traceback ---


def every_command(path: Path) -> str:
    """Run each command that reads; check that it ended by itself, and give all that it printed."""
    printed = ""
    for arguments in (
        ("inspect", "--limit", 999),
        ("inspect", "--json"),
        ("verify", "--lang", "zh"),
        ("stats",),
        ("repair",),
        ("tail", "-n", 99),
    ):
        result = run(*arguments, path)
        assert result.exit_code in (0, 1, 2), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        printed += result.output
    return printed


def damaged(raw: bytes, draw: random.Random) -> bytes:
    """Damage a log as crashes, races and bad disks do: cut, flip, glue, splice, fill with NULs."""
    changed = bytearray(raw)
    for _ in range(draw.randrange(1, 4)):
        at, to = sorted((draw.randrange(len(changed) + 1), draw.randrange(len(changed) + 1)))
        match draw.randrange(7):
            case 0:
                del changed[at:]
            case 1:
                del changed[at:to]
            case 2:
                changed[at:at] = changed[at:to]
            case 3:
                changed[at:to] = bytes(to - at)
            case 4 if changed:
                changed[at % len(changed)] ^= 1 << draw.randrange(8)
            case 5:
                changed[at:at] = draw.choice(
                    [b"\n", b"\xff", b"\xef\xbb\xbf", b"{", b'"', b"\\", b"NaN", b"\r\n"]
                )
            case _:
                changed = bytearray(bytes(changed).replace(b"\n", b"", 1))
    return bytes(changed)


def test_no_command_shows_content_changes_a_file_or_dies(tmp_path):
    """Damaged logs of every format: each command answers, a planted word stays inside, and the file stays as it was."""
    draw = random.Random(22)
    folder = session(tmp_path / "root", 3)
    kinds = (
        segment(folder).read_bytes(),
        (FOREIGN_LINE + b"\n") * 3,
        b"".join(b'{"sequence":%d,"type":"t","data":"%b"}\n' % (n, CANARY.encode()) for n in (1, 2, 3)),
    )
    log = tmp_path / "log.jsonl"
    for number in range(60):
        raw = damaged(kinds[number % 3], draw)
        log.write_bytes(raw)

        assert CANARY not in every_command(log), raw
        assert log.read_bytes() == raw
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "root"]


def every_answer(raw: bytes) -> str:
    """Give all that inspecting these bytes could print, without a process or a file around it."""
    seen: list[Entry] = []
    source = Source("log.jsonl", io.BytesIO(raw), None, compressed=False)
    report = inspect(source, show=Show(seen.append))
    screen = Screen("en")
    rows = ["\t".join(screen.row(entry)) for entry in seen]
    words = [describe(found, language) for found in report.findings for language in ("zh", "en")]
    return "\n".join([msgspec.json.encode(report).decode(), *rows, *words])


@pytest.mark.parametrize("inputs", [3_000, pytest.param(1_000_000, marks=pytest.mark.proof)])
def test_no_damage_brings_content_to_light(inputs, tmp_path):
    """Thousands of damaged logs, a million in the proof: each gets its report, and none tells the planted word."""
    draw = random.Random(5)
    kinds = (
        segment(session(tmp_path / "root", 2)).read_bytes(),
        (FOREIGN_LINE + b"\n") * 2,
        (FOREIGN_LINE.replace(b'"type"', b'"n":[1,2],"type"') + b"\n") * 3,
        b"".join(b'{"sequence":%d,"type":"t","data":"%b"}\n' % (n, CANARY.encode()) for n in (1, 2, 3)),
    )
    for number in range(inputs):
        raw = damaged(kinds[number % len(kinds)], draw)

        assert CANARY not in every_answer(raw), raw


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_a_log_or_a_clean_error(tmp_path, raw):
    """Bytes of no kind at all: a report or an error, never a traceback."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(raw)
    every_command(log)

    assert log.read_bytes() == raw


@pytest.mark.parametrize(
    "place", ["missing.jsonl", "pipe", "/dev/null", "empty-folder", "secret.jsonl", "bad\x1bname"]
)
def test_what_is_no_log_is_a_clean_error(tmp_path, place):
    """Missing, a pipe, a device, a folder without logs, unreadable, a name that steers terminals: one line, code 2."""
    if place == "secret.jsonl" and os.geteuid() == 0:
        place = "missing-too"  # root reads everything
    path = tmp_path / place
    match place:
        case "pipe":
            os.mkfifo(path)
        case "empty-folder":
            path.mkdir()
        case "secret.jsonl":
            path.touch(mode=0)
    for command in ("inspect", "verify", "stats", "repair", "tail"):
        result = run(command, path)

        assert result.exit_code == 2
        assert "Traceback" not in result.output
        assert "\x1b" not in result.output


# --- Real processes: pipes and signals ---

COMMAND = [sys.executable, "-c", "from solution.durable_log.cli import main; main()"]


def test_nobody_reading_on_is_no_error(tmp_path):
    """`inspect | head`: no word on standard error."""
    log = tmp_path / "a.jsonl"
    log.write_bytes(b"".join(b'{"type":"user","n":%d}\n' % number for number in range(20_000)))
    command = [*COMMAND, "inspect", "--limit", "20000", log]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        started.stdout.readline()
        started.stdout.close()
        said = started.stderr.read()

    assert (said, started.returncode) == (b"", 141)


def test_tail_follows_growth_replacement_and_ends_on_ctrl_c(tmp_path):
    """Half a record waits for its other half; a new file under the name is read from its start; Ctrl-C ends with 130."""
    log = tmp_path / "a.jsonl"
    log.write_bytes(b'{"type":"user","n":1}\n{"type":"assis')
    command = [*COMMAND, "tail", "-f", "--lang", "en", log]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.readline().startswith(b"@0\t-\tuser")
        with log.open("ab") as more:
            more.write(b'tant","n":2}\nno record\n')
        assert started.stdout.readline().startswith(b"@22\t-\tassistant")
        fresh = tmp_path / "fresh"
        fresh.write_bytes(b'{"type":"summary","n":3}\n')
        fresh.replace(log)
        assert started.stdout.readline().startswith(b"@0\t-\tsummary")
        started.send_signal(signal.SIGINT)
        said = started.stderr.read()

    assert started.returncode == 130
    assert said.decode().splitlines() == [f"{log}: the file was replaced; reading the new one"]


def test_tail_of_a_long_file_begins_near_its_end(tmp_path):
    """A file of many megabytes is not read from its start to show its last records."""
    log = tmp_path / "a.jsonl"
    line = b'{"type":"user","text":"%b"}\n' % (b"x" * 1_000_000)
    log.write_bytes(b"no record\n" + line * 20)
    rows = run("tail", "-n", 999, log).output.splitlines()

    assert 1 < len(rows) < 10
    assert rows[-1].split("\t")[0] == f"@{log.stat().st_size - len(line)}"


def test_tail_goes_over_to_the_next_segment(tmp_path):
    """A session that rotates is followed into its new segment."""
    small = Limits(segment_bytes=4096, record_bytes=2048)
    folder = session(tmp_path / "root", 2, small)
    command = [*COMMAND, "tail", "-f", "-n", "1", folder]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout.readline().split(b"\t")[1] == b"2"
        session(tmp_path / "root", 38, small)
        numbers = [int(started.stdout.readline().split(b"\t")[1]) for _ in range(38)]
        started.send_signal(signal.SIGINT)

    assert numbers == list(range(3, 41))
