"""A writer that is killed, and a machine that loses power: what each level of durability keeps (E1, E11, E16)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.child_process import KIT, answer_of, run_child

PACKAGES = tuple(Path(path) for path in sys.path if path.endswith("site-packages"))
LEVELS = ["os", "fsync", "group"]
_LINUX = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="the model of the disk names descriptors by /proc"
)
_READ_BACK = """
import asyncio, os, random, signal
from solution.durable_log import *
from solution.durable_log import writer
SESSION, LIMITS = "build-7", Limits(segment_bytes=9000)

async def callers(log, told, run, turns):
    async def caller(name):
        for turn in range(turns):
            event = await log.append("t", {"run": run}, event_id=f"{run}-{name}-{turn}")
            told(event.sequence, event.event_id)
    await asyncio.gather(*(caller(name) for name in range(7)))

async def read_back(root, run):
    async with await DurableLog.open(SESSION, root=root, durability="os", limits=LIMITS) as log:
        mended = log.metrics.torn_recoveries
        before = {event.event_id: event.sequence for event in await log.read()}
        assert sorted(before.values()) == list(range(1, len(before) + 1)), "numbers are not contiguous"
        assert (await log.append("t", "next", event_id=f"next-{run}")).sequence == len(before) + 1
    async with await DurableLog.open(SESSION, root=root, durability="os", limits=LIMITS) as log:
        assert log.metrics.torn_recoveries == 0, "a torn tail survived an append"
        assert (await log.verify()).verdict == "sound"
        assert await log.version() == len(before) + 1
    return before, mended
"""
_KILLS = (
    _READ_BACK
    + """
def killed(run, draw):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        writer.BRIEF_SECONDS = draw.choice([0, 1])  # syncs in the thread, or on the spot
        async def main():
            log = await DurableLog.open(SESSION, root=folder, durability=LEVEL, limits=LIMITS)
            await callers(log, lambda *event: os.write(theirs, b"%d %b\\n" % (event[0], event[1].encode())), run, 10**6)
        try:
            asyncio.run(main())
        finally:
            os._exit(1)
    os.close(theirs)
    answers, enough = b"", draw.randrange(2500)
    while len(answers) < enough:
        answers += os.read(ours, 700) or b"the child ended by itself"
    os.kill(child, signal.SIGKILL)
    while piece := os.read(ours, 70000):
        answers += piece
    os.close(ours)
    os.waitpid(child, 0)
    return [line.split() for line in answers.decode().split("\\n")[:-1]]

told, mends = {}, 0
for run in range(COUNT):
    told |= {name: int(sequence) for sequence, name in killed(run, random.Random(f"{LEVEL}{run}"))}
    stored, mended = asyncio.run(read_back(folder, run))
    assert told.items() <= stored.items(), "an answered event is gone"
    mends += mended
answer([len(told), mends])
"""
)
_POWER = (
    _READ_BACK
    + """
from pathlib import Path
from tests.power_loss import Disk
writer.BRIEF_SECONDS = 1
root, told, left = folder / "root", [], []
root.mkdir(mode=0o700)
disk = Disk(root)
draw = random.Random(LEVEL)
def moment(_op):
    for arrived in (None, draw):
        target = folder / f"left-{len(left)}"
        disk.leave(target, arrived)
        left.append((target, len(told)))
disk.install()
async def main():
    disk.on_moment = moment
    for run in range(2):
        async with await DurableLog.open(SESSION, root=root, durability=LEVEL, limits=LIMITS) as log:
            await callers(log, lambda *event: told.append(event), run, TURNS)
asyncio.run(main())
disk.on_moment = lambda _op: None
lost = 0
for number, (target, count) in enumerate(left):
    stored, _mended = asyncio.run(read_back(target, number))
    missing = [name for sequence, name in told[:count] if stored.get(name) != sequence]
    assert LEVEL == "os" or not missing, f"lost {len(missing)} answered events"
    lost += bool(missing)
answer([len(left), lost])
"""
)


def _run(folder: Path, source: str, **constants: object) -> list[int]:
    assigned = "".join(f"{name} = {value!r}\n" for name, value in constants.items())
    return list(answer_of(run_child(assigned + source, folder, imports=(KIT, *PACKAGES))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="one process forks the writers that it kills")
@pytest.mark.parametrize("durability", LEVELS)
def test_a_writer_killed_at_random_moments(tmp_path: Path, durability: str) -> None:
    """Killed 20 times at random: every answered event is read back, numbers are contiguous, no torn tail stays."""
    told, _mends = _run(tmp_path, _KILLS, LEVEL=durability, COUNT=20)

    assert told > 100


@pytest.mark.proof
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("durability", LEVELS)
def test_a_writer_killed_at_200_random_moments(tmp_path: Path, durability: str, part: int) -> None:
    """Five times 40 kills at each level: as above."""
    told, _mends = _run(
        tmp_path, _KILLS.replace('random.Random(f"', f'random.Random(f"{part}-'), LEVEL=durability, COUNT=40
    )

    assert told > 200


@_LINUX
@pytest.mark.parametrize("durability", LEVELS)
def test_power_lost_at_every_operation(tmp_path: Path, durability: str) -> None:
    """Power goes before any operation, rotations included: `fsync` and `group` lose nothing answered, `os` may."""
    moments, lost = _run(tmp_path, _POWER, LEVEL=durability, TURNS=2)

    assert moments > 50
    assert (lost > 0) == (durability == "os")


@pytest.mark.proof
@_LINUX
@pytest.mark.parametrize("durability", LEVELS)
def test_power_lost_at_every_operation_of_more(tmp_path: Path, durability: str) -> None:
    """As above, over more events and several rotations."""
    moments, lost = _run(tmp_path, _POWER, LEVEL=durability, TURNS=8)

    assert moments > 100
    assert (lost > 0) == (durability == "os")
