"""`statelab crash`: what a crash can leave of a store's files, and what of that it does not survive.

Exit codes: 0 nothing promised is broken   1 something promised is broken   2 wrong use, or code that is not written yet
3 no verdict: the recorder could not see everything, or the search ended early   130 interrupted
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from labkit import words
from labkit.faults.crash import counterexample, recorder, trace_file
from labkit.faults.crash.counterexample import Counterexample
from labkit.faults.crash.explorer import MODELS, MOST_LOST, Exploration, explore, replay
from labkit.faults.crash.explorer import Progress as Explored
from labkit.faults.crash.failing import Fault
from labkit.faults.crash.recovery import CrashLabError
from labkit.faults.crash.scenarios import STORES
from labkit.faults.crash.switches import Switches
from labkit.faults.crash.trace import Trace, Unseen
from labkit.views.crash_timeline import as_text, broken_line, timeline, what_is_left_as_text

BROKEN, USAGE, NO_VERDICT, INTERRUPTED = 1, 2, 3, 130
_EXIT_CODES = {"kept": 0, "broken": BROKEN, "not-seen": NO_VERDICT}

_MOST_IN_A_BAR = 1_000_000

_store = click.option("--store", type=click.Choice(STORES), help="A store that the crash lab knows.")
_scenario = click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    help="A store of your own: a file with PROMISES, work and recover (docs/crash-lab.md).",
)
_events = click.option(
    "--events",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="How many events the store is given.",
)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (schema 1).")


def _speak(_context: click.Context, _option: click.Parameter, chosen: str | None) -> None:
    if chosen:
        words.use(chosen)


_language = click.option(
    "--lang",
    type=click.Choice(words.LANGUAGES),
    help="Language (default: LAB_LANG, else the system's).",
    expose_value=False,
    callback=_speak,
)


class Plain(click.Group):
    """A group that says what went wrong in one line, and ends as tools do when interrupted."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (CrashLabError, recorder.RecordError, trace_file.TraceFileError) as error:
            click.secho(str(error), fg="red", err=True)
            ctx.exit(USAGE)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


@click.group(cls=Plain, epilog="Example: statelab crash explore --store naive --model kill")
def main() -> None:
    """Find every state that a crash can leave, and what a store does not survive.

    Stores, models, and how to write a scenario of your own: docs/crash-lab.md.
    """


@main.command(epilog="Example: statelab crash record my_writer.py --root data --out writer.trace.jsonl")
@click.argument("program", type=click.Path(path_type=Path))
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder that is watched; the program runs in it.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Where the trace is written.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=recorder.SECONDS,
    show_default=True,
    help="How long the program may run.",
)
def record(*, program: Path, root: Path, out: Path, seconds: float) -> None:
    """Run a Python program, and write down what it does to the disk.

    Each line that it prints is taken as said to be done: from then on, a crash must not lose it.
    """
    trace = recorder.record(program, root, seconds=seconds)
    try:
        trace_file.save(trace, out)
    except OSError as error:
        raise CrashLabError(f"{out}: {error.strerror}; choose a place that can be written") from None
    click.echo(f"{out}: {len(trace.steps)} steps, {len(trace.acknowledged)} acknowledged")
    for line in unseen_lines(trace.unseen):
        click.secho(line, fg="yellow", err=True)
    sys.exit(NO_VERDICT if trace.unseen else 0)


@main.command(
    "explore",
    epilog="Example: statelab crash explore --store durable-fsync --model weak --events 10 --seed 1 --json",
)
@_store
@_scenario
@click.option(
    "--model",
    type=click.Choice(MODELS),
    default="kill",
    show_default=True,
    help="What a crash keeps: kill (the process dies), ordered, weak (what is not synced may be lost); fail (the disk says no).",
)
@_events
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Decides which states are tried where they are too many.",
)
@click.option("--limit", type=click.IntRange(1), help="How many states to try at most.")
@click.option(
    "--trace", "recorded", type=click.Path(path_type=Path), help="A recording that is there already."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="How long one recovery may take.",
)
@click.option("--no-fsync", is_flag=True, help="Take every sync of a file out of the recording.")
@click.option("--no-folder-sync", is_flag=True, help="Take every sync of a folder out.")
@click.option("--no-atomic-replace", is_flag=True, help="Write files in place instead of replacing them.")
@_language
@_json
def explore_(
    *,
    store: str | None,
    scenario: Path | None,
    model: str,
    events: int,
    seed: int,
    limit: int | None,
    recorded: Path | None,
    seconds: float,
    no_fsync: bool,
    no_folder_sync: bool,
    no_atomic_replace: bool,
    as_json: bool,
) -> None:
    """Record a store at work, recover from every state that a crash can leave, and list the promises that break."""
    if (store is None) == (scenario is None):
        raise click.UsageError(f"name one store, --store ({', '.join(STORES)}), or one --scenario FILE.py")
    with _progress() as tell:
        found = explore(
            store or scenario or "",
            model,
            events=events,
            seed=seed,
            limit=limit,
            switches=Switches(not no_fsync, not no_folder_sync, not no_atomic_replace),
            trace=_load(recorded) if recorded else None,
            seconds=seconds,
            on_progress=tell,
        )
    click.echo(json.dumps(as_object(found), ensure_ascii=False)) if as_json else _tell(found)
    sys.exit(INTERRUPTED if found.stopped == "interrupted" else _EXIT_CODES[found.verdict])


@main.command("replay", epilog="Example: statelab crash replay naive-kill-b12b1986")
@click.argument("name", metavar="[ID]", required=False)
@click.option("--no-run", is_flag=True, help="Draw what was found; run nothing.")
@_language
@_json
def replay_(*, name: str | None, no_run: bool, as_json: bool) -> None:
    """Recover once more from a state that broke a promise, and draw how it came to be.

    Without an ID: list those that were found. Exit 1 when it fails again, 0 when it does not.
    """
    if name is None:
        for known in counterexample.known():
            click.echo(known)
        return
    found = counterexample.load(name)
    broken, report = (found.broken, found.report) if no_run else replay(found)
    if as_json:
        click.echo(json.dumps(_replayed(found, broken, report), ensure_ascii=False))
    else:
        _draw(found, broken, report)
    sys.exit(BROKEN if broken else 0)


# --- What is printed ---


def as_object(found: Exploration) -> dict[str, Any]:
    """Return an exploration as JSON, schema 1 (docs/crash-lab.md)."""
    return {
        "schema": 1,
        "store": found.store,
        "model": found.model,
        "events": found.events,
        "seed": found.seed,
        "switches": asdict(found.switches),
        "steps": found.steps,
        "explored": found.explored,
        "tried": found.tried,
        "possible": found.possible,
        "complete": found.complete,
        "broken": [
            {"id": one.id, "breaks": list(one.broken), "promised": one.promised, "states": count}
            for one, count in zip(found.broken, found.counts, strict=True)
        ],
        "unseen": [asdict(unseen) for unseen in found.unseen],
        "stopped": found.stopped,
        "verdict": found.verdict,
        "seconds": round(found.seconds, 2),
    }


def _tell(found: Exploration) -> None:
    """Print an exploration for a person."""
    t = words.t
    click.echo(t("crash-command.head", store=found.store, model=found.model, events=found.events))
    click.echo(
        t(
            "crash-command.counted-fail" if found.model == "fail" else "crash-command.counted",
            steps=found.steps,
            explored=found.explored,
            tried=found.tried,
            possible=magnitude(found.possible),
            seconds=f"{found.seconds:.1f}",
        )
    )
    for one, count in zip(found.broken, found.counts, strict=True):
        mark = "?" if found.doubtful else "✗" if one.promised else "○"
        click.echo(f"\n{mark} {one.id}  {t('crash-command.states', n=count)}")
        for name in one.broken:
            click.echo(f"  {broken_line(name)}")
    click.echo()
    for line in unseen_lines(found.unseen):
        click.secho(line, fg="yellow")
    if found.stopped:
        click.secho(t(f"crash-command.{found.stopped}", n=MOST_LOST), fg="yellow")
    if found.broken:
        click.echo(t("crash-command.replay", id=shlex.quote(found.broken[0].id)))
    click.secho(t(f"crash-command.{_verdict(found)}"), fg="red" if found.verdict == "broken" else None)


def _verdict(found: Exploration) -> str:
    """Name the sentence that ends an exploration."""
    if found.verdict == "kept" and found.broken:
        return "not-promised"
    return found.verdict


def magnitude(number: int) -> str:
    """Write a number of combinations: exactly, or by its size where nobody would read the digits."""
    return f"{number:,}" if number < 10**9 else f"10^{int(math.log10(number))}"


def unseen_lines(unseen: Iterable[Unseen]) -> Iterator[str]:
    """Say what the recorder could not follow, a line each."""
    for one in unseen:
        yield words.t(f"crash-unseen.{one.what}", where=one.where)


@contextmanager
def _progress() -> Iterator[Callable[[Explored], None]]:
    """Show how far a search is, where a person looks on."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(words.t("crash-command.recording"), total=None)

        def tell(explored: Explored) -> None:
            shown = words.t("crash-command.exploring", explored=explored.explored, broken=explored.broken)
            total = explored.possible if explored.possible < _MOST_IN_A_BAR else None
            progress.update(task, description=shown, completed=explored.tried, total=total)

        yield tell


def _load(path: Path) -> Trace:
    try:
        return trace_file.load(path)
    except OSError as error:
        raise CrashLabError(
            f"{path}: {error.strerror}; name a file that 'statelab crash record' made"
        ) from None


def _replayed(found: Counterexample, broken: tuple[str, ...], report: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": 1,
        "id": found.id,
        "store": found.store,
        "model": found.model,
        "broke": list(found.broken),
        "breaks": list(broken),
        "after": found.state.after,
        "choices": [asdict(choice) for choice in found.state.choices],
        "fault": asdict(found.fault) if found.fault else None,
        "acknowledged": list(found.state.acknowledged),
        "report": report,
    }


def _draw(found: Counterexample, broken: tuple[str, ...], report: dict[str, Any]) -> None:
    """Draw one crash, or one failed operation, and what the recovery made of it."""
    click.echo(words.t("crash-command.head", store=found.store, model=found.model, events=found.events))
    view = timeline(found.trace, found.state, broken, model=found.model, report=report)
    if found.fault:
        click.echo(_failed(found, found.fault))
        click.echo(what_is_left_as_text(view, words.language()))
    else:
        click.echo(as_text(view, words.language()))
    again = "again" if broken == found.broken else "otherwise" if broken else "not-again"
    click.echo(words.t(f"crash-command.{again}"))


def _failed(found: Counterexample, fault: Fault) -> str:
    """Say which operation failed, how, and how much was acknowledged all the same."""
    way, _, why = fault.do.partition(",")
    how = words.t(f"crash-command.fault-{way}", why=why)
    said, could_be = len(found.state.acknowledged), len(found.trace.acknowledged)
    return "\n".join(
        (
            words.t("crash-command.fault", nth=fault.nth, op=fault.op, path=fault.path, how=how),
            words.t("crash-command.fault-said", said=said, all=could_be),
        )
    )
