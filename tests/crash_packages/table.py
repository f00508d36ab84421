"""What the crash lab finds in released packages, by the real command, as the tables of docs/crash-packages.md.

    .venv/bin/python -m tests.crash_packages.table      runs all of it and writes the page's tables anew (a minute or two)

The packages are installed in an environment of their own from requirements-crashlab.lock.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.peers import environment

KIT = Path(__file__).resolve().parents[2]
PAGE = KIT / "docs" / "crash-packages.md"
SCENARIOS = {
    "jsonlines": "jsonlines_writer.py",
    "atomicwrites": "atomicwrites_state.py",
    "cachelib": "cachelib_files.py",
    "diskcache": "diskcache_sqlite.py",
}
MODELS = ("kill", "ordered", "weak")
_BEGIN, _END = "<!-- packages: begin -->\n", "<!-- packages: end -->"


@dataclass(frozen=True)
class Row:
    """One package under one model: what `statelab crash explore --json` printed, and whether each find replays."""

    package: str
    model: str
    found: dict[str, Any]
    replayed: tuple[int, ...]


def words(package: str, model: str) -> list[str]:
    """Give the command for one row, as a person types it."""
    scenario = f"tests/crash_packages/{SCENARIOS[package]}"
    return [
        "crash",
        "explore",
        "--scenario",
        scenario,
        *f"--model {model} --events 10 --limit 2000 --seed 1 --json".split(),
    ]


def versions() -> dict[str, str]:
    """Read from the lock which release of each package is meant."""
    pins = re.findall(
        r"^([a-z]+)==(\S+)", (KIT / "requirements-crashlab.lock").read_text("utf-8"), re.MULTILINE
    )
    return {name: version for name, version in pins if name in SCENARIOS}


def rows(packages: Iterable[str] = SCENARIOS, models: Iterable[str] = MODELS) -> Iterator[Row]:
    """Explore each package under each model, and replay every counterexample. Raises: RuntimeError when none can be made."""
    site = next(environment("crashlab").parent.glob("lib/python*/site-packages"))
    with tempfile.TemporaryDirectory() as state:
        env = os.environ | {"PYTHONPATH": str(site), "LAB_STATE": state, "LAB_LANG": "en"}
        for package in packages:
            for model in models:
                found = json.loads(_statelab(words(package, model), env).stdout)
                ids = [broken["id"] for broken in found["broken"]]
                replayed = [_statelab(["crash", "replay", id_, "--json"], env).returncode for id_ in ids]
                yield Row(package, model, found, tuple(replayed))


def _statelab(arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    call = "from labkit.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", call, *arguments],
        cwd=KIT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def line(row: Row) -> str:
    """Give one row of the page's table."""
    found, name = row.found, f"{row.package} {versions()[row.package]}"
    kinds = [f"{', '.join(broken['breaks'])}: `{broken['id']}`" for broken in found["broken"]]
    unseen = [f"{unseen['what']}: {unseen['where']}" for unseen in found["unseen"]]
    if found["verdict"] == "not-seen":
        kinds = [f"not seen by the recorder ({unseen[0]})"]
    counts = f"{found['explored']:,} | {found['tried']:,} | {found['possible']:,}"
    return f"| {name} | `{row.model}` | {found['verdict']} | {counts} | {'<br>'.join(kinds) or 'nothing'} |\n"


def table_of_page() -> str:
    """Return the lines of the table as they stand in the page."""
    text = PAGE.read_text("utf-8")
    return text[text.index(_BEGIN) + len(_BEGIN) : text.index(_END)]


def main() -> None:
    """Write the page's table anew."""
    head = "| package | model | verdict | explored | tried | possible | what breaks |\n"
    told = head + "| --- | --- | --- | ---: | ---: | ---: | --- |\n"
    for row in rows():
        print(line(row), end="", flush=True)
        told += line(row)
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text[: text.index(_BEGIN) + len(_BEGIN)] + told + text[text.index(_END) :], "utf-8")


if __name__ == "__main__":
    main()
