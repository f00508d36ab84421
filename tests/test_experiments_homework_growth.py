"""The homework's experiments on logs that grow and on running them: real files and processes, read back from disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from labkit import words
from labkit.experiments import homework
from labkit.experiments.homework.curves import Curves
from labkit.experiments.homework.tables import Table


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch) -> Path:
    """The experiments leave their files in a state folder of the test's own."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state" / "22-homework"


def unknown_words(table: Table, *, rows_are_names: bool = False) -> set[str]:
    """Rows, columns and answers in words of a table that the catalogue does not have."""
    used = {column for row in table.rows.values() for column in row}
    used |= {
        cell
        for row in table.rows.values()
        for cell in row.values()
        if str(cell).endswith(("-word", "-state"))
    }
    if not rows_are_names:
        used |= set(table.rows)
    return {word for word in used if f"homework.{word}" not in words.catalogue()}


# --- When it grows ---


def test_reading_all_at_once_grows_with_the_log_and_streaming_does_not():
    """Past one piece of the file, four times the events need four times the memory at once, and no more as a stream."""
    seen = asyncio.run(homework.memory_of_reading(events=(2000, 8000)))
    small, large = seen.rows.values()

    assert large["file-kib"] > 3.9 * small["file-kib"]
    assert large["whole-kib"] > 2.5 * small["whole-kib"]
    assert large["streamed-kib"] < 1.2 * small["streamed-kib"]
    assert unknown_words(seen, rows_are_names=True) == set()


def test_pieces_of_any_size_give_the_same_and_a_cap_bounds_a_line():
    """A byte at a time: the same events at the same offsets. A line without end costs no more than its cap."""
    seen = asyncio.run(homework.in_small_pieces(events=5, endless=1 << 20))

    assert seen.column("events") == [5] * 4
    assert seen.column("offsets-exact") == [True] * 4
    assert (seen["no-cap"]["verdict"], seen["no-cap"]["most-kib"] > 1024) == ("torn-word", True)
    assert (seen["cap"]["verdict"], seen["cap"]["bad-line"]) == ("corrupt-word", 6)
    assert seen["cap"]["most-kib"] < 512
    assert unknown_words(seen) == set()


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_curves_are_named_and_keep_their_table(language, monkeypatch):
    """Each curve has its name in the learner's language, in the picture and as its label, and the figures stand below."""
    monkeypatch.setattr(words, "_chosen", [language])
    rows = {"100": {"whole-kib": 10, "streamed-kib": 10}, "10,000": {"whole-kib": 1000, "streamed-kib": 10}}
    html = Curves(rows, drawn=("whole-kib", "streamed-kib"))._repr_html_()
    picture, table = html.split("</svg>")

    assert picture.count("<polyline") == 2
    assert picture.count(words.t("homework.whole-kib")) == 3
    assert 'role="img"' in picture
    assert "1,000" in table


def test_a_read_beside_half_a_line_gives_a_prefix_or_waits():
    """Half a line is really on the disk: a stream gives what was before it, a read comes back with the whole event."""
    seen = asyncio.run(homework.read_beside_a_writer(events=3))

    assert (seen["stream"], seen["read"]) == ({"events": 3, "waited": False}, {"events": 4, "waited": True})
    assert seen["outside-now"]["events"] == 3
    assert seen["outside-now"]["torn-bytes"] > 100
    assert seen["outside-later"] == {"events": 4, "waited": False, "torn-bytes": 0}
    assert unknown_words(seen) == set()


def test_pieces_cut_by_size_cannot_be_read_one_by_one():
    """However the cut falls: the first piece may be whole, and none after it is a log of its own."""
    seen = asyncio.run(homework.split_a_log(events=9, size=1059))

    assert seen.column("starts-with-record") == [True, True, True]
    assert seen.column("verdict") == ["sound-word", "corrupt-word", "corrupt-word"]
    assert unknown_words(seen, rows_are_names=True) == set()


def test_a_rotation_killed_anywhere_is_the_old_one_or_the_new_one(state):
    """The manifest turns new at the rename, once; no event is lost, no number is left out, each process really died."""
    seen = asyncio.run(homework.crash_a_rotation(events=4))
    manifests = seen.column("manifest")
    turned = manifests.index("manifest-new")

    assert manifests == ["manifest-old"] * turned + ["manifest-new"] * (len(manifests) - turned)
    assert list(seen.rows)[turned - 1].endswith("replace manifest.json.tmp")
    assert set(seen.column("left-over")) == {0, 1}
    assert (set(seen.column("kept")), set(seen.column("next-number"))) == ({4}, {5})
    assert len([*state.glob("rotation/struck-*")]) == len(seen.rows)
    assert len([*state.glob("rotation/*/operations.json")]) == 1
    assert unknown_words(seen, rows_are_names=True) == set()


def test_a_record_is_dearer_to_reach_in_a_compressed_segment(state):
    """Less on disk, the same records, and more time for one; only the compressed form is left."""
    seen = asyncio.run(homework.seek_a_record(events=4000, records=5))

    assert seen.column("found") == [5, 5]
    assert seen["compressed"]["stored-kib"] < seen["plain"]["stored-kib"] / 3
    assert [path.name for path in state.glob(f"seek/demo/{1:020d}.jsonl*")] == [f"{1:020d}.jsonl.gz"]
    assert unknown_words(seen) == set()


def test_a_damaged_checkpoint_costs_time_or_everything():
    """With segments all is replayed; a removal behind it is refused; without segments it is an error and no state."""
    seen = asyncio.run(homework.damage_a_checkpoint(events=20))

    assert seen["segments-kept"] | {"begun-at": 0, "replayed": 25, "state": 25} == seen["segments-kept"]
    assert seen["removal-asked"] == {"answer": "refused-word", "closed-segments": 1}
    assert seen["checkpoint-sound"] | {"begun-at": 20, "replayed": 5, "state": 25} == seen["checkpoint-sound"]
    assert seen["segments-removed"] == {"answer": "lost-word", "closed-segments": 0}
    assert unknown_words(seen) == set()


def test_only_backups_of_a_living_session_verify():
    """A copy in the middle of a line is torn, one across a rotation contradicts itself; both backups are whole moments."""
    seen = asyncio.run(homework.copy_a_living_session(events=3))

    assert seen.column("verdict") == ["torn-word", "sound-word", "corrupt-word", "sound-word"]
    assert seen.column("kept") == [3, 3, "refused-word", 6]
    assert "the manifest says" in str(seen["by-hand-rotation"]["said"])
    assert unknown_words(seen) == set()


def test_a_restart_sends_nothing_again(state):
    """Two restarts at each length, and one mail; whoever acts while replaying sends one more each time."""
    seen = asyncio.run(homework.restart(events=(20, 200)))

    assert seen.column("mails") == [1, 1]
    assert seen.column("mails-naive") == [2, 3]
    assert seen.column("replayed") == [50, 50]
    assert (state / "restart/mails.txt").read_text("utf-8").count("\n") == 1
    assert unknown_words(seen, rows_are_names=True) == set()


# --- Running it ---


def test_a_projects_script_forges_an_approval_and_no_session_is_opened_there(state):
    """Both readers believe it, the chain included; a session inside a Git repository is refused, whichever came first."""
    seen = asyncio.run(homework.forge_an_approval())

    assert seen.column("events") == [3, 3, 0, 0, 0]
    assert seen.column("approved") == [True, True, False, False, False]
    assert seen.column("answer") == ["accepted"] * 2 + ["refused-word"] * 3
    assert (state / "workspace-log/project/.git/HEAD").is_file()
    assert not (state / "workspace-log/project/.agent/new").exists()
    assert unknown_words(seen) == set()


def test_each_trouble_shows_in_its_own_counter():
    """Slow, full, killed, damaged: one counter each; the alert named the line, and was not needed for the others."""
    seen = asyncio.run(homework.cause_trouble())

    assert seen.column("write-failures") == [0, 0, 2, 0, 0]
    assert seen.column("torn-recoveries") == [0, 0, 0, 1, 0]
    assert seen.column("corruptions") == [0, 0, 0, 0, 1]
    assert seen.column("alert-line") == ["–"] * 4 + [7]
    assert seen.column("appends") == [30, 30, 28, 30, 30]
    assert seen["slow"]["latency-ms"] > 250  # nine in ten of 30 callers, who wait for 10 ms each
    assert unknown_words(seen) == set()


def test_repair_copies_and_records_what_it_cuts_and_leaves_damage_alone(state):
    """The torn log has a copy, a record and a cut; beside the damaged one nothing is new, and no byte of it changed."""
    seen = asyncio.run(homework.repair_logs())
    torn, corrupt = seen.rows.values()
    copy = next(state.glob("repair/torn/demo/*.torn-*"))

    assert torn["new-files"] == f"{copy.name.lstrip('0')}, repairs.jsonl"
    assert copy.name.endswith(f".torn-{torn['cut-at']}")
    assert copy.stat().st_size == torn["cut-at"] + torn["cut-bytes"]
    assert (torn["copy-whole"], torn["audited"], torn["exit-code"]) == (True, True, 0)
    assert (corrupt["exit-code"], corrupt["new-files"], corrupt["unchanged"]) == (1, "–", True)
    assert unknown_words(seen) == set()


@pytest.mark.parametrize(
    ("damage", "place", "total"), [("torn", (4, 5), 10), ("corrupt", (1, 2), "no-state")]
)
def test_three_tools_give_one_report(damage, place, total):
    """Reader, inspector and repairer agree in every field; a damaged log has a place and no state."""
    seen = asyncio.run(homework.one_report(damage))
    reader, inspector, repairer, replay = seen.rows.values()

    assert reader == inspector == repairer
    assert len(reader) == 9
    assert (reader["events"], reader["bad-line"]) == place
    assert replay == {"sum": total}
    assert unknown_words(seen) == set()
