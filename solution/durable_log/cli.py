"""`statelab log`: look at a log of any agent, prove one of ours, take a torn tail off, count, follow.

Exit codes: 0 sound, or nothing worse than a torn tail   1 damaged   2 wrong use, or a file that cannot be read
130 interrupted   141 whoever read the output went away
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from .errors import DurableLogError
from .following import Follower
from .foreign import Format
from .inspection import NOTHING, Entry, LogReport, Show, inspect, inspect_session
from .log_repair import find_tail, mend
from .log_screen import Screen, shown_type
from .log_source import Source, is_session, logs_in, printable
from .log_statistics import Statistics
from .log_words import SCREEN, say
from .physical_lines import MAX_LINE_BYTES

CORRUPT, USAGE, INTERRUPTED, NOBODY_READS = 1, 2, 130, 141
_LONG_READ_BYTES = 50 << 20


class Language(click.ParamType[str]):
    """`zh` or `en`; from the environment anything, as a system's name of its language."""

    name = "zh|en"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give `zh` for anything Chinese that the environment says, `en` for the rest."""
        given = ctx is None or param is None or ctx.get_parameter_source(str(param.name)) is _COMMAND_LINE
        if given and value not in ("zh", "en"):
            self.fail(f"{value!r} is not one of zh, en", param, ctx)
        return "zh" if value.lower().startswith(("zh", "chinese")) else "en"


_COMMAND_LINE = click.core.ParameterSource.COMMANDLINE
_places = click.argument("places", metavar="LOG...", nargs=-1, required=True)
_language = click.option(
    "--lang",
    "language",
    type=Language(),
    envvar=["LAB_LANG", "LC_ALL", "LC_MESSAGES", "LANG"],
    default="en",
    help="Language. Default: LAB_LANG, or the system's.",
)
_format = click.option(
    "--format",
    "format_",
    type=click.Choice(["durable", "lesson", "foreign"]),
    help="Whose records these are. Default: told by the first lines.",
)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON report a log, a line each (schema 1).")
_most = click.option(
    "--max-line",
    "max_line_bytes",
    type=click.IntRange(1 << 10, 1 << 30),
    default=MAX_LINE_BYTES,
    show_default=True,
    help="Bytes that a line may have to be judged.",
)


class Quiet(click.Group):
    """A group that ends as tools do: 130 when interrupted, 141 and no word when nobody reads on."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a terminal that knows no Chinese shows codes
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python flushes standard output once more at its end, into the same broken pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(NOBODY_READS)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


@click.group(cls=Quiet, epilog="Example: statelab log inspect ~/agent/sessions/*.jsonl")
def main() -> None:
    """Look at event logs: ours, a lesson's, or any agent's JSON lines.

    Shows no content. Nothing but `repair` changes a file.
    """


@main.command("inspect", epilog="Example: statelab log inspect session.jsonl --from 100 --limit 50")
@_places
@click.option("--from", "first", type=click.IntRange(1), default=1, help="First line whose record is shown.")
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="How many lines to show."
)
@_format
@_most
@_language
@_json
def inspect_(
    *,
    places: tuple[str, ...],
    first: int,
    limit: int,
    format_: Format | None,
    max_line_bytes: int,
    language: str,
    as_json: bool,
) -> None:
    """Judge every line, show records as type and size.

    Says what is wrong, by line and offset. Takes files, folders, and - for standard input.
    """
    screen = Screen(language)

    def show(path: str) -> LogReport:
        entries: list[Entry] = []
        wanted = 0 if as_json else limit
        report = _read(
            path, format_, max_line_bytes, Show(entries.append, first, wanted and first + wanted - 1)
        )
        _tell(report, path, screen, as_json=as_json)
        screen.entries(entries)
        return report

    _finish(_each(places, show))


@main.command(epilog="Example: statelab log verify ~/state/sessions/build-7 --json")
@_places
@_format
@_most
@_language
@_json
def verify(
    *, places: tuple[str, ...], format_: Format | None, max_line_bytes: int, language: str, as_json: bool
) -> None:
    """Prove every line, number and hash.

    Of a session's folder, all segments up to the head that it recorded.
    """
    screen = Screen(language)

    def prove(path: str) -> LogReport:
        report = _read(path, format_, max_line_bytes)
        _tell(report, path, screen, as_json=as_json)
        return report

    _finish(_each(places, prove))


@main.command(epilog="Example: statelab log stats session.jsonl --json")
@_places
@_format
@_most
@_language
@_json
def stats(
    *, places: tuple[str, ...], format_: Format | None, max_line_bytes: int, language: str, as_json: bool
) -> None:
    """Count records by type, sizes and time."""
    screen = Screen(language)

    def total(path: str) -> LogReport:
        counted = Statistics()
        every = Show(lambda entry: counted.add(entry, shown_type(entry.type, entry.format)))
        report = _read(path, format_, max_line_bytes, every)
        if as_json:
            click.echo(msgspec.json.encode(_numbers(counted, report)))
        else:
            screen.pairs(printable(path), _words(counted, report, language))
        return report

    _finish(_each(places, total))


@main.command(epilog="Example: statelab log repair session.jsonl --at 4711 --yes")
@click.argument("place", metavar="LOG")
@click.option(
    "--at", "offset", type=click.IntRange(0), help="Cut here and nowhere else: must be what was found."
)
@click.option("--yes", is_flag=True, help="Do it. Without this, only say what would be done.")
@_format
@_language
@_json
def repair(
    *, place: str, offset: int | None, yes: bool, format_: Format | None, language: str, as_json: bool
) -> None:
    """Take a torn tail off, after a copy.

    The original is copied aside first, and repairs.jsonl beside it tells of it.

    Only what an unfinished write leaves at the very end is cut; damage anywhere else is refused. Stop whoever writes
    the file first: a session of ours is locked for it, a foreign file cannot be.
    """
    title = printable(place)
    try:
        found = find_tail(place, format_)
        if found.report.verdict == "corrupt":
            _tell(found.report, place, Screen(language), as_json=as_json)
            raise SystemExit(CORRUPT)
        if offset is not None and offset != found.report.good_bytes:
            raise click.UsageError(
                f"{title}: --at {offset} is not where the tail begins; that is offset {found.report.good_bytes}"
            )
        done = mend(found) if yes and found.needs_mending else None
    except (DurableLogError, OSError) as error:
        raise click.UsageError(_words_of(error, place)) from None
    if as_json:
        click.echo(msgspec.json.encode({"report": found.report, "repair": done}))
    elif not found.needs_mending:
        click.echo(say("nothing-torn", language, path=title))
    else:
        key, copy = ("repaired", done.copy) if done else ("would-repair", "")
        report = found.report
        click.echo(
            say(key, language, path=title, offset=report.good_bytes, torn=report.torn_bytes, backup=copy)
        )


@main.command(epilog="Example: statelab log tail -f ~/state/sessions/build-7")
@click.argument("place", metavar="LOG", type=click.Path(path_type=Path))
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=10, show_default=True, help="Last records first."
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is appended, until Ctrl-C.")
@_language
def tail(*, place: Path, lines: int, follow: bool, language: str) -> None:
    """Show the last records; -f follows new ones.

    A line a record: its offset, number, type, id and size. Only whole records are shown.
    """
    screen = Screen(language)
    screen.plain = True
    title = printable(str(place))

    def changed(what: str) -> None:
        click.echo(say(what, language, path=title), err=True)

    def show(entries: Iterator[Entry] | list[Entry]) -> None:
        screen.entries(entries, by_offset=True)
        sys.stdout.flush()

    try:
        follower = Follower(place, lines, changed)
        show(follower.records())
        while follow:
            show(follower.wait())
        follower.close()
    except BrokenPipeError:
        raise
    except (DurableLogError, OSError) as error:
        raise click.UsageError(_words_of(error, str(place))) from None


# --- Many logs, one exit code ---


def _each(places: tuple[str, ...], work: Callable[[str], LogReport]) -> Iterator[int]:
    """Do the work for every log, whatever happens to the others; give what each is worth as an exit code."""
    for place in places:
        try:
            paths = logs_in(place)
        except (DurableLogError, OSError) as error:
            yield _complain(error, place)
            continue
        for path in paths:
            try:
                yield CORRUPT if work(path).verdict == "corrupt" else 0
            except BrokenPipeError:
                raise
            except (DurableLogError, OSError) as error:
                yield _complain(error, path)


def _finish(codes: Iterator[int]) -> None:
    raise SystemExit(max(codes, default=0))


def _complain(error: Exception, path: str) -> int:
    click.echo(_words_of(error, path), err=True)
    return USAGE


def _words_of(error: Exception, path: str) -> str:
    if isinstance(error, OSError):
        reason = (error.strerror or type(error).__name__).lower()
        return f"{printable(path)}: {reason}; check the path and its permissions"
    return printable(str(error))


def _tell(report: LogReport, path: str, screen: Screen, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        screen.report(report, printable(path))


def _read(path: str, format_: Format | None, max_line_bytes: int, show: Show = NOTHING) -> LogReport:
    if path != "-" and is_session(Path(path)):
        return inspect_session(Path(path), show)
    with Source.open(path) as source, _progress(source):
        return inspect(source, format_, show=show, max_line_bytes=max_line_bytes)


@contextmanager
def _progress(source: Source) -> Iterator[None]:
    """Show how far a long read is, where a person looks on."""
    console = Console(stderr=True)
    if source.size is None or source.size < _LONG_READ_BYTES or not console.is_terminal:
        yield
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(source.title, total=source.size)
        source.on_progress = lambda read: progress.advance(task, read)
        yield


def _numbers(counted: Statistics, report: LogReport) -> dict[str, Any]:
    size, line = counted.longest
    return {
        "schema": 1,
        "file": report.file,
        "verdict": report.verdict,
        "format": report.format,
        "records": counted.records,
        "bytes": counted.bytes,
        "longest": {"bytes": size, "line": -line},
        "first_at": counted.first,
        "last_at": counted.last,
        "per_second": counted.a_second,
        "types": dict(counted.types.most_common()),
    }


def _words(counted: Statistics, report: LogReport, language: str) -> dict[str, str]:
    size, line = counted.longest
    rate = counted.a_second
    named = {
        "records": f"{counted.records:,}",
        "bytes": f"{report.size:,}",
        "median": f"{counted.bytes / counted.records:,.0f}" if counted.records else "-",
        "longest": say("longest-value", language, line=-line, bytes=size),
        "first": f"{counted.first:%Y-%m-%d %H:%M:%S}Z" if counted.first else "-",
        "last": f"{counted.last:%Y-%m-%d %H:%M:%S}Z" if counted.last else "-",
        "rate": f"{rate:,.3g}" if rate else "-",
    }
    words = {SCREEN[key].in_(language): value for key, value in named.items()}
    for name, count in counted.types.most_common(30):
        words[name or SCREEN["other"].in_(language)] = f"{count:,}"
    return words
