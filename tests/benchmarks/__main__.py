"""The benchmarks' command: measures, shows the table, writes it into docs/performance.md."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click
from rich.console import Console

from tests.benchmarks import (
    class_run,
    commands,
    crash_explored,
    crash_states,
    durable_log,
    durable_peers,
    event_log,
    state_spine,
    trivial_assignment,
)
from tests.benchmarks.page import table, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.measure import Row

PAGE = commands.KIT / "docs/performance.md"


@click.command(epilog="Example: python -m tests.benchmarks --quick")
@click.option(
    "--quick", is_flag=True, help="A tenth of the events and three rounds; the page is not written."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of a table.")
@click.option(
    "--seed", type=int, default=22, show_default=True, help="Draws the data and the order of each round."
)
def main(*, quick: bool, as_json: bool, seed: int) -> None:
    """Measure the kit's speed as ratios within one run, and write the table into docs/performance.md.

    Exits 1 when a target that gates is missed. Close other programs first: the range shows how quiet the machine was.
    """
    events, rounds = (10_000, 3) if quick else (100_000, 7)
    rows = []
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        for title, row in measure(Path(folder), events, rounds, Random(seed)):
            status.update(f"{title} …")
            if row:
                rows.append(row)
    text = table(rows, events, rounds)
    if as_json:
        print(json.dumps([row.plain() for row in rows], ensure_ascii=False))
    else:
        print(text)
    if not quick:
        write_table(PAGE, text)
        console.print(f"{PAGE.relative_to(commands.KIT)}: table written")
    sys.exit(any(row.missed for row in rows))


def measure(folder: Path, events: int, rounds: int, draw: Random) -> Iterator[tuple[str, Row | None]]:
    """Run every benchmark; yield each step's title before it begins, then its rows."""
    data = event_log.make_data(events, draw)
    quick = rounds < 7
    sizes = [1_000, events, events * 10]
    yield "append", None
    yield from (("append", row) for row in event_log.compare_appends(folder, data, rounds, draw))
    yield "read", None
    yield from (("read", row) for row in event_log.compare_reads(folder, data, rounds, draw))
    yield f"append to {sizes[-1]:,} events", None
    yield from (("sizes", row) for row in event_log.compare_sizes(folder, data, sizes, rounds + 2, draw))
    yield from durable_log.measure(folder, data, rounds, draw, quick=quick)
    yield from durable_peers.measure(folder, data, rounds, draw)
    yield "a round of lesson 04", None
    yield "round", state_spine.compare_round(folder, rounds, draw)
    yield "crash states", None
    yield from (("crash states", row) for row in crash_states.measure(rounds, draw))
    yield "crashes explored", None
    yield from (("explored", row) for row in crash_explored.measure(folder, min(rounds, 3)))
    yield "statelab verify", None
    yield "verify", commands.time_verify(min(rounds, 3))
    yield "a class of submissions", None
    yield from (("class", row) for row in class_run.measure(folder / "class", draw, quick=quick))
    yield "a trivial assignment, four graders", None
    yield from (
        ("graders", row)
        for row in trivial_assignment.compare_graders(folder / "graders", min(rounds, 3), draw)
    )
    yield from (("browser", commands.in_the_browser(*figure)) for figure in commands.BROWSER_FIGURES)


if __name__ == "__main__":
    main()
