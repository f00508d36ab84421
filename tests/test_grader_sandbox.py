"""The box: what it limits, what it leaves behind, and how all boxes are ended at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from grader import rungs, sandbox, temporary, tree
from grader.channel import ChildLost
from grader.proxy import Children
from grader.settings import Limits
from grader.work_folder import OddFileError
from tests.piped import PLAIN_STORE, box_of, lab_of, on_pipe
from tests.test_grader_grade import findings_of, one_append

PLAIN = "class JsonlSessionStore(Plain): pass"
SPEAKS = """
async def scenario(lesson, folder, given):
    import os
    {deed}
"""


async def does(lab, deed):
    """Let the student's side do something between two looks of the grader."""
    await lab.scenario(SPEAKS.format(deed=deed))


# --- what the grader does below the student's folder ---


@pytest.fixture
def outside(tmp_path):
    """A folder of the grader's own, with a secret in it, that any user could pass through."""
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    (tmp_path / "events.jsonl").write_bytes(b"secret")
    return tmp_path


LOOKS = {
    "disk": lambda lab: lab.disk("deep/events.jsonl"),
    "plant": lambda lab: lab.plant("deep/events.jsonl", b"planted"),
    "mode": lambda lab: lab.mode("deep/events.jsonl"),
}


@pytest.mark.parametrize("turned", ["deep", "."])
@pytest.mark.parametrize("look", LOOKS)
def test_a_folder_that_became_a_link_leads_nowhere(outside, look, turned):
    """The student puts a link in a folder's place between two calls: nothing is read, written or owned behind it."""
    deed = f"""
    place = folder / {turned!r} if {turned!r} != "." else folder
    os.rename(place, str(place) + ".away")
    os.symlink({str(outside)!r}, place)
    """

    async def body(lab):
        lab.plant("deep/events.jsonl", b"")
        await does(lab, deed)
        LOOKS[look](lab)

    with pytest.raises(OddFileError):
        on_pipe(PLAIN, body)
    assert [(path.name, path.read_bytes(), path.stat().st_uid) for path in outside.iterdir()] == [
        ("events.jsonl", b"secret", os.geteuid())
    ]


def test_names_do_not_pass_a_link(outside):
    """A link is listed as what it is, not as what it leads to."""

    async def body(lab):
        await does(lab, f"os.symlink({str(outside)!r}, folder / 'link')")
        return lab.names()

    assert on_pipe(PLAIN, body) == ["link"]


def test_a_file_is_planted_in_place_of_a_link(outside):
    """What has the file's name is replaced, never written through."""

    async def body(lab):
        await does(lab, f"os.symlink({str(outside / 'events.jsonl')!r}, folder / 'events.jsonl')")
        lab.plant("events.jsonl", b"planted")
        return lab.disk()

    assert on_pipe(PLAIN, body) == b"planted"
    assert (outside / "events.jsonl").read_bytes() == b"secret"


def test_folders_without_an_end_are_refused_and_removed():
    """A tree deeper than any recursion is an odd thing to find, and goes with the box."""
    deed = """
    os.chdir(folder)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    """

    async def body(lab):
        await does(lab, deed)
        return lab.names()

    with box_of(PLAIN) as box:
        with pytest.raises(OddFileError):
            on_box(box, body)
        root = box.code.parent
    assert not root.exists()


def on_box(box, body):
    """Run `body` with a lab in an open box."""

    async def run():
        children = Children(box, "lesson_22")
        try:
            return await body(await lab_of(children))
        finally:
            children.close()

    return asyncio.run(run())


# --- how boxes end ---


def never_answers(started):
    """Wait for an answer that does not come, and say how that ended."""
    source = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        await asyncio.get_running_loop().create_future()
"""

    async def body(lab):
        handle = lab.store().append("a", 1)
        await lab.store("other").read()
        started.set()
        await handle

    with box_of(source, Limits(call_seconds=600)) as box:
        try:
            on_box(box, body)
        except ChildLost:
            box.check_running()


def test_all_boxes_are_ended_at_once():
    """Whoever waits for a child hears at once that the run was ended, and no box starts another."""
    ends, waiting, threads = [], [], []

    def run(started):
        try:
            never_answers(started)
        except sandbox.RunEnded as ended:
            ends.append(ended)

    for _ in range(2):
        waiting.append(threading.Event())
        threads.append(threading.Thread(target=run, args=(waiting[-1],), daemon=True))
        threads[-1].start()
    for started in waiting:
        assert started.wait(60)
    sandbox.end_all()
    for thread in threads:
        thread.join(60)
    assert len(ends) == 2


def test_an_ended_box_starts_nothing():
    """A start after the end, and a start that the end overtakes, leave no process."""
    with box_of(PLAIN) as box:
        box.end()
        with pytest.raises(sandbox.RunEnded):
            sandbox.start(box, "lesson_22", faults=False)
    with box_of(PLAIN) as box, pytest.MonkeyPatch.context() as patch:
        started = []
        keep = sandbox.Box.keep

        def overtaken(self, child):
            started.append(child)
            self.end()
            keep(self, child)

        patch.setattr(sandbox.Box, "keep", overtaken)
        with pytest.raises(sandbox.RunEnded):
            sandbox.start(box, "lesson_22", faults=False)
        assert started[0].process.wait() < 0


def test_what_a_killed_grader_left_is_swept():
    """Only the folders of a process that is gone are removed: not ours, not those of a name that is not the grader's."""
    code = "from grader import temporary; print(temporary.make(), flush=True); import os; os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip())
    (left / "work").mkdir()
    ours = temporary.make()
    other = Path(tempfile.mkdtemp(prefix="statelab-mine-"))
    try:
        assert sandbox.sweep() >= 1
        assert (left.exists(), ours.exists(), other.exists()) == (False, True, True)
    finally:
        temporary.remove(ours)
        temporary.remove(other)


def test_a_number_that_was_given_away_does_not_keep_a_folder():
    """A live process of the same number that started at another time is not the owner."""
    ours = temporary.make()
    name = ours.name.split("-")
    left = ours.rename(ours.with_name(f"statelab-{name[1]}-{int(name[2]) - 1}-{name[3]}"))
    assert left in temporary.left_behind()
    temporary.remove(left)


# --- how much it may hold ---

FILLS = """
    for number in range(64):
        with open(folder / str(number), "wb") as file:
            file.write(bytes(1 << 20))
"""


@pytest.mark.skipif(not sandbox.way_to_mount() and not os.environ.get("CI"), reason="no mounts here")
def test_a_work_folder_holds_no_more_than_its_size():
    """The system refuses what is too much, and the grader's own file finds no room: the student's doing."""

    async def body(lab):
        with pytest.raises(OSError, match="No space left"):
            await does(lab, FILLS)
        with pytest.raises(ChildLost) as lost:
            lab.plant("events.jsonl", bytes(1 << 20))
        return lost.value

    lost = on_pipe(PLAIN, body, limits=Limits(work_mib=8))
    assert lost.reason == "crash"
    assert "limit: 8 MiB" in lost.seen.en


@pytest.mark.skipif(
    not rungs.strongest_rung().isolated and not os.environ.get("CI"), reason="nothing isolates here"
)
@pytest.mark.parametrize(
    "rung", [rung for rung in rungs.rungs() if rung.isolated], ids=lambda rung: rung.name
)
def test_no_other_folder_of_a_box_can_take_the_memory_of_the_machine(rung, monkeypatch):
    """What a child may write beside its work folder, home and devices included, ends at a few files."""
    monkeypatch.setattr("grader.rungs.strongest_rung", lambda: rung)
    source = """
async def scenario(lesson, folder, given):
    import os, shutil
    places = [name for name, _, _ in os.walk("/") if os.access(name, os.W_OK) and not name.startswith("/proc")]
    written = 0
    for place in places:
        if place.startswith(str(folder.parent)):
            continue
        try:
            for number in range(8):
                with open(os.path.join(place, f"filler-{number}"), "wb") as file:
                    file.write(bytes(8 << 20))
                    written += 8
        except OSError:
            pass
    return written
"""

    async def body(lab):
        return await lab.scenario(source)

    assert on_pipe(PLAIN, body) < 64


def test_where_nothing_limits_the_folder_it_is_measured(monkeypatch):
    """Without a mount a child that writes too much is ended from outside, and nothing more of it is run."""
    monkeypatch.setattr("grader.sandbox.way_to_mount", lambda: None)
    fills = """
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        number = 0
        while True:
            number += 1
            with open(f"filler-{number % 400}", "wb") as file:
                file.write(bytes(1 << 20))
"""
    limits = Limits(work_mib=8, call_seconds=600, check_seconds=600, submission_seconds=600)
    found = findings_of([one_append, one_append], {"__init__.py": (PLAIN_STORE + fills).encode()}, limits)

    assert [finding.reason for finding in found] == ["crash", "crash"]
    assert "limit: 8 MiB" in found[0].message.en


@pytest.mark.skipif(not sandbox.way_to_mount() and not os.environ.get("CI"), reason="no mounts here")
def test_a_work_folder_of_its_own_size_is_in_no_list_of_mounts():
    """Nobody outside sees the mount, and it outlives neither its box nor, since no process holds it, its grader."""
    with box_of(PLAIN) as box:
        assert str(box.place.work) not in Path("/proc/self/mountinfo").read_text()
        tree.plant(box.work, "seen", b"")
        assert list(box.place.work.iterdir()) == []
        assert [path.name for path in box.work.iterdir()] == ["seen"]


def test_removing_a_folder_leaves_what_is_above_it(tmp_path, monkeypatch):
    """A folder that will not go, because something still writes there, costs the folder around it nothing."""
    tmp_path.chmod(0o755)
    box = tmp_path / "box"
    box.mkdir()
    monkeypatch.setattr(temporary, "_TRIES", 2)
    real = os.rmdir

    def refuses(path, *rest, **options):
        if str(path) in (str(box), box.name):
            raise OSError(39, "Directory not empty")
        real(path, *rest, **options)

    monkeypatch.setattr(os, "rmdir", refuses)
    temporary.remove(box)

    assert tmp_path.stat().st_mode & 0o777 == 0o755
