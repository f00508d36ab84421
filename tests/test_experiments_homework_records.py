"""The homework's experiments on what a record carries and who may write: real files, read back, with their words."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from labkit import words
from labkit.experiments import homework
from labkit.experiments.homework import on_disk, privacy, rivals, writers
from labkit.experiments.homework.tables import Table


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch) -> Path:
    """The experiments leave their files in a state folder of the test's own."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state" / "22-homework"


def unknown_words(table: Table, names: tuple[str, ...] = ()) -> set[str]:
    """Rows and columns of a table that the catalogue does not have, but for those that are names."""
    used = {*table.rows, *(column for row in table.rows.values() for column in row)}
    return {word for word in used if f"homework.{word}" not in words.catalogue()} - {*names}


# --- What a record carries ---


def test_one_version_too_new_is_refused_like_a_hundred():
    """The reader's own version is read; the next one is refused by both numbers, and no byte has changed."""
    seen = asyncio.run(homework.other_versions(newer=2))
    refused = asyncio.run(homework.other_versions(newer=3))["newer"]

    assert (seen["newer"]["read-v"], seen["newer"]["read-amount"]) == (2, 30)
    assert (refused["stored-v"], refused["read-v"], refused["unchanged"]) == (3, "refused-word", True)
    assert "of version 3" in refused["said"]
    assert "versions up to 2" in refused["said"]
    assert unknown_words(seen) == set()


def test_what_is_too_big_leaves_nothing_and_its_reference_fits():
    """Over the limit nothing is stored, in the log or beside it; below it, no reference is needed."""
    seen = asyncio.run(homework.big_content(kilobytes=1100))
    small = asyncio.run(homework.big_content(kilobytes=1))["directly"]

    assert tuple(seen["directly"].values())[:4] == ("LimitError", 0, 0, 0)
    assert (seen["once-more"]["answer"], seen["once-more"]["blob-bytes"]) == (2, 1_100_000)
    assert (small["answer"], small["blob-files"]) == (1, 0)
    assert unknown_words(seen) == set()


def test_no_form_of_a_secret_is_on_disk_unless_it_was_kept():
    """Every byte is searched; what looks like any other word is found under each policy, and said to be."""
    seen = asyncio.run(homework.search_for_secrets(remark="芝麻开门"))

    assert seen.column("secrets-found") == [5, 1, 1]
    assert seen.column("stored") == [5, 5, 1]
    assert unknown_words(seen) == set()


@pytest.mark.parametrize("form", ["plain", "hex", "base64", "escaped", "name"])
def test_the_search_knows_a_secret_in_disguise(tmp_path, form):
    """As text, as hex, as base64, as JSON escapes it, and as a file's name."""
    secret = "sésame"
    raw = secret.encode()
    content = {"hex": raw.hex().encode(), "base64": base64.b64encode(raw), "escaped": b"s\\u00e9same"}
    name = secret if form == "name" else "log"
    (tmp_path / name).write_bytes(b"before " + content.get(form, raw if form == "plain" else b""))

    assert privacy._is_in(tmp_path, secret)
    assert not privacy._is_in(tmp_path, "another")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_no_umask_opens_a_session(state):
    """Under umask 0 an ordinary log is open to all; of a session, every kind of file is there and none is."""
    seen = homework.modes_under_umask(0)

    assert seen.ordinary.column("mode") == ["0777", "0666"]
    assert set(seen.private.column("others-read")) == {False}
    kinds = {*(path.suffix for path in (state / "modes" / "private").rglob("*")), *seen.private.rows}
    assert {".gz", ".index", ".jsonl", ".json", "build/lock", "build/blobs", "build/checkpoints"} <= kinds
    assert {"build/repairs.jsonl", "backup/manifest.json"} <= kinds
    assert list((state / "modes" / "private" / "build").glob("*.torn-*"))
    assert unknown_words(Table({"x": seen.private["build/lock"]}), ("x",)) == set()


def test_the_sequence_rises_while_the_clock_falls():
    """Only the last record's time is turned back, and afterwards this process has its clock again."""
    now = time.time_ns
    seen = asyncio.run(homework.clock_turned_back(hours=2))
    clock = [datetime.fromisoformat(str(one)) for one in seen.column("clock")]

    assert seen.column("sequence") == [1, 2, 3, 4]
    assert timedelta(hours=1, minutes=50) < clock[2] - clock[3] <= timedelta(hours=2)
    assert seen.column("caused-by") == ["–", "–", 2, 1]
    assert time.time_ns is now
    assert unknown_words(seen, tuple(seen.rows)) == set()


# --- Who may write ---


def test_two_sessions_share_a_root_and_no_lock(state):
    """Both are open and written at once; the same session has one writer, and what it wrote is all there is."""
    seen = homework.sessions_apart(events=5)

    assert [tuple(row.values()) for row in seen.rows.values()] == [
        ("opened", "opened", 10),
        ("opened", "LogLockedError", 5),
    ]
    assert {path.name for path in (state / "apart").iterdir()} == {"alpha", "beta", "common"}
    assert unknown_words(seen) == set()


@pytest.mark.skipif(os.name != "posix", reason="owners are POSIX")
def test_a_strange_id_makes_nothing_anywhere(state):
    """A path is refused before the disk is looked at, another's folder by its owner; neither leaves a file."""
    seen = homework.strange_ids()

    assert [row["answer"] for row in seen.rows.values()] == ["PlaceError", "PlaceError"]
    assert "belongs to user" in seen["strangers"]["said"]
    assert "x" not in {path.name for path in state.parent.iterdir()}
    assert unknown_words(seen, ("../../x",)) == set()


def test_the_folder_that_an_id_leads_to_is_watched(tmp_path):
    """A session that was made outside the root would be seen."""
    root = tmp_path / "a" / "b"
    root.mkdir(parents=True)
    before = writers._around(root, "../../x")
    (tmp_path / "x").mkdir()

    assert writers._around(root, "../../x") - before == {tmp_path / "x"}


def test_two_queues_take_one_number_and_a_lock_takes_turns(state):
    """The first numbers collide for certain; with a lock no line is spoiled, and both processes have written."""
    seen = homework.two_writers(events=5)
    (log,) = (state / "rivals" / "locked").glob("demo/0*.jsonl")
    pids = [json.loads(line)["data"]["pid"] for line in log.read_bytes().splitlines()]

    assert seen["no-lock"]["doubled"] >= 1
    assert tuple(seen["locked"].values()) == (10, 0, 0, 0, 0, "–")
    assert [pids.count(pid) for pid in sorted({*pids})] == [5, 5]
    assert unknown_words(seen) == set()


def test_a_line_is_judged_by_the_records_that_share_it():
    """Two on a line and a number given twice spoil all who are concerned; the others count."""
    one, two, three = (b'{"sequence":%d,"type":"t"}' % number for number in (1, 2, 3))
    log = b"\n".join([one, two + three, b"", two, b'{"sequence":4}', b""])

    assert rivals.judged(log, 5) == {
        "doubled": 1,
        "spliced": 1,
        "empty-lines": 1,
        "spoiled-percent": 60,
        "for-example": '…uence":2,"type":"t"}{"sequence":3,"type":"t"…',
    }


def test_a_lock_dies_with_its_writer_and_nothing_opens_without_one(state):
    """The one outside learns who is inside, gets in after SIGKILL, and goes on counting; no locks, no log."""
    seen = homework.one_writer(events=2)
    events = on_disk.records(state / "one-writer" / "demo")

    assert seen.column("answer") == ["opened", "LogLockedError", "opened", "LockingUnsupportedError"]
    assert f"process {events[0]['data']['pid']} on" in seen["beside-it"]["said"]
    assert [event["sequence"] for event in events] == [1, 2, 3]
    assert events[2]["data"]["pid"] not in {events[0]["data"]["pid"], os.getpid()}
    assert not list((state / "one-writer" / "elsewhere").glob("*.json*"))
    assert unknown_words(seen) == set()


def test_a_bound_keeps_the_queue_flat():
    """Without a bound everybody waits; with one, callers wait or are refused, and what was accepted is on the disk."""
    seen = asyncio.run(homework.queue_depths(appends=3000))
    last, after = seen.waiting["3,000"], seen.after

    assert last["unbounded"] >= 2999  # the first may be written on the spot
    assert last["refuses"] == 1000
    assert 1000 <= last["waits"] <= 2000
    assert after.column("on-disk")[:2] == [3000, 3000]
    assert after["refuses"]["on-disk"] == 3000 - after["refuses"]["refused-calls"] < 3000
    assert after["refuses"]["held-blocks"] < after["unbounded"]["held-blocks"] / 2
    assert seen._repr_html_().count("<polyline") == 3
    assert unknown_words(seen.waiting, tuple(seen.waiting.rows)) | unknown_words(after) == set()


def test_a_retry_pays_twice_unless_it_has_an_id(state):
    """The payment that failed is on disk; the same id finds it, after one restart and after two."""
    seen = asyncio.run(homework.retry_after_failure())
    (paid,) = on_disk.records(state / "retry" / "with-id")

    assert list(seen["without-id"].values())[:3] == ["LogClosedError", 1, 2]
    assert list(seen["with-id"].values())[:4] == ["LogClosedError", 1, 1, 1]
    assert seen.column("paid") == [160, 80]
    assert (paid["event_id"], paid["sequence"]) == ("payment-7", 1)
    assert "Input/output error" in seen["with-id"]["said"]
    assert unknown_words(seen) == set()


def test_old_knowledge_is_refused_and_writes_nothing(state):
    """Two decisions on one balance overdraw it; with an expected version the later one is told where the log is."""
    seen = asyncio.run(homework.two_decide_at_once())
    kept = on_disk.records(state / "versions-expected" / "with-version")

    assert [seen[name]["balance"] for name in ("no-version", "with-version")] == [-60, 20]
    assert [event["type"] for event in kept] == ["received", "paid"]
    assert "is at version 2, not 1" in seen["with-version"]["said"]
    assert unknown_words(seen) == set()


def test_an_id_for_each_attempt_is_no_id():
    """Named after the attempt instead of the payment, every retry pays again."""
    seen = asyncio.run(homework.retry_after_failure(ids=["try-1", "try-2", "try-3"]))

    assert list(seen["with-id"].values())[2:5] == [2, 3, 3]
