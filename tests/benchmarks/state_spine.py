"""What a round of lesson 04 costs over the programs that it has to start anyway."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from labkit.faults.round_sweep import fresh_copy
from tests.benchmarks.measure import Row, Spread, in_random_order
from tests.spine_lab import environment, template

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

_LOOK = ["git", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignored=matching"]
_HIDDEN = ["git", "ls-files", "-v", "-z"]
# What a fresh round starts, in its order: two looks, a look and a diff after the agent, three commands, a last glance.
BARE = [
    _LOOK, _HIDDEN, _LOOK, _HIDDEN, _LOOK, _HIDDEN,
    ["git", "diff", "--numstat", "--patch", "-z", "HEAD"],
    ["node", "--test", "--test-reporter=tap", "acceptance/punctuation-search.test.mjs"],
    ["npm", "test"],
    ["npm", "run", "check"],
    _LOOK,
]  # fmt: skip


def compare_round(folder: Path, rounds: int, draw: Random) -> Row:
    """Compare a whole round, claim to result, with its verification commands and Git calls run bare."""

    def whole() -> float:
        return _seconds(
            fresh_copy(template(quick=False), folder / "lab"), [[sys.executable, "tools/run_once.py"]]
        )

    def bare() -> float:
        lab = fresh_copy(template(quick=False), folder / "lab")
        source = lab / "src" / "search.mjs"
        source.write_bytes(source.read_bytes().replace(rb"/\s+/", rb"/[\s\p{P}]+/"))
        return _seconds(lab, BARE)

    ratios = [
        seconds["whole"] / seconds["bare"]
        for seconds in in_random_order({"whole": whole, "bare": bare}, rounds, draw)
    ]
    name, base = "a round of lesson 04, claim to result", "its three commands and Git calls run bare"
    return Row(name, base, "×", Spread.of(ratios), at_most=1.3)


def _seconds(lab: Path, commands: list[list[str]]) -> float:
    env = environment()
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=lab, env=env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
